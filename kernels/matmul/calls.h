// Calls through the door of operators that other families serve, declared here by signature so that this family builds
// without their claims: an operator without one raises its refusal.
#pragma once
#include <optional>
#include <tuple>
#include <vector>

#include "runtime/op_table.h"

namespace tn::call {

// In-place ones give back their argument itself: what a boxed call returns need not outlive it.

inline Tensor mul(const Tensor& a, const Tensor& b) {
  return door::Call<Tensor(const Tensor&, const Tensor&)>::call(op_rows[kOp_mul_Tensor], a, b);
}
inline const Tensor& mul_out(const Tensor& out, const Tensor& a, const Tensor& b) {
  return door::Call<const Tensor&(const Tensor&, const Tensor&, const Tensor&)>::call(op_rows[kOp_mul_out], a, b, out);
}
inline Tensor mul(const Tensor& a, const Scalar& b) {
  return door::Call<Tensor(const Tensor&, const Scalar&)>::call(op_rows[kOp_mul_Scalar], a, b);
}
inline const Tensor& mul_(const Tensor& a, const Tensor& b) {
  door::Call<const Tensor&(const Tensor&, const Tensor&)>::call(op_rows[kOp_mul__Tensor], a, b);
  return a;
}
inline Tensor add(const Tensor& a, const Tensor& b) {
  return door::Call<Tensor(const Tensor&, const Tensor&, const Scalar&)>::call(op_rows[kOp_add_Tensor], a, b, 1);
}
inline const Tensor& add_(const Tensor& a, const Tensor& b) {
  door::Call<const Tensor&(const Tensor&, const Tensor&, const Scalar&)>::call(op_rows[kOp_add__Tensor], a, b, 1);
  return a;
}
inline Tensor sub(const Tensor& a, const Tensor& b) {
  return door::Call<Tensor(const Tensor&, const Tensor&, const Scalar&)>::call(op_rows[kOp_sub_Tensor], a, b, 1);
}
inline Tensor sum(const Tensor& a, IntView dims, bool keepdim, std::optional<ScalarType> dtype = {}) {
  return door::Call<Tensor(const Tensor&, OptionalIntArrayRef, bool, std::optional<ScalarType>)>::call(
      op_rows[kOp_sum_dim_IntList], a, OptionalIntArrayRef(dims), keepdim, dtype);
}
inline Tensor trilinear(const Tensor& a, const Tensor& b, const Tensor& c, IntView expand1, IntView expand2,
                        IntView expand3, IntView sumdim) {
  return door::Call<Tensor(const Tensor&, const Tensor&, const Tensor&, IntArrayRef, IntArrayRef, IntArrayRef,
                           IntArrayRef, int64_t)>::call(op_rows[kOp__trilinear], a, b, c, expand1, expand2, expand3,
                                                        sumdim, 1);
}
inline Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  return door::Call<Tensor(const Tensor&, const Tensor&, const Tensor&)>::call(op_rows[kOp_where_self], condition, a,
                                                                               b);
}
inline Tensor tril(const Tensor& a) {
  return door::Call<Tensor(const Tensor&, int64_t)>::call(op_rows[kOp_tril], a, 0);
}
inline Tensor safe_softmax(const Tensor& a, int64_t dim) {
  return door::Call<Tensor(const Tensor&, int64_t, std::optional<ScalarType>)>::call(op_rows[kOp__safe_softmax], a, dim,
                                                                                     std::nullopt);
}
inline Tensor masked_fill(const Tensor& a, const Tensor& mask, const Scalar& value) {
  return door::Call<Tensor(const Tensor&, const Tensor&, const Scalar&)>::call(op_rows[kOp_masked_fill_Scalar], a, mask,
                                                                               value);
}
inline Tensor logical_not(const Tensor& a) {
  return door::Call<Tensor(const Tensor&)>::call(op_rows[kOp_logical_not], a);
}
inline Tensor dropout(const Tensor& a, double p, bool train) {
  return door::Call<Tensor(const Tensor&, double, bool)>::call(op_rows[kOp_dropout], a, p, train);
}
inline const Tensor& sigmoid_(const Tensor& a) {
  door::Call<const Tensor&(const Tensor&)>::call(op_rows[kOp_sigmoid_], a);
  return a;
}
inline const Tensor& tanh_(const Tensor& a) {
  door::Call<const Tensor&(const Tensor&)>::call(op_rows[kOp_tanh_], a);
  return a;
}
inline Tensor tanh(const Tensor& a) { return door::Call<Tensor(const Tensor&)>::call(op_rows[kOp_tanh], a); }
inline Tensor cat(TensorList list, int64_t dim) {
  return door::Call<Tensor(TensorList, int64_t)>::call(op_rows[kOp_cat], list, dim);
}
inline Tensor stack(TensorList list, int64_t dim) {
  return door::Call<Tensor(TensorList, int64_t)>::call(op_rows[kOp_stack], list, dim);
}

}  // namespace tn::call
