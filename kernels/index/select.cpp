// Operators with one vector of positions in one dimension: index_select, index_add, index_copy, index_fill,
// index_reduce.
#include <algorithm>
#include <atomic>
#include <cstring>

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

// ---- index_select

Tensor shape_of_selected(const Tensor& self, int64_t& dim, const Tensor& index, DimVector& sizes) {
  TN_CHECK_AS(Index, index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  dim = wrap_dim(dim, self.dim());
  TN_CHECK(self.dim() > 0 || index.numel() == 1, "index_select(): Index to scalar can have only 1 value, got ",
           index.numel(), " value(s)");
  TN_CHECK(index::is_position_dtype(index.dtype()), "index_select(): Expected dtype int32 or int64 for index");
  sizes = DimVector(self.sizes());
  if (self.dim() > 0) sizes[static_cast<size_t>(dim)] = index.numel();
  return self;
}

void select_into(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  const std::vector<int64_t> at = index::positions(index);
  const int64_t size = line_size(self, dim);
  // Upstream checks them also where nothing is read, and with other words for a line of single elements.
  TN_CHECK(size > 0 || at.empty(), "index_select(): self indexing axis dim should be positive");
  if (self.numel() == 0 && out.numel() == 0) {
    for (const int64_t i : at)
      TN_CHECK(i >= 0 && i < size, "INDICES element is out of DATA bounds, id=", i, " axis_dim=", size);
    return;
  }
  for (const int64_t i : at) {
    if (i >= 0 && i < size) continue;
    TN_CHECK(!(self.dim() > 1 && dim > 0 && self.is_contiguous()), "INDICES element is out of DATA bounds, id=", i,
             " axis_dim=", size);
    fail(ErrorKind::Index, "index out of range in self");
  }
  if (out.numel() == 0) return;
  const auto count = static_cast<int64_t>(at.size());
  const int64_t from_step = line_stride(self, dim), to_step = line_stride(out, dim);
  with_bytes(self.itemsize(), [&]<class T>() {
    const T* from = self.data<T>();
    T* to = out.data<T>();
    const int64_t behind =
        self.dim() == 0
            ? 1
            : product(self.sizes().slice(static_cast<size_t>(dim + 1), static_cast<size_t>(self.dim() - dim - 1)));
    const auto walk = index::lines<2>(self, dim, {&self, &out});
    if (index::dense_from(self, dim + 1) && index::dense_from(out, dim + 1) && behind > 1) {
      // Whole rows: walk the dimensions before only.
      index::Walk<2> outer;
      for (int64_t d = 0; d < dim; ++d) outer.add(self->size(d), {self->stride(d), out->stride(d)});
      parallel_for(0, outer.numel() * count, std::max<int64_t>(16384 / behind, 1), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end;) {
          const int64_t o = r / count, stop = std::min(end, (o + 1) * count);
          outer.run(o, o + 1, [&](const auto& base) {
            for (; r < stop; ++r)
              std::memcpy(to + base[1] + r % count * to_step,
                          from + base[0] + at[static_cast<size_t>(r % count)] * from_step,
                          static_cast<size_t>(behind) * sizeof(T));
          });
        }
      });
      return;
    }
    parallel_for(0, walk.numel(), std::max<int64_t>(16384 / count, 1), [&](int64_t begin, int64_t end) {
      walk.run(begin, end, [&](const auto& base) {
        for (int64_t i = 0; i < count; ++i)
          to[base[1] + i * to_step] = from[base[0] + at[static_cast<size_t>(i)] * from_step];
      });
    });
  });
}

}  // namespace

Tensor native::index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  DimVector sizes;
  shape_of_selected(self, dim, index, sizes);
  Tensor out = empty(sizes, self.dtype());
  select_into(self, dim, index, out);
  return out;
}
const Tensor& native::index_select_out(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  DimVector sizes;
  shape_of_selected(self, dim, index, sizes);
  TN_CHECK(self.dtype() == out.dtype(), "index_select(): self and result must have the same scalar type");
  assert_no_internal_overlap(out);
  assert_no_overlap(out, self);
  assert_no_overlap(out, index);
  resize_output(out, sizes);
  select_into(self, dim, index, out);
  return out;
}

// ---- index_add, index_reduce

namespace {

// dim is wrapped by the check.
void check_index_source(const char* name, const Tensor& self, int64_t& dim, const Tensor& index, const Tensor& source) {
  dim = wrap_dim(dim, self.dim());
  const int64_t count = index.numel();
  TN_CHECK_AS(Index, index.dim() <= 1, name, "_(): Index is supposed to be a vector, but got dim: ", index.dim(),
              " with type: ", scalar_type_name(index.dtype()), " and size: ", index.sizes());
  TN_CHECK(index::is_position_dtype(index.dtype()), name,
           "_(): Expected dtype int32/int64 for index but got: ", scalar_type_name(index.dtype()));
  TN_CHECK(self.dtype() == source.dtype(), name, "_(): self (", scalar_type_name(self.dtype()), ") and source (",
           scalar_type_name(source.dtype()), ") must have the same scalar type");
  TN_CHECK(dim == 0 || dim < source.dim(), name, "_(): Indexing dim ", dim,
           " is out of bounds of the source tensor with dim ", source.dim());
  const int64_t have = line_size(source, std::min(dim, std::max<int64_t>(source.dim() - 1, 0)));
  TN_CHECK(count == have, name, "_(): Number of indices (", count, ") should be equal to source.size(dim): (", have,
           "), for dim: ", dim);
  DimVector a(self.sizes()), b(source.sizes());
  if (!a.empty() && !b.empty()) {
    a.erase(static_cast<size_t>(dim));
    b.erase(static_cast<size_t>(dim));
  }
  TN_CHECK(a.operator IntView() == b.operator IntView(),
           "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = ",
           self.sizes(), " source.shape = ", source.sizes());
}

// op(T& target, T value) for each position in turn, so that the order of additions never changes.
template <class T, class Op>
void accumulate_lines(const Tensor& out, int64_t dim, const std::vector<int64_t>& at, const Tensor& source, Op&& op) {
  if (source.numel() == 0) return;
  const auto walk = index::lines<2>(source, dim, {&out, &source});
  const int64_t to_step = line_stride(out, dim), from_step = line_stride(source, dim);
  const auto count = static_cast<int64_t>(at.size());
  T* to = out.data<T>();
  const T* from = source.data<T>();
  const int64_t behind =
      source.dim() == 0
          ? 1
          : product(source.sizes().slice(static_cast<size_t>(dim + 1), static_cast<size_t>(source.dim() - dim - 1)));
  if (behind > 1 && index::dense_from(out, dim + 1) && index::dense_from(source, dim + 1)) {
    index::Walk<2> outer;
    for (int64_t d = 0; d < dim; ++d) outer.add(source->size(d), {out->stride(d), source->stride(d)});
    outer.run([&](const auto& base) {
      for (int64_t i = 0; i < count; ++i) {
        T* row = to + base[0] + at[static_cast<size_t>(i)] * to_step;
        const T* add = from + base[1] + i * from_step;
        for (int64_t j = 0; j < behind; ++j) op(row[j], add[j]);
      }
    });
    return;
  }
  walk.run([&](const auto& base) {
    for (int64_t i = 0; i < count; ++i)
      op(to[base[0] + at[static_cast<size_t>(i)] * to_step], from[base[1] + i * from_step]);
  });
}

std::vector<int64_t> checked_positions(const Tensor& self, int64_t dim, const Tensor& index, bool in_bounds_words) {
  std::vector<int64_t> at = index::positions(index);
  const int64_t size = line_size(self, dim);
  for (const int64_t i : at) {
    if (i >= 0 && i < size) continue;
    TN_CHECK(!in_bounds_words, "index ", i, " is out of bounds for dimension ", dim, " with size ", size);
    fail(ErrorKind::Index, "index out of range in self");
  }
  return at;
}

const Tensor& start_from(const Tensor& self, const Tensor& out) {
  if (out.is_same(self)) return out;
  resize_output(out, self.sizes());
  copy_into(out, self);
  return out;
}
void check_same_dtype(const Tensor& self, const Tensor& out) {
  TN_CHECK(self.dtype() == out.dtype(), "Expected out tensor to have dtype ", element_type_name(self.dtype()),
           ", but got ", element_type_name(out.dtype()), " instead");
}

void add_into(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  assert_no_internal_overlap(out);
  assert_no_overlap(out, index);
  assert_no_overlap(out, source);
  const std::vector<int64_t> at = checked_positions(out, dim, index, out.dim() > 1);
  index::with_number("scatter_gather_tensor_cpu", out.dtype(), [&]<class T>() {
    T factor;
    store_scalar(alpha, out.dtype(), &factor);
    const bool once = alpha.equal(Scalar(1));
    if (once) accumulate_lines<T>(out, dim, at, source, [](T& to, T v) { to = index::plus(to, v); });
    else
      accumulate_lines<T>(out, dim, at, source,
                          [factor](T& to, T v) { to = index::plus(to, index::times(v, factor)); });
  });
}

enum class Reduce : uint8_t { Sum, Prod, Mean, Max, Min };

template <class T>
T neutral(Reduce r) {
  const auto of = [](double v) { return convert<T>(v); };
  switch (r) {
    case Reduce::Prod: return of(1);
    case Reduce::Max:
      if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::lowest();
      else return of(-HUGE_VAL);
    case Reduce::Min:
      if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::max();
      else return of(HUGE_VAL);
    default: return of(0);
  }
}
template <class T>
void fold(Reduce r, T& to, T v) {
  switch (r) {
    case Reduce::Prod: to = index::times(to, v); break;
    case Reduce::Max: to = index::larger(to, v); break;
    case Reduce::Min: to = index::smaller(to, v); break;
    default: to = index::plus(to, v); break;
  }
}

void warn_beta() {
  static constinit std::atomic<bool> warned{false};
  if (!warned.exchange(true)) warn("index_reduce() is in beta and the API may change at any time.");
}

void reduce_into(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                 bool include_self) {
  TN_CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
           "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got ", reduce, ".");
  warn_beta();
  assert_no_internal_overlap(out);
  assert_no_overlap(out, index);
  assert_no_overlap(out, source);
  const Reduce r = reduce == "prod"   ? Reduce::Prod
                   : reduce == "mean" ? Reduce::Mean
                   : reduce == "amax" ? Reduce::Max
                                      : Reduce::Min;
  const std::vector<int64_t> at = checked_positions(out, dim, index, false);
  index::with_ordered("index_func_cpu", out.dtype(), [&]<class T>() {
    std::vector<int64_t> counts(static_cast<size_t>(line_size(out, dim)), include_self ? 1 : 0);
    for (const int64_t i : at) ++counts[static_cast<size_t>(i)];
    const int64_t step = line_stride(out, dim);
    const auto walk = index::lines<1>(out, dim, {&out});
    T* to = out.numel() ? out.data<T>() : nullptr;
    if (!include_self && to)
      walk.run([&](const auto& base) {
        for (const int64_t i : at) to[base[0] + i * step] = neutral<T>(r);
      });
    accumulate_lines<T>(out, dim, at, source, [r](T& target, T v) { fold(r, target, v); });
    if (r != Reduce::Mean || !to) return;
    walk.run([&](const auto& base) {
      for (size_t i = 0; i < counts.size(); ++i)
        if (counts[i] > 1)
          to[base[0] + static_cast<int64_t>(i) * step] =
              index::divided(to[base[0] + static_cast<int64_t>(i) * step], counts[i]);
    });
  });
}

}  // namespace

Tensor native::index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                         const Scalar& alpha) {
  check_index_source("index_add", self, dim, index, source);
  Tensor out = clone(self, MemoryFormat::Contiguous);
  add_into(out, dim, index, source, alpha);
  return out;
}
const Tensor& native::index_add_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                                 const Scalar& alpha) {
  check_index_source("index_add", self, dim, index, source);
  add_into(self, dim, index, source, alpha);
  return self;
}
const Tensor& native::index_add_out(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                                    const Scalar& alpha, const Tensor& out) {
  check_index_source("index_add", self, dim, index, source);
  check_same_dtype(self, out);
  add_into(start_from(self, out), dim, index, source, alpha);
  return out;
}

Tensor native::index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                            std::string_view reduce, bool include_self) {
  check_index_source("index_reduce", self, dim, index, source);
  Tensor out = clone(self, MemoryFormat::Contiguous);
  reduce_into(out, dim, index, source, reduce, include_self);
  return out;
}
const Tensor& native::index_reduce_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                                    std::string_view reduce, bool include_self) {
  check_index_source("index_reduce", self, dim, index, source);
  reduce_into(self, dim, index, source, reduce, include_self);
  return self;
}
const Tensor& native::index_reduce_out(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                                       std::string_view reduce, bool include_self, const Tensor& out) {
  check_index_source("index_reduce", self, dim, index, source);
  check_same_dtype(self, out);
  reduce_into(start_from(self, out), dim, index, source, reduce, include_self);
  return out;
}

// ---- index_copy, index_fill

namespace {

std::string joined(const DimVector& sizes) {
  std::string text;
  for (const int64_t s : sizes) text += str(text.empty() ? "" : ", ", s);
  return text;
}

void check_index_copy(const Tensor& self, int64_t& dim, const Tensor& index, const Tensor& source) {
  dim = wrap_dim(dim, self.dim());
  const int64_t count = index.numel();
  TN_CHECK_AS(Index, index.dim() < 2, "index_copy_(): Index should have dimension 1 or 0 (got ", index.dim(), ")");
  TN_CHECK_AS(Index, source.dim() != 0 || count == 1,
              "index_copy_(): When source is scalar, index should have one element (got ", count, ")");
  TN_CHECK_AS(Index, source.dim() == self.dim() || source.dim() == 0 || self.dim() == 0,
              "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
              "dimensionality (",
              source.dim(), "), destination dimensionality (", self.dim(), ")");
  TN_CHECK(index.dtype() == ScalarType::Long, "index_copy_(): Expected a long tensor for index, but got ",
           scalar_type_name(index.dtype()));
  TN_CHECK(self.dtype() == source.dtype(),
           "index_copy_(): self and source expected to have the same dtype, but got (self) ",
           scalar_type_name(self.dtype()), " and (source) ", scalar_type_name(source.dtype()));
  DimVector a(self.sizes()), b(source.sizes());
  if (!a.empty()) a.erase(static_cast<size_t>(dim));
  if (!b.empty()) b.erase(static_cast<size_t>(dim));
  TN_CHECK(a.operator IntView() == b.operator IntView(),
           "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: ", joined(a),
           " at dimension ", dim, " and source slice shape: ", joined(b), " at dimension 0.");
  TN_CHECK_AS(Index, source.dim() == 0 || count == source->size(dim), "index_copy_(): Number of indices (", count,
              ") should be equal to source.size(dim) (", source.dim() == 0 ? 1 : source->size(dim), ")");
  if (is_barebones_unsigned(self.dtype())) not_implemented("index_copy_cpu", self.dtype());
}

void copy_lines(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& source) {
  assert_no_internal_overlap(out);
  assert_no_overlap(out, index);
  assert_no_overlap(out, source);
  const std::vector<int64_t> at = index::positions(index);
  for (const int64_t i : at)
    TN_CHECK_AS(Index, i >= 0 && i < line_size(out, dim), "index_copy_(): index ", i,
                " is out of bounds for dimension ", dim, " with size ", line_size(out, dim));
  with_bytes(out.itemsize(), [&]<class T>() { accumulate_lines<T>(out, dim, at, source, [](T& to, T v) { to = v; }); });
}

}  // namespace

Tensor native::index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  check_index_copy(self, dim, index, source);
  Tensor out = clone(self, MemoryFormat::Contiguous);
  copy_lines(out, dim, index, source);
  return out;
}
const Tensor& native::index_copy_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  check_index_copy(self, dim, index, source);
  copy_lines(self, dim, index, source);
  return self;
}
const Tensor& native::index_copy_out(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                                     const Tensor& out) {
  check_index_copy(self, dim, index, source);
  check_same_dtype(self, out);
  copy_lines(start_from(self, out), dim, index, source);
  return out;
}

const Tensor& native::index_fill__int_Scalar(const Tensor& self, int64_t dim, const Tensor& index,
                                             const Scalar& value) {
  TN_CHECK_AS(Index, index.dtype() == ScalarType::Long, "index_fill_(): Expected dtype int64 for index.");
  for (int64_t i = 0; i < self.dim(); ++i)
    if (self->stride(i) == 0 && self->size(i) > 1) {
      warn(
          "Use of index_fill_ on expanded tensors is deprecated. Please clone() the tensor before performing this "
          "operation. This also "
          "applies to advanced indexing e.g. tensor[mask] = scalar");
      break;
    }
  assert_no_overlap(self, index);
  TN_CHECK(self.is_complex() || !value.is_complex(),
           "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  TN_CHECK(index.dim() <= 1, "Index has to be a vector/scalar");
  const int64_t d = wrap_dim(dim, self.dim()), size = line_size(self, d), step = line_stride(self, d);
  if (is_barebones_unsigned(self.dtype()) || is_float8(self.dtype())) not_implemented("index_fill_cpu", self.dtype());
  std::vector<int64_t> at = index::positions(index);
  for (int64_t& i : at) {
    TN_CHECK_AS(Index, i >= -size && i < size, "index ", i, " is out of bounds for dimension ", d, " with size ", size);
    if (i < 0) i += size;
  }
  alignas(16) char one[16];
  store_scalar(value, self.dtype(), one, true);
  if (self.numel() == 0) return self;
  with_bytes(self.itemsize(), [&]<class T>() {
    T v;
    std::memcpy(&v, one, sizeof v);
    T* to = self.data<T>();
    index::lines<1>(self, d, {&self}).run([&](const auto& base) {
      for (const int64_t i : at) to[base[0] + i * step] = v;
    });
  });
  return self;
}
const Tensor& native::index_fill__int_Tensor(const Tensor& self, int64_t dim, const Tensor& index,
                                             const Tensor& value) {
  TN_CHECK(value.dim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
           value.dim(), " dimension(s).");
  return index_fill__int_Scalar(self, dim, index, tn::item(value));
}

}  // namespace tn
