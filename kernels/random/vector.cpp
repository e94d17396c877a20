#include "kernels/random/vector.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/random/vector.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/random/normal-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

void UniformF32(const uint32_t* bits, float* out, size_t n, float from, float to) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto unit = hn::Set(d, 0x1p-24f), span = hn::Set(d, to - from), low = hn::Set(d, from), high = hn::Set(d, to);
  const auto mask = hn::Set(di, 0xffffff);
  const auto sample = [&](hn::Vec<decltype(di)> raw) {
    const auto x = hn::Mul(hn::ConvertTo(d, hn::And(raw, mask)), unit);
    const auto v = Fused(d, x, span, low);
    return hn::IfThenElse(hn::Eq(v, high), low, v);
  };
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(sample(hn::LoadU(di, reinterpret_cast<const int32_t*>(bits) + i)), d, out + i);
  if (i == n) return;
  HWY_ALIGN int32_t rest[hn::MaxLanes(di)] = {};
  HWY_ALIGN float samples[hn::MaxLanes(d)];
  for (size_t j = 0; i + j < n; ++j) rest[j] = static_cast<int32_t>(bits[i + j]);
  hn::Store(sample(hn::Load(di, rest)), d, samples);
  std::copy(samples, samples + (n - i), out + i);
}

void UniformF64(const uint32_t* bits, double* out, size_t n, double from, double to) {
  const hn::ScalableTag<double> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const auto unit = hn::Set(d, 0x1p-53), span = hn::Set(d, to - from), low = hn::Set(d, from), high = hn::Set(d, to);
  // Each half becomes a double by standing in the significand of a power of two, which is then taken away:
  // exact.
  const auto high_power = hn::Set(d, 0x1p84), low_power = hn::Set(d, 0x1p52);
  const auto sample = [&](hn::Vec<decltype(du)> raw) {
    // Loaded little-endian, so the pair's first word, the high half, lies low.
    const auto upper = hn::BitCast(d, hn::Or(hn::And(raw, hn::Set(du, 0x1fffff)), hn::BitCast(du, high_power)));
    const auto lower = hn::BitCast(d, hn::Or(hn::ShiftRight<32>(raw), hn::BitCast(du, low_power)));
    const auto x = hn::Mul(hn::Add(hn::Sub(upper, high_power), hn::Sub(lower, low_power)), unit);
    const auto v = Fused(d, x, span, low);
    return hn::IfThenElse(hn::Eq(v, high), low, v);
  };
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  HWY_ALIGN uint64_t raw[hn::MaxLanes(du)] = {};
  HWY_ALIGN double samples[hn::MaxLanes(d)];
  const auto load = [&](size_t count) {
    std::memcpy(raw, bits + 2 * i, count * sizeof(uint64_t));
    return hn::Load(du, raw);
  };
  for (; i + lanes <= n; i += lanes) hn::StoreU(sample(load(lanes)), d, out + i);
  if (i == n) return;
  hn::Store(sample(load(n - i)), d, samples);
  std::copy(samples, samples + (n - i), out + i);
}

void NormalGroupsF32(float* data, size_t groups, float mean, float std) {
  const hn::CappedTag<float, 8> d;
  const size_t lanes = hn::Lanes(d);
  const auto mean_v = hn::Set(d, mean), std_v = hn::Set(d, std);
  for (; groups != 0; --groups, data += 16)
    for (size_t j = 0; j < 8; j += lanes) {
      const auto u1 = hn::Sub(hn::Set(d, 1.0f), hn::LoadU(d, data + j));  // [0, 1) -> (0, 1], for the logarithm
      const auto radius = hn::Sqrt(hn::Mul(hn::Set(d, -2.0f), LogUnit(d, u1)));
      const auto theta = hn::Mul(hn::Set(d, 6.283185307179586f), hn::LoadU(d, data + j + 8));
      hn::Vec<decltype(d)> sine, cosine;
      SinCosTurn(d, theta, sine, cosine);
      hn::StoreU(Fused(d, hn::Mul(radius, cosine), std_v, mean_v), d, data + j);
      hn::StoreU(Fused(d, hn::Mul(radius, sine), std_v, mean_v), d, data + j + 8);
    }
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(UniformF32);
HWY_EXPORT(UniformF64);
HWY_EXPORT(NormalGroupsF32);

void rng::uniform_f32(const uint32_t* bits, float* out, size_t n, float from, float to) {
  HWY_DYNAMIC_DISPATCH(UniformF32)(bits, out, n, from, to);
}
void rng::uniform_f64(const uint32_t* bits, double* out, size_t n, double from, double to) {
  HWY_DYNAMIC_DISPATCH(UniformF64)(bits, out, n, from, to);
}
void rng::normal_groups_f32(float* data, size_t groups, float mean, float std) {
  HWY_DYNAMIC_DISPATCH(NormalGroupsF32)(data, groups, mean, std);
}
}  // namespace tn
#endif
