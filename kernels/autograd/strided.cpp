// Gradients of windows into memory: as_strided reads the storage that its input lies in, whatever the input shows of
// it.
#include <algorithm>

#include "generated/ops/new_empty_strided.h"
#include "kernels/autograd/helpers.h"
#include "runtime/overlap.h"
#include "runtime/shape.h"

namespace tn::autograd {
namespace {

Tensor places(int64_t length, IntArrayRef sizes, IntArrayRef strides, int64_t offset, const Tensor& like) {
  const Tensor all = at::arange(Scalar(length), like.options().dtype(ScalarType::Long));
  return all.as_strided(sizes, strides, offset).reshape(IntArrayRef(-1));
}

}  // namespace

Tensor as_strided_backward(Tensor grad, const TensorGeometry& input, IntArrayRef sizes, IntArrayRef strides,
                           std::optional<int64_t> offset) {
  if (product(input.sizes) == 0 || product(sizes) == 0) return at::zeros(IntArrayRef(input.sizes), grad.options());
  const int64_t window_at = offset.value_or(input.offset), start = std::min(window_at, input.offset);
  const int64_t out_at = window_at - start, in_at = input.offset - start;
  const auto reach = [](IntArrayRef sizes_of, IntArrayRef strides_of, int64_t at) {
    return static_cast<int64_t>(tn::storage_bytes(sizes_of, strides_of, at, 1));
  };
  const int64_t length = std::max(reach(sizes, strides, out_at), reach(input.sizes, input.strides, in_at));
  Tensor whole = grad.new_zeros_symint({length});  // a batch of gradients makes a batch
  if (may_overlap(sizes, strides)) {
    whole = whole.index_add(0, places(length, sizes, strides, out_at, grad), grad.reshape(IntArrayRef(-1)));
  } else {
    whole.as_strided(sizes, strides, out_at).copy_(grad);
  }
  if (may_overlap(input.sizes, input.strides)) {
    // Elements that are one number share its gradient, as they share its value.
    const Tensor index = places(length, input.sizes, input.strides, in_at, grad);
    const Tensor count =
        at::zeros_like(whole).detach().index_add(0, index, at::ones(IntArrayRef(index.numel()), grad.options()));
    whole = whole / count.clamp_min(Scalar(1));
  }
  return whole.as_strided(input.sizes, input.strides, in_at);
}

// Upstream keeps the gradient of the replaced window and none elsewhere.
Tensor as_strided_scatter_backward(const Tensor& grad, const TensorGeometry& input, const TensorGeometry&,
                                   IntArrayRef sizes, IntArrayRef strides, std::optional<int64_t> offset) {
  const Tensor out = tn::at::new_empty_strided(grad, input.sizes, input.strides);
  out.zero_();
  out.as_strided(sizes, strides, offset).copy_(grad.as_strided(sizes, strides, offset));
  return out;
}

}  // namespace tn::autograd
