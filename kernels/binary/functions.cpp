// Functions of two floats. Errors: sleef's 1 ULP for atan2, half of one for hypot; logaddexp 3 ULP.
#include <cmath>
#include <numbers>

#include "generated/slots/binary.h"
#include "kernels/common/checks.h"
#include "kernels/common/scalars.h"
#include "runtime/half.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/binary/functions.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/common/map-inl.h"
#include "kernels/common/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

// log(base^a + base^b) around the larger of the two; equal infinities are their own sum.
template <class D, class V, class Exponential, class Logarithm>
HWY_INLINE V LogAdd(D d, V a, V b, const Exponential& power, const Logarithm& logarithm) {
  const auto larger = hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
  const auto sum = hn::Add(larger, logarithm(power(hn::Neg(hn::Abs(hn::Sub(a, b))))));
  return hn::IfThenElse(hn::And(hn::Eq(a, b), hn::Eq(hn::Abs(a), SetNumber(d, HUGE_VAL))), a, sum);
}

// In FunctionIndex's order.
const FloatBodies* Functions() {
  static constexpr FloatBodies table[] = {
      Bodies<2>([](auto d, auto a, auto b) HWY_ATTR { return math::Atan2(d, a, b); }),
      Bodies<2>([](auto d, auto a, auto b) HWY_ATTR { return math::Hypot(d, a, b); }),
      Bodies<2>([](auto, auto a, auto b) HWY_ATTR { return hn::CopySign(a, b); }),
      // The other operand where one is NaN.
      Bodies<2>([](auto, auto a, auto b) HWY_ATTR { return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(a)), b, a); }),
      Bodies<2>([](auto, auto a, auto b) HWY_ATTR { return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(a)), b, a); }),
      Bodies<2>([](auto d, auto a, auto b) HWY_ATTR {
        const auto zero = hn::Zero(d);
        return hn::IfThenElse(hn::Eq(a, zero), b, hn::IfThenElseZero(hn::Ge(a, zero), SetNumber(d, 1)));
      }),
      Bodies<2>([](auto d, auto a, auto b) HWY_ATTR {
        return LogAdd(
            d, a, b, [d](auto v) HWY_ATTR { return math::Exp(d, v); },
            [d](auto v) HWY_ATTR { return math::Log1p(d, v); });
      }),
      Bodies<2>([](auto d, auto a, auto b) HWY_ATTR {
        return LogAdd(
            d, a, b, [d](auto v) HWY_ATTR { return math::Exp2(d, v); },
            [d](auto v) HWY_ATTR { return hn::Mul(math::Log1p(d, v), SetNumber(d, std::numbers::log2e)); });
      }),
      // x * log(y): 0 where x is 0, but for a NaN in y.
      Bodies<2>([](auto d, auto x, auto y) HWY_ATTR {
        const auto product = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Zero(d), hn::Mul(x, math::Log(d, y)));
        return hn::IfThenElse(hn::IsNaN(y), y, product);
      }),
      Bodies<2>([](auto d, auto x, auto y) HWY_ATTR {
        const auto product = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Zero(d), hn::Mul(x, math::Log1p(d, y)));
        return hn::IfThenElse(hn::IsNaN(y), y, product);
      }),
  };
  return table;
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(Functions);
namespace {

using checks::Inputs;

enum FunctionIndex { kAtan2, kHypot, kCopysign, kFmax, kFmin, kHeaviside, kLogaddexp, kLogaddexp2, kXlogy, kXlog1py };

template <FunctionIndex kIndex>
bool floats(const Row& row) {
  return map_floats<2>(row, HWY_DYNAMIC_DISPATCH(Functions)()[kIndex]);
}
template <FunctionIndex kIndex>
constexpr PointwiseSlot slot(Promotion promotion, int8_t cost) {
  return {.row = [](const Row& row) { floats<kIndex>(row); }, .promotion = promotion, .cost = cost};
}
template <FunctionIndex kIndex, class F>
constexpr PointwiseSlot whole_slot(F, void (*check)(Inputs, const Arg*)) {
  return {.row =
              [](const Row& row) {
                if (floats<kIndex>(row)) return;
                visit_integral_and_bool(row.dtype, [&]<class T>() {
                  map_scalars<T, T, T>(row, [](T a, T b) { return static_cast<T>(F{}(a, b)); });
                });
              },
          .check = check};
}

// The same around the number of larger real part.
template <class T>
std::complex<T> log_add(std::complex<T> a, std::complex<T> b) {
  if (std::isnan(a.real()) || std::isnan(a.imag()) || std::isnan(b.real()) || std::isnan(b.imag()))
    return {std::nan(""), std::nan("")};
  const auto [low, high] = a.real() < b.real() ? std::pair(a, b) : std::pair(b, a);
  if (!std::isfinite(low.real()) && low.real() == high.real()) {
    if (low.real() < 0) return low;
    return std::log(std::exp(low) + std::exp(high));
  }
  const std::complex<T> z = std::exp(low - high), one = T{1} + z;
  // log(1 + z) without losing a small z.
  const T x = z.real(), y = z.imag();
  const T real = std::abs(z) < T{0.5} ? std::log1p(x * (T{2} + x) + y * y) / T{2} : std::log(std::abs(one));
  return high + std::complex<T>(real, std::arg(one));
}

// The next float of the 16-bit format towards `to`.
uint16_t next_half(uint16_t from, float a, float b) {
  if (a == 0) return static_cast<uint16_t>(b < 0 ? 0x8001 : 0x0001);
  return static_cast<uint16_t>((a < b) == (a > 0) ? from + 1 : from - 1);
}
template <class H>
H next_after(H from, H to) {
  const float a = to_float(from), b = to_float(to);
  if (a != a) return from;
  if (b != b || a == b) return to;
  return H{next_half(from.bits, a, b)};
}

}  // namespace

const PointwiseSlot slots::atan2 = slot<kAtan2>(Promotion::ToFloat, 16);
const PointwiseSlot slots::hypot = slot<kHypot>(Promotion::Same, 8);
const PointwiseSlot slots::copysign_Tensor = slot<kCopysign>(Promotion::ToFloat, 1);
const PointwiseSlot slots::fmax =
    whole_slot<kFmax>([](auto a, auto b) { return a > b ? a : b; },
                      [](Inputs inputs, const Arg*) {
                        TN_CHECK(!checks::any_complex(inputs), "fmax not implemented for complex tensors.");
                      });
const PointwiseSlot slots::fmin =
    whole_slot<kFmin>([](auto a, auto b) { return a < b ? a : b; },
                      [](Inputs inputs, const Arg*) {
                        TN_CHECK(!checks::any_complex(inputs), "fmin not implemented for complex tensors.");
                      });
const PointwiseSlot slots::heaviside = whole_slot<kHeaviside>(
    [](auto a, auto b) { return a == 0 ? b : static_cast<decltype(a)>(a > 0); },
    [](Inputs inputs, const Arg*) {
      TN_CHECK(!checks::any_complex(inputs), "heaviside is not yet implemented for complex tensors.");
      TN_CHECK(inputs[0]->dtype() == inputs[1]->dtype(),
               "heaviside is not yet implemented for tensors with different dtypes.");
    });
const PointwiseSlot slots::logaddexp = {.row =
                                            [](const Row& row) {
                                              if (floats<kLogaddexp>(row)) return;
                                              visit_complex(row.dtype, [&]<class T>() {
                                                map_scalars<T, T, T>(row, [](T a, T b) { return log_add(a, b); });
                                              });
                                            },
                                        .cost = 16};
const PointwiseSlot slots::logaddexp2 = slot<kLogaddexp2>(Promotion::Same, 16);
const PointwiseSlot slots::xlogy_Tensor = slot<kXlogy>(Promotion::ToFloat, 8);
const PointwiseSlot slots::special_xlog1py = slot<kXlog1py>(Promotion::ToFloat, 8);

const PointwiseSlot slots::nextafter = {.row = [](const Row& row) {
  switch (row.dtype) {
    case ScalarType::Float:
      return map_scalars<float, float, float>(row, [](float a, float b) { return std::nextafter(a, b); });
    case ScalarType::Double:
      return map_scalars<double, double, double>(row, [](double a, double b) { return std::nextafter(a, b); });
    case ScalarType::Half: return map_scalars<Half, Half, Half>(row, next_after<Half>);
    default: return map_scalars<BFloat16, BFloat16, BFloat16>(row, next_after<BFloat16>);
  }
}};

}  // namespace tn
#endif
