#include <utility>

#include "generated/slots/view.h"
#include "kernels/view/geometry.h"

namespace tn {
namespace {

Tensor swapped(const Tensor& self, int64_t a, int64_t b) {
  DimVector sizes(self.sizes()), strides(self.strides());
  std::swap(sizes[static_cast<size_t>(a)], sizes[static_cast<size_t>(b)]);
  std::swap(strides[static_cast<size_t>(a)], strides[static_cast<size_t>(b)]);
  return same_offset(self, sizes, strides);
}
Tensor transposed(const Tensor& self, int64_t dim0, int64_t dim1) {
  const int64_t a = wrap_dim(dim0, self.dim()), b = wrap_dim(dim1, self.dim());
  return self.dim() == 0 ? same_offset(self, {}, {}) : swapped(self, a, b);
}
Tensor matrix_transposed(const Tensor& self, const char* name) {
  TN_CHECK(self.dim() <= 2, name, "() expects a tensor with <= 2 dimensions, but self is ", self.dim(), "D");
  return self.dim() < 2 ? same_offset(self, self.sizes(), self.strides()) : swapped(self, 0, 1);
}

}  // namespace

Tensor native::t(const Tensor& self) { return matrix_transposed(self, "t"); }
const Tensor& native::t_(const Tensor& self) { return become(self, matrix_transposed(self, "t_")); }
Tensor native::transpose_int(const Tensor& self, int64_t dim0, int64_t dim1) { return transposed(self, dim0, dim1); }
const Tensor& native::transpose_(const Tensor& self, int64_t dim0, int64_t dim1) {
  return become(self, transposed(self, dim0, dim1));
}

Tensor native::permute(const Tensor& self, IntArrayRef dims) {
  const int64_t ndim = self.dim();
  TN_CHECK(dims.ssize() == ndim,
           "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
           "ordering of dimensions i.e. input.dim() = ",
           ndim, " is not equal to len(dims) = ", dims.ssize());
  DimVector sizes(static_cast<size_t>(ndim)), strides(static_cast<size_t>(ndim));
  uint64_t seen = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = wrap_dim(dims[i], ndim);
    TN_CHECK(!(seen >> d & 1), "permute(): duplicate dims are not allowed.");
    seen |= uint64_t{1} << d;
    sizes[i] = self->size(d);
    strides[i] = self->stride(d);
  }
  return same_offset(self, sizes, strides);
}

}  // namespace tn
