#include "kernels/index/advanced.h"

#include <algorithm>

#include "kernels/index/walk.h"
#include "runtime/copy.h"
#include "runtime/warn.h"

namespace tn::index {
namespace {

// One index: a tensor of positions in one dimension, or a mask over several.
struct Part {
  DimVector sizes;
  std::vector<int64_t> offsets;
};

bool is_mask(const Tensor& t) { return t.dtype() == ScalarType::Bool || t.dtype() == ScalarType::Byte; }

Part mask_part(const Tensor& self, const Tensor& mask, int64_t first) {
  const Tensor dense = contiguous(mask);
  const auto* on = dense.numel() ? static_cast<const uint8_t*>(dense.data_ptr()) : nullptr;
  Walk<1> walk;
  for (int64_t d = 0; d < mask.dim(); ++d) walk.add(mask->size(d), {self->stride(first + d)});
  Part part;
  if (dense.numel()) {
    const auto count = static_cast<size_t>(std::count_if(on, on + dense.numel(), [](uint8_t b) { return b != 0; }));
    int64_t step = mask.dim() == 0 ? 0 : self->stride(first + mask.dim() - 1);
    bool even = true;  // one stride for all of the masked dimensions
    for (int64_t d = mask.dim(), expected = step; d-- > 0; expected *= mask->size(d))
      even &= mask->size(d) == 1 || self->stride(first + d) == expected;
    part.offsets.resize(count);
    size_t k = 0;
    // Without branches: masks are unpredictable.
    if (even) {
      for (int64_t i = 0; k < count; ++i) {
        part.offsets[k] = i * step;
        k += on[i] != 0;
      }
    } else {
      walk.run([&](const auto& at) {
        if (*on++) part.offsets[k++] = at[0];
      });
    }
  }
  part.sizes.push_back(static_cast<int64_t>(part.offsets.size()));
  return part;
}

template <class T>
void add_positions(const Tensor& dense, int64_t size, int64_t stride, int64_t number, bool check,
                   std::vector<int64_t>& out) {
  const T* at = dense.data<T>();
  for (int64_t i = 0; i < dense.numel(); ++i) {
    const int64_t v = at[i];
    TN_CHECK_AS(Index, !check || (v >= -size && v < size), "index ", v, " is out of bounds for dimension ", number,
                " with size ", size);
    out[static_cast<size_t>(i)] = (v < 0 ? v + size : v) * stride;
  }
}
Part position_part(const Tensor& self, const Tensor& index, int64_t dim, int64_t number, bool check) {
  Part part{DimVector(index.sizes()), std::vector<int64_t>(static_cast<size_t>(index.numel()))};
  if (index.numel() == 0) return part;
  const Tensor dense = contiguous(index);
  if (index.dtype() == ScalarType::Int)
    add_positions<int32_t>(dense, self->size(dim), self->stride(dim), number, check, part.offsets);
  else add_positions<int64_t>(dense, self->size(dim), self->stride(dim), number, check, part.offsets);
  return part;
}

struct Slot {
  const Tensor* index;
  int64_t dim;    // the first dimension of self that it takes
  int64_t taken;  // how many
};

// Which index takes which dimensions.
std::vector<Slot> assign(const Tensor& self, TensorList indices, bool allow_masks) {
  TN_CHECK_AS(Index, !indices.empty(), "at least one index must be provided");
  TN_CHECK_AS(Index, indices.ssize() <= self.dim(), "too many indices for tensor of dimension ", self.dim(), " (got ",
              indices.size(), ")");
  std::vector<Slot> slots;
  int64_t dim = 0;
  for (const Tensor& t : indices) {
    Slot slot{&t, dim, 1};
    if (t.defined()) {
      TN_CHECK_AS(Index, t.dtype() == ScalarType::Long || t.dtype() == ScalarType::Int || is_mask(t),
                  "tensors used as indices must be long, int, byte or bool tensors");
      if (is_mask(t)) {
        TN_CHECK(allow_masks, "_unsafe_index found unexpected index type ", scalar_type_name(t.dtype()));
        if (t.dtype() == ScalarType::Byte)
          warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.");
        slot.taken = t.dim();
        for (int64_t j = 0; j < t.dim(); ++j)
          TN_CHECK_AS(Index, t->size(j) == self.size(dim + j), "The shape of the mask ", t.sizes(), " at index ", j,
                      " does not match the shape of the indexed tensor ", self.sizes(), " at index ", dim + j);
      }
      slots.push_back(slot);
    }
    dim += slot.taken;
  }
  if (dim > self.dim()) wrap_dim(self.dim(), self.dim());  // masks took more dimensions than there are: IndexError
  return slots;
}

DimVector broadcast(const std::vector<Part>& parts) {
  try {
    DimVector sizes;
    for (const Part& p : parts) sizes = infer_size(sizes, p.sizes);
    return sizes;
  } catch (const Error&) {
    std::string shapes;
    for (const Part& p : parts) shapes += str(shapes.empty() ? "" : ", ", p.sizes.operator IntView());
    fail(ErrorKind::Index, "shape mismatch: indexing tensors could not be broadcast together with shapes ", shapes);
  }
}

void add_broadcast(const Part& part, const DimVector& sizes, std::vector<int64_t>& offsets) {
  Walk<1> walk;
  const size_t missing = sizes.size() - part.sizes.size();
  DimVector strides(part.sizes.size());
  contiguous_strides(part.sizes, strides.data());
  for (size_t d = 0; d < sizes.size(); ++d)
    walk.add(sizes[d], {d < missing || part.sizes[d - missing] == 1 ? 0 : strides[d - missing]});
  size_t i = 0;
  walk.run([&](const auto& at) { offsets[i++] += part.offsets[static_cast<size_t>(at[0])]; });
}

}  // namespace

Selection select(const Tensor& self, TensorList indices, bool allow_masks) {
  const std::vector<Slot> slots = assign(self, indices, allow_masks);
  Selection s;
  uint64_t taken = 0;
  bool adjacent = true, no_room = false;
  int64_t rest = 1;
  for (size_t i = 0; i < slots.size(); ++i) {
    adjacent &= i == 0 || slots[i].dim == slots[i - 1].dim + slots[i - 1].taken;
    for (int64_t d = slots[i].dim; d < slots[i].dim + slots[i].taken; ++d) {
      taken |= uint64_t{1} << d;
      no_room |= self->size(d) == 0;
    }
  }
  DimVector sizes, strides;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (taken >> d & 1) continue;
    if (adjacent && !slots.empty() && d < slots[0].dim) ++s.before;
    rest *= self->size(d);
    sizes.push_back(self->size(d));
    strides.push_back(self->stride(d));
  }
  std::vector<Part> parts;
  int64_t number = 0;
  for (const Slot& slot : slots) {
    const bool mask = is_mask(*slot.index);
    if (!mask) s.tensors.push_back(*slot.index);
    // Nothing is read from a result without elements, so upstream checks nothing.
    parts.push_back(mask ? mask_part(self, *slot.index, slot.dim)
                         : position_part(self, *slot.index, slot.dim, number, rest != 0 && !no_room));
    number += slot.taken;
  }
  s.index_sizes = broadcast(parts);
  const int64_t count = product(s.index_sizes);
  TN_CHECK_AS(Index, !no_room || count == 0, "index is out of bounds for dimension with size 0");
  if (parts.size() == 1) {
    s.offsets = std::move(parts[0].offsets);
  } else {
    s.offsets.assign(static_cast<size_t>(count), 0);
    if (count != 0)
      for (const Part& p : parts) add_broadcast(p, s.index_sizes, s.offsets);
  }
  s.self = alias_with_geometry(self, sizes, strides, self.storage_offset());
  for (int64_t d = 0; d < s.before; ++d) s.sizes.push_back(sizes[static_cast<size_t>(d)]);
  for (const int64_t d : s.index_sizes) s.sizes.push_back(d);
  for (size_t d = static_cast<size_t>(s.before); d < sizes.size(); ++d) s.sizes.push_back(sizes[d]);
  return s;
}

}  // namespace tn::index
