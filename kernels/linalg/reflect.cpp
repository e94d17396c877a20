// Householder reflections: QR, and products with Q. Blocks of reflectors are I - V T V^H, so that products do the work.
#include <algorithm>
#include <cmath>

#include "kernels/linalg/dense.h"

namespace tn::linalg {
namespace {

constexpr int64_t kBlock = 32;

template <class T>
Real<T> norm(const T* x, int64_t n, int64_t step) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T v = x[i * step];
    if constexpr (is_complex_v<T>) {
      sum += static_cast<double>(v.real()) * v.real() + static_cast<double>(v.imag()) * v.imag();
    } else {
      sum += static_cast<double>(v) * v;
    }
  }
  if (std::isfinite(sum) && sum > 1e-290) return static_cast<Real<T>>(std::sqrt(sum));
  double most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::max(most, static_cast<double>(std::abs(x[i * step])));
  if (most == 0 || !std::isfinite(most)) return static_cast<Real<T>>(std::sqrt(sum));
  sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double v = std::abs(x[i * step]) / most;
    sum += v * v;
  }
  return static_cast<Real<T>>(most * std::sqrt(sum));
}

// C -= tau' v (v^H C) with v(0) = 1; `work` has c.n elements.
template <class T>
void reflect(Mat<T> c, const T* v, T tau) {
  if (tau == T(0)) return;
  for (int64_t j = 0; j < c.n; ++j) {
    T* x = c.col(j);
    T sum = x[0];
    for (int64_t i = 1; i < c.m; ++i) sum += conjugate(v[i]) * x[i];
    sum *= tau;
    x[0] -= sum;
    for (int64_t i = 1; i < c.m; ++i) x[i] -= v[i] * sum;
  }
}

template <class T>
void qr_panel(Mat<T> a, T* tau) {
  for (int64_t k = 0; k < std::min(a.m, a.n); ++k) {
    tau[k] = make_reflector(&a(k, k), a.m - k);
    reflect(a.block(k, k + 1, a.m - k, a.n - k - 1), &a(k, k), conjugate(tau[k]));
  }
}

// Reflectors k, k + 1, ... as V with its ones and zeros, and T.
template <class T>
struct Block {
  std::vector<T> v_space, t_space;
  Mat<T> v, t;

  Block(Mat<T> from, const T* tau, int64_t w)
      : v_space(static_cast<size_t>(from.m * w)),
        t_space(static_cast<size_t>(w * w)),
        v(v_space.data(), from.m, w),
        t(t_space.data(), w, w) {
    for (int64_t j = 0; j < w; ++j) {
      std::copy(from.col(j) + j + 1, from.col(j) + from.m, v.col(j) + j + 1);
      v(j, j) = T(1);
    }
    std::vector<T> inner(static_cast<size_t>(w * w));
    const Mat<T> g(inner.data(), w, w);
    product(g, T(1), v, Op::Adjoint, v, Op::None, T(0));
    for (int64_t j = 0; j < w; ++j) {
      t(j, j) = tau[j];
      for (int64_t i = 0; i < j; ++i) {
        T sum = 0;
        for (int64_t l = i; l < j; ++l) sum += t(i, l) * g(l, j);
        t(i, j) = -tau[j] * sum;
      }
    }
  }

  // C = (I - V op(T) V^H) C, or C (I - V op(T) V^H).
  void apply(Mat<T> c, bool left, Op op) const {
    if (c.m == 0 || c.n == 0) return;
    const int64_t w = v.n, other = left ? c.n : c.m;
    std::vector<T> space(static_cast<size_t>(2 * w * other));
    if (left) {
      const Mat<T> x(space.data(), w, other), y(space.data() + w * other, w, other);
      product(x, T(1), v, Op::Adjoint, c, Op::None, T(0));
      product(y, T(1), t, op, x, Op::None, T(0));
      product(c, T(-1), v, Op::None, y, Op::None, T(1));
    } else {
      const Mat<T> x(space.data(), other, w), y(space.data() + w * other, other, w);
      product(x, T(1), c, Op::None, v, Op::None, T(0));
      product(y, T(1), x, Op::None, t, op, T(0));
      product(c, T(-1), y, Op::None, v, Op::Adjoint, T(1));
    }
  }
};

}  // namespace

template <class T>
T make_reflector(T* x, int64_t n, int64_t step) {
  const T alpha = x[0];
  const Real<T> tail = norm(x + step, n - 1, step);
  const Real<T> re = real_part(alpha);
  Real<T> im = 0;
  if constexpr (is_complex_v<T>) im = alpha.imag();
  if (tail == 0 && im == 0) return T(0);
  const Real<T> beta = -std::copysign(std::hypot(std::hypot(re, im), tail), re);
  const T scale = T(1) / (alpha - beta);
  for (int64_t i = 1; i < n; ++i) x[i * step] *= scale;
  x[0] = beta;
  if constexpr (is_complex_v<T>) return T((beta - re) / beta, -im / beta);
  else return (beta - re) / beta;
}

template <class T>
void qr(Mat<T> a, T* tau) {
  const int64_t k = std::min(a.m, a.n);
  if (a.n <= kBlock) {
    qr_panel(a, tau);
    return;
  }
  for (int64_t j = 0; j < k; j += kBlock) {
    const int64_t w = std::min(kBlock, k - j);
    const Mat<T> panel = a.block(j, j, a.m - j, w);
    qr_panel(panel, tau + j);
    const Mat<T> rest = a.block(j, j + w, a.m - j, a.n - j - w);
    if (rest.n > 0) Block<T>(panel, tau + j, w).apply(rest, true, Op::Adjoint);
  }
}

template <class T>
void apply_q(Mat<T> v, const T* tau, int64_t k, bool left, Op op, Mat<T> c) {
  if (k == 0 || c.m == 0 || c.n == 0) return;
  const bool forward = left == (op != Op::None);
  const int64_t count = (k + kBlock - 1) / kBlock;
  for (int64_t s = 0; s < count; ++s) {
    const int64_t j = (forward ? s : count - 1 - s) * kBlock, w = std::min(kBlock, k - j);
    const Block<T> block(v.block(j, j, v.m - j, w), tau + j, w);
    block.apply(left ? c.block(j, 0, c.m - j, c.n) : c.block(0, j, c.m, c.n - j), left,
                op == Op::None ? Op::None : Op::Adjoint);
  }
}

template <class T>
void form_q(Mat<T> v, const T* tau, int64_t k, Mat<T> q) {
  set_identity(q);
  apply_q(v, tau, k, true, Op::None, q);
}

#define TN_INSTANTIATE(T)                                             \
  template T make_reflector(T*, int64_t, int64_t);                    \
  template void qr(Mat<T>, T*);                                       \
  template void apply_q(Mat<T>, const T*, int64_t, bool, Op, Mat<T>); \
  template void form_q(Mat<T>, const T*, int64_t, Mat<T>);
TN_FOR_EACH_ELEMENT(TN_INSTANTIATE)
#undef TN_INSTANTIATE

}  // namespace tn::linalg
