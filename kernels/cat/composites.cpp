#include "kernels/cat/composites.h"

#include <algorithm>
#include <cstdlib>

#include "generated/ops/cat.h"
#include "generated/ops/clone.h"
#include "generated/ops/contiguous.h"
#include "generated/ops/copy.h"
#include "generated/ops/diag_embed.h"
#include "generated/ops/diagonal.h"
#include "generated/ops/diagonal_copy.h"
#include "generated/ops/empty.h"
#include "generated/ops/expand.h"
#include "generated/ops/flatten.h"
#include "generated/ops/flip.h"
#include "generated/ops/index_select.h"
#include "generated/ops/repeat.h"
#include "generated/ops/repeat_interleave.h"
#include "generated/ops/reshape.h"
#include "generated/ops/slice.h"
#include "generated/ops/transpose.h"
#include "generated/ops/unsqueeze.h"
#include "generated/ops/view.h"
#include "generated/ops/zeros.h"
#include "runtime/promote.h"
#include "runtime/shape.h"
#include "runtime/warn.h"

namespace tn::composite {
namespace {

void check_same_sizes(TensorList tensors) {
  for (size_t i = 1; i < tensors.size(); ++i)
    TN_CHECK(tensors[i].sizes() == tensors[0].sizes(), "stack expects each tensor to be equal size, but got ",
             tensors[0].sizes(), " at entry 0 and ", tensors[i].sizes(), " at entry ", i);
}

template <class F>
std::vector<Tensor> each(TensorList tensors, F&& f) {
  std::vector<Tensor> out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors) out.push_back(f(t));
  return out;
}

}  // namespace

Tensor stack(TensorList tensors, int64_t dim) {
  TN_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
  const int64_t ndim = tensors[0].dim(), d = wrap_dim(dim, ndim + 1);
  check_same_sizes(tensors);
  if (d == ndim) return at::cat(each(tensors, [d](const Tensor& t) { return at::unsqueeze(t, d); }), d);
  // The new dimension splits the concatenated one.
  DimVector sizes(tensors[0].sizes());
  sizes.insert(static_cast<size_t>(d), tensors.ssize());
  return at::view(at::cat(tensors, d), sizes);
}
const Tensor& stack_out(TensorList tensors, int64_t dim, const Tensor& out) {
  TN_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
  const int64_t d = wrap_dim(dim, tensors[0].dim() + 1);
  check_same_sizes(tensors);
  return at::cat_out(out, each(tensors, [d](const Tensor& t) { return at::unsqueeze(t, d); }), d);
}

// ---- joining along a fixed dimension

Joined horizontal(TensorList tensors, const char* name) {
  TN_CHECK(!tensors.empty(), name, " expects a non-empty TensorList");
  Joined j{atleast_1d(tensors), 1};
  if (j.tensors[0].dim() == 1) j.dim = 0;
  return j;
}
Joined vertical(TensorList tensors, const char* name) {
  TN_CHECK(!tensors.empty(), name, " expects a non-empty TensorList");
  return {atleast_2d(tensors), 0};
}
Joined deep(TensorList tensors) {
  TN_CHECK(!tensors.empty(), "dstack expects a non-empty TensorList");
  return {atleast_3d(tensors), 2};
}
Joined columns(TensorList tensors) {
  TN_CHECK(!tensors.empty(), "column_stack expects a non-empty TensorList");
  return horizontal(each(tensors, [](const Tensor& t) { return t.dim() <= 1 ? at::reshape(t, {t.numel(), 1}) : t; }));
}
Tensor join(const Joined& what) { return at::cat(what.tensors, what.dim); }
const Tensor& join_out(const Joined& what, const Tensor& out) { return at::cat_out(out, what.tensors, what.dim); }

Tensor atleast_1d(const Tensor& self) { return self.dim() == 0 ? at::reshape(self, {1}) : self; }
Tensor atleast_2d(const Tensor& self) {
  if (self.dim() == 0) return at::reshape(self, {1, 1});
  return self.dim() == 1 ? at::unsqueeze(self, 0) : self;
}
Tensor atleast_3d(const Tensor& self) {
  if (self.dim() == 0) return at::reshape(self, {1, 1, 1});
  if (self.dim() == 1) return at::unsqueeze(at::unsqueeze(self, 0), -1);
  return self.dim() == 2 ? at::unsqueeze(self, -1) : self;
}
std::vector<Tensor> atleast_1d(TensorList tensors) {
  return each(tensors, [](const Tensor& t) { return atleast_1d(t); });
}
std::vector<Tensor> atleast_2d(TensorList tensors) {
  return each(tensors, [](const Tensor& t) { return atleast_2d(t); });
}
std::vector<Tensor> atleast_3d(TensorList tensors) {
  return each(tensors, [](const Tensor& t) { return atleast_3d(t); });
}

// ---- repeating and turning

Tensor tile(const Tensor& self, IntView dims) {
  DimVector repeats(dims);
  while (static_cast<int64_t>(repeats.size()) < self.dim()) repeats.insert(0, 1);
  return at::repeat(self, repeats);
}

Tensor repeat_interleave(const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  const Tensor input = dim ? self : at::flatten(self);
  const int64_t d = dim.value_or(0), size = input.size(d);
  Tensor counts = repeats;
  if (repeats.dim() == 0 || (repeats.dim() == 1 && repeats->size(0) == 1)) {
    counts = at::expand(at::reshape(repeats, {1}), {size});
  } else {
    TN_CHECK(repeats.dim() == 1, "repeats must be 0-dim or 1-dim tensor");
    TN_CHECK(repeats->size(0) == size,
             "repeats must have the same size as input along dim, but got repeats.size(0) = ", repeats->size(0),
             " and input.size(", d, ") = ", size);
  }
  return at::index_select(input, d, at::repeat_interleave(counts, output_size));
}

Tensor repeat_interleave(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  Tensor input = dim ? self : at::flatten(self);
  const int64_t d = wrap_dim(dim.value_or(0), self.dim());
  TN_CHECK(repeats >= 0, "Repeats must be non-negative");
  input = at::unsqueeze(input, d + 1);
  DimVector sizes(input.sizes());
  sizes[static_cast<size_t>(d + 1)] = repeats;
  input = at::expand(input, sizes);
  const int64_t total = repeats * sizes[static_cast<size_t>(d)];
  TN_CHECK(!output_size || *output_size == total, "repeat_interleave: Invalid output_size, expected ", total,
           " but got ", output_size.value_or(0));
  return at::flatten(at::clone(input, MemoryFormat::Contiguous), d, d + 1);
}

Tensor rot90(const Tensor& self, int64_t k, IntView dims) {
  const int64_t ndim = self.dim();
  TN_CHECK(dims.size() == 2, "expected total rotation dims == 2, but got dims = ", dims.size());
  TN_CHECK(ndim >= 2, "expected total dims >= 2, but got total dims = ", ndim);
  const int64_t a = wrap_dim(dims[0], ndim), b = wrap_dim(dims[1], ndim);
  TN_CHECK(a != b, "expected rotation dims to be different, but got dim0 = ", dims[0], " and dim1 = ", dims[1]);
  switch ((k % 4 + 4) % 4) {
    case 1: return at::transpose(at::flip(self, {b}), a, b);
    case 2: return at::flip(self, {a, b});
    case 3: return at::transpose(at::flip(self, {a}), a, b);
    default: return at::clone(self, MemoryFormat::Contiguous);
  }
}
Tensor fliplr(const Tensor& self) {
  TN_CHECK(self.dim() >= 2, "Input must be >= 2-d.");
  return at::flip(self, {1});
}
Tensor flipud(const Tensor& self) {
  TN_CHECK(self.dim() >= 1, "Input must be >= 1-d.");
  return at::flip(self, {0});
}

// ---- products of lists

std::vector<Tensor> broadcast_tensors(TensorList tensors) {
  DimVector shape;
  for (const Tensor& t : tensors) shape = infer_size(shape, t.sizes());
  return each(tensors,
              [&](const Tensor& t) { return t.sizes() == shape.operator IntView() ? t : at::expand(t, shape); });
}

std::vector<Tensor> meshgrid(TensorList tensors) {
  warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.");
  return meshgrid(tensors, "ij");
}
std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing) {
  TN_CHECK(!tensors.empty(), "meshgrid expects a non-empty TensorList");
  for (size_t i = 1; i < tensors.size(); ++i) {
    TN_CHECK(tensors[i].dtype() == tensors[0].dtype(), "meshgrid expects all tensors to have the same dtype");
    TN_CHECK(tensors[i].device().type == tensors[0].device().type,
             "meshgrid expects all tensors to have the same device");
  }
  TN_CHECK(indexing == "xy" || indexing == "ij",
           "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: ", indexing);
  const bool swap = indexing == "xy" && tensors.size() >= 2;
  // "xy" counts along the columns first: rows and columns change places, the results keep theirs.
  std::vector<Tensor> axes = tensors.vec();
  if (swap) std::swap(axes[0], axes[1]);
  DimVector shape;
  for (const Tensor& t : axes) {
    TN_CHECK(t.dim() <= 1, "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: a tensor of shape ",
             t.sizes());
    shape.push_back(t.numel());
  }
  std::vector<Tensor> grids;
  for (size_t i = 0; i < axes.size(); ++i) {
    DimVector line(axes.size(), 1);
    line[i] = axes[i].numel();
    grids.push_back(at::expand(at::view(axes[i], line), shape));
  }
  if (swap) std::swap(grids[0], grids[1]);
  return grids;
}

Tensor cartesian_prod(TensorList tensors) {
  for (const Tensor& t : tensors) TN_CHECK(t.dim() == 1, "Expect a 1D vector, but got shape ", t.sizes());
  if (tensors.size() == 1) return tensors[0];
  std::vector<Tensor> grids = meshgrid(tensors, "ij");
  for (Tensor& g : grids) g = at::flatten(g);
  return stack(grids, 1);
}

Tensor combinations(const Tensor& self, int64_t r, bool with_replacement) {
  TN_CHECK(self.dim() == 1, "Expect a 1D vector, but got shape ", self.sizes());
  TN_CHECK(r >= 0, "Expect a non-negative number, but got ", r);
  if (r == 0) return at::empty(IntView({0}), self.dtype(), self.layout(), self.device());
  const int64_t n = self.numel();
  // Every choice of r ascending positions, in lexical order: one column of positions for each place.
  std::vector<std::vector<int64_t>> places(static_cast<size_t>(r));
  std::vector<int64_t> choice(static_cast<size_t>(r));
  const int64_t step = with_replacement ? 0 : 1;
  for (int64_t i = 0; i < r; ++i) choice[static_cast<size_t>(i)] = i * step;
  bool more = n > 0 && (with_replacement || r <= n);
  while (more) {
    for (size_t i = 0; i < choice.size(); ++i) places[i].push_back(choice[i]);
    more = false;
    for (int64_t i = r; i-- > 0;) {
      if (choice[static_cast<size_t>(i)] >= n - 1 - (r - 1 - i) * step) continue;
      ++choice[static_cast<size_t>(i)];
      for (int64_t j = i + 1; j < r; ++j) choice[static_cast<size_t>(j)] = choice[static_cast<size_t>(j - 1)] + step;
      more = true;
      break;
    }
  }
  std::vector<Tensor> columns;
  for (const std::vector<int64_t>& place : places) {
    const int64_t count[] = {static_cast<int64_t>(place.size())};
    const Tensor index = empty(count, ScalarType::Long);
    std::copy(place.begin(), place.end(), index.data<int64_t>());
    columns.push_back(at::index_select(self, 0, index));
  }
  return stack(columns, 1);
}

// ---- diagonals

Tensor block_diag(TensorList tensors) {
  if (tensors.empty()) return at::empty(IntView({1, 0}));
  ResultType type;
  int64_t rows = 0, columns = 0;
  std::vector<Tensor> blocks;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    TN_CHECK(t.device().type == tensors[0].device().type,
             "torch.block_diag: input tensors must all be on the same device. Input 0 is on device ",
             tensors[0].device().str(), " and input ", i, " is on device ", t.device().str(), ".");
    TN_CHECK(t.dim() <= 2, "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input ", i, " has ",
             t.dim(), " dimensions");
    type.add(t);
    blocks.push_back(t.dim() == 2 ? t : at::expand(t, {1, t.dim() == 0 ? 1 : t->size(0)}));
    rows += blocks.back()->size(0);
    columns += blocks.back()->size(1);
  }
  const Tensor out = at::zeros(IntView({rows, columns}), type.get(), tensors[0].layout(), tensors[0].device());
  int64_t r = 0, c = 0;
  for (const Tensor& b : blocks) {
    at::copy_(at::slice(at::slice(out, 0, r, r + b->size(0)), 1, c, c + b->size(1)), b);
    r += b->size(0);
    c += b->size(1);
  }
  return out;
}

Tensor diag_embed(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t ndim = self.dim() + 1, a = wrap_dim(dim1, ndim), b = wrap_dim(dim2, ndim);
  TN_CHECK(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  const int64_t length = std::abs(offset) + self.size(-1);
  DimVector sizes(self.sizes());
  sizes.erase(sizes.size() - 1);
  sizes.insert(static_cast<size_t>(std::min(a, b)), length);
  sizes.insert(static_cast<size_t>(std::max(a, b)), length);
  const Tensor out = at::zeros(sizes, self.dtype(), self.layout(), self.device());
  at::copy_(at::diagonal(out, offset, a, b), self);
  return out;
}
Tensor diag(const Tensor& self, int64_t diagonal) {
  TN_CHECK(self.dim() == 1 || self.dim() == 2, "diag(): Supports 1D or 2D tensors. Got ", self.dim(), "D");
  if (self.dim() == 1) return at::diag_embed(self, diagonal);
  return at::diagonal_copy(self, diagonal);
}
Tensor diagflat(const Tensor& self, int64_t offset) { return diag(at::view(at::contiguous(self), {-1}), offset); }

}  // namespace tn::composite
