// Writing by index tensors. Positions that stand twice are written one after the other, whatever the number of threads.
#include <algorithm>
#include <cstring>

#include "generated/slots/index.h"
#include "kernels/common/bytes.h"
#include "kernels/index/advanced.h"
#include "kernels/index/numbers.h"
#include "kernels/index/walk.h"
#include "runtime/copy.h"
#include "runtime/overlap.h"
#include "runtime/warn.h"

namespace tn {
namespace {

using index::Selection;

// The values are one number, or dense in the shape of the selection. op(T& target, T value).
template <class T, class Op>
void write_selection(const Selection& s, const Tensor& values, Op&& op) {
  const bool one = values.numel() == 1;
  const std::vector<int64_t> outer = index::offsets_of(s.self, 0, s.before);
  const bool dense = index::dense_from(s.self, s.before);
  const std::vector<int64_t> inner = dense ? std::vector<int64_t>() : index::offsets_of(s.self, s.before, s.self.dim());
  const int64_t row = product(
      s.self.sizes().slice(static_cast<size_t>(s.before), s.self.sizes().size() - static_cast<size_t>(s.before)));
  T* const base = s.self.data<T>();
  const T* v = values.data<T>();
  for (const int64_t o : outer) {
    for (const int64_t m : s.offsets) {
      T* to = base + o + m;
      for (int64_t i = 0; i < row; ++i) op(to[dense ? i : inner[static_cast<size_t>(i)]], one ? *v : v[i]);
      if (!one) v += row;
    }
  }
}

void put(const Tensor& self, const Selection& s, const Tensor& value, bool accumulate) {
  if (product(s.sizes) == 0) return;
  Tensor values = value;
  if (value.numel() != 1) {
    DimVector strides(s.sizes.size(), 0);
    const size_t missing = s.sizes.size() - static_cast<size_t>(value.dim());
    for (int64_t d = 0; d < value.dim(); ++d)
      if (value->size(d) != 1) strides[missing + static_cast<size_t>(d)] = value->stride(d);
    values = contiguous(alias_with_geometry(value, s.sizes, strides, value.storage_offset()));
  }
  if (!accumulate) {
    with_bytes(self.itemsize(), [&]<class T>() { write_selection<T>(s, values, [](T& to, const T& v) { to = v; }); });
  } else if (is_float8(self.dtype())) {
    with_element(self.dtype(),
                 [&]<class T>() { write_selection<T>(s, values, [](T& to, const T& v) { to = index::plus(to, v); }); });
  } else {
    index::with_number("index_put", self.dtype(), [&]<class T>() {
      write_selection<T>(s, values, [](T& to, const T& v) { to = index::plus(to, v); });
    });
  }
}

bool fits(IntView value, IntView target) {
  if (value.size() > target.size()) return false;
  for (size_t i = 1; i <= value.size(); ++i)
    if (value[value.size() - i] != 1 && value[value.size() - i] != target[target.size() - i]) return false;
  return true;
}

}  // namespace

const Tensor& native::_index_put_impl_(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate,
                                       bool) {
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self->stride(d) == 0 && self->size(d) > 1) {
      warn(
          "Use of index_put_ on expanded tensors is deprecated. Please clone() the tensor before performing this "
          "operation. This also "
          "applies to advanced indexing e.g. tensor[indices] = tensor");
      break;
    }
  assert_no_overlap(self, values);
  for (const Tensor& t : indices)
    if (t.defined()) assert_no_overlap(self, t);
  TN_CHECK(self.dtype() == values.dtype(), "Index put requires the source and destination dtypes match, got ",
           scalar_type_name(self.dtype()), " for the destination and ", scalar_type_name(values.dtype()),
           " for the source.");
  const Selection s = index::select(self, indices);
  TN_CHECK(fits(values.sizes(), s.sizes), "shape mismatch: value tensor of shape ", values.sizes(),
           " cannot be broadcast to indexing result of shape ", s.sizes.operator IntView());
  if (is_barebones_unsigned(self.dtype())) not_implemented("index_put", self.dtype());
  put(self, s, values, accumulate);
  return self;
}

}  // namespace tn
