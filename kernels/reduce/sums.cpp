#include "generated/slots/reduce.h"
#include "kernels/reduce/floats.h"
#include "kernels/reduce/ints.h"
#include "kernels/reduce/load.h"
#include "runtime/copy.h"
#include "runtime/error.h"

namespace tn {
namespace {

using namespace reduce;

ScalarType sum_dtype(const Tensor& self, std::optional<ScalarType> dtype) {
  return dtype ? *dtype : is_integral(self.dtype(), true) ? ScalarType::Long : self.dtype();
}
void set_reduced(Outputs& outs, const Tensor& self, uint64_t mask, bool keepdim, ScalarType dtype) {
  if (mask == dim_mask(std::nullopt, self.dim()) && !keepdim) return outs.set(0, {}, dtype, self.device());
  outs.set(0, reduced_sizes(self.sizes(), mask, keepdim), dtype, self.device());
}

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, int64_t>)
      return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else return a + b;
  }
};
struct Multiply {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, int64_t>)
      return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else return a * b;
  }
};

template <class T>
constexpr Operation<T> kSum = {T(0),
                               [](const T* p, int64_t n) {
                                 // Complex sums need the pairwise tree of real ones.
                                 if constexpr (is_std_complex_v<T>) {
                                   const auto tree = [](const auto& self, const T* q, int64_t k) -> T {
                                     if (k <= 256) return Plain<T, Add>::row(q, k, T(0));
                                     return self(self, q, k / 2) + self(self, q + k / 2, k - k / 2);
                                   };
                                   return tree(tree, p, n);
                                 } else if constexpr (std::is_same_v<T, int64_t>) {
                                   return sum_row(p, n);
                                 } else {
                                   return Plain<T, Add>::row(p, n, T(0));
                                 }
                               },
                               Plain<T, Add>::columns, [](T a, T b) { return Add()(a, b); }, Plain<T, Add>::columns};
template <class T>
constexpr Operation<T> kProduct = {T(1), [](const T* p, int64_t n) { return Plain<T, Multiply>::row(p, n, T(1)); },
                                   Plain<T, Multiply>::columns, [](T a, T b) { return Multiply()(a, b); },
                                   Plain<T, Multiply>::columns};

// The input in a dtype from which `to` can be accumulated without changing values first.
Tensor readable(const Tensor& self, ScalarType to) {
  const ScalarType from = self.dtype();
  const bool widens =
      (to == ScalarType::Long && is_integral(from, true)) || (to == ScalarType::Float && is_reduced_float(from));
  return from == to || widens ? self : cast(self, to);
}

// Stores as the result's dtype, which is S itself or what S widens to.
template <class S, class T>
Store<T> store_for(ScalarType to, ScalarType from, bool divided) {
  if (to == from) return divided ? Store<T>(store_divided<S, T>) : Store<T>(store_as<S, T>);
  return divided ? Store<T>(store_divided<T, T>) : Store<T>(store_as<T, T>);
}

void fold(const Tensor& out, const Tensor& self, uint64_t mask, Kind kind, bool divided = false) {
  const Tensor x = readable(self, out.dtype());
  const double count =
      divided ? static_cast<double>(self.numel()) / static_cast<double>(std::max<int64_t>(out.numel(), 1)) : 1;
  visit(x.dtype(), [&]<class S>() {
    using T = ComputeType<S>;
    const Store<T> store = store_for<S, T>(out.dtype(), x.dtype(), divided);
    if constexpr (std::is_floating_point_v<T>) reduce_into<S, T>(out, x, mask, float_operation<T>(kind), store, count);
    else reduce_into<S, T>(out, x, mask, kind == Kind::Prod ? kProduct<T> : kSum<T>, store, count);
  });
}

// Upstream's means are of floats: an integer has none to give.
ScalarType mean_dtype(const Tensor& self, std::optional<ScalarType> dtype) {
  const ScalarType t = dtype.value_or(self.dtype());
  TN_CHECK(is_floating(t) || is_complex(t), "mean(): could not infer output dtype. ", dtype ? "Optional" : "Input",
           " dtype must be either a floating point or complex dtype. Got: ", scalar_type_name(t));
  return t;
}

}  // namespace

namespace slots {

void sum_meta(Outputs& outs, const Tensor& self, std::optional<ScalarType> dtype) {
  outs.set(0, {}, sum_dtype(self, dtype), self.device());
}
void sum_cpu(Outputs& outs, const Tensor& self, std::optional<ScalarType>) {
  fold(outs[0], self, dim_mask(std::nullopt, self.dim()), Kind::Sum);
}
void sum_dim_IntList_meta(Outputs& outs, const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
                          std::optional<ScalarType> dtype) {
  set_reduced(outs, self, mask_of(self, dim), keepdim, sum_dtype(self, dtype));
}
void sum_dim_IntList_cpu(Outputs& outs, const Tensor& self, OptionalIntArrayRef dim, bool, std::optional<ScalarType>) {
  fold(outs[0], self, mask_of(self, dim), Kind::Sum);
}

void mean_meta(Outputs& outs, const Tensor& self, std::optional<ScalarType> dtype) {
  outs.set(0, {}, mean_dtype(self, dtype), self.device());
}
void mean_cpu(Outputs& outs, const Tensor& self, std::optional<ScalarType>) {
  fold(outs[0], self, dim_mask(std::nullopt, self.dim()), Kind::Sum, true);
}
void mean_dim_meta(Outputs& outs, const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
                   std::optional<ScalarType> dtype) {
  set_reduced(outs, self, mask_of(self, dim), keepdim, mean_dtype(self, dtype));
}
void mean_dim_cpu(Outputs& outs, const Tensor& self, OptionalIntArrayRef dim, bool, std::optional<ScalarType>) {
  fold(outs[0], self, mask_of(self, dim), Kind::Sum, true);
}

void nansum_meta(Outputs& outs, const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
                 std::optional<ScalarType> dtype) {
  set_reduced(outs, self, mask_of(self, dim), keepdim, sum_dtype(self, dtype));
}
void nansum_cpu(Outputs& outs, const Tensor& self, OptionalIntArrayRef dim, bool, std::optional<ScalarType>) {
  fold(outs[0], self, mask_of(self, dim), Kind::NanSum);
}

void prod_meta(Outputs& outs, const Tensor& self, std::optional<ScalarType> dtype) {
  outs.set(0, {}, sum_dtype(self, dtype), self.device());
}
void prod_cpu(Outputs& outs, const Tensor& self, std::optional<ScalarType>) {
  fold(outs[0], self, dim_mask(std::nullopt, self.dim()), Kind::Prod);
}
void prod_dim_int_meta(Outputs& outs, const Tensor& self, int64_t dim, bool keepdim, std::optional<ScalarType> dtype) {
  set_reduced(outs, self, mask_of(self, dim), keepdim, sum_dtype(self, dtype));
}
void prod_dim_int_cpu(Outputs& outs, const Tensor& self, int64_t dim, bool, std::optional<ScalarType>) {
  fold(outs[0], self, mask_of(self, dim), Kind::Prod);
}

}  // namespace slots
}  // namespace tn
