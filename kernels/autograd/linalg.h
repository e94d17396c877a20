// What formulas of linear algebra call.
#pragma once
#include "kernels/autograd/helpers.h"

namespace tn::autograd {

// ---- linalg.cpp ----
Tensor cholesky_backward(const Tensor& grad, bool upper, const Tensor& l);
Tensor cholesky_jvp(const Tensor& da, const Tensor& l, bool upper);
std::tuple<Tensor, Tensor> cholesky_solve_backward(const Tensor& grad, const Tensor& self, const Tensor& input2,
                                                   const Tensor& result, bool upper, const std::array<bool, 2>& mask);
Tensor cholesky_solve_jvp(const Tensor& x, const Tensor& factor, const Tensor& dfactor, const Tensor& db, bool upper);
Tensor cholesky_inverse_backward(const Tensor& grad, const Tensor& l, bool upper, const Tensor& inverse);
Tensor cholesky_inverse_jvp(const Tensor& factor, const Tensor& dfactor, const Tensor& x, bool upper);
Tensor linalg_det_backward(const Tensor& grad, const Tensor& det, const Tensor& a, const Tensor& lu,
                           const Tensor& pivots);
Tensor linalg_det_jvp(const Tensor& da, const Tensor& det, const Tensor& lu, const Tensor& pivots, bool transposed);
Tensor slogdet_backward(const Tensor& grad_sign, const Tensor& grad_log, const Tensor& a, const Tensor& sign,
                        const Tensor& lu, const Tensor& pivots);
std::tuple<Tensor, Tensor> slogdet_jvp(const Tensor& lu, const Tensor& pivots, const Tensor& da, const Tensor& sign,
                                       bool transposed);
Tensor linalg_lu_backward(const Tensor& gl, const Tensor& gu, const Tensor& p, const Tensor& l, const Tensor& u,
                          bool pivot);
std::tuple<Tensor, Tensor> linalg_lu_jvp(const Tensor& da, const Tensor& p, const Tensor& l, const Tensor& u,
                                         bool pivot);
Tensor lu_factor_ex_backward(const Tensor& grad, const Tensor& lu, const Tensor& pivots, bool pivot);
Tensor lu_factor_ex_jvp(const Tensor& da, const Tensor& lu, const Tensor& pivots, bool pivot);
Tensor lu_unpack_backward(const Tensor& gl, const Tensor& gu, int64_t m, int64_t n);
Tensor linalg_lu_solve_LU(const Tensor& grad, const Tensor& lu, const Tensor& pivots, const Tensor& x, bool left,
                          bool adjoint);
Tensor linalg_lu_solve_jvp(const Tensor& x, const Tensor& lu, const Tensor& pivots, const Tensor& dlu, const Tensor& db,
                           bool left, bool adjoint);
std::tuple<Tensor, Tensor> linalg_solve_backward(const Tensor& grad, const Tensor& x, const Tensor& a, const Tensor& lu,
                                                 const Tensor& pivots, bool left, bool b_requires_grad);
Tensor linalg_solve_jvp(const Tensor& da, const Tensor& db, const Tensor& x, const Tensor& lu, const Tensor& pivots,
                        bool left, bool transposed = false);
std::tuple<Tensor, Tensor> linalg_solve_triangular_backward(const Tensor& grad, const Tensor& a, const Tensor& x,
                                                            bool upper, bool left, bool unit,
                                                            const std::array<bool, 2>& mask);
Tensor linalg_solve_triangular_forward_AD(const Tensor& da, const Tensor& db, const Tensor& a, const Tensor& x,
                                          bool upper, bool left, bool unit);
std::tuple<Tensor, Tensor> triangular_solve_backward(const Tensor& gx, const Tensor& gm, const Tensor& b,
                                                     const Tensor& a, const Tensor& x, bool upper, bool transpose,
                                                     bool unit, const std::array<bool, 2>& mask);
Tensor triangular_solve_jvp(const Tensor& x, const Tensor& a, const Tensor& da, const Tensor& db, bool upper,
                            bool transpose, bool unit);

// ---- decompositions.cpp ----
Tensor linalg_matrix_exp_differential(const Tensor& self, const Tensor& grad, bool adjoint);
std::tuple<Tensor, Tensor> householder_product_backward(const Tensor& grad, const Tensor& result, const Tensor& input,
                                                        const Tensor& tau);
Tensor householder_product_jvp(const Tensor& dinput, const Tensor& dtau, const Tensor& result, const Tensor& input,
                               const Tensor& tau);
std::tuple<Tensor, Tensor, Tensor> ormqr_backward(const Tensor& grad, const Tensor& result, const Tensor& self,
                                                  const Tensor& tau, const Tensor& other, bool left, bool transpose,
                                                  const std::array<bool, 3>& mask);
Tensor pinv_backward(const Tensor& grad, const Tensor& inverse, const Tensor& a);
Tensor pinv_jvp(const Tensor& a, const Tensor& inverse, const Tensor& da);
std::tuple<Tensor, Tensor> linalg_lstsq_backward(const Tensor& gx, const Tensor& gresiduals, const Tensor& a,
                                                 const Tensor& b, const Tensor& x, const std::array<bool, 2>& mask);
Tensor linalg_lstsq_solution_jvp(const Tensor& a, const Tensor& b, const Tensor& da, const Tensor& db);
Tensor linalg_lstsq_residuals_jvp(const Tensor& a, const Tensor& b, const Tensor& da, const Tensor& db, const Tensor& x,
                                  const Tensor& residuals);
Tensor linalg_qr_backward(const Tensor& gq, const Tensor& gr, const Tensor& q, const Tensor& r, std::string_view mode);
std::tuple<Tensor, Tensor> linalg_qr_jvp(const Tensor& da, const Tensor& q, const Tensor& r, std::string_view mode);
Tensor linalg_eig_backward(const Tensor& gl, const Tensor& gv, const Tensor& l, const Tensor& v, bool is_hermitian);
std::tuple<Tensor, Tensor> linalg_eig_jvp(const Tensor& da, const Tensor& l, const Tensor& v, bool is_hermitian);
Tensor svd_backward(const Tensor& gu, const Tensor& gs, const Tensor& gvh, const Tensor& u, const Tensor& s,
                    const Tensor& vh);
std::tuple<Tensor, Tensor, Tensor> linalg_svd_jvp(const Tensor& da, const Tensor& u, const Tensor& s, const Tensor& vh,
                                                  bool full_matrices);

}  // namespace tn::autograd
