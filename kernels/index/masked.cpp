// What masks, truth values and flat positions select: nonzero, masked_select, masked_scatter, take, put.
#include <algorithm>
#include <cstring>

#include "generated/slots/index.h"
#include "kernels/common/bytes.h"
#include "kernels/index/numbers.h"
#include "kernels/index/walk.h"
#include "runtime/copy.h"
#include "runtime/overlap.h"
#include "runtime/threads.h"

namespace tn {
namespace {

// The row-major positions of elements that are not zero.
std::vector<int64_t> nonzero_positions(const Tensor& self) {
  std::vector<int64_t> out;
  if (self.numel() == 0) return out;
  const Tensor dense = contiguous(self);
  const auto collect = [&](auto&& is_set) {
    for (int64_t i = 0; i < dense.numel(); ++i)
      if (is_set(i)) out.push_back(i);
  };
  if (self.dtype() == ScalarType::Bool) {
    const auto* p = static_cast<const uint8_t*>(dense.data_ptr());
    out.resize(static_cast<size_t>(std::count_if(p, p + dense.numel(), [](uint8_t b) { return b != 0; })));
    // Without branches: masks are unpredictable.
    size_t k = 0;
    for (int64_t i = 0; k < out.size(); ++i) {
      out[k] = i;
      k += p[i] != 0;
    }
  } else {
    const bool known = with_element(self.dtype(), [&]<class T>() {
      const T* p = dense.data<T>();
      collect([p](int64_t i) { return convert<bool>(p[i]); });
    });
    if (!known) not_implemented("nonzero_count_cpu", self.dtype());
  }
  return out;
}

// Row-major coordinates; element (i, d) of the result goes to to[i * row + d * column].
void write_coordinates(const std::vector<int64_t>& at, IntView sizes, int64_t* to, int64_t row, int64_t column,
                       int64_t count) {
  const auto dims = static_cast<int64_t>(sizes.size());
  if (dims == 1) {
    for (int64_t i = 0; i < count; ++i) to[i * row] = at[static_cast<size_t>(i)];
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = at[static_cast<size_t>(i)];
    for (int64_t d = dims; d-- > 0;) {
      const int64_t size = sizes[static_cast<size_t>(d)];
      to[i * row + d * column] = rest % size;
      rest /= size;
    }
  }
}

}  // namespace

// ---- nonzero

Tensor native::nonzero(const Tensor& self) {
  const std::vector<int64_t> at = nonzero_positions(self);
  const auto count = static_cast<int64_t>(at.size());
  const int64_t sizes[] = {count, self.dim()}, strides[] = {1, count};
  // Upstream fills one dimension after the other.
  Tensor out = empty_strided(sizes, strides, ScalarType::Long);
  if (out.numel() != 0) write_coordinates(at, self.sizes(), out.data<int64_t>(), 1, count, count);
  return out;
}
const Tensor& native::nonzero_out(const Tensor& self, const Tensor& out) {
  TN_CHECK(out.dtype() == ScalarType::Long, "nonzero: Expected out tensor to have scalar type Long but got scalar type",
           scalar_type_name(out.dtype()));
  assert_no_internal_overlap(out);
  assert_no_overlap(out, self);
  const Tensor result = nonzero(self);
  if (resize_output(out, result.sizes()) && result.numel() != 0)
    out->set_geometry(result.sizes(), result.strides(), out.storage_offset());
  copy_into(out, result);
  return out;
}

namespace {

void nonzero_static_into(const Tensor& self, int64_t size, int64_t fill_value, const Tensor& out) {
  fill(out, fill_value);
  const std::vector<int64_t> at = nonzero_positions(self);
  if (out.numel() != 0)
    write_coordinates(at, self.sizes(), out.data<int64_t>(), out.stride(0), out.stride(1),
                      std::min(size, static_cast<int64_t>(at.size())));
}

}  // namespace

Tensor native::nonzero_static(const Tensor& self, int64_t size, int64_t fill_value) {
  TN_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  const int64_t sizes[] = {size, self.dim()};
  Tensor out = empty(sizes, ScalarType::Long);
  nonzero_static_into(self, size, fill_value, out);
  return out;
}
const Tensor& native::nonzero_static_out(const Tensor& self, int64_t size, int64_t fill_value, const Tensor& out) {
  TN_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  TN_CHECK(out.dtype() == ScalarType::Long,
           "nonzero_static: Expected out tensor to have scalar type Long but got scalar type",
           scalar_type_name(out.dtype()));
  const int64_t sizes[] = {size, self.dim()};
  resize_output(out, sizes);
  nonzero_static_into(self, size, fill_value, out);
  return out;
}

// ---- masked_select, masked_scatter

namespace {

Tensor expanded(const Tensor& t, IntView sizes) {
  if (t.sizes() == sizes) return t;
  DimVector strides(sizes.size(), 0);
  const size_t missing = sizes.size() - static_cast<size_t>(t.dim());
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t->size(d) != 1) strides[missing + static_cast<size_t>(d)] = t->stride(d);
  return alias_with_geometry(t, sizes, strides, t.storage_offset());
}

Tensor selected(const Tensor& self, const Tensor& mask) {
  TN_CHECK(mask.dtype() == ScalarType::Bool, "masked_select: expected BoolTensor for mask");
  const DimVector sizes = infer_size(mask.sizes(), self.sizes());
  const Tensor values = contiguous(expanded(self, sizes)), on = contiguous(expanded(mask, sizes));
  const int64_t n = on.numel();
  const auto* m = n ? static_cast<const uint8_t*>(on.data_ptr()) : nullptr;
  const int64_t count[] = {n ? std::count_if(m, m + n, [](uint8_t b) { return b != 0; }) : 0};
  Tensor out = empty(count, self.dtype());
  if (count[0] == 0) return out;
  with_bytes(self.itemsize(), [&]<class T>() {
    const T* from = values.data<T>();
    T* to = out.data<T>();
    int64_t k = 0;
    for (int64_t i = 0; k < count[0]; ++i) {
      to[k] = from[i];
      k += m[i] != 0;
    }
  });
  return out;
}

}  // namespace

Tensor native::masked_select(const Tensor& self, const Tensor& mask) { return selected(self, mask); }
const Tensor& native::masked_select_out(const Tensor& self, const Tensor& mask, const Tensor& out) {
  TN_CHECK(mask.dtype() == ScalarType::Bool, "masked_select: expected BoolTensor for mask");
  TN_CHECK(self.dtype() == out.dtype(), "masked_select(): self and result must have the same scalar type");
  assert_no_internal_overlap(out);
  assert_no_overlap(out, self);
  assert_no_overlap(out, mask);
  const Tensor result = selected(self, mask);
  resize_output(out, result.sizes());
  copy_into(out, result);
  return out;
}

const Tensor& native::masked_scatter_(const Tensor& self, const Tensor& mask, const Tensor& source) {
  assert_no_internal_overlap(self);
  TN_CHECK(self.dtype() == source.dtype(), "masked_scatter: expected self and source to have same dtypes but got",
           scalar_type_name(self.dtype()), " and ", scalar_type_name(source.dtype()));
  TN_CHECK(mask.dtype() == ScalarType::Bool, "masked_scatter_ only supports boolean masks, but got mask with dtype ",
           scalar_type_name(mask.dtype()));
  const DimVector sizes = infer_size(mask.sizes(), self.sizes());
  TN_CHECK(sizes.size() == static_cast<size_t>(self.dim()) && sizes.operator IntView() == self.sizes(),
           "output with shape ", self.sizes(), " doesn't match the broadcast shape ", sizes.operator IntView());
  const Tensor on = expanded(mask, self.sizes()), values = contiguous(source);
  if (self.numel() == 0) return self;
  index::Walk<2> walk;
  for (int64_t d = 0; d < self.dim(); ++d) walk.add(self->size(d), {self->stride(d), on->stride(d)});
  const auto* m = static_cast<const uint8_t*>(on.data_ptr());
  with_bytes(self.itemsize(), [&]<class T>() {
    T* to = self.data<T>();
    const T* from = values.numel() ? values.data<T>() : nullptr;
    int64_t next = 0;
    walk.run([&](const auto& at) {
      if (!m[at[1]]) return;
      TN_CHECK(next < values.numel(), "Number of elements of source < number of ones in mask");
      to[at[0]] = from[next++];
    });
  });
  return self;
}

// ---- take, put

namespace {

// Where each element of self stands, if it isn't dense.
template <class T, class F>
void for_flat(const Tensor& self, const Tensor& index, F&& f) {
  const Tensor at = contiguous(index);
  const int64_t* p = at.numel() ? at.data<int64_t>() : nullptr;
  const int64_t n = self.numel();
  const bool dense = self.is_contiguous();
  for (int64_t i = 0; i < at.numel(); ++i) {
    int64_t v = p[i];
    TN_CHECK_AS(Index, v >= -n && v < n, "out of range: tried to access index ", v, " on a tensor of ", n,
                " elements.");
    if (v < 0) v += n;
    if (!dense) {
      int64_t rest = v;
      v = 0;
      for (int64_t d = self.dim(); d-- > 0;) {
        v += rest % self->size(d) * self->stride(d);
        rest /= self->size(d);
      }
    }
    f(i, v);
  }
}

void take_into(const Tensor& self, const Tensor& index, const Tensor& out) {
  TN_CHECK(index.dtype() == ScalarType::Long, "take(): Expected a long tensor for index, but got ",
           scalar_type_name(index.dtype()));
  TN_CHECK(self.dtype() == out.dtype(), "take(): self and out expected to have the same dtype, but got self.dtype = ",
           scalar_type_name(self.dtype()), " and out.dtype = ", scalar_type_name(out.dtype()));
  TN_CHECK_AS(Index, self.numel() != 0 || index.numel() == 0, "take(): tried to take from an empty tensor");
  resize_output(out, index.sizes());
  if (index.numel() == 0) return;
  const Tensor dense = out.is_contiguous() ? out : empty(out.sizes(), out.dtype());
  with_bytes(self.itemsize(), [&]<class T>() {
    const T* from = self.data<T>();
    T* to = dense.data<T>();
    for_flat<T>(self, index, [&](int64_t i, int64_t at) { to[i] = from[at]; });
  });
  if (!dense.is_same(out)) copy_into(out, dense);
}

}  // namespace

Tensor native::take(const Tensor& self, const Tensor& index) {
  Tensor out = empty(index.sizes(), self.dtype());
  take_into(self, index, out);
  return out;
}
const Tensor& native::take_out(const Tensor& self, const Tensor& index, const Tensor& out) {
  assert_no_internal_overlap(out);
  assert_no_overlap(out, index);
  assert_no_overlap(out, self);
  take_into(self, index, out);
  return out;
}

const Tensor& native::put_(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  TN_CHECK(index.dtype() == ScalarType::Long, "put_(): Expected a long tensor for index, but got ",
           scalar_type_name(index.dtype()));
  TN_CHECK(self.dtype() == source.dtype(),
           "put_(): self and source expected to have the same dtype, but got self.dtype = ",
           scalar_type_name(self.dtype()), " and source.dtype = ", scalar_type_name(source.dtype()));
  TN_CHECK_AS(Index, source.numel() == index.numel(),
              "put_(): Expected source and index to have the same number of elements, but got source.numel() = ",
              source.numel(), ", index.numel() = ", index.numel());
  TN_CHECK_AS(Index, self.numel() != 0 || index.numel() == 0, "put_(): Tried to put elements into an empty tensor");
  assert_no_internal_overlap(self);
  assert_no_overlap(self, index);
  assert_no_overlap(self, source);
  if (index.numel() == 0) return self;
  const Tensor values = contiguous(source);
  if (accumulate) {
    index::with_number("take_put_cpu", self.dtype(), [&]<class T>() {
      T* to = self.data<T>();
      const T* from = values.data<T>();
      for_flat<T>(self, index, [&](int64_t i, int64_t at) { to[at] = index::plus(to[at], from[i]); });
    });
  } else {
    with_bytes(self.itemsize(), [&]<class T>() {
      T* to = self.data<T>();
      const T* from = values.data<T>();
      for_flat<T>(self, index, [&](int64_t i, int64_t at) { to[at] = from[i]; });
    });
  }
  return self;
}

}  // namespace tn
