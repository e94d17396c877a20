// Tensors with the elements of another one in a new order, or several times.
#include <algorithm>
#include <vector>

#include "generated/slots/cat.h"
#include "kernels/cat/cat.h"
#include "kernels/common/bytes.h"
#include "kernels/common/options.h"
#include "runtime/convert.h"
#include "runtime/copy.h"
#include "runtime/shape.h"
#include "runtime/threads.h"

namespace tn::native {
namespace {

Tensor empty_like_preserved(const Tensor& self) {
  if (self->is_non_overlapping_and_dense())
    return empty_strided(self.sizes(), self.strides(), self.dtype(), self.device());
  return empty_strided(self.sizes(), preserved_strides(self.sizes(), self.strides()), self.dtype(), self.device());
}

Tensor part(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  DimVector sizes(self.sizes());
  sizes[static_cast<size_t>(dim)] = length;
  return alias_with_geometry(self, sizes, self.strides(), self.storage_offset() + start * self->stride(dim));
}

Tensor roll_one(const Tensor& self, int64_t shift, int64_t dim) {
  if (self.numel() == 0) return clone(self);
  TN_CHECK_AS(Index, self.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  const int64_t d = wrap_dim(dim, self.dim()), size = self->size(d);
  const int64_t start = ((size - shift % size) % size + size) % size;
  const Tensor parts[] = {part(self, d, start, size - start), part(self, d, 0, start)};
  return concatenate(parts, d);
}

}  // namespace

Tensor flip(const Tensor& self, IntArrayRef dims) {
  const uint64_t mask = dim_mask(dims, std::max<int64_t>(self.dim(), 1), false);
  Tensor out = empty_like_preserved(self);
  if (out.is_meta() || self.numel() == 0) return out;
  DimVector strides(self.strides());
  int64_t offset = self.storage_offset();
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (!(mask >> d & 1)) continue;
    offset += (self->size(d) - 1) * self->stride(d);
    strides[static_cast<size_t>(d)] = -self->stride(d);
  }
  const int64_t last = self.dim() - 1, width = self.dim() ? self->size(last) : 1;
  if (self.is_contiguous() && mask == uint64_t{1} << std::max<int64_t>(last, 0) && !self->is_conj() &&
      !self->is_neg()) {
    with_bytes(self.itemsize(), [&]<class T>() {
      const T* from = self.data<T>();
      T* to = out.data<T>();
      parallel_for(0, self.numel() / width, std::max<int64_t>(32768 / width, 1), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r)
          std::reverse_copy(from + r * width, from + (r + 1) * width, to + r * width);
      });
    });
    return out;
  }
  copy_into(out, alias_with_geometry(self, self.sizes(), strides, offset));
  return out;
}

Tensor roll(const Tensor& self, IntArrayRef shifts, IntArrayRef dims) {
  TN_CHECK(!shifts.empty(), "`shifts` required");
  if (dims.empty() && shifts.size() == 1) {
    const int64_t flat[] = {self.numel()}, one[] = {1};
    const Tensor dense = contiguous(self);
    const Tensor rolled = roll_one(alias_with_geometry(dense, flat, one, dense.storage_offset()), shifts[0], 0);
    DimVector strides(self.sizes().size());
    contiguous_strides(self.sizes(), strides.data());
    return alias_with_geometry(rolled, self.sizes(), strides, rolled.storage_offset());
  }
  TN_CHECK(shifts.size() == dims.size(), "shifts and dimensions must align. shifts: ", shifts.size(),
           ", dims:", dims.size());
  Tensor out = roll_one(self, shifts[0], dims[0]);
  for (size_t i = 1; i < dims.size(); ++i) out = roll_one(out, shifts[i], dims[i]);
  return out;
}

Tensor repeat(const Tensor& self, IntArrayRef repeats) {
  const auto added = repeats.ssize() - self.dim();
  TN_CHECK(added >= 0, "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  // Each dimension of the result is a pair: which copy, and where in it.
  DimVector sizes(repeats.size()), pairs, from;
  for (size_t i = 0; i < repeats.size(); ++i) {
    const int64_t d = static_cast<int64_t>(i) - added;
    const int64_t size = d < 0 ? 1 : self->size(d);
    sizes[i] = size * repeats[i];
    pairs.push_back(repeats[i]);
    pairs.push_back(size);
    from.push_back(0);
    from.push_back(d < 0 ? 0 : self->stride(d));
  }
  for (const int64_t s : sizes)
    TN_CHECK(s >= 0, "Trying to create tensor with negative dimension ", s, ": ", IntView(sizes));
  Tensor out = empty(sizes, self.dtype(), self.device());
  if (out.is_meta() || out.numel() == 0) return out;
  DimVector to(pairs.size());
  contiguous_strides(pairs, to.data());
  copy_into(alias_with_geometry(out, pairs, to, 0), alias_with_geometry(self, pairs, from, self.storage_offset()));
  return out;
}

Tensor repeat_interleave_Tensor(const Tensor& repeats, std::optional<int64_t> output_size) {
  TN_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  const ScalarType t = repeats.dtype();
  if (t != ScalarType::Int && t != ScalarType::Long) not_implemented("repeat_interleave_cpu", t);
  const Tensor counts = contiguous(repeats);
  const auto run = [&]<class T>() {
    const T* n = counts.numel() ? counts.data<T>() : nullptr;
    int64_t total = 0;
    for (int64_t i = 0; i < counts.numel(); ++i) {
      TN_CHECK(n[i] >= 0, "repeats can not be negative");
      total += n[i];
    }
    TN_CHECK(!output_size || counts.numel() == 0 || *output_size == total,
             "allocated size does not match required size");
    const int64_t size[] = {total};
    Tensor out = empty(size, t);
    T* to = total ? out.data<T>() : nullptr;
    for (int64_t i = 0; i < counts.numel(); ++i) to = std::fill_n(to, n[i], static_cast<T>(i));
    return out;
  };
  return t == ScalarType::Int ? run.operator()<int32_t>() : run.operator()<int64_t>();
}

namespace {

template <class T, class Sum>
void sum_diagonal(const Tensor& self, const Tensor& out) {
  const int64_t n = std::min(self->size(0), self->size(1)), step = self->stride(0) + self->stride(1);
  const T* from = self.numel() ? self.data<T>() : nullptr;
  Sum sum{};
  for (int64_t i = 0; i < n; ++i) sum += convert<Sum>(from[i * step]);
  if constexpr (std::is_same_v<Sum, int64_t>) *out.data<int64_t>() = sum;
  else *out.data<T>() = convert<T>(sum);
}

}  // namespace

Tensor trace(const Tensor& self) {
  TN_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  const ScalarType t = self.dtype();
  Tensor out = empty({}, is_integral(t, true) ? ScalarType::Long : t, self.device());
  if (out.is_meta()) return out;
  switch (t) {
    case ScalarType::Byte: sum_diagonal<uint8_t, int64_t>(self, out); break;
    case ScalarType::Char: sum_diagonal<int8_t, int64_t>(self, out); break;
    case ScalarType::Short: sum_diagonal<int16_t, int64_t>(self, out); break;
    case ScalarType::Int: sum_diagonal<int32_t, int64_t>(self, out); break;
    case ScalarType::Long: sum_diagonal<int64_t, int64_t>(self, out); break;
    case ScalarType::Half: sum_diagonal<Half, float>(self, out); break;
    case ScalarType::BFloat16: sum_diagonal<BFloat16, float>(self, out); break;
    case ScalarType::Float: sum_diagonal<float, double>(self, out); break;
    case ScalarType::Double: sum_diagonal<double, double>(self, out); break;
    case ScalarType::ComplexFloat: sum_diagonal<std::complex<float>, std::complex<double>>(self, out); break;
    case ScalarType::ComplexDouble: sum_diagonal<std::complex<double>, std::complex<double>>(self, out); break;
    default: not_implemented("trace", t);
  }
  return out;
}

}  // namespace tn::native
