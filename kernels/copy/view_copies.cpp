#include "kernels/copy/view_copies.h"

#include "generated/ops/add.h"
#include "generated/ops/as_strided.h"
#include "generated/ops/clone.h"
#include "generated/ops/copy.h"
#include "generated/ops/diagonal.h"
#include "generated/ops/narrow.h"
#include "generated/ops/select.h"
#include "generated/ops/slice.h"
#include "generated/ops/zeros.h"
#include "runtime/shape.h"

namespace tn::composite {
namespace {

// Dense strides would do for most; upstream keeps the strides of slices, gaps included.
Tensor clone_with_strides(const Tensor& self) {
  if (self->wrapper) return at::clone(self);  // the storage is that of other values, too
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self->stride(d) == 0 && self->size(d) > 1) return at::clone(self);
  const int64_t all[] = {static_cast<int64_t>(self.storage()->nbytes() / self.itemsize())}, one[] = {1};
  return at::as_strided(at::clone(at::as_strided(self, all, one, 0)), self.sizes(), self.strides(),
                        self.storage_offset());
}

void write_part(const Tensor& part, const Tensor& src) {
  TN_CHECK(part.sizes() == src.sizes(),
           "expected src to have a size equal to the slice of self. src size = ", src.sizes(),
           ", slice size = ", part.sizes());
  at::copy_(part, src);
}

Tensor zeros_like_grad(const Tensor& grad, IntView sizes) {
  return at::zeros(sizes, grad.dtype(), grad.layout(), grad.device());
}

}  // namespace

Tensor copied(const Tensor& view) { return at::clone(view, MemoryFormat::Contiguous); }
Tensor narrow_copy(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  TN_CHECK(dim < self.dim(), "narrow_copy: expected dim < ", self.dim(), ", got ", dim);
  return copied(at::narrow(self, dim, start, length));
}
std::vector<Tensor> copied(const std::vector<Tensor>& views) {
  std::vector<Tensor> out;
  out.reserve(views.size());
  for (const Tensor& v : views) out.push_back(copied(v));
  return out;
}
void copy_each(const std::vector<Tensor>& views, TensorList out, bool resizes) {
  TN_CHECK(out.size() == views.size(), "expected an out= argument of size ", views.size(), ", got size ", out.size());
  for (size_t i = 0; i < views.size(); ++i) {
    if (resizes) resize_output(out[i], views[i].sizes());
    at::copy_(out[i], views[i]);
  }
}

Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
  const Tensor out = clone_with_strides(self);
  write_part(at::select(out, dim, index), src);
  return out;
}
Tensor slice_scatter(const Tensor& self, const Tensor& src, int64_t dim, std::optional<int64_t> start,
                     std::optional<int64_t> end, int64_t step) {
  const Tensor out = clone_with_strides(self);
  write_part(at::slice(out, dim, start, end, step), src);
  return out;
}
Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) {
  const Tensor out = clone_with_strides(self);
  write_part(at::diagonal(out, offset, dim1, dim2), src);
  return out;
}
Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntView size, IntView stride,
                          std::optional<int64_t> storage_offset) {
  const Tensor out = clone_with_strides(self);
  write_part(at::as_strided(out, size, stride, storage_offset), src);
  return out;
}

Tensor select_backward(const Tensor& grad, IntView input_sizes, int64_t dim, int64_t index) {
  const Tensor out = zeros_like_grad(grad, input_sizes);
  at::copy_(at::select(out, dim, index), grad);
  return out;
}
Tensor slice_backward(const Tensor& grad, IntView input_sizes, int64_t dim, int64_t start, int64_t end, int64_t step) {
  const Tensor out = zeros_like_grad(grad, input_sizes);
  at::copy_(at::slice(out, dim, start, end, step), grad);
  return out;
}
Tensor diagonal_backward(const Tensor& grad, IntView input_sizes, int64_t offset, int64_t dim1, int64_t dim2) {
  const Tensor out = zeros_like_grad(grad, input_sizes);
  at::copy_(at::diagonal(out, offset, dim1, dim2), grad);
  return out;
}
Tensor unfold_backward(const Tensor& grad, IntView input_sizes, int64_t dim, int64_t size, int64_t step) {
  const Tensor out = zeros_like_grad(grad, input_sizes);
  if (input_sizes.empty()) return size > 0 ? at::add(out, at::select(grad, 0, 0)) : out;
  const int64_t d = wrap_dim(dim, static_cast<int64_t>(input_sizes.size())),
                windows = grad.dim() > 0 ? grad.size(d) : 1;
  // Position by position from the last: each element then sums its windows from the first.
  for (int64_t k = size; k-- > 0;)
    at::add_(at::slice(out, d, k, k + (windows - 1) * step + 1, step), at::select(grad, grad.dim() - 1, k));
  return out;
}

}  // namespace tn::composite
