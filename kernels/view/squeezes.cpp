#include "generated/slots/view.h"
#include "kernels/view/geometry.h"

namespace tn {
namespace {

// Drops the dimensions of the mask that have size 1.
Tensor squeezed(const Tensor& self, uint64_t mask) {
  DimVector sizes, strides;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if ((mask >> d & 1) && self->size(d) == 1) continue;
    sizes.push_back(self->size(d));
    strides.push_back(self->stride(d));
  }
  return same_offset(self, sizes, strides);
}
uint64_t one(const Tensor& self, int64_t dim) { return uint64_t{1} << wrap_dim(dim, self.dim()); }

Tensor unsqueezed(const Tensor& self, int64_t dim) {
  const int64_t d = wrap_dim(dim, self.dim() + 1);
  const auto at = static_cast<size_t>(d);
  DimVector sizes(self.sizes()), strides(self.strides());
  const int64_t stride = d >= self.dim() ? 1 : sizes[at] * strides[at];
  sizes.insert(at, 1);
  strides.insert(at, stride);
  return same_offset(self, sizes, strides);
}

}  // namespace

Tensor native::squeeze(const Tensor& self) { return squeezed(self, ~uint64_t{0}); }
Tensor native::squeeze_dim(const Tensor& self, int64_t dim) { return squeezed(self, one(self, dim)); }
Tensor native::squeeze_dims(const Tensor& self, IntArrayRef dim) {
  return squeezed(self, dim_mask(dim, self.dim(), false));
}
const Tensor& native::squeeze_(const Tensor& self) { return become(self, squeezed(self, ~uint64_t{0})); }
const Tensor& native::squeeze__dim(const Tensor& self, int64_t dim) {
  return become(self, squeezed(self, one(self, dim)));
}
const Tensor& native::squeeze__dims(const Tensor& self, IntArrayRef dim) {
  return become(self, squeezed(self, dim_mask(dim, self.dim(), false)));
}
Tensor native::unsqueeze(const Tensor& self, int64_t dim) { return unsqueezed(self, dim); }
const Tensor& native::unsqueeze_(const Tensor& self, int64_t dim) { return become(self, unsqueezed(self, dim)); }

}  // namespace tn
