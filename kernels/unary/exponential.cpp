// Exponentials, logarithms, and the sigmoids made of them. Errors: sleef's 1 ULP for the named functions; sigmoid 3
// ULP.
#include <cmath>
#include <numbers>

#include "generated/slots/unary.h"
#include "kernels/common/scalars.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/unary/exponential.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/common/map-inl.h"
#include "kernels/common/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

// In ExponentialIndex's order.
const FloatBodies* Exponentials() {
  static constexpr FloatBodies table[] = {
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Exp(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Exp2(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Expm1(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Log(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Log2(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Log10(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Log1p(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Sigmoid(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Tanh(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return hn::Div(v, hn::Add(SetNumber(d, 1), math::Exp(d, hn::Neg(v)))); }),
      BodiesWith<1>([](const Arg* params) {
        // No eps, or a negative one: nothing is clamped, and values outside [0, 1] give NaN.
        const double eps = params[0].is_none() ? -1 : params[0].number();
        return [eps](auto d, auto v) HWY_ATTR {
          const auto one = SetNumber(d, 1);
          if (eps >= 0) {
            const auto low = SetNumber(d, eps), high = hn::Sub(one, low);
            v = hn::IfThenElse(hn::Lt(v, low), low, v);
            v = hn::IfThenElse(hn::Gt(v, high), high, v);
          }
          return math::Log(d, hn::Div(v, hn::Sub(one, v)));
        };
      }),
  };
  return table;
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(Exponentials);
namespace {

enum ExponentialIndex { kExp, kExp2, kExpm1, kLog, kLog2, kLog10, kLog1p, kSigmoid, kTanh, kSilu, kLogit };

// A slot of the table's entry with a function for complex numbers beside it.
template <ExponentialIndex kIndex, class C>
constexpr PointwiseSlot slot(C, Promotion promotion = Promotion::ToFloat) {
  return {.row =
              [](const Row& row) {
                if (map_floats<1>(row, HWY_DYNAMIC_DISPATCH(Exponentials)()[kIndex])) return;
                visit_complex(row.dtype, [&]<class T>() { map_scalars<T, T>(row, [](T z) { return C{}(z); }); });
              },
          .promotion = promotion,
          .cost = 8};
}
template <ExponentialIndex kIndex>
constexpr PointwiseSlot real_slot(Promotion promotion = Promotion::ToFloat) {
  return {.row = [](const Row& row) { map_floats<1>(row, HWY_DYNAMIC_DISPATCH(Exponentials)()[kIndex]); },
          .promotion = promotion,
          .cost = 8};
}

// log(1 + z) without losing small z.
template <class T>
std::complex<T> log1p(std::complex<T> z) {
  const T x = z.real(), y = z.imag();
  const T real = std::abs(z) < T{0.5} ? std::log1p(x * (T{2} + x) + y * y) / T{2} : std::log(std::abs(T{1} + z));
  return {real, std::atan2(y, x + T{1})};
}
// exp(z) - 1: the cosine's distance from one through the sine of half the angle.
template <class T>
std::complex<T> expm1(std::complex<T> z) {
  const T a = std::sin(z.imag() / T{2});
  return {std::expm1(z.real()) * std::cos(z.imag()) - T{2} * a * a, std::exp(z.real()) * std::sin(z.imag())};
}

}  // namespace

const PointwiseSlot slots::exp = slot<kExp>([](auto z) { return std::exp(z); });
const PointwiseSlot slots::exp2 = slot<kExp2>([](auto z) {
  using P = typename decltype(z)::value_type;
  return std::exp(z * std::numbers::ln2_v<P>);
});
const PointwiseSlot slots::expm1 = slot<kExpm1>([](auto z) { return tn::expm1(z); });
const PointwiseSlot slots::log = slot<kLog>([](auto z) { return std::log(z); });
const PointwiseSlot slots::log2 = slot<kLog2>([](auto z) {
  using P = typename decltype(z)::value_type;
  return std::log(z) / std::numbers::ln2_v<P>;
});
const PointwiseSlot slots::log10 = slot<kLog10>([](auto z) { return std::log10(z); });
const PointwiseSlot slots::log1p = slot<kLog1p>([](auto z) { return tn::log1p(z); });
const PointwiseSlot slots::sigmoid =
    slot<kSigmoid>([](auto z) { return decltype(z)(1) / (decltype(z)(1) + std::exp(-z)); });
const PointwiseSlot slots::tanh = slot<kTanh>([](auto z) { return std::tanh(z); });
const PointwiseSlot slots::silu =
    slot<kSilu>([](auto z) { return z / (decltype(z)(1) + std::exp(-z)); }, Promotion::Same);
const PointwiseSlot slots::logit = real_slot<kLogit>();

}  // namespace tn
#endif
