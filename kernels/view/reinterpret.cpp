// Views that read the same bytes as another dtype, or under a conjugate or negative bit.
#include "generated/slots/view.h"
#include "kernels/view/geometry.h"

namespace tn {
namespace {

Tensor as_dtype(const Tensor& self, ScalarType dtype, IntView sizes, IntView strides, int64_t offset) {
  Tensor out = alias_with_geometry(self, sizes, strides, offset);
  out->set_dtype(dtype);
  return out;
}

}  // namespace

Tensor native::view_dtype(const Tensor& self, ScalarType dtype) {
  if (self.dtype() == dtype) return same_offset(self, self.sizes(), self.strides());
  TN_CHECK(!self->is_conj(),
           "torch.Tensor.view is not supported for conjugate view tensors when converting to a different dtype.");
  TN_CHECK(
      !self->is_neg(),
      "torch.Tensor.view is not supported for tensors with negative bit set when converting to a different dtype.");
  const auto from = static_cast<int64_t>(self.itemsize()), to = static_cast<int64_t>(item_size(dtype));
  DimVector sizes(self.sizes()), strides(self.strides());
  int64_t offset = self.storage_offset();
  if (from == to) return as_dtype(self, dtype, sizes, strides, offset);
  TN_CHECK(self.dim() != 0, "self.dim() cannot be 0 to view ", scalar_type_name(self.dtype()), " as ",
           scalar_type_name(dtype), " (different element sizes)");
  TN_CHECK(strides.back() == 1, "self.stride(-1) must be 1 to view ", scalar_type_name(self.dtype()), " as ",
           scalar_type_name(dtype), " (different element sizes), but got ", strides.back());
  if (from > to) {
    const int64_t ratio = from / to;
    for (size_t i = 0; i + 1 < strides.size(); ++i) strides[i] *= ratio;
    sizes.back() *= ratio;
    return as_dtype(self, dtype, sizes, strides, offset * ratio);
  }
  const int64_t ratio = to / from;
  TN_CHECK(sizes.back() % ratio == 0, "self.size(-1) must be divisible by ", ratio, " to view ",
           scalar_type_name(self.dtype()), " as ", scalar_type_name(dtype), " (different element sizes), but got ",
           sizes.back());
  TN_CHECK(offset % ratio == 0, "self.storage_offset() must be divisible by ", ratio, " to view ",
           scalar_type_name(self.dtype()), " as ", scalar_type_name(dtype), " (different element sizes), but got ",
           offset);
  for (size_t i = 0; i + 1 < strides.size(); ++i) {
    TN_CHECK(strides[i] % ratio == 0, "self.stride(", i, ") must be divisible by ", ratio, " to view ",
             scalar_type_name(self.dtype()), " as ", scalar_type_name(dtype), " (different element sizes), but got ",
             strides[i]);
    strides[i] /= ratio;
  }
  sizes.back() /= ratio;
  return as_dtype(self, dtype, sizes, strides, offset / ratio);
}

Tensor native::view_as_real(const Tensor& self) {
  TN_CHECK(self.is_complex(), "view_as_real is only supported for complex tensors");
  TN_CHECK(
      !self->is_conj(),
      "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can view "
      "it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the original.");
  DimVector sizes(self.sizes()), strides(self.strides());
  for (int64_t& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  return as_dtype(self, real_of(self.dtype()), sizes, strides, self.storage_offset() * 2);
}

Tensor native::view_as_complex(const Tensor& self) {
  const ScalarType t = self.dtype();
  TN_CHECK(t == ScalarType::Float || t == ScalarType::Double || t == ScalarType::Half,
           "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: ",
           scalar_type_name(t));
  TN_CHECK(self.dim() != 0, "Input tensor must have one or more dimensions");
  TN_CHECK(self.sizes().back() == 2, "Tensor must have a last dimension of size 2");
  TN_CHECK(self.strides().back() == 1, "Tensor must have a last dimension with stride 1");
  TN_CHECK(self.storage_offset() % 2 == 0, "Tensor must have a storage_offset divisible by 2");
  DimVector sizes(self.sizes()), strides(self.strides());
  sizes.resize(sizes.size() - 1);
  strides.resize(strides.size() - 1);
  for (size_t i = 0; i < strides.size(); ++i) {
    TN_CHECK(strides[i] % 2 == 0, "Tensor must have a stride divisible by 2 for all but last dimension");
    strides[i] /= 2;
  }
  return as_dtype(self, complex_of(t), sizes, strides, self.storage_offset() / 2);
}

Tensor native::_conj(const Tensor& self) {
  Tensor out = same_offset(self, self.sizes(), self.strides());
  out->set_conj(!self->is_conj());
  return out;
}
Tensor native::_neg_view(const Tensor& self) {
  Tensor out = same_offset(self, self.sizes(), self.strides());
  out->set_neg(!self->is_neg());
  return out;
}

}  // namespace tn
