// Rows -> blocks: kernels for floats see short contiguous runs of float or double, whatever the row's strides and
// dtype. A bfloat16 or float16 row is widened to float, so a vector body exists for two types only.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/common/halves.h"
#include "runtime/dtype.h"
#include "runtime/slots.h"

namespace tn {

inline constexpr int kBlockInputs = 4;
inline constexpr size_t kBlockSize = 512;  // elements: three buffers of doubles stay in L1

// Contiguous inputs of T and a contiguous result of O. Input and result may be the same memory, never half over each
// other.
template <class T, class O = T>
struct Block {
  std::array<const T*, kBlockInputs> in;
  O* out;
  size_t n;
  const Arg* params;
};
template <class T, class O = T>
using BlockFn = void (*)(const Block<T, O>&);

// The two bodies of a float kernel; the 16-bit floats run through the first.
struct FloatBodies {
  BlockFn<float> f32;
  BlockFn<double> f64;
};
struct TestBodies {
  BlockFn<float, uint8_t> f32;
  BlockFn<double, uint8_t> f64;
};

namespace blocks {

template <class T>
void gather(const char* from, int64_t stride, T* to, size_t n) {
  if (stride == 0) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    // By doubling copies: at the baseline's optimisation a plain fill stores one element at a time.
    size_t done = std::min<size_t>(n, 8);
    for (size_t i = 0; i < done; ++i) to[i] = value;
    for (; done < n; done += std::min(done, n - done)) std::memcpy(to + done, to, std::min(done, n - done) * sizeof(T));
    return;
  }
  for (size_t i = 0; i < n; ++i) std::memcpy(to + i, from + static_cast<int64_t>(i) * stride, sizeof(T));
}
template <class T>
void scatter(const T* from, char* to, int64_t stride, size_t n) {
  for (size_t i = 0; i < n; ++i) std::memcpy(to + static_cast<int64_t>(i) * stride, from + i, sizeof(T));
}

// Inputs already have type T; the result has type O.
template <int N, class T, class O>
void same_type(const Row& row, BlockFn<T, O> body) {
  const auto n = static_cast<size_t>(row.n);
  bool contiguous = row.strides[0] == sizeof(O) || n == 1;
  for (int k = 1; k <= N; ++k) contiguous &= row.strides[k] == sizeof(T) || n == 1;
  Block<T, O> block{};
  block.params = row.params;
  if (contiguous) {
    for (int k = 0; k < N; ++k) block.in[k] = row.in<T>(k);
    block.out = row.out<O>();
    block.n = n;
    return body(block);
  }
  alignas(64) T inputs[N][kBlockSize];
  alignas(64) O result[kBlockSize];
  for (int k = 0; k < N; ++k)
    if (row.strides[1 + k] == 0) gather(row.data[1 + k], 0, inputs[k], std::min(n, kBlockSize));
  for (size_t done = 0; done < n; done += kBlockSize) {
    const auto at = static_cast<int64_t>(done);
    block.n = std::min(kBlockSize, n - done);
    for (int k = 0; k < N; ++k) {
      const int64_t stride = row.strides[1 + k];
      const char* from = row.data[1 + k] + at * stride;
      if (stride == sizeof(T)) {
        block.in[k] = reinterpret_cast<const T*>(from);
        continue;
      }
      if (stride != 0) gather(from, stride, inputs[k], block.n);
      block.in[k] = inputs[k];
    }
    char* to = row.data[0] + at * row.strides[0];
    const bool direct = row.strides[0] == sizeof(O);
    block.out = direct ? reinterpret_cast<O*>(to) : result;
    body(block);
    if (!direct) scatter(result, to, row.strides[0], block.n);
  }
}

// Inputs are 16-bit floats: widened a block at a time. A result of O = float is narrowed back to the row's dtype.
template <int N, class O>
void widened(const Row& row, BlockFn<float, O> body) {
  const auto n = static_cast<size_t>(row.n);
  alignas(64) float inputs[N][kBlockSize];
  alignas(64) O result[kBlockSize];
  alignas(64) uint16_t narrow[kBlockSize];
  Block<float, O> block{};
  block.params = row.params;
  for (size_t done = 0; done < n; done += kBlockSize) {
    const auto at = static_cast<int64_t>(done);
    block.n = std::min(kBlockSize, n - done);
    for (int k = 0; k < N; ++k) {
      const int64_t stride = row.strides[1 + k];
      const char* from = row.data[1 + k] + at * stride;
      block.in[k] = inputs[k];
      if (stride == 0 && done != 0) continue;
      const uint16_t* source = reinterpret_cast<const uint16_t*>(from);
      if (stride != sizeof(uint16_t)) {
        gather(from, stride, narrow, stride == 0 ? std::min(n, kBlockSize) : block.n);
        source = narrow;
      }
      widen(row.dtype, source, inputs[k], stride == 0 ? std::min(n, kBlockSize) : block.n);
    }
    block.out = result;
    body(block);
    char* to = row.data[0] + at * row.strides[0];
    if constexpr (std::is_same_v<O, float>) {
      const bool direct = row.strides[0] == sizeof(uint16_t);
      uint16_t* target = direct ? reinterpret_cast<uint16_t*>(to) : narrow;
      shorten(row.out_dtype, result, target, block.n);
      if (!direct) scatter(narrow, to, row.strides[0], block.n);
    } else {
      scatter(result, to, row.strides[0], block.n);
    }
  }
}

}  // namespace blocks

// Runs a float row of N inputs through its vector bodies. True if the dtype was a float.
template <int N>
bool map_floats(const Row& row, BlockFn<float> f32, BlockFn<double> f64) {
  switch (row.dtype) {
    case ScalarType::Float: blocks::same_type<N, float, float>(row, f32); return true;
    case ScalarType::Double: blocks::same_type<N, double, double>(row, f64); return true;
    case ScalarType::Half:
    case ScalarType::BFloat16: blocks::widened<N, float>(row, f32); return true;
    default: return false;
  }
}
// The same with a bool result: comparisons and tests.
template <int N>
bool map_floats_to_bool(const Row& row, BlockFn<float, uint8_t> f32, BlockFn<double, uint8_t> f64) {
  switch (row.dtype) {
    case ScalarType::Float: blocks::same_type<N, float, uint8_t>(row, f32); return true;
    case ScalarType::Double: blocks::same_type<N, double, uint8_t>(row, f64); return true;
    case ScalarType::Half:
    case ScalarType::BFloat16: blocks::widened<N, uint8_t>(row, f32); return true;
    default: return false;
  }
}

template <int N>
bool map_floats(const Row& row, const FloatBodies& bodies) {
  return map_floats<N>(row, bodies.f32, bodies.f64);
}
template <int N>
bool map_floats(const Row& row, const TestBodies& bodies) {
  return map_floats_to_bool<N>(row, bodies.f32, bodies.f64);
}

namespace blocks {

template <int N, class O, class T, class F>
void plain(const Block<T, O>& block) {
  for (size_t i = 0; i < block.n; ++i) {
    if constexpr (N == 1) block.out[i] = F{}(block.in[0][i]);
    else if constexpr (N == 2) block.out[i] = F{}(block.in[0][i], block.in[1][i]);
    else block.out[i] = F{}(block.in[0][i], block.in[1][i], block.in[2][i]);
  }
}

}  // namespace blocks

// Bodies without vectors: f(T...) one element after the other, for float and double. f captures nothing.
template <int N, class F>
constexpr FloatBodies plain_bodies(F) {
  return {&blocks::plain<N, float, float, F>, &blocks::plain<N, double, double, F>};
}
template <int N, class F>
constexpr TestBodies plain_tests(F) {
  return {&blocks::plain<N, uint8_t, float, F>, &blocks::plain<N, uint8_t, double, F>};
}

}  // namespace tn
