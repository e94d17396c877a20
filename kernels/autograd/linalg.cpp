// Derivatives of factorisations and of what is solved with them. With M^H as the adjoint and <G, X> = Re tr(G^H X),
// each gradient is what <grad, d result> is of dA.
#include "kernels/autograd/linalg.h"

#include <limits>

#include "kernels/autograd/support.h"
#include "runtime/error.h"

namespace tn::autograd {
namespace {

Tensor times(const Tensor& a, const Tensor& b) { return at::matmul(a, b); }
Tensor negative(const Tensor& a) { return at::neg(a); }
Tensor plus(const Tensor& a, const Tensor& b) { return !a.defined() ? b : !b.defined() ? a : Tensor(at::add(a, b)); }
Tensor triangle(const Tensor& a, bool upper, int64_t beyond = 0) {
  return upper ? at::triu(a, beyond) : at::tril(a, -beyond);
}
Tensor solve_lower(const Tensor& l, const Tensor& b, bool left, bool unit = false) {
  return at::linalg_solve_triangular(l, b, false, left, unit);
}
Tensor solve_upper(const Tensor& u, const Tensor& b, bool left, bool unit = false) {
  return at::linalg_solve_triangular(u, b, true, left, unit);
}
Tensor diagonal_of(const Tensor& a) { return at::diagonal(a, 0, -2, -1); }
Tensor trace_of(const Tensor& a) { return diagonal_of(a).sum(IntArrayRef(-1)); }

bool is_vector(const Tensor& a, const Tensor& b) {
  return b.dim() == 1 || (a.dim() - 1 == b.dim() && b.sizes() == a.sizes().slice(0, static_cast<size_t>(a.dim() - 1)));
}

// A zero on the diagonal of U becomes small instead: determinants are smooth there, inverses are not.
Tensor without_zeros(const Tensor& lu) {
  const bool narrow = real_of(lu.scalar_type()) == ScalarType::Float;
  const double eps =
      narrow ? static_cast<double>(std::numeric_limits<float>::epsilon()) : std::numeric_limits<double>::epsilon();
  const Tensor zero = at::eq(diagonal_of(lu), Scalar(0));
  return at::add(lu, at::diag_embed(at::mul(zero.to(lu.scalar_type()), Scalar(eps))));
}
// The determinant by its factors, up to the sign of the row exchanges.
Tensor signed_product(const Tensor& lu, const Tensor& pivots) {
  const Tensor places = at::arange(Scalar(1), Scalar(pivots.size(-1) + 1), pivots.options());
  const Tensor odd = at::remainder(at::ne(pivots, places).sum(IntArrayRef(-1)), Scalar(2));
  const Tensor sign = at::rsub(at::mul(odd, Scalar(2)), Scalar(1));
  return at::mul(at::prod(diagonal_of(lu), -1), sign.to(lu.scalar_type()));
}

// The gradient of matrices without elements, which still depends on what it would be made of.
Tensor of_nothing(const Tensor& a, const Tensor& grad) { return at::mul(a, grad.unsqueeze(-1).unsqueeze(-1)); }

}  // namespace

// ---- Cholesky ------------------------------------------------------------------------------------------------------

Tensor cholesky_backward(const Tensor& grad, bool upper, const Tensor& result) {
  const Tensor l = upper ? Tensor(result.mH()) : result, gl = upper ? Tensor(grad.mH()) : grad;
  const Tensor inner = times(l.mH(), gl);
  const Tensor phi = at::add(at::tril(inner), Tensor(at::tril(inner, -1)).mH());
  return at::mul(solve_lower(l, solve_upper(l.mH(), phi, true), false), Scalar(0.5));
}

Tensor cholesky_jvp(const Tensor& da, const Tensor& result, bool upper) {
  const Tensor l = upper ? Tensor(result.mH()) : result;
  const Tensor inner = solve_upper(l.mH(), solve_lower(l, da, true), false);
  const Tensor phi = at::sub(at::tril(inner), at::mul(at::diag_embed(diagonal_of(inner)), Scalar(0.5)));
  const Tensor dl = times(l, phi);
  return upper ? Tensor(dl.mH()) : dl;
}

std::tuple<Tensor, Tensor> cholesky_solve_backward(const Tensor& grad, const Tensor& self, const Tensor& input2,
                                                   const Tensor& result, bool upper, const std::array<bool, 2>& mask) {
  std::tuple<Tensor, Tensor> out;
  if (!grad.defined()) return out;
  const Tensor gb = at::cholesky_solve(grad, input2, upper);
  if (mask[0]) std::get<0>(out) = at::sum_to(gb, self.sizes());
  if (mask[1]) {
    const Tensor half = times(gb, result.mH()), both = at::add(half, half.mH());
    std::get<1>(out) = at::sum_to(negative(upper ? times(input2, both) : times(both, input2)), input2.sizes());
  }
  return out;
}

Tensor cholesky_solve_jvp(const Tensor& x, const Tensor& factor, const Tensor& dfactor, const Tensor& db, bool upper) {
  const Tensor half = upper ? times(factor.mH(), dfactor) : times(factor, dfactor.mH());
  return at::cholesky_solve(at::sub(db, times(at::add(half, half.mH()), x)), factor, upper);
}

Tensor cholesky_inverse_backward(const Tensor& grad, const Tensor& l, bool upper, const Tensor& inverse) {
  if (!grad.defined()) return {};
  const Tensor both = times(times(inverse, at::add(grad, grad.mH())), inverse);
  return negative(upper ? times(l, both) : times(both, l));
}

Tensor cholesky_inverse_jvp(const Tensor& factor, const Tensor& dfactor, const Tensor& x, bool upper) {
  const Tensor half = upper ? times(factor.mH(), dfactor) : times(factor, dfactor.mH());
  return negative(times(times(x, at::add(half, half.mH())), x));
}

// ---- determinants
// ----------------------------------------------------------------------------------------------------

// d det = det tr(A^-1 dA), so the gradient is grad conj(det) A^-H.
Tensor linalg_det_backward(const Tensor& grad, const Tensor& det, const Tensor& a, const Tensor& lu,
                           const Tensor& pivots) {
  if (!grad.defined()) return {};
  // Upstream's gradient of an empty determinant depends on nothing.
  if (a.numel() == 0) return at::zeros_like(a);
  const Tensor regular = without_zeros(lu);
  if (!GradMode::is_enabled()) {
    const Tensor scale = at::mul(grad, signed_product(regular, pivots).conj());
    const Tensor right = at::diag_embed(scale.unsqueeze(-1).expand_symint(a.sizes().slice(0, a.sizes().size() - 1)));
    return at::linalg_lu_solve(regular, pivots, right, true, true);
  }
  Tensor base = a, value = det;
  if (at::eq(det, Scalar(0)).any().item().to_bool()) {
    const auto parts = at::lu_unpack(lu.detach(), pivots);
    const Tensor p = std::get<0>(parts), l = std::get<1>(parts);
    base = at::add(a, times(times(p, l), at::sub(regular, lu).detach()));
    value = at::linalg_det(base);
  }
  const Tensor scale = at::mul(grad, value.conj());
  const Tensor right = at::diag_embed(scale.unsqueeze(-1).expand_symint(a.sizes().slice(0, a.sizes().size() - 1)));
  return at::linalg_solve(base.mH(), right);
}

Tensor linalg_det_jvp(const Tensor& da, const Tensor&, const Tensor& lu, const Tensor& pivots, bool) {
  const Tensor regular = without_zeros(lu);
  return at::mul(trace_of(at::linalg_lu_solve(regular, pivots, da)), signed_product(regular, pivots));
}

// d log|det| = Re t and d sign = i Im(t) sign for t = tr(A^-1 dA).
Tensor slogdet_backward(const Tensor& grad_sign, const Tensor& grad_log, const Tensor& a, const Tensor& sign,
                        const Tensor& lu, const Tensor& pivots) {
  if (!grad_log.defined() && (!grad_sign.defined() || !a.is_complex())) return {};
  if (a.numel() == 0) return of_nothing(a, a.is_complex() ? plus(grad_log, grad_sign) : grad_log);
  Tensor scale = grad_log.defined() ? Tensor(grad_log.to(a.scalar_type())) : Tensor();
  if (a.is_complex() && grad_sign.defined()) {
    const Tensor turn = at::imag(at::mul(grad_sign.conj(), sign));
    scale = plus(scale, at::complex(at::zeros_like(turn), at::neg(turn)));
  }
  const Tensor right = at::diag_embed(scale.unsqueeze(-1).expand_symint(a.sizes().slice(0, a.sizes().size() - 1)));
  if (!GradMode::is_enabled()) return at::linalg_lu_solve(lu, pivots, right, true, true);
  return at::linalg_solve(a.mH(), right);
}

std::tuple<Tensor, Tensor> slogdet_jvp(const Tensor& lu, const Tensor& pivots, const Tensor& da, const Tensor& sign,
                                       bool) {
  const Tensor trace = trace_of(at::linalg_lu_solve(lu, pivots, da));
  if (!trace.is_complex()) return {at::zeros_like(sign), trace};
  const Tensor turn = at::imag(trace);
  return {at::mul(at::complex(at::zeros_like(turn), turn), sign), at::real(trace)};
}

// ---- LU -------------------------------------------------------------------------------------------------------------

namespace {

// Both triangles of one matrix of m x n, from the parts of L (m x k) and U (k x n).
Tensor joined(const Tensor& l, const Tensor& u, int64_t m, int64_t n) {
  const int64_t k = std::min(m, n);
  Tensor low, high;
  if (l.defined()) {
    low = at::tril(l, -1);
    if (n > k) low = at::constant_pad_nd(low, {0, n - k}, Scalar(0));
  }
  if (u.defined()) {
    high = at::triu(u);
    if (m > k) high = at::constant_pad_nd(high, {0, 0, 0, m - k}, Scalar(0));
  }
  return plus(low, high);
}

}  // namespace

// With P^T A = L U in blocks: M = L1^-1 P^T dA1 U1^-1 gives dL1 = L1 tril(M, -1) and dU1 = triu(M) U1; the block that
// is left over follows from its own product.
Tensor linalg_lu_backward(const Tensor& gl, const Tensor& gu, const Tensor& p, const Tensor& l, const Tensor& u,
                          bool pivot) {
  if (!gl.defined() && !gu.defined()) return {};
  const int64_t m = l.size(-2), n = u.size(-1), k = std::min(m, n);
  const Tensor l1 = l.narrow(-2, 0, k), u1 = u.narrow(-1, 0, k);
  Tensor out;
  if (m >= n) {
    Tensor low, high, rest;
    if (gl.defined()) {
      low = times(l1.mH(), gl.narrow(-2, 0, k));
      if (m > k) {
        rest = gl.narrow(-2, k, m - k);
        high = negative(times(Tensor(l.narrow(-2, k, m - k)).mH(), rest));
      }
    }
    if (gu.defined()) high = plus(high, times(gu, u.mH()));
    Tensor inner =
        plus(low.defined() ? Tensor(at::tril(low, -1)) : Tensor(), high.defined() ? Tensor(at::triu(high)) : Tensor());
    inner = solve_upper(l1.mH(), inner, true, true);
    if (m > k) {
      const Tensor below = rest.defined() ? rest : Tensor(at::zeros_like(l.narrow(-2, k, m - k)));
      const tn::Tensor both[] = {inner, below};
      inner = at::cat(TensorList(both, 2), -2);
    }
    out = solve_lower(u.mH(), inner, false);
  } else {
    const Tensor u2 = u.narrow(-1, k, n - k);
    Tensor low, high, rest;
    if (gl.defined()) low = times(l.mH(), gl);
    if (gu.defined()) {
      rest = gu.narrow(-1, k, n - k);
      high = times(gu.narrow(-1, 0, k), u1.mH());
      low = plus(low, negative(times(rest, u2.mH())));
    }
    const Tensor inner =
        plus(low.defined() ? Tensor(at::tril(low, -1)) : Tensor(), high.defined() ? Tensor(at::triu(high)) : Tensor());
    const Tensor beside = rest.defined() ? rest : Tensor(at::zeros_like(u2));
    const tn::Tensor both[] = {solve_lower(u1.mH(), inner, false), beside};
    out = solve_upper(l.mH(), at::cat(TensorList(both, 2), -1), true, true);
  }
  return pivot ? times(p, out) : out;
}

std::tuple<Tensor, Tensor> linalg_lu_jvp(const Tensor& da, const Tensor& p, const Tensor& l, const Tensor& u,
                                         bool pivot) {
  const int64_t m = l.size(-2), n = u.size(-1), k = std::min(m, n);
  const Tensor db = pivot ? times(p.mT(), da) : da;
  const Tensor l1 = l.narrow(-2, 0, k), u1 = u.narrow(-1, 0, k);
  const Tensor first = Tensor(db.narrow(-2, 0, k)).narrow(-1, 0, k);
  const Tensor inner = solve_upper(u1, solve_lower(l1, first, true, true), false);
  const Tensor low = at::tril(inner, -1), high = at::triu(inner);
  Tensor dl = times(l1, low), du = times(high, u1);
  if (m > k) {
    const Tensor below = at::sub(solve_upper(u, db.narrow(-2, k, m - k), false), times(l.narrow(-2, k, m - k), high));
    const tn::Tensor both[] = {dl, below};
    dl = at::cat(TensorList(both, 2), -2);
  } else if (n > k) {
    const Tensor beside =
        at::sub(solve_lower(l, db.narrow(-1, k, n - k), true, true), times(low, u.narrow(-1, k, n - k)));
    const tn::Tensor both[] = {du, beside};
    du = at::cat(TensorList(both, 2), -1);
  }
  return {dl, du};
}

Tensor lu_factor_ex_backward(const Tensor& grad, const Tensor& lu, const Tensor& pivots, bool pivot) {
  if (!grad.defined()) return {};
  const auto parts = at::lu_unpack(lu, pivots, true, pivot);
  const int64_t k = std::min(lu.size(-2), lu.size(-1));
  return linalg_lu_backward(grad.narrow(-1, 0, k), grad.narrow(-2, 0, k), std::get<0>(parts), std::get<1>(parts),
                            std::get<2>(parts), pivot);
}

Tensor lu_factor_ex_jvp(const Tensor& da, const Tensor& lu, const Tensor& pivots, bool pivot) {
  const auto parts = at::lu_unpack(lu, pivots, true, pivot);
  const auto d = linalg_lu_jvp(da, std::get<0>(parts), std::get<1>(parts), std::get<2>(parts), pivot);
  return joined(std::get<0>(d), std::get<1>(d), lu.size(-2), lu.size(-1));
}

Tensor lu_unpack_backward(const Tensor& gl, const Tensor& gu, int64_t m, int64_t n) { return joined(gl, gu, m, n); }

// The gradient of A = P L U first, then that of its triangles.
Tensor linalg_lu_solve_LU(const Tensor& grad, const Tensor& lu, const Tensor& pivots, const Tensor& x, bool left,
                          bool adjoint) {
  const auto parts = at::lu_unpack(lu, pivots);
  const Tensor p = std::get<0>(parts), l = std::get<1>(parts), u = std::get<2>(parts);
  const Tensor g = at::linalg_lu_solve(lu, pivots, grad, left, !adjoint);
  const Tensor of_op = left ? times(g, x.mH()) : times(x.mH(), g);
  const Tensor inner = negative(times(p.mT(), adjoint ? Tensor(of_op.mH()) : of_op));
  const Tensor out = at::add(at::tril(times(inner, u.mH()), -1), at::triu(times(l.mH(), inner)));
  return at::sum_to(out, lu.sizes());
}

Tensor linalg_lu_solve_jvp(const Tensor& x, const Tensor& lu, const Tensor& pivots, const Tensor& dlu, const Tensor& db,
                           bool left, bool adjoint) {
  const auto parts = at::lu_unpack(lu, pivots);
  const Tensor p = std::get<0>(parts), l = std::get<1>(parts), u = std::get<2>(parts);
  const Tensor da = times(p, at::add(times(at::tril(dlu, -1), u), times(l, at::triu(dlu))));
  const Tensor op = adjoint ? Tensor(da.mH()) : da;
  return at::linalg_lu_solve(lu, pivots, at::sub(db, left ? times(op, x) : times(x, op)), left, adjoint);
}

// ---- solutions
// ---------------------------------------------------------------------------------------------------------

std::tuple<Tensor, Tensor> linalg_solve_backward(const Tensor& grad, const Tensor& x, const Tensor& a, const Tensor& lu,
                                                 const Tensor& pivots, bool left, bool) {
  std::tuple<Tensor, Tensor> out;
  if (!grad.defined()) return out;
  const bool vector = is_vector(a, x);
  const auto column = [vector](const Tensor& t) { return vector ? Tensor(t.unsqueeze(-1)) : t; };
  // The factors carry no history: a second derivative needs A itself.
  const Tensor g = GradMode::is_enabled() ? Tensor(at::linalg_solve(a.mH(), column(grad), left))
                                          : Tensor(at::linalg_lu_solve(lu, pivots, column(grad), left, true));
  const Tensor wide = column(x);
  std::get<0>(out) = at::sum_to(negative(left ? times(g, wide.mH()) : times(wide.mH(), g)), a.sizes());
  std::get<1>(out) = vector ? Tensor(g.squeeze(-1)) : g;
  return out;
}

Tensor linalg_solve_jvp(const Tensor& da, const Tensor& db, const Tensor& x, const Tensor& lu, const Tensor& pivots,
                        bool left, bool) {
  const bool vector = is_vector(lu, x);
  const auto column = [vector](const Tensor& t) { return vector ? Tensor(t.unsqueeze(-1)) : t; };
  const Tensor wide = column(x);
  const Tensor right = at::sub(column(db), left ? times(da, wide) : times(wide, da));
  const Tensor dx = at::linalg_lu_solve(lu, pivots, right, left);
  return vector ? Tensor(dx.squeeze(-1)) : dx;
}

std::tuple<Tensor, Tensor> linalg_solve_triangular_backward(const Tensor& grad, const Tensor& a, const Tensor& x,
                                                            bool upper, bool left, bool unit,
                                                            const std::array<bool, 2>& mask) {
  std::tuple<Tensor, Tensor> out;
  if (!grad.defined()) return out;
  const Tensor g = at::linalg_solve_triangular(a.mH(), grad, !upper, left, unit);
  if (mask[0])
    std::get<0>(out) =
        at::sum_to(triangle(negative(left ? times(g, x.mH()) : times(x.mH(), g)), upper, unit ? 1 : 0), a.sizes());
  if (mask[1]) std::get<1>(out) = g;
  return out;
}

Tensor linalg_solve_triangular_forward_AD(const Tensor& da, const Tensor& db, const Tensor& a, const Tensor& x,
                                          bool upper, bool left, bool unit) {
  const Tensor part = triangle(da, upper, unit ? 1 : 0);
  return at::linalg_solve_triangular(a, at::sub(db, left ? times(part, x) : times(x, part)), upper, left, unit);
}

std::tuple<Tensor, Tensor> triangular_solve_backward(const Tensor& gx, const Tensor& gm, const Tensor& b,
                                                     const Tensor& a, const Tensor& x, bool upper, bool transpose,
                                                     bool unit, const std::array<bool, 2>& mask) {
  std::tuple<Tensor, Tensor> out;
  if (gx.defined()) {
    const Tensor g = transpose ? Tensor(at::linalg_solve_triangular(a.conj(), gx, upper, true, unit))
                               : Tensor(at::linalg_solve_triangular(a.mH(), gx, !upper, true, unit));
    if (mask[0]) std::get<0>(out) = at::sum_to(g, b.sizes());
    if (mask[1]) {
      const Tensor ga = negative(transpose ? times(x.conj(), g.mT()) : times(g, x.mH()));
      std::get<1>(out) = at::sum_to(triangle(ga, upper, unit ? 1 : 0), a.sizes());
    }
  }
  if (gm.defined() && mask[1]) std::get<1>(out) = plus(std::get<1>(out), at::sum_to(gm, a.sizes()));
  return out;
}

Tensor triangular_solve_jvp(const Tensor& x, const Tensor& a, const Tensor& da, const Tensor& db, bool upper,
                            bool transpose, bool unit) {
  const Tensor part = triangle(da, upper, unit ? 1 : 0);
  const Tensor right = at::sub(db, times(transpose ? Tensor(part.mT()) : part, x));
  return at::linalg_solve_triangular(transpose ? Tensor(a.mT()) : a, right, upper != transpose, true, unit);
}

}  // namespace tn::autograd
