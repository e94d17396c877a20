// Logarithm, sine and cosine of float uniforms with the exact rounding of upstream's AVX2 code: Cephes
// polynomials in which its compiler fused each multiplication that only feeds an addition. Where a product
// could fuse with either of two additions, the choice below is that of upstream's binary. Written with
// explicit fused operations, so bits don't hang on our compiler.
#if defined(TN_KERNELS_RANDOM_NORMAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TN_KERNELS_RANDOM_NORMAL_INL_H_
#undef TN_KERNELS_RANDOM_NORMAL_INL_H_
#else
#define TN_KERNELS_RANDOM_NORMAL_INL_H_
#endif

#include <cmath>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// a * b + c, rounded once. Highway's MulAdd rounds twice where the target has no fused instruction.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Fused([[maybe_unused]] D d, V a, V b, V c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#else
  HWY_ALIGN hn::TFromD<D> x[hn::MaxLanes(d)], y[hn::MaxLanes(d)], z[hn::MaxLanes(d)];
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  hn::Store(c, d, z);
  for (size_t i = 0; i < hn::Lanes(d); ++i) x[i] = std::fma(x[i], y[i], z[i]);
  return hn::Load(d, x);
#endif
}

// log(x) for 2^-24 <= x <= 1; other values are out of contract. Error: 1 ULP near 1, less elsewhere.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V LogUnit(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, x);
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)).
  auto e = hn::ConvertTo(d, hn::Sub(hn::ShiftRight<23>(bits), hn::Set(di, 126)));
  auto m = hn::BitCast(d, hn::Or(hn::And(bits, hn::Set(di, 0x007fffff)), hn::Set(di, 0x3f000000)));
  const auto small = hn::Lt(m, hn::Set(d, 0.707106781186547524f));
  const auto again = hn::IfThenElseZero(small, m);
  e = hn::Sub(e, hn::IfThenElseZero(small, hn::Set(d, 1.0f)));
  m = hn::Add(hn::Sub(m, hn::Set(d, 1.0f)), again);

  const auto square = hn::Mul(m, m);
  auto y = hn::Set(d, 7.0376836292E-2f);
  y = Fused(d, y, m, hn::Set(d, -1.1514610310E-1f));
  y = Fused(d, y, m, hn::Set(d, 1.1676998740E-1f));
  y = Fused(d, y, m, hn::Set(d, -1.2420140846E-1f));
  y = Fused(d, y, m, hn::Set(d, 1.4249322787E-1f));
  y = Fused(d, y, m, hn::Set(d, -1.6668057665E-1f));
  y = Fused(d, y, m, hn::Set(d, 2.0000714765E-1f));
  y = Fused(d, y, m, hn::Set(d, -2.4999993993E-1f));
  y = Fused(d, y, m, hn::Set(d, 3.3333331174E-1f));
  y = hn::Mul(y, m);
  y = Fused(d, y, square, hn::Mul(e, hn::Set(d, -2.12194440e-4f)));
  y = Fused(d, square, hn::Set(d, -0.5f), y);
  return Fused(d, e, hn::Set(d, 0.693359375f), hn::Add(m, y));
}

// sin(x) and cos(x) for 0 <= x < 8192; other values are out of contract. Error: 1 ULP of 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void SinCosTurn(D d, V x, V& sine, V& cosine) {
  const hn::RebindToSigned<D> di;
  // The octant, rounded up to an even one, and the rest of the angle in [-pi/4, pi/4]: pi/4 in three parts.
  const auto octant =
      hn::And(hn::Add(hn::ConvertTo(di, hn::Mul(x, hn::Set(d, 1.27323954473516f))), hn::Set(di, 1)), hn::Set(di, ~1));
  const auto turns = hn::ConvertTo(d, octant);
  x = Fused(d, turns, hn::Set(d, -0.78515625f), x);
  x = Fused(d, turns, hn::Set(d, -2.4187564849853515625e-4f), x);
  x = Fused(d, turns, hn::Set(d, -3.77489497744594108e-8f), x);

  const auto z = hn::Mul(x, x);
  auto c = hn::Set(d, 2.443315711809948E-005f);
  c = Fused(d, c, z, hn::Set(d, -1.388731625493765E-003f));
  c = Fused(d, c, z, hn::Set(d, 4.166664568298827E-002f));
  c = hn::Mul(c, z);
  c = Fused(d, c, z, hn::Mul(z, hn::Set(d, -0.5f)));
  c = hn::Add(c, hn::Set(d, 1.0f));
  auto s = hn::Set(d, -1.9515295891E-4f);
  s = Fused(d, s, z, hn::Set(d, 8.3321608736E-3f));
  s = Fused(d, s, z, hn::Set(d, -1.6666654611E-1f));
  s = Fused(d, hn::Mul(s, z), x, x);

  // In octants 2, 3 (mod 4) the two change places; the signs follow the octant's third bit.
  const auto two = hn::Set(di, 2), four = hn::Set(di, 4);
  const auto straight =
      hn::MaskFromVec(hn::BitCast(d, hn::VecFromMask(di, hn::Eq(hn::And(octant, two), hn::Zero(di)))));
  const auto sine_sign = hn::BitCast(d, hn::ShiftLeft<29>(hn::And(octant, four)));
  const auto cosine_sign = hn::BitCast(d, hn::ShiftLeft<29>(hn::AndNot(hn::Sub(octant, two), four)));
  sine = hn::Xor(hn::IfThenElse(straight, s, c), sine_sign);
  cosine = hn::Xor(hn::IfThenElse(straight, c, s), cosine_sign);
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
