#include "kernels/view/composites.h"

#include <algorithm>

#include "generated/ops/_conj.h"
#include "generated/ops/_neg_view.h"
#include "generated/ops/_reshape_alias.h"
#include "generated/ops/_unsafe_view.h"
#include "generated/ops/alias.h"
#include "generated/ops/clone.h"
#include "generated/ops/contiguous.h"
#include "generated/ops/permute.h"
#include "generated/ops/select.h"
#include "generated/ops/slice.h"
#include "generated/ops/split.h"
#include "generated/ops/split_with_sizes.h"
#include "generated/ops/transpose.h"
#include "generated/ops/unsafe_split.h"
#include "generated/ops/unsafe_split_with_sizes.h"
#include "generated/ops/view.h"
#include "generated/ops/view_as_real.h"
#include "runtime/copy.h"
#include "runtime/shape.h"

namespace tn::composite {

Tensor reshape(const Tensor& self, IntView shape) {
  const DimVector wanted = infer_view_size(shape, self.numel());
  if (self.is_contiguous()) return at::view(self, wanted);
  if (const auto strides = view_strides(self.sizes(), self.strides(), wanted))
    return at::_reshape_alias(self, wanted, *strides);
  return at::_unsafe_view(at::clone(self, MemoryFormat::Contiguous), wanted);
}

Tensor ravel(const Tensor& self) { return at::view(at::contiguous(self), {-1}); }

Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  const int64_t start = wrap_dim(start_dim, self.dim()), end = wrap_dim(end_dim, self.dim());
  TN_CHECK(start <= end, "flatten() has invalid args: start_dim cannot come after end_dim");
  if (self.dim() == 0) return reshape(self, {1});
  if (start == end) return self;
  DimVector shape;
  int64_t merged = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d < start || d > end) {
      shape.push_back(self->size(d));
    } else {
      merged *= self->size(d);
      if (d == end) shape.push_back(merged);
    }
  }
  return reshape(self, shape);
}

Tensor unflatten(const Tensor& self, int64_t dim, IntView sizes) {
  const int64_t d = wrap_dim(dim, self.dim());
  TN_CHECK(!sizes.empty(), "unflatten: sizes must be non-empty");
  int64_t known = 1;
  bool inferred = false;
  for (int64_t s : sizes) {
    inferred |= s == -1;
    if (s != -1) known *= s;
  }
  const int64_t have = self->size(d);
  TN_CHECK(inferred ? known != 0 && have % known == 0 : known == have, "unflatten: Provided sizes ", sizes,
           " don't multiply up to the size of dim ", d, " (", have, ") in the input tensor");
  DimVector shape(self.sizes().slice(0, static_cast<size_t>(d)));
  for (int64_t s : sizes) shape.push_back(s == -1 ? have / known : s);
  for (int64_t i = d + 1; i < self.dim(); ++i) shape.push_back(self->size(i));
  return at::view(self, shape);
}

Tensor movedim(const Tensor& self, IntView source, IntView destination) {
  TN_CHECK(source.size() == destination.size(), "movedim: Invalid source or destination dims: source (", source,
           " dims) should contain the same number of dims as destination (", destination, " dims)");
  const int64_t ndim = self.dim();
  DimVector order(static_cast<size_t>(ndim), -1);
  uint64_t from_seen = 0, to_seen = 0;
  for (size_t i = 0; i < source.size(); ++i) {
    const int64_t from = wrap_dim(source[i], ndim), to = wrap_dim(destination[i], ndim);
    TN_CHECK(!(from_seen >> from & 1), "movedim: repeated dim in `source` (", source, ")");
    TN_CHECK(!(to_seen >> to & 1), "movedim: repeated dim in `destination` (", destination, ")");
    from_seen |= uint64_t{1} << from;
    to_seen |= uint64_t{1} << to;
    if (ndim > 0) order[static_cast<size_t>(to)] = from;
  }
  int64_t next = 0;
  for (int64_t& slot : order) {
    if (slot != -1) continue;
    while (from_seen >> next & 1) ++next;
    slot = next++;
  }
  return at::permute(self, order);
}

Tensor reverse_dims(const Tensor& self) {
  DimVector order;
  for (int64_t d = self.dim() - 1; d >= 0; --d) order.push_back(d);
  return at::permute(self, order);
}

Tensor matrix_transpose(const Tensor& self, const char* name) {
  TN_CHECK(self.dim() >= 2, name, " is only supported on matrices or batches of matrices. Got ", self.dim(),
           "-D tensor.");
  return at::transpose(self, -2, -1);
}
Tensor matrix_adjoint(const Tensor& self, const char* name) { return conj(matrix_transpose(self, name)); }
Tensor matrix_h(const Tensor& self) {
  TN_CHECK(self.dim() == 0 || self.dim() == 2, "tensor.H is only supported on matrices (2-D tensors). Got ", self.dim(),
           "-D tensor.", self.dim() > 2 ? " For batches of matrices, consider using tensor.mH" : "");
  return self.dim() == 0 ? conj(self) : conj(at::transpose(self, 0, 1));
}

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  TN_CHECK(self.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  TN_CHECK(length >= 0, "narrow(): length must be non-negative.");
  const int64_t size = self.size(dim);
  TN_CHECK_AS(Index, start >= -size && start <= size, "start out of range (expected to be in range of [", -size, ", ",
              size, "], but got ", start, ")");
  const int64_t from = start < 0 ? start + size : start;
  TN_CHECK(from + length <= size, "start (", from, ") + length (", length, ") exceeds dimension size (", size, ").");
  return at::slice(self, dim, from, from + length, 1);
}
Tensor narrow(const Tensor& self, int64_t dim, const Tensor& start, int64_t length) {
  TN_CHECK(start.dim() == 0 && is_integral(start.dtype(), false), "start must be an 0-dim integral Tensor.");
  return narrow(self, dim, item(start).to_int64(), length);
}

static int64_t chunk_size(const Tensor& self, int64_t chunks, int64_t dim) {
  TN_CHECK(self.dim() > 0, "chunk expects at least a 1-dimensional tensor");
  TN_CHECK(chunks > 0, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  return (self.size(dim) + chunks - 1) / chunks;
}
std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  const int64_t size = chunk_size(self, chunks, dim);
  // An empty dimension still gives the asked number of chunks.
  if (size == 0) return at::split_with_sizes(self, DimVector(static_cast<size_t>(chunks), 0), dim);
  return at::split(self, size, dim);
}
std::vector<Tensor> unsafe_chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  const int64_t size = chunk_size(self, chunks, dim);
  if (size == 0) return at::unsafe_split_with_sizes(self, DimVector(static_cast<size_t>(chunks), 0), dim);
  return at::unsafe_split(self, size, dim);
}

std::vector<Tensor> tensor_split(const Tensor& self, int64_t sections, int64_t dim) {
  TN_CHECK(self.dim() > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ", self.dim(),
           " dims");
  TN_CHECK(sections > 0, "number of sections must be larger than 0, got ", sections);
  const int64_t size = self.size(dim), base = size / sections, longer = size % sections;
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (int64_t i = 0; i < sections; ++i) {
    const int64_t length = base + (i < longer);
    parts.push_back(at::slice(self, dim, start, start + length, 1));
    start += length;
  }
  return parts;
}
std::vector<Tensor> tensor_split(const Tensor& self, IntView indices, int64_t dim) {
  TN_CHECK(self.dim() > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ", self.dim(),
           " dims");
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (int64_t end : indices) {
    parts.push_back(at::slice(self, dim, start, end, 1));
    start = end;
  }
  parts.push_back(at::slice(self, dim, start, self.size(dim), 1));
  return parts;
}

std::vector<Tensor> tensor_split(const Tensor& self, const Tensor& given, int64_t dim) {
  TN_CHECK(self.dim() > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ", self.dim(),
           " dims");
  TN_CHECK(given.device().is_cpu(), "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on ",
           given.device().str());
  TN_CHECK(given.dtype() == ScalarType::Long,
           "tensor_split expected tensor_indices_or_sections to have dtype of long, but got ",
           scalar_type_name(given.dtype()));
  TN_CHECK(
      given.dim() <= 1,
      "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got a "
      "tensor with ",
      given.dim(), " dims");
  const int64_t* const values = given.numel() ? given.data<int64_t>() : nullptr;
  if (given.dim() == 0) return tensor_split(self, *values, dim);
  DimVector indices;
  for (int64_t i = 0; i < given.numel(); ++i) indices.push_back(values[i * given->stride(0)]);
  return tensor_split(self, IntView(indices), dim);
}

namespace {

int64_t split_dim(const Tensor& self, const SplitAlong& how) {
  TN_CHECK(self.dim() >= how.least_dims, "torch.", how.name, " requires a tensor with at least ", how.least_dims,
           " dimension, but got a tensor with ", self.dim(), " dimensions!");
  return self.dim() == 1 ? 0 : how.dim;
}

}  // namespace

std::vector<Tensor> split_along(const Tensor& self, int64_t sections, const SplitAlong& how) {
  const int64_t dim = split_dim(self, how), size = self->size(dim);
  TN_CHECK(sections != 0 && size % sections == 0, "torch.", how.name, " attempted to split along dimension ", dim,
           ", but the size of the dimension ", size, " is not divisible by the split_size ", sections, "!");
  return tensor_split(self, sections, dim);
}
std::vector<Tensor> split_along(const Tensor& self, IntView indices, const SplitAlong& how) {
  return tensor_split(self, indices, split_dim(self, how));
}

Tensor real(const Tensor& self) {
  if (!self.is_complex()) return self;
  return at::select(at::view_as_real(self->is_conj() ? at::_conj(self) : self), self.dim(), 0);
}
Tensor imag(const Tensor& self) {
  TN_CHECK(self.is_complex(), "imag is not implemented for tensors with non-complex dtypes.");
  if (!self->is_conj()) return at::select(at::view_as_real(self), self.dim(), 1);
  return at::_neg_view(at::select(at::view_as_real(at::_conj(self)), self.dim(), 1));
}
Tensor conj(const Tensor& self) { return self.is_complex() ? at::_conj(self) : self; }
Tensor resolve_conj(const Tensor& self) { return self->is_conj() ? at::clone(self) : self; }
Tensor resolve_neg(const Tensor& self) { return self->is_neg() ? at::clone(self) : self; }

}  // namespace tn::composite
