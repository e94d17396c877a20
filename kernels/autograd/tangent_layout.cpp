// Tensors that lie as others do, for tangents and their batches.
#include "generated/ops/zeros.h"
#include "generated/slots/autograd.h"

namespace tn {

namespace {

int64_t storage_numel(const Tensor& t) {
  return t.storage() ? static_cast<int64_t>(t.storage()->nbytes() / t.itemsize()) : 0;
}

}  // namespace

// The first dimensions of `self` are a batch of what `other` is one of, each with a storage like other's.
Tensor native::_new_zeros_with_same_feature_meta(const Tensor& self, const Tensor& other, int64_t self_num_batch_dims) {
  TN_CHECK(self_num_batch_dims >= 0 && self_num_batch_dims <= self.dim(),
           "_new_zeros_with_same_feature_meta: expected 0 to ", self.dim(), " batch dimensions, got ",
           self_num_batch_dims);
  const auto batch = static_cast<size_t>(self_num_batch_dims);
  const int64_t one = storage_numel(other);
  std::vector<int64_t> sizes(batch), strides(batch);
  int64_t total = one;
  for (size_t d = batch; d-- > 0;) {
    sizes[d] = self.sizes()[d];
    strides[d] = total;
    total *= sizes[d];
  }
  for (int64_t d = 0; d < other.dim(); ++d) {
    sizes.push_back(other.size(d));
    strides.push_back(other.stride(d));
  }
  const Tensor all = at::zeros({total}, other.dtype(), other.layout(), other.device());
  return alias_with_geometry(all, sizes, strides, other.storage_offset());
}

bool native::_has_same_storage_numel(const Tensor& self, const Tensor& other) {
  return storage_numel(self) == storage_numel(other);
}

}  // namespace tn
