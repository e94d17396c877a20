// What losses share: upstream's numbers of reductions, the types that they have, and loops over broadcast operands.
#pragma once
#include <array>
#include <cstdint>
#include <memory>

#include "runtime/convert.h"
#include "runtime/copy.h"
#include "runtime/shape.h"
#include "runtime/slots.h"
#include "runtime/threads.h"

namespace tn::loss {

inline constexpr int64_t kNone = 0, kMean = 1, kSum = 2;

template <class F>
void visit_floating(ScalarType dtype, F&& f) {
  switch (dtype) {
    case ScalarType::Float: return f.template operator()<float>();
    case ScalarType::Double: return f.template operator()<double>();
    case ScalarType::Half: return f.template operator()<Half>();
    case ScalarType::BFloat16: return f.template operator()<BFloat16>();
    default: return;
  }
}
// 16-bit floats compute in float.
template <class S>
using Compute = std::conditional_t<sizeof(S) == 2, float, S>;

// The operand in a dtype, broadcast to sizes, contiguous.
inline Tensor spread_out(const Tensor& t, ScalarType dtype, IntView sizes) {
  const Tensor x = cast(t, dtype);
  if (x.sizes() == sizes) return contiguous(x);
  const Tensor out = empty(sizes, dtype);
  copy_into(out, x);
  return out;
}

// out[i] = f(in[0][i], ...) over contiguous operands of S.
template <class S, size_t N, class F>
void map(const std::array<const S*, N>& in, S* out, int64_t n, F f) {
  parallel_for(0, n, 8192, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      out[i] = [&]<size_t... k>(std::index_sequence<k...>) { return convert<S>(f(convert<Compute<S>>(in[k][i])...)); }(std::make_index_sequence<N>());
  });
}
// Sum of f over all, in chunks that the size alone determines.
template <class S, size_t N, class F>
double total(const std::array<const S*, N>& in, int64_t n, F f) {
  constexpr int64_t kChunk = 8192;
  const int64_t chunks = (n + kChunk - 1) / kChunk;
  const auto partial = std::make_unique<double[]>(static_cast<size_t>(chunks));
  parallel_for(0, n, kChunk, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; chunk += kChunk) {
      double sum = 0;
      for (int64_t i = chunk; i < std::min(end, chunk + kChunk); ++i)
        sum += [&]<size_t... k>(std::index_sequence<k...>) { return static_cast<double>(f(convert<Compute<S>>(in[k][i])...)); }(std::make_index_sequence<N>());
      partial[static_cast<size_t>(chunk / kChunk)] = sum;
    }
  });
  double sum = 0;
  for (int64_t c = 0; c < chunks; ++c) sum += partial[static_cast<size_t>(c)];
  return sum;
}

}  // namespace tn::loss
