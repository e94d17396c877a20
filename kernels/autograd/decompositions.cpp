// Derivatives of QR, eigenvalues, singular values, pseudoinverses, products of reflections and the exponential.
#include <cmath>

#include "kernels/autograd/linalg.h"
#include "kernels/autograd/support.h"
#include "runtime/error.h"

namespace tn::autograd {
namespace {

Tensor times(const Tensor& a, const Tensor& b) { return at::matmul(a, b); }
Tensor negative(const Tensor& a) { return at::neg(a); }
Tensor plus(const Tensor& a, const Tensor& b) { return !a.defined() ? b : !b.defined() ? a : Tensor(at::add(a, b)); }
Tensor diagonal_of(const Tensor& a) { return at::diagonal(a, 0, -2, -1); }
Tensor real_of(const Tensor& a) { return a.is_complex() ? Tensor(at::real(a)) : a; }
Tensor rows(const Tensor& v) { return v.unsqueeze(-2); }
Tensor columns(const Tensor& v) { return v.unsqueeze(-1); }
Tensor solve_upper(const Tensor& u, const Tensor& b, bool left) {
  return at::linalg_solve_triangular(u, b, true, left, false);
}
Tensor skew(const Tensor& a) { return at::sub(a, a.mH()); }
// i times a real tensor.
Tensor imaginary(const Tensor& a) { return at::complex(at::zeros_like(a), a); }

// E(i, j) = v(j) - v(i), with ones on the diagonal.
Tensor differences(const Tensor& v) {
  const Tensor d = at::sub(rows(v), columns(v));
  return at::add(d, at::diag_embed(at::ones_like(v)));
}
Tensor without_diagonal(const Tensor& a) { return at::sub(a, at::diag_embed(diagonal_of(a))); }

}  // namespace

// ---- the exponential
// --------------------------------------------------------------------------------------------------

// exp([[A, G], [0, A]]) has the differential in the direction of G in its corner.
Tensor linalg_matrix_exp_differential(const Tensor& self, const Tensor& grad, bool adjoint) {
  if (!grad.defined()) return {};
  const Tensor a = adjoint ? Tensor(self.mH()) : self;
  const int64_t n = a.size(-1);
  const tn::Tensor top[] = {a, grad}, bottom[] = {at::zeros_like(a), a};
  const tn::Tensor both[] = {at::cat(TensorList(top, 2), -1), at::cat(TensorList(bottom, 2), -1)};
  const Tensor whole = at::linalg_matrix_exp(at::cat(TensorList(both, 2), -2));
  return Tensor(whole.narrow(-2, 0, n)).narrow(-1, n, n);
}

// ---- products of reflections
// ------------------------------------------------------------------------------------------

namespace {

// H_1 ... H_k E with H = I - tau v v^H, kept with every partial product, so that it can be gone through backwards.
struct Reflections {
  Tensor v, tau;
  int64_t k;
  std::vector<Tensor> partial;  // partial[i] = H_i ... H_k E

  Reflections(const Tensor& input, const Tensor& factors, const Tensor& start) : tau(factors), k(factors.size(-1)) {
    const Tensor lower = at::tril(input.narrow(-1, 0, k), -1);
    v = at::add(lower, at::eye(input.size(-2), k, input.options()));
    partial.assign(static_cast<size_t>(k + 1), start);
    for (int64_t i = k; i-- > 0;)
      partial[static_cast<size_t>(i)] = apply(i, partial[static_cast<size_t>(i + 1)], false);
  }
  Tensor vector(int64_t i) const { return v.narrow(-1, i, 1); }
  Tensor factor(int64_t i) const { return tau.narrow(-1, i, 1).unsqueeze(-1); }
  Tensor apply(int64_t i, const Tensor& x, bool adjoint) const {
    const Tensor f = adjoint ? Tensor(factor(i).conj()) : factor(i);
    return at::sub(x, at::mul(f, times(vector(i), times(vector(i).mH(), x))));
  }

  std::tuple<Tensor, Tensor> backward(Tensor grad, const Tensor& input) const {
    std::vector<tn::Tensor> of_v(static_cast<size_t>(k)), of_tau(static_cast<size_t>(k));
    for (int64_t i = 0; i < k; ++i) {
      const Tensor x = vector(i), f = factor(i), right = partial[static_cast<size_t>(i + 1)];
      const Tensor rx = times(right.mH(), x), gx = times(grad.mH(), x);  // both with as many rows as E has columns
      const auto place = static_cast<size_t>(i);
      of_tau[place] = at::neg(times(gx.mH(), rx)).squeeze(-1).squeeze(-1).unsqueeze(-1);
      of_v[place] = negative(at::add(at::mul(f.conj(), times(grad, rx)), at::mul(f, times(right, gx))));
      grad = apply(i, grad, true);
    }
    Tensor gv = at::tril(at::cat(TensorList(of_v), -1), -1);
    if (input.size(-1) > k) gv = at::constant_pad_nd(gv, {0, input.size(-1) - k}, Scalar(0));
    return {gv, at::cat(TensorList(of_tau), -1)};
  }
};

}  // namespace

std::tuple<Tensor, Tensor> householder_product_backward(const Tensor& grad, const Tensor& result, const Tensor& input,
                                                        const Tensor& tau) {
  if (!grad.defined() || input.numel() == 0 || tau.numel() == 0) return {};
  const Reflections all(input, tau, at::eye(result.size(-2), result.size(-1), result.options()));
  return all.backward(grad, input);
}

Tensor householder_product_jvp(const Tensor& dinput, const Tensor& dtau, const Tensor& result, const Tensor& input,
                               const Tensor& tau) {
  const Reflections all(input, tau, at::eye(result.size(-2), result.size(-1), result.options()));
  const Tensor dv = at::tril(dinput.narrow(-1, 0, all.k), -1);
  Tensor dx = at::zeros_like(result);
  for (int64_t i = all.k; i-- > 0;) {
    const Tensor v = all.vector(i), d = dv.narrow(-1, i, 1), right = all.partial[static_cast<size_t>(i + 1)];
    const Tensor f = all.factor(i), df = dtau.narrow(-1, i, 1).unsqueeze(-1);
    const Tensor along = times(v.mH(), right);
    const Tensor change =
        at::add(at::mul(df, times(v, along)), at::mul(f, at::add(times(d, along), times(v, times(d.mH(), right)))));
    dx = at::sub(all.apply(i, dx, false), change);
  }
  return dx;
}

std::tuple<Tensor, Tensor, Tensor> ormqr_backward(const Tensor& grad, const Tensor&, const Tensor& self,
                                                  const Tensor& tau, const Tensor& other, bool left, bool transpose,
                                                  const std::array<bool, 3>& mask) {
  std::tuple<Tensor, Tensor, Tensor> out;
  if (!grad.defined()) return out;
  if (mask[2]) std::get<2>(out) = at::ormqr(self, tau, grad, left, !transpose);
  // Without a reflection nothing depends on the factors, and upstream gives them no gradient.
  if ((!mask[0] && !mask[1]) || self.numel() == 0 || tau.numel() == 0) return out;
  // The gradient of all of Q, m x m.
  const Tensor of_op = left ? times(grad, other.mH()) : times(other.mH(), grad);
  const int64_t m = self.size(-2);
  const Reflections all(self, tau, at::eye(m, m, self.options()));
  std::tie(std::get<0>(out), std::get<1>(out)) = all.backward(transpose ? Tensor(of_op.mH()) : of_op, self);
  return out;
}

// ---- pseudoinverse and least squares
// ------------------------------------------------------------------------------------

// dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P; products are ordered by the smaller side.
Tensor pinv_backward(const Tensor& grad, const Tensor& p, const Tensor& a) {
  if (!grad.defined()) return {};
  const Tensor ph = p.mH(), gh = grad.mH();
  if (a.size(-2) <= a.size(-1)) {
    const Tensor k = times(gh, p), kph = times(k, ph);
    return at::add(at::sub(at::sub(kph, times(p, k).mH()), times(times(a, p), kph)),
                   times(times(ph, p), at::sub(gh, times(k, a))));
  }
  const Tensor k = times(p, gh), phk = times(ph, k);
  return at::add(at::sub(times(times(at::sub(gh, times(a, k)), p), ph), times(k, p).mH()),
                 at::sub(phk, times(times(phk, p), a)));
}

Tensor pinv_jvp(const Tensor& a, const Tensor& p, const Tensor& da) {
  const Tensor dah = da.mH(), ph = p.mH();
  const Tensor first = times(times(p, da), p);
  const Tensor inner = times(times(p, ph), dah);
  const Tensor second = at::sub(inner, times(times(inner, a), p));
  const Tensor outer = times(times(dah, ph), p);
  return at::add(at::sub(second, first), at::sub(outer, times(times(p, a), outer)));
}

namespace {

bool is_vector_solution(const Tensor& a, const Tensor& b) { return b.dim() == a.dim() - 1; }
Tensor pseudoinverse(const Tensor& a) {
  return at::linalg_pinv(a, std::optional<double>(), std::optional<double>(), false);
}

}  // namespace

std::tuple<Tensor, Tensor> linalg_lstsq_backward(const Tensor& gx, const Tensor& gresiduals, const Tensor& a,
                                                 const Tensor& b, const Tensor& x, const std::array<bool, 2>& mask) {
  std::tuple<Tensor, Tensor> out;
  if (!gx.defined() && !gresiduals.defined()) return out;
  const bool vector = is_vector_solution(a, b);
  const auto column = [vector](const Tensor& t) { return vector ? Tensor(t.unsqueeze(-1)) : t; };
  const Tensor right = column(b), solution = column(x);
  Tensor ga, gb;
  if (gx.defined()) {
    const Tensor g = column(gx), p = pseudoinverse(a);
    if (mask[0]) ga = pinv_backward(times(g, right.mH()), p, a);
    if (mask[1]) gb = times(p.mH(), g);
  }
  if (gresiduals.defined() && gresiduals.numel() > 0) {
    // Of the sum of squares; the solution's own change has no part in it, at its minimum.
    const Tensor scaled =
        at::mul(at::mul(at::sub(times(a, solution), right), rows(gresiduals).to(a.scalar_type())), Scalar(2));
    if (mask[0]) ga = plus(ga, times(scaled, solution.mH()));
    if (mask[1]) gb = plus(gb, negative(scaled));
  }
  if (ga.defined()) std::get<0>(out) = at::sum_to(ga, a.sizes());
  if (gb.defined()) std::get<1>(out) = at::sum_to(vector ? Tensor(gb.squeeze(-1)) : gb, b.sizes());
  return out;
}

Tensor linalg_lstsq_solution_jvp(const Tensor& a, const Tensor& b, const Tensor& da, const Tensor& db) {
  const bool vector = is_vector_solution(a, b);
  const auto column = [vector](const Tensor& t) { return vector ? Tensor(t.unsqueeze(-1)) : t; };
  const Tensor p = pseudoinverse(a);
  const Tensor dx = at::add(times(pinv_jvp(a, p, da), column(b)), times(p, column(db)));
  return vector ? Tensor(dx.squeeze(-1)) : dx;
}

Tensor linalg_lstsq_residuals_jvp(const Tensor& a, const Tensor& b, const Tensor& da, const Tensor& db, const Tensor& x,
                                  const Tensor& residuals) {
  if (residuals.numel() == 0) return at::zeros_like(residuals);
  const bool vector = is_vector_solution(a, b);
  const auto column = [vector](const Tensor& t) { return vector ? Tensor(t.unsqueeze(-1)) : t; };
  const Tensor solution = column(x), miss = at::sub(times(a, solution), column(b));
  const Tensor change = at::sub(times(da, solution), column(db));
  return at::mul(real_of(at::mul(miss.conj(), change)).sum(IntArrayRef(-2)), Scalar(2));
}

// ---- QR
// ------------------------------------------------------------------------------------------------------------------

namespace {

void check_mode(std::string_view mode, const Tensor& q, const Tensor& r, const char* what) {
  TN_CHECK(mode != "r", "linalg_qr_", what,
           ": cannot compute the derivative of linalg.qr when mode='r': it depends on Q, which is not computed. "
           "Please use linalg.qr(A, mode='reduced')");
  TN_CHECK(mode != "complete" || q.size(-2) <= r.size(-1),
           "The QR decomposition is not differentiable when mode='complete' and nrows > ncols");
}
// The upper triangle and its mirror image; the diagonal counts once, by its real part.
Tensor mirrored(const Tensor& x) {
  const Tensor upper = at::triu(x), both = at::add(upper, upper.mH());
  return at::sub(both, at::mul(at::diag_embed(diagonal_of(both)), Scalar(0.5)));
}
// A = Q R with R square.
Tensor square_backward(const Tensor& gq, const Tensor& gr, const Tensor& q, const Tensor& r) {
  Tensor inner;
  if (gr.defined()) inner = times(gr, r.mH());
  if (gq.defined()) inner = plus(inner, negative(times(q.mH(), gq)));
  const Tensor out = plus(gq, times(q, mirrored(inner)));
  // X R^H = out.
  return at::linalg_solve_triangular(r.mH(), out, false, false, false);
}

}  // namespace

Tensor linalg_qr_backward(const Tensor& gq, const Tensor& gr, const Tensor& q, const Tensor& r, std::string_view mode) {
  if (!gq.defined() && !gr.defined()) return {};
  check_mode(mode, q, r, "backward");
  const int64_t m = q.size(-2), n = r.size(-1);
  if (m >= n) return square_backward(gq, gr, q, r);
  // Columns beyond the square ones: R2 = Q^H A2.
  const Tensor r1 = r.narrow(-1, 0, m), r2 = r.narrow(-1, m, n - m);
  if (!gr.defined()) {
    const tn::Tensor both[] = {square_backward(gq, gr, q, r1), at::zeros_like(r2)};
    return at::cat(TensorList(both, 2), -1);
  }
  const Tensor g1 = gr.narrow(-1, 0, m), g2 = gr.narrow(-1, m, n - m);
  const tn::Tensor both[] = {square_backward(plus(gq, times(q, times(r2, g2.mH()))), g1, q, r1), times(q, g2)};
  return at::cat(TensorList(both, 2), -1);
}

std::tuple<Tensor, Tensor> linalg_qr_jvp(const Tensor& da, const Tensor& q, const Tensor& r, std::string_view mode) {
  check_mode(mode, q, r, "jvp");
  const int64_t m = q.size(-2), n = r.size(-1), k = std::min(m, n);
  const Tensor c = solve_upper(r.narrow(-1, 0, k), da.narrow(-1, 0, k), false), x = times(q.mH(), c);
  // Q^H dQ is skew, dR R^-1 is upper with a real diagonal; they sum up to x.
  const Tensor low = at::tril(x, -1);
  Tensor turn = at::sub(low, low.mH());
  if (x.is_complex()) turn = at::add(turn, at::diag_embed(imaginary(at::imag(diagonal_of(x)))));
  if (m < n) return {times(q, turn), at::sub(times(q.mH(), da), times(turn, r))};
  const Tensor upper = at::sub(x, turn);
  return {at::sub(c, times(q, upper)), times(upper, r)};
}

// ---- eigenvalues
// ---------------------------------------------------------------------------------------------------------

namespace {

void check_phase(const Tensor& diagonal, const char* name, const char* what, const char* symbol) {
  if (!diagonal.is_complex() || diagonal.is_meta()) return;
  const Tensor wrong = at::gt(at::abs(at::imag(diagonal)), Scalar(1e-2));
  TN_CHECK(!wrong.any().item().to_bool(), name, ": The ", what,
           " in the complex case are specified up to multiplication by e^{i ", symbol,
           "}. The specified loss function depends on this quantity, so it is ill-defined.");
}

}  // namespace

Tensor linalg_eig_backward(const Tensor& gl, const Tensor& gv, const Tensor& l, const Tensor& v, bool is_hermitian) {
  if (!gl.defined() && !gv.defined()) return {};
  const Tensor vh = v.mH();
  if (!gv.defined()) {
    const Tensor scaled = at::mul(columns(gl), vh);
    return is_hermitian ? times(v, scaled) : Tensor(at::linalg_solve(vh, scaled));
  }
  Tensor inner = times(vh, gv);
  const Tensor diagonal = diagonal_of(inner);
  check_phase(diagonal, is_hermitian ? "linalg_eigh_backward" : "linalg_eig_backward", "eigenvectors", "phi");
  if (!is_hermitian) {
    // Vectors keep length one.
    const Tensor lengths = real_of(diagonal);
    inner = at::sub(inner, at::mul(times(vh, v), rows(lengths)));
  }
  const Tensor apart = differences(l);
  inner = without_diagonal(at::div(inner, apart.is_complex() ? Tensor(apart.conj()) : apart));
  if (gl.defined()) inner = at::add(inner, at::diag_embed(gl));
  const Tensor scaled = times(inner, vh);
  return is_hermitian ? times(v, scaled) : Tensor(at::linalg_solve(vh, scaled));
}

std::tuple<Tensor, Tensor> linalg_eig_jvp(const Tensor& da, const Tensor& l, const Tensor& v, bool is_hermitian) {
  const Tensor moved = times(da.to(v.scalar_type()), v);
  const Tensor inner = is_hermitian ? times(v.mH(), moved) : Tensor(at::linalg_solve(v, moved));
  const Tensor diagonal = diagonal_of(inner);
  const Tensor turn = without_diagonal(at::div(inner, differences(l)));
  if (is_hermitian) return {real_of(diagonal), times(v, turn)};
  const Tensor dv = times(v, turn);
  return {diagonal, at::sub(dv, at::mul(v, rows(at::real(diagonal_of(times(v.mH(), dv))))))};
}

// ---- singular values
// -------------------------------------------------------------------------------------------------------

Tensor svd_backward(const Tensor& gu, const Tensor& gs, const Tensor& gvh, const Tensor& u, const Tensor& s,
                    const Tensor& vh) {
  if (!gu.defined() && !gs.defined() && !gvh.defined()) return {};
  const int64_t m = u.size(-2), n = vh.size(-1), k = s.size(-1);
  if (!gu.defined() && !gvh.defined())
    return m >= n ? times(u, at::mul(columns(gs), vh)) : times(at::mul(u, rows(gs)), vh);
  const Tensor squares = at::mul(s, s), apart = differences(squares);
  Tensor inner, of_u, of_v;
  if (gu.defined()) {
    of_u = skew(times(u.mH(), gu));
    inner = at::mul(at::div(of_u, apart), rows(s));
  }
  if (gvh.defined()) {
    of_v = skew(times(vh, gvh.mH()));
    inner = plus(inner, at::mul(columns(s), at::div(of_v, apart)));
  }
  if (u.is_complex()) {
    // Both factors may turn by one phase, which no loss can depend on.
    check_phase(plus(of_u.defined() ? diagonal_of(of_u) : Tensor(), of_v.defined() ? diagonal_of(of_v) : Tensor()),
                "svd_backward", "singular vectors", "phi");
    inner = without_diagonal(inner);
    if (gu.defined() && gvh.defined())
      inner = at::add(inner, at::diag_embed(at::div(diagonal_of(of_u), at::mul(s, Scalar(2)))));
  }
  if (gs.defined()) inner = at::add(inner, at::diag_embed(gs));
  if (m >= n) {
    Tensor left = times(u, inner);
    if (m > k && gu.defined()) left = at::add(left, at::div(at::sub(gu, times(u, times(u.mH(), gu))), rows(s)));
    return times(left, vh);
  }
  Tensor right = times(inner, vh);
  if (n > k && gvh.defined()) right = at::add(right, at::div(at::sub(gvh, times(times(gvh, vh.mH()), vh)), columns(s)));
  return times(u, right);
}

std::tuple<Tensor, Tensor, Tensor> linalg_svd_jvp(const Tensor& da, const Tensor& full_u, const Tensor& s,
                                                  const Tensor& full_vh, bool full_matrices) {
  const int64_t m = full_u.size(-2), n = full_vh.size(-1), k = s.size(-1);
  const Tensor u = full_matrices ? Tensor(full_u.narrow(-1, 0, k)) : full_u;
  const Tensor vh = full_matrices ? Tensor(full_vh.narrow(-2, 0, k)) : full_vh;
  const Tensor inner = times(times(u.mH(), da), vh.mH());
  const Tensor ds = real_of(diagonal_of(inner)), apart = differences(at::mul(s, s));
  const auto turned = [&](const Tensor& x) { return without_diagonal(at::div(at::add(x, x.mH()), apart)); };
  Tensor du = turned(at::mul(inner, rows(s))), dv = turned(at::mul(columns(s), inner));
  if (inner.is_complex()) {
    const Tensor phase = at::diag_embed(imaginary(at::div(at::imag(diagonal_of(inner)), at::mul(s, Scalar(2)))));
    du = at::add(du, phase);
    dv = at::sub(dv, phase);
  }
  Tensor left = times(u, du), right = times(dv.mH(), vh);
  if (m > k) {
    const Tensor x = times(da, vh.mH());
    left = at::add(left, at::div(at::sub(x, times(u, times(u.mH(), x))), rows(s)));
  }
  if (n > k) {
    const Tensor x = times(u.mH(), da);
    right = at::add(right, at::div(at::sub(x, times(times(x, vh.mH()), vh)), columns(s)));
  }
  if (!full_matrices || (m == k && n == k)) return {left, ds, right};
  // What completes the bases turns against them, and not within itself.
  if (m > k) {
    const Tensor rest = full_u.narrow(-1, k, m - k);
    const tn::Tensor both[] = {left, negative(times(u, times(left.mH(), rest)))};
    left = at::cat(TensorList(both, 2), -1);
  }
  if (n > k) {
    const Tensor rest = full_vh.narrow(-2, k, n - k);
    const tn::Tensor both[] = {right, negative(times(times(rest, right.mH()), vh))};
    right = at::cat(TensorList(both, 2), -2);
  }
  return {left, ds, right};
}

}  // namespace tn::autograd
