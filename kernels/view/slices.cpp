#include <algorithm>
#include <limits>
#include <vector>

#include "generated/slots/view.h"
#include "kernels/view/geometry.h"

namespace tn {
namespace {

// Rows [start, start + length) of a dimension; the bounds are known to be good.
Tensor part(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  DimVector sizes(self.sizes());
  sizes[static_cast<size_t>(dim)] = length;
  return alias_with_geometry(self, sizes, self.strides(), self.storage_offset() + start * self->stride(dim));
}

std::vector<Tensor> split_every(const Tensor& self, int64_t split_size, int64_t dim) {
  TN_CHECK(self.dim() != 0, "split expects at least a 1-dimensional tensor");
  TN_CHECK(split_size >= 0, "split expects split_size be non-negative, but got split_size=", split_size);
  const int64_t d = wrap_dim(dim, self.dim()), size = self->size(d);
  TN_CHECK(split_size > 0 || size == 0, "split_size can only be 0 if dimension size is 0, but got dimension size of ",
           size);
  const int64_t count = split_size == 0 ? 1 : std::max<int64_t>((size + split_size - 1) / split_size, 1);
  std::vector<Tensor> parts;
  parts.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    parts.push_back(part(self, d, i * split_size, std::min(split_size, size - i * split_size)));
  return parts;
}

std::vector<Tensor> split_sizes(const Tensor& self, IntView sizes, int64_t dim) {
  TN_CHECK(self.dim() != 0, "split_with_sizes expects at least a 1-dimensional tensor");
  const int64_t d = wrap_dim(dim, self.dim()), size = self->size(d);
  std::vector<Tensor> parts;
  parts.reserve(sizes.size());
  int64_t start = 0;
  for (int64_t length : sizes) {
    TN_CHECK(length >= 0,
             "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=", sizes);
    TN_CHECK(start + length <= size, "split_with_sizes expects split_sizes to sum exactly to ", size,
             " (input tensor's size at dimension ", dim, "), but got split_sizes=", sizes);
    parts.push_back(part(self, d, start, length));
    start += length;
  }
  TN_CHECK(start == size, "split_with_sizes expects split_sizes to sum exactly to ", size,
           " (input tensor's size at dimension ", dim, "), but got split_sizes=", sizes);
  return parts;
}

std::vector<Tensor> apart(std::vector<Tensor> parts) {
  for (const Tensor& t : parts) t->own_version();
  return parts;
}

}  // namespace

Tensor native::select_int(const Tensor& self, int64_t dim, int64_t index) {
  TN_CHECK_AS(Index, self.dim() != 0, "select() cannot be applied to a 0-dim tensor.");
  const int64_t d = wrap_dim(dim, self.dim()), size = self->size(d);
  TN_CHECK_AS(Index, index >= -size && index < size, "select(): index ", index, " out of range for tensor of size ",
              self.sizes(), " at dimension ", d);
  DimVector sizes(self.sizes()), strides(self.strides());
  const int64_t offset = self.storage_offset() + (index < 0 ? index + size : index) * strides[static_cast<size_t>(d)];
  sizes.erase(static_cast<size_t>(d));
  strides.erase(static_cast<size_t>(d));
  return alias_with_geometry(self, sizes, strides, offset);
}

Tensor native::slice_Tensor(const Tensor& self, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                            int64_t step) {
  TN_CHECK(self.dim() != 0, "slice() cannot be applied to a 0-dim tensor.");
  const int64_t d = wrap_dim(dim, self.dim()), size = self->size(d);
  TN_CHECK(step > 0, "slice step must be positive");
  const auto clamp = [size](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  const int64_t from = clamp(start.value_or(0));
  const int64_t to = std::max(from, end ? clamp(*end) : size);
  DimVector sizes(self.sizes()), strides(self.strides());
  const auto at = static_cast<size_t>(d);
  const int64_t offset = self.storage_offset() + from * strides[at];
  sizes[at] = (to - from) / step + ((to - from) % step != 0);
  strides[at] *= step;
  return alias_with_geometry(self, sizes, strides, offset);
}

Tensor native::diagonal(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t a = wrap_dim(dim1, self.dim()), b = wrap_dim(dim2, self.dim());
  TN_CHECK(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  const int64_t length = std::max<int64_t>(
      offset >= 0 ? std::min(self->size(a), self->size(b) - offset) : std::min(self->size(a) + offset, self->size(b)),
      0);
  int64_t start = self.storage_offset();
  if (length > 0) start += offset >= 0 ? offset * self->stride(b) : -offset * self->stride(a);
  DimVector sizes(self.sizes()), strides(self.strides());
  const int64_t step = self->stride(a) + self->stride(b);
  for (int64_t d : {std::max(a, b), std::min(a, b)}) {
    sizes.erase(static_cast<size_t>(d));
    strides.erase(static_cast<size_t>(d));
  }
  sizes.push_back(length);
  strides.push_back(step);
  return alias_with_geometry(self, sizes, strides, start);
}

Tensor native::unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  const int64_t d = wrap_dim(dimension, self.dim());
  const int64_t have = self.dim() == 0 ? 1 : self->size(d);
  TN_CHECK(size <= have, "maximum size for tensor at dimension ", d, " is ", have, " but size is ", size);
  TN_CHECK(size >= 0, "size is ", size, " but must be >= 0");
  TN_CHECK(step > 0, "step is ", step, " but must be > 0");
  DimVector sizes(self.sizes()), strides(self.strides());
  sizes.push_back(size);
  strides.push_back(self.dim() == 0 ? 1 : self->stride(d));
  if (self.dim() > 0) {
    sizes[static_cast<size_t>(d)] = (have - size) / step + 1;
    strides[static_cast<size_t>(d)] *= step;
  }
  return same_offset(self, sizes, strides);
}

std::vector<Tensor> native::split_Tensor(const Tensor& self, int64_t split_size, int64_t dim) {
  return split_every(self, split_size, dim);
}
// The unsafe ones share memory, yet each counts its writes alone: upstream's promise to autograd.
std::vector<Tensor> native::unsafe_split_Tensor(const Tensor& self, int64_t split_size, int64_t dim) {
  return apart(split_every(self, split_size, dim));
}
std::vector<Tensor> native::split_with_sizes(const Tensor& self, IntArrayRef split_sizes_, int64_t dim) {
  return split_sizes(self, split_sizes_, dim);
}
std::vector<Tensor> native::unsafe_split_with_sizes(const Tensor& self, IntArrayRef split_sizes_, int64_t dim) {
  return apart(split_sizes(self, split_sizes_, dim));
}

std::vector<Tensor> native::unbind_int(const Tensor& self, int64_t dim) {
  const int64_t d = wrap_dim(dim, self.dim(), false);
  std::vector<Tensor> rows;
  rows.reserve(static_cast<size_t>(self->size(d)));
  for (int64_t i = 0; i < self->size(d); ++i) rows.push_back(select_int(self, d, i));
  return rows;
}

}  // namespace tn
