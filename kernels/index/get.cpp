// Reading by index tensors.
#include <algorithm>
#include <cstring>

#include "generated/slots/index.h"
#include "kernels/common/bytes.h"
#include "kernels/index/advanced.h"
#include "kernels/index/walk.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/op_table.h"
#include "runtime/iterator.h"
#include "runtime/overlap.h"

namespace tn {
namespace {

using index::Selection;

constexpr int64_t kGrain = 16384;

// Rows of `inner` dense elements into a dense result.
template <class T>
void gather_rows(const Selection& s, const std::vector<int64_t>& outer, int64_t inner, const Tensor& out) {
  const T* from = s.self.data<T>();
  T* to = out.data<T>();
  const auto count = static_cast<int64_t>(s.offsets.size());
  const int64_t* at = s.offsets.data();
  const auto rows = static_cast<int64_t>(outer.size()) * count;
  parallel_for(0, rows, std::max<int64_t>(kGrain / inner, 1), [&](int64_t begin, int64_t end) {
    int64_t o = begin / count, m = begin % count;
    const T* base = from + outer[static_cast<size_t>(o)];
    for (int64_t r = begin; r < end; ++r) {
      if (inner == 1) to[r] = base[at[m]];
      else std::memcpy(to + r * inner, base + at[m], static_cast<size_t>(inner) * sizeof(T));
      if (++m < count) continue;
      m = 0;
      if (++o < static_cast<int64_t>(outer.size())) base = from + outer[static_cast<size_t>(o)];
    }
  });
}

// Any strides: the iterator orders the result's dimensions as upstream's does, from self's and the index's strides.
Tensor gather_strided(const OpInfo& op, const Selection& s) {
  const auto n = s.index_sizes.size();
  const IntView sizes = s.self.sizes(), strides = s.self.strides();
  const auto before = static_cast<size_t>(s.before);
  DimVector from(s.sizes.size()), offsets(s.sizes.size());
  Tensor positions = empty(s.index_sizes, ScalarType::Long);
  if (positions.numel()) std::copy(s.offsets.begin(), s.offsets.end(), positions.data<int64_t>());
  if (s.tensors.size() == 1 && s.tensors[0].sizes() == s.index_sizes.operator IntView() &&
      !s.tensors[0].is_contiguous()) {
    const Tensor alike =
        empty_strided(s.index_sizes, preserved_strides(s.index_sizes, s.tensors[0].strides()), ScalarType::Long);
    copy_into(alike, positions);
    positions = alike;
  }
  for (size_t d = 0; d < before; ++d) from[d] = strides[d];
  for (size_t d = 0; d < n; ++d) offsets[before + d] = positions.strides()[d];
  for (size_t d = before; d < sizes.size(); ++d) from[n + d] = strides[d];
  TensorIterator it(op);
  it.add_output(Tensor());
  it.add_input(alias_with_geometry(s.self, s.sizes, from, s.self.storage_offset()));
  it.add_input(alias_with_geometry(positions, s.sizes, offsets, 0));
  it.build({.promotion = Promotion::None, .check_overlap = false, .cast_inputs = false});
  with_bytes(s.self.itemsize(), [&]<class T>() {
    it.for_rows([](char* const* data, const int64_t* stride, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = *reinterpret_cast<const int64_t*>(data[2] + i * stride[2]);
        std::memcpy(data[0] + i * stride[0], data[1] + i * stride[1] + at * static_cast<int64_t>(sizeof(T)), sizeof(T));
      }
    });
  });
  return it.output();
}

Tensor take_selection(const OpInfo& op, const Tensor& self, const Selection& s) {
  bool plain = self.is_contiguous();
  for (const Tensor& t : s.tensors) plain &= t.is_contiguous();
  if (!plain && product(s.sizes) != 0) return gather_strided(op, s);
  Tensor out = empty(s.sizes, self.dtype());
  if (out.numel() == 0) return out;
  const std::vector<int64_t> outer = index::offsets_of(s.self, 0, s.before);
  const int64_t inner = product(
      s.self.sizes().slice(static_cast<size_t>(s.before), s.self.sizes().size() - static_cast<size_t>(s.before)));
  // Indexed dimensions in the middle leave the ones behind them dense, but not the whole of what is left.
  with_bytes(self.itemsize(), [&]<class T>() { gather_rows<T>(s, outer, inner, out); });
  return out;
}

}  // namespace

Tensor native::index_Tensor(const Tensor& self, TensorList indices) {
  const Selection s = index::select(self, indices);
  const bool dense_behind = index::dense_from(s.self, s.before);
  const OpInfo& op = op_infos[kOp_index_Tensor];
  return dense_behind ? take_selection(op, self, s) : gather_strided(op, s);
}
Tensor native::_unsafe_index_Tensor(const Tensor& self, TensorList indices) {
  for (const Tensor& t : indices)
    TN_CHECK(!t.defined() || t.dtype() == ScalarType::Long || t.dtype() == ScalarType::Int,
             "_unsafe_index found unexpected index type ",
             scalar_type_name(t.defined() ? t.dtype() : ScalarType::Long));
  return index_Tensor(self, indices);
}
const Tensor& native::index_Tensor_out(const Tensor& self, TensorList indices, const Tensor& out) {
  TN_CHECK(self.dtype() == out.dtype(), "index_out: self (", scalar_type_name(self.dtype()), ") and result (",
           scalar_type_name(out.dtype()), ") must have the same scalar type");
  assert_no_internal_overlap(out);
  assert_no_overlap(out, self);
  for (const Tensor& t : indices)
    if (t.defined()) assert_no_overlap(out, t);
  const Tensor result = index_Tensor(self, indices);
  resize_output(out, result.sizes());
  copy_into(out, result);
  return out;
}

}  // namespace tn
