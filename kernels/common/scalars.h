// Rows of types without a vector body: integers, bool and complex, one element at a time (the compiler vectorises the
// contiguous loop).
#pragma once
#include <complex>
#include <cstdint>
#include <utility>

#include "runtime/dtype.h"
#include "runtime/slots.h"

namespace tn {

// out = f(in...) for every element; T... are the inputs' types, O the result's.
template <class O, class... T, class F>
void map_scalars(const Row& row, F f) {
  const int64_t n = row.n;
  [&]<size_t... K>(std::index_sequence<K...>) {
    const bool contiguous = row.strides[0] == sizeof(O) && ((row.strides[1 + K] == sizeof(T)) && ...);
    if (contiguous) {
      O* out = row.out<O>();
      for (int64_t i = 0; i < n; ++i) out[i] = f(row.in<T>(K)[i]...);
      return;
    }
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<O*>(row.data[0] + i * row.strides[0]) =
          f(*reinterpret_cast<const T*>(row.data[1 + K] + i * row.strides[1 + K])...);
  }(std::index_sequence_for<T...>());
}

// Calls f.template operator()<T>() with the element type of an integral dtype (bool not among them). False for others.
template <class F>
bool visit_integral(ScalarType dtype, F&& f) {
  switch (dtype) {
    case ScalarType::Byte: f.template operator()<uint8_t>(); return true;
    case ScalarType::Char: f.template operator()<int8_t>(); return true;
    case ScalarType::Short: f.template operator()<int16_t>(); return true;
    case ScalarType::Int: f.template operator()<int32_t>(); return true;
    case ScalarType::Long: f.template operator()<int64_t>(); return true;
    case ScalarType::UInt16: f.template operator()<uint16_t>(); return true;
    case ScalarType::UInt32: f.template operator()<uint32_t>(); return true;
    case ScalarType::UInt64: f.template operator()<uint64_t>(); return true;
    default: return false;
  }
}
template <class F>
bool visit_complex(ScalarType dtype, F&& f) {
  switch (dtype) {
    case ScalarType::ComplexFloat: f.template operator()<std::complex<float>>(); return true;
    case ScalarType::ComplexDouble: f.template operator()<std::complex<double>>(); return true;
    default: return false;
  }
}

// The same for integers with bool among them, as its own type.
template <class F>
bool visit_integral_and_bool(ScalarType dtype, F&& f) {
  if (dtype != ScalarType::Bool) return visit_integral(dtype, f);
  f.template operator()<bool>();
  return true;
}

}  // namespace tn
