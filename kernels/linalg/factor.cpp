// Cholesky, LU and Bunch-Kaufman.
#include <algorithm>
#include <cmath>

#include "kernels/linalg/dense.h"

namespace tn::linalg {
namespace {

constexpr int64_t kLeaf = 16;

// What LAPACK compares when it looks for a pivot.
template <class T>
Real<T> size_of(T v) {
  if constexpr (is_complex_v<T>) return std::abs(v.real()) + std::abs(v.imag());
  else return std::abs(v);
}

template <class T>
int32_t cholesky_leaf(Mat<T> a) {
  for (int64_t j = 0; j < a.n; ++j) {
    const Real<T> d = real_part(a(j, j));
    if (!(d > 0)) return static_cast<int32_t>(j + 1);  // NaN too
    const Real<T> root = std::sqrt(d);
    a(j, j) = root;
    for (int64_t i = j + 1; i < a.n; ++i) a(i, j) /= root;
    for (int64_t k = j + 1; k < a.n; ++k) {
      const T factor = conjugate(a(k, j));
      for (int64_t i = k; i < a.n; ++i) a(i, k) -= a(i, j) * factor;
    }
  }
  return 0;
}

template <class T>
int32_t lu_leaf(Mat<T> a, int32_t* pivots) {
  int32_t info = 0;
  const int64_t k = std::min(a.m, a.n);
  for (int64_t j = 0; j < k; ++j) {
    int64_t best = j;
    Real<T> most = size_of(a(j, j));
    for (int64_t i = j + 1; i < a.m; ++i) {
      const Real<T> v = size_of(a(i, j));
      if (v > most) {
        most = v;
        best = i;
      }
    }
    pivots[j] = static_cast<int32_t>(best + 1);
    if (a(best, j) == T(0)) {
      if (info == 0) info = static_cast<int32_t>(j + 1);
      continue;
    }
    if (best != j)
      for (int64_t l = 0; l < a.n; ++l) std::swap(a(j, l), a(best, l));
    const T pivot = a(j, j);
    for (int64_t i = j + 1; i < a.m; ++i) a(i, j) /= pivot;
    for (int64_t l = j + 1; l < a.n; ++l) {
      const T factor = a(j, l);
      T* y = a.col(l);
      const T* x = a.col(j);
      for (int64_t i = j + 1; i < a.m; ++i) y[i] -= x[i] * factor;
    }
  }
  return info;
}

template <class T>
void swap_rows(Mat<T> b, int64_t i, int64_t j) {
  if (i == j) return;
  for (int64_t l = 0; l < b.n; ++l) std::swap(b(i, l), b(j, l));
}

template <class T>
T flip(T v, bool hermitian) {
  return hermitian ? conjugate(v) : v;
}

// Exchanges rows and columns kk and kp of what is left of a triangle.
template <class T>
void exchange(Mat<T> a, int64_t kk, int64_t kp, bool hermitian) {
  for (int64_t i = kp + 1; i < a.n; ++i) std::swap(a(i, kk), a(i, kp));
  for (int64_t j = kk + 1; j < kp; ++j) {
    const T t = flip(a(j, kk), hermitian);
    a(j, kk) = flip(a(kp, j), hermitian);
    a(kp, j) = t;
  }
  if (hermitian) a(kp, kk) = conjugate(a(kp, kk));
  std::swap(a(kk, kk), a(kp, kp));
}

template <class T>
void eliminate_one(Mat<T> a, int64_t k, bool hermitian) {
  const T d = hermitian ? T(1 / real_part(a(k, k))) : T(1) / a(k, k);
  for (int64_t j = k + 1; j < a.n; ++j) {
    const T factor = d * flip(a(j, k), hermitian);
    for (int64_t i = j; i < a.n; ++i) a(i, j) -= a(i, k) * factor;
    if (hermitian) a(j, j) = real_part(a(j, j));
  }
  for (int64_t i = k + 1; i < a.n; ++i) a(i, k) *= d;
}

template <class T>
void eliminate_two(Mat<T> a, int64_t k, bool hermitian) {
  T d21 = a(k + 1, k), d11, d22, scale, across;
  if (hermitian) {
    const Real<T> d = std::abs(d21);
    d11 = real_part(a(k + 1, k + 1)) / d;
    d22 = real_part(a(k, k)) / d;
    across = d21 / d;
    scale = T(1) / (d11 * d22 - T(1)) / d;
  } else {
    d11 = a(k + 1, k + 1) / d21;
    d22 = a(k, k) / d21;
    across = T(1);
    scale = T(1) / (d11 * d22 - T(1)) / d21;
  }
  for (int64_t j = k + 2; j < a.n; ++j) {
    const T w0 = scale * (d11 * a(j, k) - across * a(j, k + 1));
    const T w1 = scale * (d22 * a(j, k + 1) - flip(across, hermitian) * a(j, k));
    const T f0 = flip(w0, hermitian), f1 = flip(w1, hermitian);
    for (int64_t i = j; i < a.n; ++i) a(i, j) -= a(i, k) * f0 + a(i, k + 1) * f1;
    a(j, k) = w0;
    a(j, k + 1) = w1;
    if (hermitian) a(j, j) = real_part(a(j, j));
  }
}

// The pivot's size and place by Bunch and Kaufman's rule.
template <class T>
int choose(Mat<T> a, int64_t k, bool hermitian, Real<T> diagonal, int64_t most, Real<T> column, int64_t* kp) {
  static const Real<T> kAlpha = (1 + std::sqrt(Real<T>(17))) / 8;
  *kp = k;
  if (diagonal >= kAlpha * column) return 1;
  Real<T> row = 0;
  for (int64_t j = k; j < most; ++j) row = std::max(row, size_of(a(most, j)));
  for (int64_t i = most + 1; i < a.n; ++i) row = std::max(row, size_of(a(i, most)));
  if (diagonal >= kAlpha * column * (column / row)) return 1;
  *kp = most;
  const Real<T> other = hermitian ? std::abs(real_part(a(most, most))) : size_of(a(most, most));
  return other >= kAlpha * row ? 1 : 2;
}

}  // namespace

template <class T>
int32_t cholesky(Mat<T> a) {
  const int64_t n = a.n;
  if (n <= kLeaf) return cholesky_leaf(a);
  const int64_t h = n / 2;
  const Mat<T> top = a.block(0, 0, h, h), side = a.block(h, 0, n - h, h), rest = a.block(h, h, n - h, n - h);
  if (const int32_t info = cholesky(top)) return info;
  solve_triangular(top, false, Op::Adjoint, false, false, side);
  constexpr int64_t kStripe = 128;  // of the lower triangle alone
  for (int64_t j = 0; j < rest.n; j += kStripe) {
    const int64_t w = std::min(kStripe, rest.n - j);
    product(rest.block(j, j, rest.n - j, w), T(-1), side.block(j, 0, rest.n - j, h), Op::None, side.block(j, 0, w, h),
            Op::Adjoint, T(1));
  }
  const int32_t info = cholesky(rest);
  return info == 0 ? 0 : static_cast<int32_t>(info + h);
}

template <class T>
int32_t lu(Mat<T> a, int32_t* pivots) {
  const int64_t k = std::min(a.m, a.n);
  if (k <= kLeaf && a.n <= 2 * kLeaf) return lu_leaf(a, pivots);
  const int64_t h = k <= kLeaf ? k : k / 2;
  const Mat<T> left = a.block(0, 0, a.m, h), right = a.block(0, h, a.m, a.n - h);
  int32_t info = lu(left, pivots);
  exchange_rows(right, pivots, h, false);
  const Mat<T> top = right.block(0, 0, h, right.n), rest = right.block(h, 0, a.m - h, right.n);
  solve_triangular(left.block(0, 0, h, h), false, Op::None, true, true, top);
  if (k == h) {
    product(rest, T(-1), left.block(h, 0, a.m - h, h), Op::None, top, Op::None, T(1));
    return info;
  }
  product(rest, T(-1), left.block(h, 0, a.m - h, h), Op::None, top, Op::None, T(1));
  const int32_t second = lu(rest, pivots + h);
  if (info == 0 && second != 0) info = static_cast<int32_t>(second + h);
  exchange_rows(left.block(h, 0, a.m - h, h), pivots + h, k - h, false);
  for (int64_t i = h; i < k; ++i) pivots[i] += static_cast<int32_t>(h);
  return info;
}

template <class T>
void exchange_rows(Mat<T> b, const int32_t* pivots, int64_t count, bool reverse) {
  for (int64_t j = 0; j < b.n; ++j) {
    T* x = b.col(j);
    for (int64_t s = 0; s < count; ++s) {
      const int64_t i = reverse ? count - 1 - s : s;
      std::swap(x[i], x[pivots[i] - 1]);
    }
  }
}

template <class T>
void lu_solve(Mat<T> lu, const int32_t* pivots, Op op, Mat<T> b) {
  if (op == Op::None) {
    exchange_rows(b, pivots, lu.n, false);
    solve_triangular(lu, false, op, true, true, b);
    solve_triangular(lu, true, op, false, true, b);
  } else {
    solve_triangular(lu, true, op, false, true, b);
    solve_triangular(lu, false, op, true, true, b);
    exchange_rows(b, pivots, lu.n, true);
  }
}

template <class T>
int32_t ldl(Mat<T> a, int32_t* pivots, bool hermitian) {
  hermitian = hermitian && is_complex_v<T>;
  int32_t info = 0;
  for (int64_t k = 0; k < a.n;) {
    const Real<T> diagonal = hermitian ? std::abs(real_part(a(k, k))) : size_of(a(k, k));
    int64_t most = k, kp = k;
    Real<T> column = 0;
    for (int64_t i = k + 1; i < a.n; ++i) {
      const Real<T> v = size_of(a(i, k));
      if (v > column) {
        column = v;
        most = i;
      }
    }
    int step = 1;
    if (std::max(diagonal, column) == 0 || std::isnan(diagonal)) {
      if (info == 0) info = static_cast<int32_t>(k + 1);
      if (hermitian) a(k, k) = real_part(a(k, k));
      pivots[k] = static_cast<int32_t>(k + 1);
      ++k;
      continue;
    }
    step = choose(a, k, hermitian, diagonal, most, column, &kp);
    const int64_t kk = k + step - 1;
    if (kp != kk) {
      exchange(a, kk, kp, hermitian);
      if (step == 2) std::swap(a(k + 1, k), a(kp, k));
    }
    if (hermitian) {
      a(k, k) = real_part(a(k, k));
      a(kk, kk) = real_part(a(kk, kk));
    }
    if (step == 1) {
      eliminate_one(a, k, hermitian);
      pivots[k] = static_cast<int32_t>(kp + 1);
    } else {
      if (k + 2 < a.n) eliminate_two(a, k, hermitian);
      pivots[k] = pivots[k + 1] = -static_cast<int32_t>(kp + 1);
    }
    k += step;
  }
  return info;
}

template <class T>
void ldl_solve(Mat<T> ld, const int32_t* pivots, bool hermitian, Mat<T> b) {
  hermitian = hermitian && is_complex_v<T>;
  const int64_t n = ld.n;
  const auto subtract = [&](int64_t k, int64_t from) {
    product(b.block(from, 0, n - from, b.n), T(-1), ld.block(from, k, n - from, 1), Op::None, b.block(k, 0, 1, b.n),
            Op::None, T(1));
  };
  const auto gather = [&](int64_t k, int64_t from) {
    product(b.block(k, 0, 1, b.n), T(-1), ld.block(from, k, n - from, 1), hermitian ? Op::Adjoint : Op::Transpose,
            b.block(from, 0, n - from, b.n), Op::None, T(1));
  };
  for (int64_t k = 0; k < n;) {
    if (pivots[k] > 0) {
      swap_rows(b, k, pivots[k] - 1);
      subtract(k, k + 1);
      const T d = hermitian ? T(real_part(ld(k, k))) : ld(k, k);
      for (int64_t j = 0; j < b.n; ++j) b(k, j) /= d;
      k += 1;
    } else {
      swap_rows(b, k + 1, -pivots[k] - 1);
      subtract(k, k + 2);
      subtract(k + 1, k + 2);
      const T low = ld(k + 1, k), high = flip(low, hermitian);
      const T first = ld(k, k) / high, second = ld(k + 1, k + 1) / low, whole = first * second - T(1);
      for (int64_t j = 0; j < b.n; ++j) {
        const T x = b(k, j) / high, y = b(k + 1, j) / low;
        b(k, j) = (second * x - y) / whole;
        b(k + 1, j) = (first * y - x) / whole;
      }
      k += 2;
    }
  }
  for (int64_t k = n - 1; k >= 0;) {
    if (pivots[k] > 0) {
      gather(k, k + 1);
      swap_rows(b, k, pivots[k] - 1);
      k -= 1;
    } else {
      gather(k, k + 1);
      gather(k - 1, k + 1);
      swap_rows(b, k, -pivots[k] - 1);
      k -= 2;
    }
  }
}

#define TN_INSTANTIATE(T)                                             \
  template int32_t cholesky(Mat<T>);                                  \
  template int32_t lu(Mat<T>, int32_t*);                              \
  template void exchange_rows(Mat<T>, const int32_t*, int64_t, bool); \
  template void lu_solve(Mat<T>, const int32_t*, Op, Mat<T>);         \
  template int32_t ldl(Mat<T>, int32_t*, bool);                       \
  template void ldl_solve(Mat<T>, const int32_t*, bool, Mat<T>);
TN_FOR_EACH_ELEMENT(TN_INSTANTIATE)
#undef TN_INSTANTIATE

}  // namespace tn::linalg
