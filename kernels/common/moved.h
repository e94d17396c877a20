// Views whose dimensions stand in another order.
#pragma once
#include "runtime/copy.h"
#include "runtime/shape.h"
#include "runtime/tensor.h"

namespace tn {

// x with the dimensions of the mask moved behind the others, each group in its order, as dense memory.
inline Tensor with_masked_last(const Tensor& x, uint64_t mask) {
  DimVector sizes, strides;
  for (const uint64_t masked : {uint64_t{0}, uint64_t{1}})
    for (int64_t d = 0; d < x.dim(); ++d)
      if ((mask >> d & 1) == masked) {
        sizes.push_back(x->size(d));
        strides.push_back(x->stride(d));
      }
  return contiguous(alias_with_geometry(x, sizes, strides, x.storage_offset()));
}

}  // namespace tn
