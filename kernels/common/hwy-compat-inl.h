// What Highway 1.0.3 lacks, and conversions of 16-bit floats that are ours on any version (theirs truncate on some).
// Per target: include after foreach_target.h.

#if defined(TN_KERNELS_COMMON_HWY_COMPAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TN_KERNELS_COMMON_HWY_COMPAT_INL_H_
#undef TN_KERNELS_COMMON_HWY_COMPAT_INL_H_
#else
#define TN_KERNELS_COMMON_HWY_COMPAT_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hwy/highway.h"
#include "runtime/half.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The first n lanes from memory, zero in the others; reads nothing behind them.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadUpTo(D d, const T* p, size_t n) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)] = {};
  for (size_t i = 0; i < n; ++i) lanes[i] = p[i];
  return hn::Load(d, lanes);
#else
  return hn::MaskedLoad(hn::FirstN(d, n), d, p);
#endif
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void StoreUpTo(hn::Vec<D> v, D d, T* p, size_t n) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, lanes);
  for (size_t i = 0; i < n; ++i) p[i] = lanes[i];
#else
  hn::BlendedStore(v, hn::FirstN(d, n), d, p);
#endif
}

template <class D>
HWY_INLINE hn::TFromD<D> SumLanes(D d, hn::Vec<D> v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}

// ---- bfloat16 ----

template <class DF>
HWY_INLINE hn::Vec<DF> FromBF16(DF df, hn::Vec<hn::Rebind<uint16_t, DF>> v) {
  const hn::RebindToUnsigned<DF> du;
  return hn::BitCast(df, hn::ShiftLeft<16>(hn::PromoteTo(du, v)));
}

template <class DF>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, DF>> ToBF16(DF df, hn::Vec<DF> v) {
  const hn::RebindToUnsigned<DF> du;
  const hn::RebindToSigned<DF> di;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF))));
  const auto is_nan = hn::RebindMask(du, hn::IsNaN(v));
  const auto result = hn::IfThenElse(is_nan, hn::Set(du, 0x7FC0), rounded);
  (void)df;
  return hn::DemoteTo(hn::Rebind<uint16_t, DF>(), hn::BitCast(di, result));
}

// ---- float16 ----

template <class DF>
HWY_INLINE hn::Vec<DF> FromF16(DF df, hn::Vec<hn::Rebind<uint16_t, DF>> v) {
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  const hn::RebindToUnsigned<DF> du;
  const auto wide = hn::PromoteTo(du, v);
  const auto sign = hn::ShiftLeft<16>(hn::And(wide, hn::Set(du, 0x8000)));
  const auto magnitude = hn::ShiftLeft<13>(hn::And(wide, hn::Set(du, 0x7FFF)));
  const auto top = hn::Set(du, 0x0F800000);
  const auto exponent = hn::And(magnitude, top);
  const auto bias = hn::Set(du, 112U << 23);
  const auto normal = hn::Add(magnitude, bias);
  const auto quiet = hn::IfThenElseZero(hn::Ne(magnitude, top), hn::Set(du, 0x00400000));
  const auto special = hn::Or(hn::Add(normal, bias), quiet);
  const auto smallest = hn::Set(du, 113U << 23);
  const auto small = hn::BitCast(du, hn::Sub(hn::BitCast(df, hn::Add(magnitude, smallest)), hn::BitCast(df, smallest)));
  auto bits = hn::IfThenElse(hn::Eq(exponent, top), special, normal);
  bits = hn::IfThenElse(hn::Eq(exponent, hn::Zero(du)), small, bits);
  return hn::BitCast(df, hn::Or(bits, sign));
#else
  const hn::Rebind<hwy::float16_t, DF> dh;
  return hn::PromoteTo(df, hn::BitCast(dh, v));
#endif
}

template <class DF>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, DF>> ToF16(DF df, hn::Vec<DF> v) {
  const hn::Rebind<uint16_t, DF> du16;
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  const hn::RebindToUnsigned<DF> du;
  const hn::RebindToSigned<DF> di;
  const auto all = hn::BitCast(du, v);
  const auto sign = hn::And(hn::ShiftRight<16>(all), hn::Set(du, 0x8000));
  const auto bits = hn::And(all, hn::Set(du, 0x7FFFFFFF));
  const auto sbits = hn::BitCast(di, bits);
  const auto align = hn::Set(du, 126U << 23);
  const auto nan = hn::Or(hn::Set(du, 0x7E00), hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 0x3FF)));
  const auto small = hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(df, bits), hn::BitCast(df, align))), align);
  const auto odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 1));
  const auto normal =
      hn::ShiftRight<13>(hn::Add(hn::Sub(bits, hn::Set(du, 112U << 23)), hn::Add(odd, hn::Set(du, 0xFFF))));
  const auto over = [&](uint32_t least) {
    return hn::RebindMask(du, hn::Gt(sbits, hn::Set(di, static_cast<int32_t>(least - 1))));
  };
  auto result = hn::IfThenElse(over(113U << 23), normal, small);
  result = hn::IfThenElse(over(143U << 23), hn::Set(du, 0x7C00), result);
  result = hn::IfThenElse(over(0x7F800001U), nan, result);
  return hn::DemoteTo(du16, hn::BitCast(di, hn::Or(result, sign)));
#else
  (void)df;
  return hn::BitCast(du16, hn::DemoteTo(hn::Rebind<hwy::float16_t, DF>(), v));
#endif
}

// ---- loads and stores that convert to the tag's type: the same loop serves all storage types ----

template <class D>
HWY_INLINE hn::Vec<D> LoadAs(D d, const hn::TFromD<D>* p) {
  return hn::LoadU(d, p);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadAs(D d, const BFloat16* p) {
  return FromBF16(d, hn::LoadU(hn::Rebind<uint16_t, D>(), reinterpret_cast<const uint16_t*>(p)));
}
template <class D>
HWY_INLINE hn::Vec<D> LoadAs(D d, const Half* p) {
  return FromF16(d, hn::LoadU(hn::Rebind<uint16_t, D>(), reinterpret_cast<const uint16_t*>(p)));
}

template <class D>
HWY_INLINE void StoreAs(hn::Vec<D> v, D d, hn::TFromD<D>* p) {
  hn::StoreU(v, d, p);
}
template <class D>
HWY_INLINE void StoreAs(hn::Vec<D> v, D d, BFloat16* p) {
  hn::StoreU(ToBF16(d, v), hn::Rebind<uint16_t, D>(), reinterpret_cast<uint16_t*>(p));
}
template <class D>
HWY_INLINE void StoreAs(hn::Vec<D> v, D d, Half* p) {
  hn::StoreU(ToF16(d, v), hn::Rebind<uint16_t, D>(), reinterpret_cast<uint16_t*>(p));
}

template <class D, class T>
HWY_INLINE hn::Vec<D> LoadAsUpTo(D d, const T* p, size_t n) {
  if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
    return LoadUpTo(d, p, n);
  } else {
    T lanes[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)] = {};
    std::memcpy(lanes, p, n * sizeof(T));
    return LoadAs(d, lanes);
  }
}

template <class D, class T>
HWY_INLINE void StoreAsUpTo(hn::Vec<D> v, D d, T* p, size_t n) {
  if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
    StoreUpTo(v, d, p, n);
  } else {
    T lanes[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
    StoreAs(v, d, lanes);
    std::memcpy(p, lanes, n * sizeof(T));
  }
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // TN_KERNELS_COMMON_HWY_COMPAT_INL_H_
