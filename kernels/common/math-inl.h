// Vector math by target: sleef's functions under their direct names, or the C library lane by lane where sleef has
// none. Errors in ULP over the whole range are sleef's: 1.0 (u10), 1.5 for Erfc. Include after foreach_target.h.

#if defined(TN_KERNELS_COMMON_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TN_KERNELS_COMMON_MATH_INL_H_
#undef TN_KERNELS_COMMON_MATH_INL_H_
#else
#define TN_KERNELS_COMMON_MATH_INL_H_
#endif

#include <cmath>
#include <initializer_list>

#include "kernels/common/hwy-compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE::math {

template <class D, class F, class... V>
HWY_INLINE hn::Vec<D> Lanewise(D d, F f, V... v) {
  using T = hn::TFromD<D>;
  constexpr size_t kMax = HWY_MAX_BYTES / sizeof(T);
  const size_t n = hn::Lanes(d);
  if constexpr (sizeof...(V) == 1) {
    HWY_ALIGN T a[kMax];
    hn::Store(v..., d, a);
    for (size_t i = 0; i < n; ++i) a[i] = f(a[i]);
    return hn::Load(d, a);
  } else {
    HWY_ALIGN T a[2][kMax];
    size_t k = 0;
    (hn::Store(v, d, a[k++]), ...);
    for (size_t i = 0; i < n; ++i) a[0][i] = f(a[0][i], a[1][i]);
    return hn::Load(d, a[0]);
  }
}

// Token pasting, since sleef spells type, width, error and instruction set into each name.
#undef TN_SLEEF
#undef TN_SLEEF_F
#undef TN_SLEEF_D
#if TN_WITH_SLEEF && HWY_TARGET == HWY_AVX3
#define TN_SLEEF 1
#define TN_SLEEF_F(name, error) Sleef_##name##f16_##error##avx512f
#define TN_SLEEF_D(name, error) Sleef_##name##d8_##error##avx512f
#elif TN_WITH_SLEEF && HWY_TARGET == HWY_AVX2
#define TN_SLEEF 1
#define TN_SLEEF_F(name, error) Sleef_##name##f8_##error##avx2
#define TN_SLEEF_D(name, error) Sleef_##name##d4_##error##avx2
#elif TN_WITH_SLEEF && HWY_TARGET == HWY_SSE4
#define TN_SLEEF 1
#define TN_SLEEF_F(name, error) Sleef_##name##f4_##error##sse4
#define TN_SLEEF_D(name, error) Sleef_##name##d2_##error##sse4
#elif TN_WITH_SLEEF && HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64
#define TN_SLEEF 1
#define TN_SLEEF_F(name, error) Sleef_##name##f4_##error##advsimd
#define TN_SLEEF_D(name, error) Sleef_##name##d2_##error##advsimd
#else
#define TN_SLEEF 0
#endif

#undef TN_MATH1
#undef TN_MATH2
#if TN_SLEEF
using RawF = decltype(hn::Vec<hn::ScalableTag<float>>::raw);
using RawD = decltype(hn::Vec<hn::ScalableTag<double>>::raw);
#define TN_MATH1(Name, name, error)                                                              \
  extern "C" RawF TN_SLEEF_F(name, error)(RawF);                                                 \
  extern "C" RawD TN_SLEEF_D(name, error)(RawD);                                                 \
  template <class D>                                                                             \
  HWY_INLINE hn::Vec<D> Name(D, hn::Vec<D> v) {                                                  \
    if constexpr (sizeof(hn::TFromD<D>) == 4) return hn::Vec<D>{TN_SLEEF_F(name, error)(v.raw)}; \
    else return hn::Vec<D>{TN_SLEEF_D(name, error)(v.raw)};                                      \
  }
#define TN_MATH2(Name, name, error)                                                                     \
  extern "C" RawF TN_SLEEF_F(name, error)(RawF, RawF);                                                  \
  extern "C" RawD TN_SLEEF_D(name, error)(RawD, RawD);                                                  \
  template <class D>                                                                                    \
  HWY_INLINE hn::Vec<D> Name(D, hn::Vec<D> a, hn::Vec<D> b) {                                           \
    if constexpr (sizeof(hn::TFromD<D>) == 4) return hn::Vec<D>{TN_SLEEF_F(name, error)(a.raw, b.raw)}; \
    else return hn::Vec<D>{TN_SLEEF_D(name, error)(a.raw, b.raw)};                                      \
  }
#else
#define TN_MATH1(Name, name, error)                                      \
  template <class D>                                                     \
  HWY_INLINE hn::Vec<D> Name(D d, hn::Vec<D> v) {                        \
    return Lanewise(d, [](auto x) HWY_ATTR { return std::name(x); }, v); \
  }
#define TN_MATH2(Name, name, error)                                                    \
  template <class D>                                                                   \
  HWY_INLINE hn::Vec<D> Name(D d, hn::Vec<D> a, hn::Vec<D> b) {                        \
    return Lanewise(d, [](auto x, auto y) HWY_ATTR { return std::name(x, y); }, a, b); \
  }
#endif

TN_MATH1(Exp, exp, u10)
TN_MATH1(Exp2, exp2, u10)
TN_MATH1(Expm1, expm1, u10)
TN_MATH1(Log, log, u10)
TN_MATH1(Log2, log2, u10)
TN_MATH1(Log10, log10, u10)
TN_MATH1(Log1p, log1p, u10)
TN_MATH1(Sin, sin, u10)
TN_MATH1(Cos, cos, u10)
TN_MATH1(Tan, tan, u10)
TN_MATH1(Asin, asin, u10)
TN_MATH1(Acos, acos, u10)
TN_MATH1(Atan, atan, u10)
TN_MATH1(Sinh, sinh, u10)
TN_MATH1(Cosh, cosh, u10)
TN_MATH1(Tanh, tanh, u10)
TN_MATH1(Asinh, asinh, u10)
TN_MATH1(Acosh, acosh, u10)
TN_MATH1(Atanh, atanh, u10)
TN_MATH1(ErfLibrary, erf, u10)
TN_MATH1(Erfc, erfc, u15)
TN_MATH2(Pow, pow, u10)
TN_MATH2(Atan2, atan2, u10)
TN_MATH2(Hypot, hypot, u05)

// float: 1.1 ULP, 2 without fused multiply-add. Below 0.92 a polynomial of x^2, above it 1 - exp(polynomial), both
// fitted to erf on [0, 0.92] and log(erfc) on [0.9, 4]; from 4 on the result is 1.
template <class D>
HWY_INLINE hn::Vec<D> Erf(D d, hn::Vec<D> v) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return ErfLibrary(d, v);
  } else {
    const auto polynomial = [&](auto x, std::initializer_list<float> highest_first) HWY_ATTR {
      auto sum = hn::Zero(d);
      for (const float c : highest_first) sum = hn::MulAdd(sum, x, hn::Set(d, c));
      return sum;
    };
    const auto four = hn::Set(d, 4.0f), magnitude = hn::Abs(v);
    const auto t = hn::IfThenElse(hn::Gt(magnitude, four), four, magnitude);  // NaN passes
    const auto small = polynomial(
        hn::Mul(t, t), {8.397287996888623e-05f, -0.0008149687580982175f, 0.0052017058083520685f, -0.026859698205144885f,
                        0.11283701547739867f, -0.37612634183765914f, 0.12837916669167204f});
    const auto tail =
        polynomial(t, {-2.090955565248628e-05f, 0.0004323030058111061f, -0.004160526995931752f, 0.025091496786755534f,
                       -0.10823661934271053f, -0.6333866465514536f, -1.129495159064629f, 0.00017055203185810112f});
    const auto large = hn::CopySign(hn::Sub(hn::Set(d, 1.0f), Exp(d, tail)), v);
    return hn::IfThenElse(hn::Lt(t, hn::Set(d, 0.92f)), hn::MulAdd(small, v, v), large);
  }
}

// 1 / (1 + exp(-x)).
template <class D>
HWY_INLINE hn::Vec<D> Sigmoid(D d, hn::Vec<D> v) {
  const auto one = hn::Set(d, hn::TFromD<D>{1});
  return hn::Div(one, hn::Add(one, Exp(d, hn::Neg(v))));
}

}  // namespace tn::HWY_NAMESPACE::math
HWY_AFTER_NAMESPACE();
#endif
