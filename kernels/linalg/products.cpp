// What the factorisations are made of: products and triangular solves.
#include <algorithm>
#include <cmath>

#include "kernels/linalg/dense.h"
#include "kernels/matmul/gemm.h"

namespace tn::linalg {
namespace {

template <class R>
constexpr ScalarType dtype_of() {
  return std::is_same_v<R, float> ? ScalarType::Float : ScalarType::Double;
}

// y += a * x.
template <class T>
void add_scaled(int64_t n, T a, const T* __restrict x, T* __restrict y) {
  if constexpr (is_complex_v<T>) {
    // Written out: std::complex's product looks for infinities.
    const Real<T> re = a.real(), im = a.imag();
    const Real<T>* xr = reinterpret_cast<const Real<T>*>(x);
    Real<T>* yr = reinterpret_cast<Real<T>*>(y);
    for (int64_t i = 0; i < n; ++i) {
      yr[2 * i] += re * xr[2 * i] - im * xr[2 * i + 1];
      yr[2 * i + 1] += re * xr[2 * i + 1] + im * xr[2 * i];
    }
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
  }
}

template <class T>
T read(Mat<T> a, Op op, int64_t i, int64_t j) {
  return op == Op::None ? a(i, j) : op == Op::Transpose ? a(j, i) : conjugate(a(j, i));
}

template <class T>
void small_product(Mat<T> c, T alpha, Mat<T> a, Op op_a, Mat<T> b, Op op_b, int64_t k, T beta) {
  for (int64_t j = 0; j < c.n; ++j) {
    T* y = c.col(j);
    if (beta == T(0)) std::fill(y, y + c.m, T(0));
    else if (beta != T(1))
      for (int64_t i = 0; i < c.m; ++i) y[i] *= beta;
    for (int64_t l = 0; l < k; ++l) {
      const T factor = alpha * read(b, op_b, l, j);
      if (op_a == Op::None) {
        add_scaled(c.m, factor, a.col(l), y);
      } else {
        for (int64_t i = 0; i < c.m; ++i) y[i] += factor * read(a, op_a, i, l);
      }
    }
  }
}

// One part of an operand as a real matrix, transposed if the operand is.
template <class T>
gemm::Mat part(Mat<T> a, Op op, int which) {
  constexpr int64_t kStep = is_complex_v<T> ? 2 : 1;
  const Real<T>* p = reinterpret_cast<const Real<T>*>(a.p) + which;
  if (op == Op::None) return {p, kStep, kStep * a.ld};
  return {p, kStep * a.ld, kStep};
}

template <class T>
void solve_small(Mat<T> a, bool upper, Op op, bool unit, Mat<T> b) {
  const int64_t n = a.m;
  // op(A) of a lower triangle is upper and the other way round.
  const bool backward = upper == (op == Op::None);
  for (int64_t j = 0; j < b.n; ++j) {
    T* x = b.col(j);
    for (int64_t s = 0; s < n; ++s) {
      const int64_t i = backward ? n - 1 - s : s;
      if (op == Op::None) {
        if (!unit) x[i] /= a(i, i);
        const T v = x[i];
        if (backward) add_scaled(i, -v, a.col(i), x);
        else add_scaled(n - 1 - i, -v, a.col(i) + i + 1, x + i + 1);
      } else {
        T sum = x[i];
        const int64_t from = backward ? i + 1 : 0, to = backward ? n : i;
        for (int64_t l = from; l < to; ++l) sum -= (op == Op::Adjoint ? conjugate(a(l, i)) : a(l, i)) * x[l];
        x[i] = unit ? sum : sum / (op == Op::Adjoint ? conjugate(a(i, i)) : a(i, i));
      }
    }
  }
}

// X op(A) = B by rows of B, which are solved as columns of their transpose.
template <class T>
void solve_small_right(Mat<T> a, bool upper, Op op, bool unit, Mat<T> b) {
  const int64_t n = a.m;
  const bool forward = upper == (op == Op::None);  // column 0 of op(A) has one element if op(A) is upper
  for (int64_t s = 0; s < n; ++s) {
    const int64_t j = forward ? s : n - 1 - s;
    const int64_t from = forward ? 0 : j + 1, to = forward ? j : n;
    for (int64_t l = from; l < to; ++l) add_scaled(b.m, -read(a, op, l, j), b.col(l), b.col(j));
    if (unit) continue;
    const T d = read(a, op, j, j);
    T* x = b.col(j);
    for (int64_t i = 0; i < b.m; ++i) x[i] /= d;
  }
}

constexpr int64_t kLeaf = 32;

}  // namespace

template <class T>
void product(Mat<T> c, T alpha, Mat<T> a, Op op_a, Mat<T> b, Op op_b, T beta) {
  const int64_t k = op_a == Op::None ? a.n : a.m;
  if (c.m == 0 || c.n == 0) return;
  if (k == 0 || c.m * c.n * k < 4096) {
    small_product(c, alpha, a, op_a, b, op_b, k, beta);
    return;
  }
  constexpr ScalarType kReal = dtype_of<Real<T>>();
  if constexpr (is_complex_v<T>) {
    // Four real products of the parts where they lie: the real kernels are the fast ones, and an adjoint is a sign.
    const Real<T> f = alpha.real(), sign_a = op_a == Op::Adjoint ? -1 : 1, sign_b = op_b == Op::Adjoint ? -1 : 1;
    const gemm::Mat ar = part(a, op_a, 0), ai = part(a, op_a, 1), br = part(b, op_b, 0), bi = part(b, op_b, 1);
    Real<T>* re = reinterpret_cast<Real<T>*>(c.p);
    const gemm::OutMat cr{re, 2, 2 * c.ld}, ci{re + 1, 2, 2 * c.ld};
    gemm::gemm(kReal, c.m, c.n, k, ar, br, cr, f, beta.real());
    gemm::gemm(kReal, c.m, c.n, k, ai, bi, cr, -f * sign_a * sign_b, 1);
    gemm::gemm(kReal, c.m, c.n, k, ar, bi, ci, f * sign_b, beta.real());
    gemm::gemm(kReal, c.m, c.n, k, ai, br, ci, f * sign_a, 1);
  } else {
    gemm::gemm(kReal, c.m, c.n, k, part(a, op_a, 0), part(b, op_b, 0), {c.p, 1, c.ld}, alpha, beta);
  }
}

template <class T>
void solve_triangular(Mat<T> a, bool upper, Op op, bool unit, bool left, Mat<T> b) {
  const int64_t n = a.m;
  if (b.m == 0 || b.n == 0) return;
  if (n <= kLeaf) {
    if (left) solve_small(a, upper, op, unit, b);
    else solve_small_right(a, upper, op, unit, b);
    return;
  }
  // Halves: one is solved, its part leaves the other, which is solved then.
  const int64_t h = (n / 2 + kLeaf - 1) / kLeaf * kLeaf < n ? (n / 2 + kLeaf - 1) / kLeaf * kLeaf : n / 2;
  const Mat<T> first = a.block(0, 0, h, h), second = a.block(h, h, n - h, n - h);
  const Mat<T> off = upper ? a.block(0, h, h, n - h) : a.block(h, 0, n - h, h);
  const bool op_upper = upper == (op == Op::None);
  if (left) {
    const Mat<T> top = b.block(0, 0, h, b.n), bottom = b.block(h, 0, n - h, b.n);
    if (op_upper) {
      solve_triangular(second, upper, op, unit, left, bottom);
      product(top, T(-1), off, op, bottom, Op::None, T(1));
      solve_triangular(first, upper, op, unit, left, top);
    } else {
      solve_triangular(first, upper, op, unit, left, top);
      product(bottom, T(-1), off, op, top, Op::None, T(1));
      solve_triangular(second, upper, op, unit, left, bottom);
    }
  } else {
    const Mat<T> front = b.block(0, 0, b.m, h), back = b.block(0, h, b.m, n - h);
    if (op_upper) {
      solve_triangular(first, upper, op, unit, left, front);
      product(back, T(-1), front, Op::None, off, op, T(1));
      solve_triangular(second, upper, op, unit, left, back);
    } else {
      solve_triangular(second, upper, op, unit, left, back);
      product(front, T(-1), back, Op::None, off, op, T(1));
      solve_triangular(first, upper, op, unit, left, front);
    }
  }
}

template <class T>
void copy(Mat<T> to, Mat<T> from) {
  for (int64_t j = 0; j < from.n; ++j) std::copy(from.col(j), from.col(j) + from.m, to.col(j));
}

template <class T>
void copy_adjoint(Mat<T> to, Mat<T> from) {
  constexpr int64_t kTile = 16;
  for (int64_t jj = 0; jj < from.n; jj += kTile)
    for (int64_t ii = 0; ii < from.m; ii += kTile)
      for (int64_t j = jj; j < std::min(jj + kTile, from.n); ++j)
        for (int64_t i = ii; i < std::min(ii + kTile, from.m); ++i) to(j, i) = conjugate(from(i, j));
}

template <class T>
void keep_triangle(Mat<T> a, bool upper) {
  for (int64_t j = 0; j < a.n; ++j) {
    T* x = a.col(j);
    if (upper) std::fill(x + std::min(j + 1, a.m), x + a.m, T(0));
    else std::fill(x, x + std::min(j, a.m), T(0));
  }
}

template <class T>
void set_identity(Mat<T> a) {
  for (int64_t j = 0; j < a.n; ++j) {
    std::fill(a.col(j), a.col(j) + a.m, T(0));
    if (j < a.m) a(j, j) = T(1);
  }
}

template <class T>
bool all_finite(Mat<T> a) {
  for (int64_t j = 0; j < a.n; ++j) {
    const Real<T>* x = reinterpret_cast<const Real<T>*>(a.col(j));
    const int64_t n = a.m * (is_complex_v<T> ? 2 : 1);
    Real<T> sum = 0;  // stays zero unless something times zero is NaN
    for (int64_t i = 0; i < n; ++i) sum += x[i] * Real<T>(0);
    if (!(sum == Real<T>(0))) return false;
  }
  return true;
}

#define TN_INSTANTIATE(T)                                               \
  template void product(Mat<T>, T, Mat<T>, Op, Mat<T>, Op, T);          \
  template void solve_triangular(Mat<T>, bool, Op, bool, bool, Mat<T>); \
  template void copy(Mat<T>, Mat<T>);                                   \
  template void copy_adjoint(Mat<T>, Mat<T>);                           \
  template void keep_triangle(Mat<T>, bool);                            \
  template void set_identity(Mat<T>);                                   \
  template bool all_finite(Mat<T>);
TN_FOR_EACH_ELEMENT(TN_INSTANTIATE)
#undef TN_INSTANTIATE

}  // namespace tn::linalg
