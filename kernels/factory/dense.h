// What fills out= tensors from numbers shares: a dense target whatever the strides.
#pragma once
#include "runtime/copy.h"
#include "runtime/tensor.h"

namespace tn {

// Calls write(T* data) with dense memory of out's size, which then is in `out`.
template <class F>
void write_dense(const Tensor& out, F&& write) {
  if (out.is_meta() || out.numel() == 0) return;
  const Tensor dense = out.is_contiguous() ? out : empty(out.sizes(), out.dtype());
  write(dense.data_ptr());
  if (!dense.is_same(out)) copy_into(out, dense);
}

}  // namespace tn
