// Loads and stores between storage types and the types that reductions compute in.
#pragma once
#include <algorithm>
#include <complex>
#include <cstring>

#include "kernels/common/accumulate.h"
#include "kernels/common/halves.h"
#include "kernels/reduce/reduce.h"
#include "runtime/convert.h"
#include "runtime/error.h"

namespace tn::reduce {

template <class S, class T>
void load_as(const char* from, int64_t stride, T* to, int64_t n) {
  if constexpr (is_small_float_v<S> && sizeof(S) == 2 && std::is_same_v<T, float>) {
    constexpr ScalarType kType = std::is_same_v<S, Half> ? ScalarType::Half : ScalarType::BFloat16;
    if (stride == sizeof(S)) return widen(kType, reinterpret_cast<const uint16_t*>(from), to, static_cast<size_t>(n));
  }
  if (stride == sizeof(S)) {
    const S* p = reinterpret_cast<const S*>(from);
    for (int64_t i = 0; i < n; ++i) to[i] = convert<T>(p[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i) to[i] = convert<T>(*reinterpret_cast<const S*>(from + i * stride));
}

// Integers accumulate in 64 bits and wrap around when they are stored.
template <class S, class T>
void store_as(T value, char* to, double) {
  *reinterpret_cast<S*>(to) = convert<S>(value);
}
template <class S, class T>
void store_divided(T value, char* to, double count) {
  if constexpr (is_std_complex_v<T>)
    *reinterpret_cast<S*>(to) = convert<S>(value / static_cast<typename T::value_type>(count));
  else *reinterpret_cast<S*>(to) = convert<S>(static_cast<T>(value / static_cast<T>(count)));
}

// f<S>() for the dtypes that a reduction may have.
template <class F>
void visit(ScalarType dtype, F&& f) {
  switch (dtype) {
    case ScalarType::Float: return f.template operator()<float>();
    case ScalarType::Double: return f.template operator()<double>();
    case ScalarType::Half: return f.template operator()<Half>();
    case ScalarType::BFloat16: return f.template operator()<BFloat16>();
    case ScalarType::Byte: return f.template operator()<uint8_t>();
    case ScalarType::Char: return f.template operator()<int8_t>();
    case ScalarType::Short: return f.template operator()<int16_t>();
    case ScalarType::Int: return f.template operator()<int32_t>();
    case ScalarType::Long: return f.template operator()<int64_t>();
    case ScalarType::Bool: return f.template operator()<bool>();
    case ScalarType::UInt16: return f.template operator()<uint16_t>();
    case ScalarType::UInt32: return f.template operator()<uint32_t>();
    case ScalarType::UInt64: return f.template operator()<uint64_t>();
    case ScalarType::ComplexFloat: return f.template operator()<std::complex<float>>();
    case ScalarType::ComplexDouble: return f.template operator()<std::complex<double>>();
    default:
      fail(ErrorKind::NotImplemented, "torchnative: reduction refused: dtype ", dtype_name(dtype),
           "; reason: no kernel for this dtype");
  }
}

// Types without vector bodies.
template <class T, class Combine>
struct Plain {
  static T row(const T* p, int64_t n, T identity) {
    T a = identity, b = identity, c = identity, d = identity;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      a = Combine()(a, p[i]);
      b = Combine()(b, p[i + 1]);
      c = Combine()(c, p[i + 2]);
      d = Combine()(d, p[i + 3]);
    }
    for (; i < n; ++i) a = Combine()(a, p[i]);
    return Combine()(Combine()(a, b), Combine()(c, d));
  }
  static void columns(const T* p, int64_t stride, int64_t rows, int64_t cols, T* acc) {
    for (int64_t i = 0; i < rows; ++i, p += stride)
      for (int64_t j = 0; j < cols; ++j) acc[j] = Combine()(acc[j], p[j]);
  }
};

// Reduces self over the mask into a contiguous `out`. Both types are given by their dtypes.
template <class S, class T>
void reduce_into(const Tensor& out, const Tensor& self, uint64_t mask, const Operation<T>& op, Store<T> store,
                 double parameter = 0, Load<T> load = load_as<S, T>, bool direct = std::is_same_v<S, T>) {
  Plan plan;
  make_plan(self, mask, &plan);
  run(Job<T>{plan, op, static_cast<const char*>(self->raw_data()), sizeof(S), static_cast<char*>(out->raw_data()),
             static_cast<int64_t>(out.itemsize()), load, direct, store, parameter});
}

}  // namespace tn::reduce
