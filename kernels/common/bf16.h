#pragma once

// For files with a to_float of their own, which runtime/half.h would make ambiguous: bfloat16 and float16 to and from
// float. To 16 bits: round to nearest, ties to even; overflow gives infinity. A NaN stays one: bfloat16 gives
// upstream's 0x7FC0, float16 keeps sign and leading payload, as F16C does.

#include <bit>
#include <cstdint>

#include "runtime/dtype.h"

namespace tn {

constexpr float f32_from(BFloat16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

constexpr BFloat16 bf16_from(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return BFloat16{0x7FC0};
  return BFloat16{static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16)};
}

constexpr float f32_from(Half x) {
  constexpr uint32_t kSmallest = 113U << 23;  // 2^-14, the smallest normal
  const uint32_t magnitude = static_cast<uint32_t>(x.bits & 0x7FFFU) << 13;
  const uint32_t exponent = magnitude & 0x0F800000U;
  uint32_t bits = magnitude + (112U << 23);
  if (exponent == 0x0F800000U) {
    bits += 112U << 23;
    if ((magnitude & 0x007FFFFFU) != 0) bits |= 0x00400000U;
  } else if (exponent == 0) {
    // The mantissa as a fraction above 2^-14, then without it: exact, and normalised by the subtraction.
    bits = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude + kSmallest) - std::bit_cast<float>(kSmallest));
  }
  return std::bit_cast<float>(bits | (static_cast<uint32_t>(x.bits & 0x8000U) << 16));
}

constexpr Half f16_from(float x) {
  constexpr uint32_t kAlign = 126U << 23;  // 0.5: its last bit is float16's smallest subnormal
  const uint32_t all = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (all >> 16) & 0x8000U;
  const uint32_t bits = all & 0x7FFFFFFFU;
  uint32_t result = 0;
  if (bits > 0x7F800000U) {
    result = 0x7E00U | ((bits >> 13) & 0x3FFU);
  } else if (bits >= (143U << 23)) {  // 65536 and more
    result = 0x7C00U;
  } else if (bits < (113U << 23)) {
    result = std::bit_cast<uint32_t>(std::bit_cast<float>(bits) + std::bit_cast<float>(kAlign)) - kAlign;
  } else {
    // Carries of the rounding run into the exponent, up to infinity, as they should.
    result = (bits - (112U << 23) + 0xFFFU + ((bits >> 13) & 1U)) >> 13;
  }
  return Half{static_cast<uint16_t>(result | sign)};
}

}  // namespace tn
