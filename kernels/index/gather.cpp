// gather and the scatter family: each element of the index names a position of its own line.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>

#include "generated/slots/index.h"
#include "kernels/common/bytes.h"
#include "kernels/index/lines.h"
#include "kernels/index/numbers.h"
#include "runtime/overlap.h"
#include "runtime/threads.h"
#include "runtime/warn.h"

namespace tn {
namespace {

using index::line_size;
using index::line_stride;

int64_t rank(const Tensor& t) { return std::max<int64_t>(t.dim(), 1); }

// f(position, offsets of the operands) for each element of the index; lines are walked in the index's order.
template <class I, class T, class F>
void for_index(const Tensor& index, int64_t dim, int64_t size, const Tensor& indexed, const Tensor* other,
               bool parallel, F&& f) {
  if (index.numel() == 0) return;
  const Tensor& second = other ? *other : index;
  const auto walk = index::lines<3>(index, dim, {&index, &indexed, &second});
  const int64_t count = line_size(index, dim), step = line_stride(index, dim), there = line_stride(indexed, dim),
                along = line_stride(second, dim);
  const I* at = index.data<I>();
  const auto body = [&](int64_t begin, int64_t end) {
    walk.run(begin, end, [&](const auto& base) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t p = at[base[0] + i * step];
        TN_CHECK(p >= 0 && p < size, "index ", p, " is out of bounds for dimension ", dim, " with size ", size);
        f(base[1] + p * there, base[2] + i * along);
      }
    });
  };
  // Lines never share an element of a tensor without internal overlap.
  if (parallel) parallel_for(0, walk.numel(), std::max<int64_t>(16384 / std::max<int64_t>(count, 1), 1), body);
  else body(0, walk.numel());
}
template <class T, class F>
void with_index(const Tensor& index, int64_t dim, const Tensor& indexed, const Tensor* other, bool parallel, F&& f) {
  const int64_t size = line_size(indexed, dim);
  if (index.dtype() == ScalarType::Int) for_index<int32_t, T>(index, dim, size, indexed, other, parallel, f);
  else for_index<int64_t, T>(index, dim, size, indexed, other, parallel, f);
}

// Numbers count as vectors of one element, beside vectors.
Tensor as_rank(const Tensor& t, int64_t dims) {
  if (t.dim() != 0 || dims == 0) return t;
  const int64_t one[] = {1};
  return alias_with_geometry(t, one, one, t.storage_offset());
}

}  // namespace

// ---- gather

namespace {

void check_overlaps(Outputs& outs, const Tensor& index, const Tensor* source) {
  const Tensor* written = outs.given(0);
  if (!written) return;
  assert_no_internal_overlap(*written);
  assert_no_overlap(*written, index);
  if (source) assert_no_overlap(*written, *source);
}

}  // namespace

void slots::gather_meta(Outputs& outs, const Tensor& self, int64_t dim, const Tensor& index, bool) {
  const int64_t d = wrap_dim(dim, self.dim());
  TN_CHECK(index::is_position_dtype(index.dtype()) || index.numel() == 0,
           "gather(): Expected dtype int32/int64 for index");
  if (index.numel() != 0) {
    TN_CHECK(rank(index) == rank(self), "Index tensor must have the same number of dimensions as input tensor");
    for (int64_t i = 0; i < index.dim() && self.dim() > 0; ++i)
      TN_CHECK(i == d || index->size(i) <= self->size(i), "Size does not match at dimension ", i, " expected index ",
               index.sizes(), " to be no larger than self ", self.sizes(), " apart from dimension ", d);
  }
  outs.set(0, index.sizes(), self.dtype(), self.device());
  check_overlaps(outs, index, &self);
}
void slots::gather_cpu(Outputs& outs, const Tensor& self, int64_t dim, const Tensor& index, bool) {
  if (index.numel() == 0) return;
  const int64_t d = wrap_dim(dim, self.dim());
  const Tensor from = as_rank(resolve(self), 1), at = as_rank(index, 1), to = as_rank(outs[0], 1);
  with_bytes(self.itemsize(), [&]<class T>() {
    const T* source = from.numel() ? from.data<T>() : nullptr;
    T* target = to.data<T>();
    with_index<T>(at, d, from, &to, true, [&](int64_t there, int64_t here) { target[here] = source[there]; });
  });
}

// ---- scatter

namespace {

void check_scatter(const char* name, const Tensor& self, int64_t dim, const Tensor& index, const Tensor* src) {
  const int64_t d = wrap_dim(dim, self.dim());
  TN_CHECK(index.numel() == 0 || index::is_position_dtype(index.dtype()), name,
           "(): Expected dtype int32/int64 for index");
  if (src) TN_CHECK(self.dtype() == src->dtype(), name, "(): Expected self.dtype to be equal to src.dtype");
  if (index.numel() == 0) return;
  TN_CHECK(rank(self) == rank(index), "Index tensor must have the same number of dimensions as self tensor");
  bool fits = true;
  for (int64_t i = 0; i < rank(self); ++i) {
    const int64_t n = line_size(index, i);
    fits &= (i == d || n <= line_size(self, i)) && (!src || n <= (src->dim() == 0 && i == 0 ? 1 : src->size(i)));
  }
  TN_CHECK(!src || rank(*src) == rank(index), "Index tensor must have the same number of dimensions as src tensor");
  if (src)
    TN_CHECK(fits, "Expected index ", index.sizes(), " to be no larger than self ", self.sizes(),
             " apart from dimension ", d, " and to be no larger size than src ", src->sizes());
  else
    TN_CHECK(fits, "Expected index ", index.sizes(), " to be no larger than self ", self.sizes(),
             " apart from dimension ", d);
}
void scatter_shape(Outputs& outs, const char* name, const Tensor& self, int64_t dim, const Tensor& index,
                   const Tensor* src) {
  check_scatter(name, self, dim, index, src);
  outs.set(0, self.sizes(), self.dtype(), self.device());
}

// What is written: elements of a tensor, or one number.
struct Source {
  const Tensor* tensor = nullptr;
  const Scalar* number = nullptr;
};
enum class Write : uint8_t { Assign, Add, Multiply, Mean, Max, Min };

void start(const Tensor& out, const Tensor& self) {
  if (out.is_same(self) || (out->raw_data() == self->raw_data() && out.strides() == self.strides())) return;
  copy_into(out, self);
}

template <class T, class Op>
void scatter_with(const Tensor& out, int64_t dim, const Tensor& index, const Source& source, Op&& op) {
  T* to = out.data<T>();
  if (source.number) {
    T v;
    store_scalar(*source.number, out.dtype(), &v, true);
    with_index<T>(index, dim, out, nullptr, true, [&](int64_t there, int64_t) { op(to[there], v); });
    return;
  }
  const T* from = source.tensor->numel() ? source.tensor->data<T>() : nullptr;
  with_index<T>(index, dim, out, source.tensor, true, [&](int64_t there, int64_t here) { op(to[there], from[here]); });
}

void scatter_into(Outputs& outs, const char* kernel, const Tensor& self, int64_t dim, const Tensor& index,
                  Source source, Write write) {
  const Tensor& result = outs[0];
  start(result, self);
  if (index.numel() == 0) return;
  const int64_t d = wrap_dim(dim, self.dim());
  const Tensor out = as_rank(result, 1), at = as_rank(index, 1);
  Tensor values;
  if (source.tensor) {
    values = as_rank(resolve(*source.tensor), 1);
    source.tensor = &values;
  }
  const ScalarType t = out.dtype();
  if (out.numel() == 0) return with_index<uint8_t>(at, d, out, nullptr, false, [](int64_t, int64_t) {});
  if (write == Write::Assign) {
    if (is_barebones_unsigned(t)) not_implemented(kernel, t);
    with_element(t, [&]<class T>() { scatter_with<T>(out, d, at, source, [](T& to, const T& v) { to = v; }); });
    return;
  }
  if (write == Write::Max || write == Write::Min) {
    index::with_ordered(kernel, t, [&]<class T>() {
      if (write == Write::Max) scatter_with<T>(out, d, at, source, [](T& to, T v) { to = index::larger(to, v); });
      else scatter_with<T>(out, d, at, source, [](T& to, T v) { to = index::smaller(to, v); });
    });
    return;
  }
  index::with_number(kernel, t, [&]<class T>() {
    if (write == Write::Multiply) scatter_with<T>(out, d, at, source, [](T& to, T v) { to = index::times(to, v); });
    else scatter_with<T>(out, d, at, source, [](T& to, T v) { to = index::plus(to, v); });
  });
}

Write old_reduction(std::string_view reduce) {
  TN_CHECK(reduce == "add" || reduce == "multiply", "reduce argument must be either add or multiply.");
  return reduce == "add" ? Write::Add : Write::Multiply;
}

}  // namespace

void slots::scatter_src_meta(Outputs& outs, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_shape(outs, "scatter", self, dim, index, &src);
  check_overlaps(outs, index, &src);
}
void slots::scatter_src_cpu(Outputs& outs, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_into(outs, "scatter_gather_tensor_cpu", self, dim, index, {.tensor = &src}, Write::Assign);
}
void slots::scatter_value_meta(Outputs& outs, const Tensor& self, int64_t dim, const Tensor& index, const Scalar&) {
  scatter_shape(outs, "scatter", self, dim, index, nullptr);
  check_overlaps(outs, index, nullptr);
}
void slots::scatter_value_cpu(Outputs& outs, const Tensor& self, int64_t dim, const Tensor& index,
                              const Scalar& value) {
  scatter_into(outs, "scatter_gather_scalar_cpu", self, dim, index, {.number = &value}, Write::Assign);
}
void slots::scatter_reduce_meta(Outputs& outs, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                                std::string_view reduce) {
  static constinit std::atomic<bool> warned{false};  // once a process, as upstream
  if (!warned.exchange(true))
    warn(
        "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future PyTorch "
        "release. Use "
        "torch.scatter_reduce instead for more reduction options.");
  old_reduction(reduce);
  scatter_shape(outs, "scatter", self, dim, index, &src);
  check_overlaps(outs, index, &src);
}
void slots::scatter_reduce_cpu(Outputs& outs, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                               std::string_view reduce) {
  scatter_into(outs, "scatter_gather_tensor_cpu_reduce", self, dim, index, {.tensor = &src}, old_reduction(reduce));
}
void slots::scatter_value_reduce_meta(Outputs& outs, const Tensor& self, int64_t dim, const Tensor& index,
                                      const Scalar&, std::string_view reduce) {
  old_reduction(reduce);
  scatter_shape(outs, "scatter", self, dim, index, nullptr);
  check_overlaps(outs, index, nullptr);
}
void slots::scatter_value_reduce_cpu(Outputs& outs, const Tensor& self, int64_t dim, const Tensor& index,
                                     const Scalar& value, std::string_view reduce) {
  scatter_into(outs, "scatter_gather_scalar_cpu", self, dim, index, {.number = &value}, old_reduction(reduce));
}
void slots::scatter_add_meta(Outputs& outs, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_shape(outs, "scatter", self, dim, index, &src);
  check_overlaps(outs, index, &src);
}
void slots::scatter_add_cpu(Outputs& outs, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_into(outs, "scatter_gather_tensor_cpu", self, dim, index, {.tensor = &src}, Write::Add);
}

// ---- scatter_reduce

namespace {

Write reduction(std::string_view reduce) {
  if (reduce == "sum") return Write::Add;
  if (reduce == "prod") return Write::Multiply;
  if (reduce == "mean") return Write::Mean;
  if (reduce == "amax") return Write::Max;
  TN_CHECK(reduce == "amin", "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce);
  return Write::Min;
}

template <class T>
T neutral(Write w) {
  const auto of = [](double v) { return convert<T>(v); };
  if (w == Write::Multiply) return of(1);
  if (w != Write::Max && w != Write::Min) return of(0);
  if constexpr (std::is_integral_v<T>)
    return w == Write::Max ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  else return of(w == Write::Max ? -HUGE_VAL : HUGE_VAL);
}

// How many elements each position of out takes part in.
Tensor counts_of(const Tensor& out, int64_t dim, const Tensor& index, bool include_self) {
  const Tensor counts = empty_strided(out.sizes(), out.strides(), ScalarType::Long);
  fill(counts, include_self ? 1 : 0);
  auto* n = counts.data<int64_t>();
  with_index<int64_t>(index, dim, counts, nullptr, false, [n](int64_t there, int64_t) { ++n[there]; });
  return counts;
}

}  // namespace

void slots::scatter_reduce_two_meta(Outputs& outs, const Tensor& self, int64_t dim, const Tensor& index,
                                    const Tensor& src, std::string_view reduce, bool) {
  reduction(reduce);
  scatter_shape(outs, "scatter", self, dim, index, &src);
  check_overlaps(outs, index, &src);
}
void slots::scatter_reduce_two_cpu(Outputs& outs, const Tensor& self, int64_t dim, const Tensor& index,
                                   const Tensor& src, std::string_view reduce, bool include_self) {
  const Write w = reduction(reduce);
  const Tensor& result = outs[0];
  start(result, self);
  if (index.numel() == 0 || result.numel() == 0) return;
  const int64_t d = wrap_dim(dim, self.dim());
  const Tensor out = as_rank(result, 1), at = as_rank(index, 1);
  const std::string kernel = str("scatter_gather_tensor_cpu_reduce_", reduce == "sum" ? "sum" : reduce);
  if (w == Write::Mean && out.dtype() == ScalarType::Bool) not_implemented(kernel, out.dtype());
  if (!include_self)
    with_element(out.dtype(), [&]<class T>() {
      T* to = out.data<T>();
      const T v = neutral<T>(w);
      with_index<T>(at, d, out, nullptr, false, [&](int64_t there, int64_t) { to[there] = v; });
    });
  const std::string& name = kernel;
  scatter_into(outs, name.c_str(), result, dim, index, {.tensor = &src}, w);
  if (w != Write::Mean) return;
  const Tensor counts = counts_of(out, d, at, include_self);
  index::with_number(kernel, out.dtype(), [&]<class T>() {
    T* to = out.data<T>();
    const int64_t* n = counts.data<int64_t>();
    for (int64_t i = 0; i < out.numel(); ++i)  // dense, and counts lie alike
      if (n[i] > 1) to[i] = index::divided(to[i], n[i]);
  });
}

}  // namespace tn
