#include "kernels/index/composites.h"

#include <algorithm>

#include "generated/ops/_embedding_bag.h"
#include "generated/ops/_embedding_bag_forward_only.h"
#include "generated/ops/_index_put_impl.h"
#include "generated/ops/as_strided.h"
#include "generated/ops/cat.h"
#include "generated/ops/clone.h"
#include "generated/ops/constant_pad_nd.h"
#include "generated/ops/contiguous.h"
#include "generated/ops/copy.h"
#include "generated/ops/embedding_dense_backward.h"
#include "generated/ops/empty.h"
#include "generated/ops/expand.h"
#include "generated/ops/fill.h"
#include "generated/ops/gather.h"
#include "generated/ops/index_add.h"
#include "generated/ops/index_fill.h"
#include "generated/ops/index_put.h"
#include "generated/ops/index_select.h"
#include "generated/ops/item.h"
#include "generated/ops/masked_scatter.h"
#include "generated/ops/masked_select.h"
#include "generated/ops/max.h"
#include "generated/ops/min.h"
#include "generated/ops/narrow.h"
#include "generated/ops/nonzero.h"
#include "generated/ops/put.h"
#include "generated/ops/reflection_pad1d.h"
#include "generated/ops/reflection_pad2d.h"
#include "generated/ops/reflection_pad3d.h"
#include "generated/ops/replication_pad1d.h"
#include "generated/ops/replication_pad2d.h"
#include "generated/ops/replication_pad3d.h"
#include "generated/ops/reshape.h"
#include "generated/ops/scatter.h"
#include "generated/ops/scatter_add.h"
#include "generated/ops/slice.h"
#include "generated/ops/unbind.h"
#include "generated/ops/unsqueeze.h"
#include "generated/ops/view.h"
#include "generated/ops/zeros.h"
#include "runtime/copy.h"
#include "runtime/refuse.h"
#include "runtime/shape.h"

namespace tn::composite {

const Tensor& index_put_(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  return at::_index_put_impl_(self, indices, values, accumulate, false);
}
Tensor index_put(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  return at::index_put_(at::clone(self, MemoryFormat::Preserve), indices, values, accumulate);
}
Tensor index_put_impl(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate, bool unsafe) {
  return at::_index_put_impl_(at::clone(self, MemoryFormat::Preserve), indices, values, accumulate, unsafe);
}
Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  return at::index_fill_(at::clone(self, MemoryFormat::Preserve), dim, index, value);
}
Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  return at::index_fill_(at::clone(self, MemoryFormat::Preserve), dim, index, value);
}
Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  return at::put_(at::clone(self, MemoryFormat::Preserve), index, source, accumulate);
}

// ---- masks

Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  const DimVector sizes = infer_size(mask.sizes(), self.sizes());
  return at::masked_scatter_(at::clone(at::expand(self, sizes), MemoryFormat::Contiguous), at::expand(mask, sizes),
                             source);
}
Tensor masked_scatter_backward(const Tensor& grad, const Tensor& mask, IntView sizes) {
  Tensor taken = at::masked_select(grad, mask);
  const int64_t missing[] = {product(sizes) - taken.numel()};
  if (missing[0] > 0) taken = at::cat({taken, at::zeros(missing, grad.dtype(), grad.layout(), grad.device())}, 0);
  return at::view(taken, sizes);
}
Tensor masked_select_backward(const Tensor& grad, const Tensor& input, const Tensor& mask) {
  const DimVector sizes = infer_size(input.sizes(), mask.sizes());
  return at::masked_scatter_(at::zeros(sizes, input.dtype(), input.layout(), input.device()), mask, grad);
}
std::vector<Tensor> nonzero_numpy(const Tensor& self) {
  return at::unbind(at::nonzero(self.dim() == 0 ? at::unsqueeze(self, 0) : self), 1);
}

// ---- along a dimension

namespace {

struct Along {
  Tensor self, indices;
  int64_t dim = 0;
};

// Negative positions count from the end, here only.
Tensor wrapped(const Tensor& indices, int64_t size) {
  if (indices.is_meta() || indices.numel() == 0) return indices;
  const Tensor dense = at::contiguous(indices);
  const auto* p = dense.data<int64_t>();
  if (std::all_of(p, p + dense.numel(), [](int64_t i) { return i >= 0; })) return indices;
  const Tensor out = at::clone(indices, MemoryFormat::Contiguous);
  for (int64_t i = 0; i < out.numel(); ++i)
    if (p[i] < 0) out.data<int64_t>()[i] = (p[i] % size + size) % size;
  return out;
}

Along along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  TN_CHECK(indices.dtype() == ScalarType::Long, "torch.take_along_dim(): dtype of indices should be Long but got ",
           scalar_type_name(indices.dtype()));
  if (!dim) return {at::view(self, {-1}), at::view(indices, {-1}), 0};
  TN_CHECK(self.dim() == indices.dim(),
           "torch.take_along_dim(): input and indices should have the same number of dimensions, but got ", self.dim(),
           " dimensions for input, and ", indices.dim(), " dimensions for indices");
  const int64_t d = wrap_dim(*dim, self.dim());
  DimVector a(self.sizes()), b(indices.sizes());
  if (self.dim() > 0) {
    a[static_cast<size_t>(d)] = indices->size(d);
    b[static_cast<size_t>(d)] = self->size(d);
  }
  const DimVector wide = infer_size(a, indices.sizes());
  return {at::expand(self, infer_size(b, self.sizes())),
          at::expand(wrapped(indices, self.dim() > 0 ? self->size(d) : 1), wide), d};
}

}  // namespace

Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  const Along a = along_dim(self, indices, dim);
  return at::gather(a.self, a.dim, a.indices);
}
const Tensor& take_along_dim_out(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim,
                                 const Tensor& out) {
  const Along a = along_dim(self, indices, dim);
  return at::gather_out(out, a.self, a.dim, a.indices);
}

const Tensor& fill_diagonal_(const Tensor& self, const Scalar& value, bool wrap) {
  TN_CHECK(self.dim() >= 2, "dimensions must larger than 1");
  const int64_t height = self->size(0), width = self->size(1);
  int64_t length = std::min(height, width), step = 0;
  for (int64_t d = 0; d < self.dim(); ++d) {
    TN_CHECK(self.dim() == 2 || self->size(d) == height, "all dimensions of input must be of equal length");
    step += self->stride(d);
  }
  at::fill_(at::as_strided(self, {length}, {step}, self.storage_offset()), value);
  // A tall matrix starts another diagonal below an empty row.
  if (!wrap || self.dim() != 2 || height <= width + 1) return self;
  const int64_t more = (self.numel() + width) / (width + 1) - length;
  at::fill_(at::as_strided(self, {more}, {step}, self.storage_offset() + self->stride(0) * (width + 1)), value);
  return self;
}

Tensor one_hot(const Tensor& self, int64_t num_classes) {
  TN_CHECK(self.dtype() == ScalarType::Long, "one_hot is only applicable to index tensor of type LongTensor.");
  DimVector sizes(self.sizes());
  if (self.numel() == 0) {
    TN_CHECK(num_classes > 0, "Can not infer total number of classes from empty tensor.");
    sizes.push_back(num_classes);
    return at::empty(sizes, self.dtype(), self.layout(), self.device());
  }
  TN_CHECK(at::item(at::min(self)).to_int64() >= 0, "Class values must be non-negative.");
  const int64_t most = at::item(at::max(self)).to_int64();
  TN_CHECK(num_classes == -1 || num_classes > most, "Class values must be smaller than num_classes.");
  sizes.push_back(num_classes == -1 ? most + 1 : num_classes);
  const Tensor out = at::zeros(sizes, self.dtype(), self.layout(), self.device());
  return at::scatter_(out, -1, at::unsqueeze(self, -1), Scalar(1));
}

Tensor gather_backward(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index, bool sparse_grad) {
  if (sparse_grad) refuse("aten::gather_backward", "sparse_grad", "sparse layouts are not served yet");
  return at::scatter_add_(at::zeros(self.sizes(), grad.dtype(), grad.layout(), grad.device()), dim, index, grad);
}
Tensor index_select_backward(const Tensor& grad, IntView self_sizes, int64_t dim, const Tensor& index) {
  return at::index_add_(at::zeros(self_sizes, grad.dtype(), grad.layout(), grad.device()), dim, index, grad);
}

// ---- embedding

namespace {

void check_indices(const Tensor& indices, int argument, const char* name) {
  TN_CHECK(indices.dtype() == ScalarType::Long || indices.dtype() == ScalarType::Int, "Expected tensor for argument #",
           argument, " 'indices' to have one of the following scalar types: Long, Int; but got ",
           // The one name that upstream's table of old types lacks.
           indices.dtype() == ScalarType::BFloat16 ? "CPUBFloat16Type"
                                                   : str("torch.", scalar_type_name(indices.dtype()), "Tensor"),
           " instead (while checking arguments for ", name, ")");
}

}  // namespace

Tensor embedding(const Tensor& weight, const Tensor& indices) {
  TN_CHECK(weight.dim() == 2, "'weight' must be 2-D");
  check_indices(indices, 1, "embedding");
  if (indices.dim() == 1) return at::index_select(weight, 0, indices);
  DimVector sizes(indices.sizes());
  sizes.push_back(weight->size(1));
  return at::view(at::index_select(weight, 0, at::reshape(indices, {-1})), sizes);
}
std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(const Tensor& weight, const Tensor& indices,
                                                         const Tensor& offsets, bool scale_grad_by_freq, int64_t mode,
                                                         bool sparse, OptionalTensor per_sample_weights,
                                                         bool include_last_offset, std::optional<int64_t> padding_idx) {
  int64_t padding = -1;
  if (padding_idx) {
    const int64_t rows = weight.size(0);
    TN_CHECK(*padding_idx >= -rows && *padding_idx < rows, "padding_idx must be within the number of embeddings, -",
             rows, " through ", rows - 1, ", but got ", *padding_idx);
    padding = wrap_dim(*padding_idx, rows);
  }
  if (!weight.requires_grad() && (!per_sample_weights || !per_sample_weights->requires_grad()))
    return at::_embedding_bag_forward_only(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                                           per_sample_weights, include_last_offset, padding);
  return at::_embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                            include_last_offset, padding);
}
Tensor embedding_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights, int64_t padding_idx,
                          bool scale_grad_by_freq, bool sparse) {
  if (sparse) refuse("aten::embedding_backward", "sparse", "sparse layouts are not served yet");
  return at::embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq);
}

// ---- padding

Tensor constant_pad(const Tensor& self, IntView pad, const Scalar& value) {
  TN_CHECK(pad.size() % 2 == 0, "Length of pad must be even but instead it equals ", pad.size());
  const int64_t ndim = self.dim(), padded = pad.ssize() / 2;
  TN_CHECK(ndim >= padded,
           "Length of pad should be no more than twice the number of dimensions of the input. Pad length is ",
           pad.size(), "while the input has ", ndim, "dimensions.");
  const auto left = [&](int64_t d) { return pad[static_cast<size_t>(2 * (ndim - d - 1))]; };
  const auto right = [&](int64_t d) { return pad[static_cast<size_t>(2 * (ndim - d - 1) + 1)]; };
  Tensor source = self;
  bool grows = false;
  DimVector sizes(self.sizes());
  for (int64_t d = ndim - padded; d < ndim; ++d) {
    if (left(d) < 0) source = at::narrow(source, d, -left(d), source->size(d) + left(d));
    if (right(d) < 0) source = at::narrow(source, d, 0, source->size(d) + right(d));
    grows |= left(d) > 0 || right(d) > 0;
  }
  if (!grows) return at::clone(source);
  for (int64_t d = ndim - padded; d < ndim; ++d) {
    int64_t& size = sizes[static_cast<size_t>(d)];
    size += left(d) + right(d);
    TN_CHECK(size >= 0, "The input size ", self->size(d), ", plus negative padding ", left(d), " and ", right(d),
             " resulted in a negative output size, which is invalid. Check dimension ", d, " of your input.");
  }
  const Tensor out = at::empty(sizes, self.dtype(), self.layout(), self.device(), {}, suggest_memory_format(self));
  at::fill_(out, value);
  Tensor target = out;
  for (int64_t d = ndim - padded; d < ndim; ++d) {
    if (left(d) > 0) target = at::narrow(target, d, left(d), target->size(d) - left(d));
    if (right(d) > 0) target = at::narrow(target, d, 0, target->size(d) - right(d));
  }
  at::copy_(target, source);
  return out;
}

namespace {

enum class Mode : int64_t { Reflect, Replicate, Circular, Constant };  // upstream's numbers

const char* mode_name(Mode m) {
  switch (m) {
    case Mode::Reflect: return "reflect";
    case Mode::Replicate: return "replicate";
    case Mode::Circular: return "circular";
    case Mode::Constant: break;
  }
  return "constant";
}

}  // namespace

Tensor pad(const Tensor& self, IntView pad, std::string_view mode, std::optional<double> value) {
  for (const Mode m : {Mode::Reflect, Mode::Constant, Mode::Replicate, Mode::Circular})
    if (mode == mode_name(m)) return composite::pad(self, pad, static_cast<int64_t>(m), value);
  fail(ErrorKind::NotImplemented, "Unrecognised padding mode ", mode);
}

Tensor pad(const Tensor& self, IntView pad, int64_t mode, std::optional<double> value) {
  const auto m = static_cast<Mode>(mode);
  const int64_t ndim = self.dim(), padded = pad.ssize() / 2;
  TN_CHECK(pad.size() % 2 == 0, "Padding length must be divisible by 2");
  TN_CHECK(padded <= ndim,
           "Padding length should be less than or equal to two times the input dimension but got padding length ",
           pad.size(), " and input of dimension ", ndim);
  if (m == Mode::Constant) return at::constant_pad_nd(self, pad, Scalar(value.value_or(0.0)));
  TN_CHECK(!value || *value == 0, "Padding mode \"", mode_name(m), "\" doesn't take in value argument");
  const bool served = padded >= 1 && padded <= 3 && (ndim == padded + 1 || ndim == padded + 2);
  TN_CHECK_AS(NotImplemented, served, "Padding size ", pad.size(), " is not supported for ", ndim,
              "D input tensor.\nSupported combinations for non-constant padding:\n  - 2D or 3D input: padding size = 2 "
              "(pads last "
              "dimension)\n  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n  - 4D or 5D input: padding "
              "size = 6 (pads last 3 "
              "dimensions)");
  if (m == Mode::Circular) return pad_circular(self, pad);
  if (m == Mode::Reflect)
    return padded == 1   ? at::reflection_pad1d(self, pad)
           : padded == 2 ? at::reflection_pad2d(self, pad)
                         : at::reflection_pad3d(self, pad);
  return padded == 1   ? at::replication_pad1d(self, pad)
         : padded == 2 ? at::replication_pad2d(self, pad)
                       : at::replication_pad3d(self, pad);
}

Tensor pad_circular(const Tensor& self, IntView pad) {
  const int64_t ndim = self.dim(), padded = pad.ssize() / 2;
  Tensor out = self;
  for (int64_t i = 0; i < padded; ++i) {
    const int64_t d = ndim - 1 - i, size = self->size(d);
    const int64_t left = pad[static_cast<size_t>(2 * i)], right = pad[static_cast<size_t>(2 * i + 1)];
    TN_CHECK(left <= size && right <= size, "Padding value causes wrapping around more than once.");
    TN_CHECK(size + left + right >= 0, "Negative padding value is resulting in an empty dimension");
    std::vector<Tensor> parts;
    // What negative padding takes away isn't wrapped either.
    const Tensor middle = at::slice(out, d, std::max<int64_t>(-left, 0), size + std::min<int64_t>(right, 0));
    if (left > 0) parts.push_back(at::slice(middle, d, middle->size(d) - left, middle->size(d)));
    parts.push_back(middle);
    if (right > 0) parts.push_back(at::slice(middle, d, 0, right));
    out = at::cat(parts, d);
  }
  return at::contiguous(out);
}

}  // namespace tn::composite
