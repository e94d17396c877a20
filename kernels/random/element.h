// Elements of a random fill: how a dtype stores a drawn number. Conversions are those of upstream's C++ casts
// on x86.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "kernels/common/bf16.h"
#include "runtime/dtype.h"

namespace tn::rng {

inline float to_float(BFloat16 v) { return f32_from(v); }
inline float to_float(Half v) { return f32_from(v); }
inline float to_float(float v) { return v; }
inline double to_float(double v) { return v; }

template <class T>
inline constexpr bool is_reduced = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool is_float = std::is_floating_point_v<T> || is_reduced<T>;
// The type in which upstream computes for T.
template <class T>
using Opmath = std::conditional_t<is_reduced<T>, float, T>;
// Significand bits with the hidden one.
template <class T>
inline constexpr int kDigits = std::is_same_v<T, Half>       ? 11
                               : std::is_same_v<T, BFloat16> ? 8
                                                             : std::numeric_limits<T>::digits;
// The largest finite value.
template <class T>
inline constexpr double kLargest =
    std::is_same_v<T, Half>       ? 65504.0
    : std::is_same_v<T, BFloat16> ? 0x1.fep127
                                  : static_cast<double>(std::numeric_limits<Opmath<T>>::max());

// A number as an element of type T. Out-of-range reals become what x86's conversion instruction leaves.
template <class T, class From>
inline T element(From v) {
  if constexpr (std::is_same_v<T, Half>) {
    return f16_from(static_cast<float>(v));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return bf16_from(static_cast<float>(v));
  } else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<From> && !std::is_same_v<T, bool>) {
    using Wide = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    constexpr double limit = sizeof(T) == 8 ? 0x1p63 : 0x1p31;
    const bool fits = v >= -limit && v < limit;
    return static_cast<T>(fits ? static_cast<Wide>(v) : std::numeric_limits<Wide>::min());
  } else {
    return static_cast<T>(v);
  }
}

// Calls f(T{}) with the C++ type of a dtype; false when the dtype is in none of the groups asked for.
enum Group : unsigned { kFloats = 1, kReduced = 2, kInts = 4, kBool = 8, kUnsigned = 16 };
template <unsigned groups, class F>
bool with_type(ScalarType t, F&& f) {
  if constexpr (groups & kFloats) {
    if (t == ScalarType::Float) return f(float{}), true;
    if (t == ScalarType::Double) return f(double{}), true;
  }
  if constexpr (groups & kReduced) {
    if (t == ScalarType::Half) return f(Half{}), true;
    if (t == ScalarType::BFloat16) return f(BFloat16{}), true;
  }
  if constexpr (groups & kInts) {
    if (t == ScalarType::Byte) return f(uint8_t{}), true;
    if (t == ScalarType::Char) return f(int8_t{}), true;
    if (t == ScalarType::Short) return f(int16_t{}), true;
    if (t == ScalarType::Int) return f(int32_t{}), true;
    if (t == ScalarType::Long) return f(int64_t{}), true;
  }
  if constexpr (groups & kBool) {
    if (t == ScalarType::Bool) return f(bool{}), true;
  }
  if constexpr (groups & kUnsigned) {
    if (t == ScalarType::UInt16) return f(uint16_t{}), true;
    if (t == ScalarType::UInt32) return f(uint32_t{}), true;
    if (t == ScalarType::UInt64) return f(uint64_t{}), true;
  }
  return false;
}

}  // namespace tn::rng
