// Linear algebra that upstream composes of other operators: these only call the door.
#pragma once
#include <string_view>

#include "runtime/tensor.h"

namespace tn::composite {

// ---- composites.cpp: with the errors that a factorisation reports ----
Tensor linalg_cholesky(const Tensor& self, bool upper);
Tensor linalg_inv(const Tensor& self);
Tensor linalg_det(const Tensor& self);
std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& self);
Tensor logdet(const Tensor& self);
Tensor linalg_solve(const Tensor& a, const Tensor& b, bool left);
std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& a, const Tensor& b, bool left, bool check_errors);
std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& a, bool pivot);
std::tuple<Tensor, Tensor, Tensor> lu_with_info(const Tensor& self, bool pivot, bool check_errors);
Tensor lu_solve(const Tensor& self, const Tensor& data, const Tensor& pivots);
std::tuple<Tensor, Tensor> linalg_ldl_factor(const Tensor& self, bool hermitian);
std::tuple<Tensor, Tensor> qr(const Tensor& self, bool some);
Tensor linalg_eigvals(const Tensor& self);
Tensor linalg_eigvalsh(const Tensor& self, std::string_view uplo);
Tensor linalg_svdvals(const Tensor& a, std::optional<std::string_view> driver);
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self, bool some, bool compute_uv);
Tensor matrix_power(const Tensor& self, int64_t n);
Tensor linalg_tensorinv(const Tensor& self, int64_t ind);
Tensor linalg_tensorsolve(const Tensor& self, const Tensor& other, OptionalIntArrayRef dims);

// ---- norms.cpp ----
Tensor linalg_norm(const Tensor& self, const std::optional<Scalar>& ord, OptionalIntArrayRef dim, bool keepdim,
                   std::optional<ScalarType> dtype);
Tensor linalg_norm(const Tensor& self, std::string_view ord, OptionalIntArrayRef dim, bool keepdim,
                   std::optional<ScalarType> dtype);
Tensor linalg_matrix_norm(const Tensor& self, const Scalar& ord, IntView dim, bool keepdim,
                          std::optional<ScalarType> dtype);
Tensor linalg_matrix_norm(const Tensor& self, std::string_view ord, IntView dim, bool keepdim,
                          std::optional<ScalarType> dtype);
Tensor nuclear_norm(const Tensor& self, IntView dim, bool keepdim);
Tensor linalg_cond(const Tensor& self, const std::optional<Scalar>& p);
Tensor linalg_cond(const Tensor& self, std::string_view p);
Tensor linalg_matrix_rank(const Tensor& self, OptionalTensor atol, OptionalTensor rtol, bool hermitian);
Tensor linalg_matrix_rank(const Tensor& self, std::optional<double> atol, std::optional<double> rtol, bool hermitian);
Tensor linalg_pinv(const Tensor& self, OptionalTensor atol, OptionalTensor rtol, bool hermitian);
Tensor linalg_pinv(const Tensor& self, std::optional<double> atol, std::optional<double> rtol, bool hermitian);

}  // namespace tn::composite
