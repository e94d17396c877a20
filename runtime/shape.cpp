#include "runtime/shape.h"

#include <algorithm>

#include "runtime/error.h"

namespace tn {

// ---- DimVector ---------------------------------------------------------------------------------------------------

void DimVector::assign(IntView v) {
  if (v.size() > capacity_) {
    int64_t* fresh = new int64_t[v.size()];
    std::copy(v.begin(), v.end(), fresh);
    delete[] heap_;
    heap_ = fresh;
    capacity_ = v.size();
  } else {
    std::copy(v.begin(), v.end(), data());
  }
  size_ = v.size();
}

void DimVector::resize(size_t n, int64_t value) {
  if (n > capacity_) {
    const size_t capacity = std::max(n, 2 * capacity_);
    int64_t* fresh = new int64_t[capacity];
    std::copy_n(data(), size_, fresh);
    delete[] heap_;
    heap_ = fresh;
    capacity_ = capacity;
  }
  if (n > size_) std::fill(data() + size_, data() + n, value);
  size_ = n;
}

void DimVector::erase(size_t i) {
  std::copy(data() + i + 1, data() + size_, data() + i);
  --size_;
}

void DimVector::insert(size_t i, int64_t v) {
  resize(size_ + 1);
  std::copy_backward(data() + i, data() + size_ - 1, data() + size_);
  data()[i] = v;
}

// ---- broadcasting and views ----------------------------------------------------------------------------------------

DimVector infer_size(IntView a, IntView b) {
  const size_t n = std::max(a.size(), b.size());
  DimVector out(n);
  for (size_t i = n; i-- > 0;) {
    const int64_t sa = i + a.size() >= n ? a[i + a.size() - n] : 1;
    const int64_t sb = i + b.size() >= n ? b[i + b.size() - n] : 1;
    TN_CHECK(sa == sb || sa == 1 || sb == 1, "The size of tensor a (", sa, ") must match the size of tensor b (", sb,
             ") at non-singleton dimension ", i);
    out[i] = sa == 1 ? sb : sa;
  }
  return out;
}

DimVector infer_view_size(IntView shape, int64_t numel) {
  int64_t known = 1;
  std::optional<size_t> inferred;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1) {
      TN_CHECK(!inferred, "only one dimension can be inferred");
      inferred = i;
    } else {
      TN_CHECK(shape[i] >= 0, "invalid shape dimension ", shape[i], " at index ", i, " of shape ", shape);
      known = static_cast<int64_t>(static_cast<uint64_t>(known) * static_cast<uint64_t>(shape[i]));
    }
  }
  DimVector out(shape);
  if (!inferred) {
    TN_CHECK(known == numel, "shape '", shape, "' is invalid for input of size ", numel);
    return out;
  }
  TN_CHECK(known != 0 || numel != 0, "cannot reshape tensor of 0 elements into shape ", shape,
           " because the unspecified dimension size -1 can be any value and is ambiguous");
  TN_CHECK(known > 0 && numel % known == 0, "shape '", shape, "' is invalid for input of size ", numel);
  out[*inferred] = numel / known;
  return out;
}

std::optional<DimVector> view_strides(IntView sizes, IntView strides, IntView new_sizes) {
  if (sizes.empty()) return DimVector(new_sizes.size(), 1);
  const int64_t numel = product(sizes);
  DimVector out(new_sizes.size());
  if (numel == 0) {
    if (sizes == new_sizes) return DimVector(strides);
    for (size_t d = new_sizes.size(); d-- > 0;)
      out[d] = d + 1 == new_sizes.size() ? 1 : std::max<int64_t>(new_sizes[d + 1], 1) * out[d + 1];
    return out;
  }
  // Old dimensions fall into chunks that are contiguous in themselves; new ones must fill whole chunks.
  auto view = static_cast<int64_t>(new_sizes.size()) - 1;
  int64_t base = strides.back(), old_count = 1, new_count = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    old_count *= sizes[d];
    if (d > 0 && (sizes[d - 1] == 1 || strides[d - 1] == old_count * base)) continue;
    for (; view >= 0 && (new_count < old_count || new_sizes[view] == 1); --view) {
      out[view] = new_count * base;
      new_count *= new_sizes[view];
    }
    if (new_count != old_count) return std::nullopt;
    if (d > 0) base = strides[d - 1];
    old_count = new_count = 1;
  }
  if (view >= 0) return std::nullopt;
  return out;
}

namespace {

// Upstream's test for channels-last-like strides: ambiguous shapes (N111, trivial channels) count as contiguous.
template <size_t N>
bool like_channels_last(IntView sizes, IntView strides, const int (&order)[N]) {
  if (strides[1] == 0) return false;
  int64_t least = 0;
  for (const int d : order) {
    if (sizes[d] == 0 || strides[d] < least) return false;
    if (d == 0 && least == strides[1]) return false;
    least = strides[d] * std::max<int64_t>(sizes[d], 1);
  }
  return true;
}

}  // namespace

MemoryFormat suggest_memory_format(const Tensor& self) {
  const IntView sizes = self.sizes(), strides = self.strides();
  if (sizes.size() == 4 && like_channels_last(sizes, strides, {1, 3, 2, 0})) return MemoryFormat::ChannelsLast;
  if (sizes.size() == 5 && like_channels_last(sizes, strides, {1, 4, 3, 2, 0})) return MemoryFormat::ChannelsLast3d;
  return MemoryFormat::Contiguous;
}

DimVector preserved_strides(IntView sizes, IntView strides) {
  const auto n = static_cast<int>(sizes.size());
  // Sorted by stride, fastest first. Broadcast dimensions compare equal to all; equal strides put the larger size last.
  const auto order = [&](int64_t a, int64_t b) {
    if (strides[a] == 0 || strides[b] == 0) return 0;
    if (strides[a] != strides[b]) return strides[a] < strides[b] ? -1 : 1;
    return sizes[a] > sizes[b] ? 1 : 0;
  };
  DimVector perm(sizes.size());
  for (int i = 0; i < n; ++i) perm[i] = n - 1 - i;
  for (int i = 1; i < n; ++i) {
    int moving = i;
    for (int j = i - 1; j >= 0; --j) {
      const int c = order(perm[j], perm[moving]);
      if (c < 0) break;
      if (c == 0) continue;  // ambiguous: an earlier dimension may still decide
      std::swap(perm[j], perm[moving]);
      moving = j;
    }
  }
  DimVector out(sizes.size());
  int64_t next = 1;
  for (int i = 0; i < n; ++i) {
    out[perm[i]] = next;
    next *= std::max<int64_t>(sizes[perm[i]], 1);
  }
  return out;
}

uint64_t dim_mask(OptionalIntArrayRef dims, int64_t ndim, bool empty_is_all) {
  TN_CHECK(ndim <= kMaxDims, "only tensors with up to 64 dims are supported");
  const uint64_t all = ndim >= 64 ? ~uint64_t{0} : (uint64_t{1} << ndim) - 1;
  if (!dims || (dims->empty() && empty_is_all)) return all;
  uint64_t mask = 0;
  for (const int64_t given : *dims) {
    const int64_t d = wrap_dim(given, ndim);
    TN_CHECK(!((mask >> d) & 1), "dim ", d, " appears multiple times in the list of dims");
    mask |= uint64_t{1} << d;
  }
  return mask;
}

}  // namespace tn
