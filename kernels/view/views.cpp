#include "generated/slots/view.h"
#include "kernels/view/geometry.h"
#include "runtime/autograd_meta.h"

namespace tn {
namespace {

Tensor plain_alias(const Tensor& self) { return same_offset(self, self.sizes(), self.strides()); }

Tensor view_impl(const Tensor& self, IntView size) {
  const DimVector wanted = infer_view_size(size, self.numel());
  const std::optional<DimVector> strides = view_strides(self.sizes(), self.strides(), wanted);
  TN_CHECK(strides.has_value(),
           "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
           "contiguous "
           "subspaces). Use .reshape(...) instead.");
  return same_offset(self, wanted, *strides);
}

Tensor as_strided_impl(const Tensor& self, IntView size, IntView stride, std::optional<int64_t> offset) {
  const int64_t start = offset.value_or(self.storage_offset());
  TN_CHECK(size.size() == stride.size(), "mismatch in length of strides and shape");
  for (int64_t s : stride)
    TN_CHECK(s >= 0, "as_strided: Negative strides are not supported at the moment, got strides: ", stride);
  TN_CHECK(start >= 0, "Tensor: invalid storage offset ", start);
  const size_t needed = storage_bytes(size, stride, start, self.itemsize());
  TN_CHECK(needed <= self.storage()->nbytes(), "setStorage: sizes ", size, ", strides ", stride, ", storage offset ",
           start, ", and itemsize ", self.itemsize(), " requiring a storage size of ", needed,
           " are out of bounds for storage of size ", self.storage()->nbytes());
  return alias_with_geometry(self, size, stride, start);
}

}  // namespace

Tensor native::alias(const Tensor& self) { return plain_alias(self); }
Tensor native::detach(const Tensor& self) {
  Tensor out = plain_alias(self);
  out->share_version(*self.impl());
  return out;
}
const Tensor& native::detach_(const Tensor& self) {
  TN_CHECK(!is_view(self),
           "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
           "training, and "
           "gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be "
           "called on these "
           "gradients. To fix this error, please refer to the Optimizer.zero_grad() function in "
           "torch/optim/optimizer.py as the solution.");
  forget_history(self);
  return self;
}
// What src would look like if self were a slice of it.
Tensor native::slice_inverse(const Tensor& self, const Tensor& src, int64_t, std::optional<int64_t>,
                             std::optional<int64_t>, int64_t) {
  return as_strided_impl(self, src.sizes(), src.strides(), src.storage_offset());
}
Tensor native::lift(const Tensor& self) { return self; }
Tensor native::lift_fresh(const Tensor& self) { return self; }
Tensor native::view(const Tensor& self, IntArrayRef size) { return view_impl(self, size); }
Tensor native::_unsafe_view(const Tensor& self, IntArrayRef size) { return view_impl(self, size); }
Tensor native::_reshape_alias(const Tensor& self, IntArrayRef size, IntArrayRef stride) {
  return as_strided_impl(self, size, stride, self.storage_offset());
}
Tensor native::as_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                          std::optional<int64_t> storage_offset) {
  return as_strided_impl(self, size, stride, storage_offset);
}
const Tensor& native::as_strided_(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                                  std::optional<int64_t> storage_offset) {
  return become(self, as_strided_impl(self, size, stride, storage_offset));
}

Tensor native::expand(const Tensor& self, IntArrayRef size, bool /*implicit*/) {
  const int64_t ndim = size.ssize(), own = self.dim();
  TN_CHECK(ndim >= own, "expand(", tensor_type_name(self.dtype()), "{", self.sizes(), "}, size=", size,
           "): the number of sizes provided (", ndim,
           ") must be greater or equal to the number of dimensions in the tensor (", own, ")");
  DimVector sizes(static_cast<size_t>(ndim)), strides(static_cast<size_t>(ndim));
  for (int64_t i = ndim - 1; i >= 0; --i) {
    const int64_t from = i - (ndim - own);
    const auto at = static_cast<size_t>(i);
    const int64_t had = from >= 0 ? self->size(from) : 1;
    int64_t want = size[at];
    if (want == -1) {
      TN_CHECK(from >= 0, "The expanded size of the tensor (", want,
               ") isn't allowed in a leading, non-existing dimension ", i);
      want = had;
    }
    TN_CHECK(want >= 0 && (had == want || had == 1), "The expanded size of the tensor (", want,
             ") must match the existing size (", had, ") at non-singleton dimension ", i, ".  Target sizes: ", size,
             ".  Tensor sizes: ", self.sizes());
    sizes[at] = want;
    strides[at] =
        had == want ? (from >= 0 ? self->stride(from) : (i + 1 < ndim ? sizes[at + 1] * strides[at + 1] : 1)) : 0;
  }
  return same_offset(self, sizes, strides);
}

}  // namespace tn
