// Calls through the door of operators that other families serve, declared here by signature so that this family builds
// without their claims: an operator without one raises its refusal.
#pragma once
#include <optional>
#include <tuple>
#include <vector>

#include "runtime/op_table.h"

namespace tn::call {

inline Tensor mul(const Tensor& a, const Tensor& b) {
  return door::Call<Tensor(const Tensor&, const Tensor&)>::call(op_rows[kOp_mul_Tensor], a, b);
}
inline const Tensor& mul_out(const Tensor& out, const Tensor& a, const Tensor& b) {
  return door::Call<const Tensor&(const Tensor&, const Tensor&, const Tensor&)>::call(op_rows[kOp_mul_out], a, b, out);
}
inline Tensor mul(const Tensor& a, const Scalar& b) {
  const Tensor number = wrapped_scalar(b, a.device());
  return mul(a, number);
}
inline Tensor add(const Tensor& a, const Tensor& b) {
  return door::Call<Tensor(const Tensor&, const Tensor&, const Scalar&)>::call(op_rows[kOp_add_Tensor], a, b, 1);
}
inline const Tensor& add_(const Tensor& a, const Tensor& b) {
  return door::Call<const Tensor&(const Tensor&, const Tensor&, const Scalar&)>::call(op_rows[kOp_add__Tensor], a, b, 1);
}
inline Tensor sub(const Tensor& a, const Tensor& b) {
  return door::Call<Tensor(const Tensor&, const Tensor&, const Scalar&)>::call(op_rows[kOp_sub_Tensor], a, b, 1);
}
inline Tensor sum(const Tensor& a, IntView dims, bool keepdim) {
  return door::Call<Tensor(const Tensor&, OptionalIntArrayRef, bool, std::optional<ScalarType>)>::call(
      op_rows[kOp_sum_dim_IntList], a, OptionalIntArrayRef(dims), keepdim, std::nullopt);
}

}  // namespace tn::call
