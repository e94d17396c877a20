#include "kernels/common/halves.h"

#include "kernels/common/bf16_pairs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/common/halves.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/common/hwy-compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

// Whole vectors by `vector`, the rest one by one.
template <class FromVector, class FromNumber>
HWY_INLINE void Widen(const uint16_t* from, float* to, size_t n, FromVector vector, FromNumber number) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<uint16_t, decltype(d)> d16;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(vector(d, hn::LoadU(d16, from + i)), d, to + i);
  for (; i < n; ++i) to[i] = number(from[i]);
}
template <class ToVector, class ToNumber>
HWY_INLINE void Shorten(const float* from, uint16_t* to, size_t n, ToVector vector, ToNumber number) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<uint16_t, decltype(d)> d16;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(vector(d, hn::LoadU(d, from + i)), d16, to + i);
  for (; i < n; ++i) to[i] = number(from[i]).bits;
}

void WidenBF16(const uint16_t* from, float* to, size_t n) {
  Widen(
      from, to, n, [](auto d, auto v) HWY_ATTR { return FromBF16(d, v); },
      [](uint16_t v) { return to_float(BFloat16{v}); });
}
void WidenF16(const uint16_t* from, float* to, size_t n) {
  Widen(
      from, to, n, [](auto d, auto v) HWY_ATTR { return FromF16(d, v); }, [](uint16_t v) { return to_float(Half{v}); });
}
void ShortenBF16(const float* from, uint16_t* to, size_t n) {
  Shorten(from, to, n, [](auto d, auto v) HWY_ATTR { return ToBF16(d, v); }, [](float v) { return to_bfloat16(v); });
}
void ShortenF16(const float* from, uint16_t* to, size_t n) {
  Shorten(from, to, n, [](auto d, auto v) HWY_ATTR { return ToF16(d, v); }, [](float v) { return to_half(v); });
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(WidenBF16);
HWY_EXPORT(WidenF16);
HWY_EXPORT(ShortenBF16);
HWY_EXPORT(ShortenF16);

void widen(ScalarType dtype, const uint16_t* from, float* to, size_t n) {
  if (dtype == ScalarType::BFloat16) HWY_DYNAMIC_DISPATCH(WidenBF16)(from, to, n);
  else HWY_DYNAMIC_DISPATCH(WidenF16)(from, to, n);
}
void shorten(ScalarType dtype, const float* from, uint16_t* to, size_t n) {
  if (dtype == ScalarType::BFloat16 && bf16_pairs::available()) bf16_pairs::shorten(from, to, static_cast<int64_t>(n));
  else if (dtype == ScalarType::BFloat16) HWY_DYNAMIC_DISPATCH(ShortenBF16)(from, to, n);
  else HWY_DYNAMIC_DISPATCH(ShortenF16)(from, to, n);
}
}  // namespace tn
#endif
