// Conversions between float and the storage-only formats: round to nearest even, in constant expressions too.
//
// The paths have no branches that depend on the value, so loops over them vectorise.
#pragma once
#include <bit>
#include <cstdint>

#include "runtime/dtype.h"

namespace tn {

constexpr float to_float(BFloat16 v) { return std::bit_cast<float>(static_cast<uint32_t>(v.bits) << 16); }

constexpr BFloat16 to_bfloat16(float f) {
  const uint32_t u = std::bit_cast<uint32_t>(f);
  const uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  return {static_cast<uint16_t>((u & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : rounded)};
}

constexpr float to_float(Half v) {
  const uint32_t sign = static_cast<uint32_t>(v.bits & 0x8000) << 16;
  const uint32_t magnitude = v.bits & 0x7fff;
  // Normal numbers move their exponent by a product, which also makes infinities and NaN; subnormals by a difference.
  const float normal = std::bit_cast<float>((magnitude << 13) + (uint32_t{0x70} << 24)) * 0x1.0p-112f;
  const float subnormal = std::bit_cast<float>(magnitude | (uint32_t{126} << 23)) - 0.5f;
  const uint32_t bits = std::bit_cast<uint32_t>(magnitude < 0x400 ? subnormal : normal);
  return std::bit_cast<float>(sign | bits);
}

namespace detail {

// A small float format: kMantissa bits, exponent bias kBias. The magnitude of f, which must not be NaN, rounded to
// nearest even; exponents grow past the format's range, which the caller treats.
template <int kMantissa, int kBias>
constexpr uint32_t round_magnitude(uint32_t magnitude) {
  constexpr uint32_t kSmallest = static_cast<uint32_t>(127 - kBias + 1) << 23;  // smallest normal number
  // Adding a number whose last place is the format's smallest step rounds subnormals.
  constexpr uint32_t kMagic = static_cast<uint32_t>(127 - kBias + 1 + 23 - kMantissa) << 23;
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude < kSmallest ? magnitude : 0) +
                                                     std::bit_cast<float>(kMagic)) -
                             kMagic;
  const uint32_t odd = (magnitude >> (23 - kMantissa)) & 1;
  const uint32_t half = (uint32_t{1} << (22 - kMantissa)) - 1;
  const uint32_t normal = (magnitude - (static_cast<uint32_t>(127 - kBias) << 23) + half + odd) >> (23 - kMantissa);
  return magnitude < kSmallest ? subnormal : normal;
}

// Exponent 0 means subnormal; no special values.
template <int kMantissa, int kBias>
constexpr float widen(uint32_t magnitude, bool negative) {
  const uint32_t exponent = magnitude >> kMantissa;
  const float subnormal =
      static_cast<float>(magnitude) * std::bit_cast<float>(static_cast<uint32_t>(128 - kBias - kMantissa) << 23);
  const uint32_t normal = (magnitude << (23 - kMantissa)) + (static_cast<uint32_t>(127 - kBias) << 23);
  const float value = exponent == 0 ? subnormal : std::bit_cast<float>(normal);
  return negative ? -value : value;
}

constexpr float kNaN = __builtin_nanf("");
constexpr uint32_t magnitude_of(float f) { return std::bit_cast<uint32_t>(f) & 0x7fffffff; }
constexpr uint32_t sign_of(float f) { return std::bit_cast<uint32_t>(f) >> 31; }
constexpr uint32_t kInfinity = 0x7f800000;

}  // namespace detail

constexpr Half to_half(float f) {
  const uint32_t m = detail::magnitude_of(f);
  // 65520 and more round to infinity.
  const uint32_t finite = detail::round_magnitude<10, 15>(m < 0x477ff000 ? m : 0);
  const uint32_t bits = m > detail::kInfinity ? 0x7e00 : m >= 0x477ff000 ? 0x7c00 : finite;
  return {static_cast<uint16_t>(bits | detail::sign_of(f) << 15)};
}

// ---- eight bits ----------------------------------------------------------------------------------------------------
// e5m2 has infinities; e4m3fn has none and saturates at 448; the fnuz kinds have one NaN, 0x80, and no -0, and what is
// too large is NaN; e8m0 is a power of two without sign.

constexpr float to_float(Float8_e5m2 v) { return to_float(Half{static_cast<uint16_t>(v.bits << 8)}); }
constexpr Float8_e5m2 to_float8_e5m2(float f) {
  const uint32_t m = detail::magnitude_of(f);
  const uint32_t bits = m > detail::kInfinity        ? 0x7f
                        : m >= (uint32_t{143} << 23) ? 0x7c
                                                     : detail::round_magnitude<2, 15>(m);
  return {static_cast<uint8_t>(bits | detail::sign_of(f) << 7)};
}

constexpr float to_float(Float8_e4m3fn v) {
  const uint32_t m = v.bits & 0x7f;
  return m == 0x7f ? detail::kNaN : detail::widen<3, 7>(m, v.bits >> 7);
}
constexpr Float8_e4m3fn to_float8_e4m3fn(float f) {
  const uint32_t m = detail::magnitude_of(f);
  const uint32_t rounded = detail::round_magnitude<3, 7>(m < (uint32_t{1087} << 20) ? m : 0);
  const uint32_t bits = m > detail::kInfinity ? 0x7f : m >= (uint32_t{1087} << 20) || rounded > 0x7e ? 0x7e : rounded;
  return {static_cast<uint8_t>(bits | detail::sign_of(f) << 7)};
}

constexpr float to_float(Float8_e5m2fnuz v) {
  return v.bits == 0x80 ? detail::kNaN : detail::widen<2, 16>(v.bits & 0x7f, v.bits >> 7);
}
constexpr Float8_e5m2fnuz to_float8_e5m2fnuz(float f) {
  const uint32_t m = detail::magnitude_of(f);
  const uint32_t bits = m >= (uint32_t{143} << 23) ? 0x80 : detail::round_magnitude<2, 16>(m);
  return {static_cast<uint8_t>(bits == 0 ? 0 : bits | detail::sign_of(f) << 7)};
}

constexpr float to_float(Float8_e4m3fnuz v) {
  return v.bits == 0x80 ? detail::kNaN : detail::widen<3, 8>(v.bits & 0x7f, v.bits >> 7);
}
constexpr Float8_e4m3fnuz to_float8_e4m3fnuz(float f) {
  const uint32_t m = detail::magnitude_of(f);
  const uint32_t bits = m >= (uint32_t{135} << 23) ? 0x80 : detail::round_magnitude<3, 8>(m);
  return {static_cast<uint8_t>(bits == 0 ? 0 : bits | detail::sign_of(f) << 7)};
}

constexpr float to_float(Float8_e8m0fnu v) {
  return v.bits == 0xff
             ? detail::kNaN
             : std::bit_cast<float>(v.bits == 0 ? uint32_t{0x00400000} : static_cast<uint32_t>(v.bits) << 23);
}
constexpr Float8_e8m0fnu to_float8_e8m0fnu(float f) {
  const uint32_t m = detail::magnitude_of(f);
  const uint32_t exponent = m >> 23;
  // 1.5 times a power of two is a tie and goes up, except where the lower neighbour is the format's zeroth.
  const bool up = (m & 0x400000) && ((m & 0x3fffff) || exponent > 0);
  return {static_cast<uint8_t>(exponent == 0xff ? 0xff : exponent + up)};
}

// ---- by type -----------------------------------------------------------------------------------------------------
constexpr void from_float(float f, Half* out) { *out = to_half(f); }
constexpr void from_float(float f, BFloat16* out) { *out = to_bfloat16(f); }
constexpr void from_float(float f, Float8_e5m2* out) { *out = to_float8_e5m2(f); }
constexpr void from_float(float f, Float8_e4m3fn* out) { *out = to_float8_e4m3fn(f); }
constexpr void from_float(float f, Float8_e5m2fnuz* out) { *out = to_float8_e5m2fnuz(f); }
constexpr void from_float(float f, Float8_e4m3fnuz* out) { *out = to_float8_e4m3fnuz(f); }
constexpr void from_float(float f, Float8_e8m0fnu* out) { *out = to_float8_e8m0fnu(f); }

}  // namespace tn
