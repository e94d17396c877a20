// Small pieces that the view kernels share.
#pragma once
#include <vector>

#include "runtime/shape.h"
#include "runtime/tensor.h"

namespace tn {

// A view whose only new geometry is these sizes and strides.
inline Tensor same_offset(const Tensor& self, IntView sizes, IntView strides) {
  return alias_with_geometry(self, sizes, strides, self.storage_offset());
}
// In-place forms change the header of the tensor itself.
inline const Tensor& become(const Tensor& self, const Tensor& view) {
  self->set_geometry(view.sizes(), view.strides(), view.storage_offset());
  return self;
}

}  // namespace tn
