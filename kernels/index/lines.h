// One dimension of several tensors as lines: the other dimensions are walked.
#pragma once
#include <algorithm>
#include <string_view>
#include <vector>

#include "kernels/index/walk.h"
#include "runtime/copy.h"
#include "runtime/error.h"

namespace tn::index {

// The positions that an index tensor of any rank below two holds, as int64. Bounds are the caller's.
inline std::vector<int64_t> positions(const Tensor& t) {
  std::vector<int64_t> out(static_cast<size_t>(t.numel()));
  if (out.empty()) return out;
  const Tensor dense = contiguous(t);
  if (t.dtype() == ScalarType::Int) std::copy_n(dense.data<int32_t>(), out.size(), out.begin());
  else std::copy_n(dense.data<int64_t>(), out.size(), out.begin());
  return out;
}
inline bool is_position_dtype(ScalarType t) { return t == ScalarType::Long || t == ScalarType::Int; }

// A tensor's size and stride in a dimension; a number counts as one dimension of one element.
inline int64_t line_size(const Tensor& t, int64_t dim) { return t.dim() == 0 ? 1 : t->size(dim); }
inline int64_t line_stride(const Tensor& t, int64_t dim) { return t.dim() == 0 ? 1 : t->stride(dim); }

// Everything of two tensors of one rank but dimension `dim`, over the sizes of `shape`.
template <int kOperands>
Walk<kOperands> lines(const Tensor& shape, int64_t dim, const std::array<const Tensor*, kOperands>& operands) {
  Walk<kOperands> walk;
  for (int64_t d = 0; d < shape.dim(); ++d) {
    if (d == dim) continue;
    std::array<int64_t, kOperands> strides;
    for (int k = 0; k < kOperands; ++k)
      strides[static_cast<size_t>(k)] = (*operands[static_cast<size_t>(k)])->stride(d);
    walk.add(shape->size(d), strides);
  }
  return walk;
}

}  // namespace tn::index
