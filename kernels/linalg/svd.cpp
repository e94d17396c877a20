// Singular values: Householder reflections to a bidiagonal matrix, then Golub and Kahan's implicitly shifted QR steps.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/linalg/dense.h"

namespace tn::linalg {
namespace {

// (x, y) = (c x + s y, c y - s x).
template <class R>
void rotate(R* __restrict x, R* __restrict y, int64_t n, R c, R s) {
  for (int64_t i = 0; i < n; ++i) {
    const R a = x[i], b = y[i];
    x[i] = c * a + s * b;
    y[i] = c * b - s * a;
  }
}
template <class T>
void rotate_columns(Mat<T> a, int64_t i, int64_t j, Real<T> c, Real<T> s) {
  if (a.p == nullptr) return;
  rotate(reinterpret_cast<Real<T>*>(a.col(i)), reinterpret_cast<Real<T>*>(a.col(j)), a.m * (is_complex_v<T> ? 2 : 1), c,
         s);
}

template <class R>
struct Rotation {
  R c, s, r;
};
// c f + s g = r and c g - s f = 0.
template <class R>
Rotation<R> rotation(R f, R g) {
  if (g == 0) return {1, 0, f};
  if (f == 0) return {0, 1, g};
  const R r = std::hypot(f, g);
  return {f / r, g / r, r};
}

template <class T>
struct Bidiagonal {
  using R = Real<T>;
  R* d;
  R* e;  // e[i] stands between d[i] and d[i + 1]
  int64_t n;
  Mat<T> u, v;  // whose columns turn along; p may be null

  // Row i has nothing on the diagonal: its e[i] moves to the right until it is gone.
  void clear_row(int64_t i, int64_t hi) {
    R f = e[i];
    e[i] = 0;
    for (int64_t k = i + 1; k <= hi && f != 0; ++k) {
      const auto g = rotation(d[k], f);
      d[k] = g.r;
      if (k < hi) {
        f = -g.s * e[k];
        e[k] = g.c * e[k];
      }
      rotate_columns(u, k, i, g.c, g.s);
    }
  }
  // The last column has nothing on the diagonal: its element moves up.
  void clear_column(int64_t lo, int64_t hi) {
    R f = e[hi - 1];
    e[hi - 1] = 0;
    for (int64_t k = hi - 1; k >= lo && f != 0; --k) {
      const auto g = rotation(d[k], f);
      d[k] = g.r;
      if (k > lo) {
        f = -g.s * e[k - 1];
        e[k - 1] = g.c * e[k - 1];
      }
      rotate_columns(v, k, hi, g.c, g.s);
    }
  }
  // Wilkinson's shift of the last two by two of B^T B.
  R shift(int64_t lo, int64_t hi) const {
    const R before = hi - 1 > lo ? e[hi - 2] : R(0);
    const R a = d[hi - 1] * d[hi - 1] + before * before, b = d[hi - 1] * e[hi - 1];
    const R c = d[hi] * d[hi] + e[hi - 1] * e[hi - 1];
    const R half = (a - c) / 2;
    if (b == 0) return c;
    return c - b * b / (half + std::copysign(std::hypot(half, b), half));
  }
  void step(int64_t lo, int64_t hi) {
    R y = d[lo] - shift(lo, hi) / d[lo], z = e[lo];
    for (int64_t k = lo; k < hi; ++k) {
      const auto right = rotation(y, z);
      if (k > lo) e[k - 1] = right.r;
      const R dk = d[k], ek = e[k];
      y = right.c * dk + right.s * ek;
      e[k] = right.c * ek - right.s * dk;
      z = right.s * d[k + 1];
      d[k + 1] *= right.c;
      rotate_columns(v, k, k + 1, right.c, right.s);
      const auto left = rotation(y, z);
      d[k] = left.r;
      const R e_k = e[k], next = d[k + 1];
      y = left.c * e_k + left.s * next;
      d[k + 1] = left.c * next - left.s * e_k;
      e[k] = y;
      if (k < hi - 1) {
        z = left.s * e[k + 1];
        e[k + 1] *= left.c;
      }
      rotate_columns(u, k, k + 1, left.c, left.s);
    }
  }

  int32_t run() {
    constexpr R kEps = std::numeric_limits<R>::epsilon() / 2;
    R size = 0;
    for (int64_t i = 0; i < n; ++i) size = std::max({size, std::abs(d[i]), i + 1 < n ? std::abs(e[i]) : R(0)});
    if (size == 0) return 0;
    // One scale keeps squares away from overflow.
    for (int64_t i = 0; i < n; ++i) d[i] /= size;
    for (int64_t i = 0; i + 1 < n; ++i) e[i] /= size;
    constexpr R kNothing = std::numeric_limits<R>::min() / std::numeric_limits<R>::epsilon();
    int64_t left = 60 * n + 100;
    for (int64_t hi = n - 1; hi > 0;) {
      for (int64_t i = 0; i < hi; ++i)
        if (std::abs(e[i]) <= kEps * (std::abs(d[i]) + std::abs(d[i + 1])) || std::abs(e[i]) <= kNothing) e[i] = 0;
      if (e[hi - 1] == 0) {
        --hi;
        continue;
      }
      int64_t lo = hi - 1;
      while (lo > 0 && e[lo - 1] != 0) --lo;
      if (--left < 0) return static_cast<int32_t>(hi);
      bool cleared = false;
      for (int64_t i = lo; i < hi && !cleared; ++i) {
        if (std::abs(d[i]) > kEps * kEps) continue;
        d[i] = 0;
        clear_row(i, hi);
        cleared = true;
      }
      if (cleared) continue;
      if (std::abs(d[hi]) <= kEps * kEps) {
        d[hi] = 0;
        clear_column(lo, hi);
        continue;
      }
      step(lo, hi);
    }
    for (int64_t i = 0; i < n; ++i) d[i] *= size;
    return 0;
  }
};

// A = Q B P^H, m >= n: Q's reflectors below the diagonal of A, P's in the columns of `right`, from row k + 1.
template <class T>
void bidiagonalise(Mat<T> a, Mat<T> right, T* tau_left, T* tau_right, Real<T>* d, Real<T>* e) {
  const int64_t m = a.m, n = a.n;
  std::vector<T> sums(static_cast<size_t>(m));
  for (int64_t k = 0; k < n; ++k) {
    tau_left[k] = make_reflector(&a(k, k), m - k);
    d[k] = real_part(a(k, k));
    const T factor = conjugate(tau_left[k]);
    const T* v = &a(k, k);
    if (factor != T(0)) {
      for (int64_t j = k + 1; j < n; ++j) {
        T* x = &a(k, j);
        T sum = x[0];
        for (int64_t i = 1; i < m - k; ++i) sum += conjugate(v[i]) * x[i];
        sum *= factor;
        x[0] -= sum;
        for (int64_t i = 1; i < m - k; ++i) x[i] -= v[i] * sum;
      }
    }
    if (k + 1 >= n) break;
    T* w = &right(k + 1, k);
    const int64_t count = n - k - 1;
    for (int64_t j = 0; j < count; ++j) w[j] = conjugate(a(k, k + 1 + j));
    tau_right[k] = make_reflector(w, count);
    e[k] = real_part(w[0]);
    const T tau = tau_right[k];
    if (tau == T(0)) continue;
    w[0] = T(1);
    const int64_t rows = m - k - 1;
    std::fill(sums.begin(), sums.begin() + rows, T(0));
    for (int64_t j = 0; j < count; ++j) {
      const T* x = &a(k + 1, k + 1 + j);
      const T f = w[j];
      for (int64_t i = 0; i < rows; ++i) sums[static_cast<size_t>(i)] += x[i] * f;
    }
    for (int64_t j = 0; j < count; ++j) {
      T* x = &a(k + 1, k + 1 + j);
      const T f = tau * conjugate(w[j]);
      for (int64_t i = 0; i < rows; ++i) x[i] -= sums[static_cast<size_t>(i)] * f;
    }
  }
}

template <class T>
void sort_down(Real<T>* s, int64_t k, Mat<T> u, Mat<T> v) {
  std::vector<int64_t> order(static_cast<size_t>(k));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return s[i] > s[j]; });
  std::vector<Real<T>> values(s, s + k);
  for (int64_t i = 0; i < k; ++i) s[i] = values[static_cast<size_t>(order[static_cast<size_t>(i)])];
  for (const Mat<T>& a : {u, v}) {
    if (a.p == nullptr) continue;
    std::vector<T> old(static_cast<size_t>(a.m * k));
    copy(Mat<T>(old.data(), a.m, k), a.block(0, 0, a.m, k));
    for (int64_t i = 0; i < k; ++i) {
      const T* from = old.data() + order[static_cast<size_t>(i)] * a.m;
      std::copy(from, from + a.m, a.col(i));
    }
  }
}

// m >= n. u has m x n or m x m elements, v (not its adjoint) n x n.
template <class T>
int32_t tall(Mat<T> a, Mat<T> u, Real<T>* s, Mat<T> v) {
  const int64_t m = a.m, n = a.n;
  const bool vectors = u.p != nullptr;
  std::vector<T> tau(static_cast<size_t>(n)), triangle;
  Mat<T> core = a;
  // A tall matrix goes through its triangle.
  const bool through_r = m >= n + n / 2 + 8;
  if (through_r) {
    qr(a, tau.data());
    triangle.resize(static_cast<size_t>(n * n));
    core = Mat<T>(triangle.data(), n, n);
    copy(core, a.block(0, 0, n, n));
    keep_triangle(core, true);
  }
  std::vector<T> right(static_cast<size_t>(n * n)), tau_left(static_cast<size_t>(n)), tau_right(static_cast<size_t>(n));
  std::vector<Real<T>> e(static_cast<size_t>(n));
  const Mat<T> p(right.data(), n, n);
  bidiagonalise(core, p, tau_left.data(), tau_right.data(), s, e.data());
  Mat<T> left = u;
  if (vectors) {
    if (through_r) left = u.block(0, 0, n, n);
    if (through_r) set_identity(u);
    form_q(core, tau_left.data(), n, left);
    set_identity(v);
    if (n > 1)
      apply_q(p.block(1, 0, n - 1, n - 1), tau_right.data(), n - 1, true, Op::None, v.block(1, 1, n - 1, n - 1));
  }
  Bidiagonal<T> b{s, e.data(), n, left.p ? left.block(0, 0, left.m, n) : left, v};
  const int32_t info = b.run();
  for (int64_t i = 0; i < n; ++i) {
    if (!(s[i] < 0)) continue;
    s[i] = -s[i];
    if (!vectors) continue;
    for (int64_t l = 0; l < n; ++l) v(l, i) = -v(l, i);
  }
  sort_down(s, n, left, v);
  if (vectors && through_r) apply_q(a, tau.data(), n, true, Op::None, u);
  return info;
}

}  // namespace

template <class T>
int32_t svd(Mat<T> a, Mat<T> u, Real<T>* s, Mat<T> vh) {
  const int64_t m = a.m, n = a.n;
  if (std::min(m, n) == 0) {
    if (u.p != nullptr) set_identity(u);
    if (vh.p != nullptr) set_identity(vh);
    return 0;
  }
  if (!all_finite(a)) return kNotFinite;
  const bool vectors = u.p != nullptr;
  if (m >= n) {
    std::vector<T> space(static_cast<size_t>(vectors ? n * n : 0));
    const Mat<T> v(vectors ? space.data() : nullptr, n, n);
    const int32_t info = tall(a, u, s, v);
    if (vectors) copy_adjoint(vh, v);
    return info;
  }
  // A^H = V S U^H.
  std::vector<T> turned(static_cast<size_t>(m * n)), space(static_cast<size_t>(vectors ? n * vh.m : 0));
  const Mat<T> h(turned.data(), n, m), v(vectors ? space.data() : nullptr, n, vh.m);
  copy_adjoint(h, a);
  const int32_t info = tall(h, v, s, u);
  if (vectors) copy_adjoint(vh, v);
  return info;
}

#define TN_INSTANTIATE(T) template int32_t svd(Mat<T>, Mat<T>, Real<T>*, Mat<T>);
TN_FOR_EACH_ELEMENT(TN_INSTANTIATE)
#undef TN_INSTANTIATE

}  // namespace tn::linalg
