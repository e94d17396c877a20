// Conversion of single elements between dtypes, as upstream's copies do it. Casts that C++ leaves undefined (a float
// out of the integer's range) are defined here as what x86 instructions give.
#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "runtime/dtype.h"
#include "runtime/half.h"

namespace tn {

// complex32 in memory.
struct ComplexHalf {
  Half re, im;
};

template <class T>
inline constexpr bool is_small_float_v =
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> || std::is_same_v<T, Float8_e5m2> ||
    std::is_same_v<T, Float8_e4m3fn> || std::is_same_v<T, Float8_e5m2fnuz> || std::is_same_v<T, Float8_e4m3fnuz> ||
    std::is_same_v<T, Float8_e8m0fnu>;
template <class T>
inline constexpr bool is_std_complex_v =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

// Runs of 16-bit floats on the best instruction set: the runtime itself is compiled for the baseline. Null until
// init_kernels.
struct HalfRuns {
  void (*widen)(ScalarType dtype, const uint16_t* from, float* to, size_t n) = nullptr;
  void (*shorten)(ScalarType dtype, const float* from, uint16_t* to, size_t n) = nullptr;
};
extern constinit HalfRuns half_runs;

// The type of a dtype's elements in memory, and its inverse.
template <ScalarType T>
struct ElementOf;
#define TN_ELEMENT(dtype, type)         \
  template <>                           \
  struct ElementOf<ScalarType::dtype> { \
    using Type = type;                  \
  };
TN_ELEMENT(Byte, uint8_t)
TN_ELEMENT(Char, int8_t)
TN_ELEMENT(Short, int16_t)
TN_ELEMENT(Int, int32_t)
TN_ELEMENT(Long, int64_t)
TN_ELEMENT(Half, tn::Half)
TN_ELEMENT(Float, float)
TN_ELEMENT(Double, double)
TN_ELEMENT(ComplexHalf, tn::ComplexHalf)
TN_ELEMENT(ComplexFloat, std::complex<float>)
TN_ELEMENT(ComplexDouble, std::complex<double>)
TN_ELEMENT(Bool, bool)
TN_ELEMENT(BFloat16, tn::BFloat16)
TN_ELEMENT(Float8_e5m2, tn::Float8_e5m2)
TN_ELEMENT(Float8_e4m3fn, tn::Float8_e4m3fn)
TN_ELEMENT(Float8_e5m2fnuz, tn::Float8_e5m2fnuz)
TN_ELEMENT(Float8_e4m3fnuz, tn::Float8_e4m3fnuz)
TN_ELEMENT(UInt16, uint16_t)
TN_ELEMENT(UInt32, uint32_t)
TN_ELEMENT(UInt64, uint64_t)
TN_ELEMENT(Float8_e8m0fnu, tn::Float8_e8m0fnu)
#undef TN_ELEMENT

namespace detail {

// cvttsd2si: out of range gives the lowest integer.
template <class I, class F>
constexpr I truncate(F f) {
  constexpr F kLimit = -static_cast<F>(std::numeric_limits<I>::min());  // a power of two
  return f >= -kLimit && f < kLimit ? static_cast<I>(f) : std::numeric_limits<I>::min();
}

template <class I, class F>
constexpr I float_to_int(F f) {
  if constexpr (std::is_same_v<I, uint64_t>) {
    constexpr F kHalf = static_cast<F>(uint64_t{1} << 63);
    return f < kHalf || f != f ? static_cast<uint64_t>(truncate<int64_t>(f))
                               : static_cast<uint64_t>(truncate<int64_t>(f - kHalf)) ^ (uint64_t{1} << 63);
  } else if constexpr (std::is_same_v<I, int64_t>) {
    return truncate<int64_t>(f);
  } else if constexpr (std::is_same_v<I, uint32_t>) {
    return static_cast<uint32_t>(truncate<int64_t>(f));
  } else {
    return static_cast<I>(truncate<int32_t>(f));  // narrower ones keep the low bits
  }
}

}  // namespace detail

// One element of another type. Complex to real keeps the real part; bool is "not zero".
template <class To, class From>
constexpr To convert(const From& v) {
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (std::is_same_v<From, ComplexHalf>) {
    return convert<To>(std::complex<float>(to_float(v.re), to_float(v.im)));
  } else if constexpr (is_small_float_v<From>) {
    return convert<To>(to_float(v));
  } else if constexpr (std::is_same_v<To, ComplexHalf>) {
    if constexpr (is_std_complex_v<From>)
      return {to_half(static_cast<float>(v.real())), to_half(static_cast<float>(v.imag()))};
    else return {convert<Half>(v), Half{0}};
  } else if constexpr (is_std_complex_v<From>) {
    if constexpr (is_std_complex_v<To>)
      return To(static_cast<typename To::value_type>(v.real()), static_cast<typename To::value_type>(v.imag()));
    else if constexpr (std::is_same_v<To, bool>) return v.real() != 0 || v.imag() != 0;
    else return convert<To>(v.real());
  } else if constexpr (is_small_float_v<To>) {
    To out{};
    from_float(static_cast<float>(v), &out);
    return out;
  } else if constexpr (is_std_complex_v<To>) {
    return To(convert<typename To::value_type>(v), 0);
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != 0;
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return detail::float_to_int<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

// Calls f.operator()<T>() with the element type of a dtype that has one; false for the others.
template <class F>
bool with_element(ScalarType t, F&& f) {
  switch (t) {
#define TN_CASE(dtype) \
  case ScalarType::dtype: f.template operator()<typename ElementOf<ScalarType::dtype>::Type>(); return true;
    TN_CASE(Byte)
    TN_CASE(Char)
    TN_CASE(Short)
    TN_CASE(Int)
    TN_CASE(Long)
    TN_CASE(Half)
    TN_CASE(Float)
    TN_CASE(Double)
    TN_CASE(ComplexHalf)
    TN_CASE(ComplexFloat)
    TN_CASE(ComplexDouble)
    TN_CASE(Bool)
    TN_CASE(BFloat16)
    TN_CASE(Float8_e5m2)
    TN_CASE(Float8_e4m3fn)
    TN_CASE(Float8_e5m2fnuz)
    TN_CASE(Float8_e4m3fnuz)
    TN_CASE(UInt16)
    TN_CASE(UInt32)
    TN_CASE(UInt64)
    TN_CASE(Float8_e8m0fnu)
#undef TN_CASE
    default: return false;
  }
}

}  // namespace tn
