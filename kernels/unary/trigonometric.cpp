// Trigonometric and hyperbolic functions and the error function. Errors: sleef's 1 ULP (erfc 1.5); sinc 3 ULP.
#include <cmath>
#include <numbers>

#include "generated/slots/unary.h"
#include "kernels/common/scalars.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/unary/trigonometric.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/common/map-inl.h"
#include "kernels/common/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

// In TrigonometricIndex's order.
const FloatBodies* Trigonometrics() {
  static constexpr FloatBodies table[] = {
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Sin(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Cos(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Tan(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Asin(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Acos(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Atan(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Sinh(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Cosh(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Asinh(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Acosh(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Atanh(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Erf(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return math::Erfc(d, v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR {
        const auto x = hn::Mul(v, SetNumber(d, std::numbers::pi));
        return hn::IfThenElse(hn::Eq(v, hn::Zero(d)), SetNumber(d, 1), hn::Div(math::Sin(d, x), x));
      }),
  };
  return table;
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(Trigonometrics);
namespace {

enum TrigonometricIndex {
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
  kErf,
  kErfc,
  kSinc
};

template <TrigonometricIndex kIndex, class C>
constexpr PointwiseSlot slot(C) {
  return {.row =
              [](const Row& row) {
                if (map_floats<1>(row, HWY_DYNAMIC_DISPATCH(Trigonometrics)()[kIndex])) return;
                visit_complex(row.dtype, [&]<class T>() { map_scalars<T, T>(row, [](T z) { return C{}(z); }); });
              },
          .promotion = Promotion::ToFloat,
          .cost = 8};
}
template <TrigonometricIndex kIndex>
constexpr PointwiseSlot real_slot() {
  return {.row = [](const Row& row) { map_floats<1>(row, HWY_DYNAMIC_DISPATCH(Trigonometrics)()[kIndex]); },
          .promotion = Promotion::ToFloat,
          .cost = 8};
}

}  // namespace

const PointwiseSlot slots::sin = slot<kSin>([](auto z) { return std::sin(z); });
const PointwiseSlot slots::cos = slot<kCos>([](auto z) { return std::cos(z); });
const PointwiseSlot slots::tan = slot<kTan>([](auto z) { return std::tan(z); });
const PointwiseSlot slots::asin = slot<kAsin>([](auto z) { return std::asin(z); });
const PointwiseSlot slots::acos = slot<kAcos>([](auto z) { return std::acos(z); });
const PointwiseSlot slots::atan = slot<kAtan>([](auto z) { return std::atan(z); });
const PointwiseSlot slots::sinh = slot<kSinh>([](auto z) { return std::sinh(z); });
const PointwiseSlot slots::cosh = slot<kCosh>([](auto z) { return std::cosh(z); });
const PointwiseSlot slots::asinh = slot<kAsinh>([](auto z) { return std::asinh(z); });
const PointwiseSlot slots::acosh = slot<kAcosh>([](auto z) { return std::acosh(z); });
const PointwiseSlot slots::atanh = slot<kAtanh>([](auto z) { return std::atanh(z); });
const PointwiseSlot slots::erf = real_slot<kErf>();
const PointwiseSlot slots::erfc = real_slot<kErfc>();
const PointwiseSlot slots::sinc = slot<kSinc>([](auto z) {
  using T = decltype(z);
  const T x = z * std::numbers::pi_v<typename T::value_type>;
  return z == T{} ? T(1) : std::sin(x) / x;
});

}  // namespace tn
#endif
