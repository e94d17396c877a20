// Arithmetic on elements as they are stored: 16-bit floats round after each operation, bool is "or" and "and".
#pragma once
#include <cmath>
#include <complex>
#include <string_view>

#include "kernels/common/options.h"
#include "runtime/convert.h"

namespace tn::index {

template <class T>
T plus(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) return a || b;
  else if constexpr (is_small_float_v<T>) return convert<T>(to_float(a) + to_float(b));
  else if constexpr (std::is_same_v<T, ComplexHalf>) return {plus(a.re, b.re), plus(a.im, b.im)};
  else if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else return a + b;
}
template <class T>
T times(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) return a && b;
  else if constexpr (is_small_float_v<T>) return convert<T>(to_float(a) * to_float(b));
  else if constexpr (std::is_same_v<T, ComplexHalf>)
    return convert<T>(convert<std::complex<float>>(a) * convert<std::complex<float>>(b));
  else if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else return a * b;
}
template <class T>
bool is_nan(T v) {
  if constexpr (is_small_float_v<T>) return std::isnan(to_float(v));
  else if constexpr (std::is_floating_point_v<T>) return std::isnan(v);
  else return false;
}
template <class T>
bool less(T a, T b) {
  if constexpr (is_small_float_v<T>) return to_float(a) < to_float(b);
  else return a < b;
}
// NaN wins.
template <class T>
T larger(T a, T b) {
  return is_nan(a) || less(b, a) ? a : is_nan(b) || less(a, b) ? b : a;
}
template <class T>
T smaller(T a, T b) {
  return is_nan(a) || less(a, b) ? a : is_nan(b) || less(b, a) ? b : a;
}
// Integers are divided downwards, as a mean of negative ones is.
template <class T>
T divided(T a, int64_t n) {
  if constexpr (is_small_float_v<T>) {
    return convert<T>(to_float(a) / to_float(convert<T>(n)));
  } else if constexpr (std::is_integral_v<T>) {
    const auto wide = static_cast<int64_t>(a);
    return static_cast<T>(wide / n - (wide % n != 0 && wide < 0));
  } else if constexpr (std::is_same_v<T, ComplexHalf>) {
    return convert<T>(convert<std::complex<float>>(a) / static_cast<float>(n));
  } else if constexpr (is_std_complex_v<T>) {
    return a / static_cast<typename T::value_type>(n);
  } else {
    return a / static_cast<T>(n);
  }
}

// Calls f<T>() for the dtypes that upstream's indexing kernels calculate with; others are not implemented by `name`.
template <class F>
void with_number(std::string_view name, ScalarType t, F&& f) {
  switch (t) {
    case ScalarType::Byte: return f.template operator()<uint8_t>();
    case ScalarType::Char: return f.template operator()<int8_t>();
    case ScalarType::Short: return f.template operator()<int16_t>();
    case ScalarType::Int: return f.template operator()<int32_t>();
    case ScalarType::Long: return f.template operator()<int64_t>();
    case ScalarType::Half: return f.template operator()<Half>();
    case ScalarType::BFloat16: return f.template operator()<BFloat16>();
    case ScalarType::Float: return f.template operator()<float>();
    case ScalarType::Double: return f.template operator()<double>();
    case ScalarType::ComplexHalf: return f.template operator()<ComplexHalf>();
    case ScalarType::ComplexFloat: return f.template operator()<std::complex<float>>();
    case ScalarType::ComplexDouble: return f.template operator()<std::complex<double>>();
    case ScalarType::Bool: return f.template operator()<bool>();
    default: not_implemented(name, t);
  }
}
// The same without complex types.
template <class F>
void with_ordered(std::string_view name, ScalarType t, F&& f) {
  if (tn::is_complex(t)) not_implemented(name, t);
  with_number(name, t, [&]<class T>() {
    if constexpr (!is_std_complex_v<T> && !std::is_same_v<T, ComplexHalf>) f.template operator()<T>();
  });
}
inline bool has_arithmetic(ScalarType t) {
  return !is_barebones_unsigned(t) && !is_float8(t) && t != ScalarType::ComplexHalf && !is_quantized(t);
}

}  // namespace tn::index
