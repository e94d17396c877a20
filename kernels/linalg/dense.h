// Factorisations of one matrix in memory, column by column as LAPACK lays them out and with its conventions: pivots
// count from one, R's and tau's signs are geqrf's, eigenvalues ascend, singular values descend. Products of any size
// worth it go through kernels/matmul/gemm.h. T is float, double or a complex of one of them.
#pragma once
#include <complex>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace tn::linalg {

template <class T>
struct RealOf {
  using type = T;
};
template <class R>
struct RealOf<std::complex<R>> {
  using type = R;
};
template <class T>
using Real = typename RealOf<T>::type;
template <class T>
inline constexpr bool is_complex_v = !std::is_same_v<T, Real<T>>;

template <class T>
T conjugate(T v) {
  if constexpr (is_complex_v<T>) return std::conj(v);
  else return v;
}
template <class T>
Real<T> real_part(T v) {
  if constexpr (is_complex_v<T>) return v.real();
  else return v;
}
template <class T>
Real<T> square(T v) {
  if constexpr (is_complex_v<T>) return v.real() * v.real() + v.imag() * v.imag();
  else return v * v;
}

// A borrowed matrix: column j starts at p + j * ld.
template <class T>
struct Mat {
  T* p;
  int64_t m, n, ld;

  Mat(T* data, int64_t rows, int64_t cols, int64_t stride) : p(data), m(rows), n(cols), ld(stride) {}
  Mat(T* data, int64_t rows, int64_t cols) : Mat(data, rows, cols, rows) {}
  T& operator()(int64_t i, int64_t j) const { return p[i + j * ld]; }
  T* col(int64_t j) const { return p + j * ld; }
  Mat block(int64_t i, int64_t j, int64_t rows, int64_t cols) const { return {p + i + j * ld, rows, cols, ld}; }
};

enum class Op : uint8_t { None, Transpose, Adjoint };

// ---- products.cpp ----

// C = alpha * op(A) op(B) + beta * C for real alpha and beta; C overlaps neither.
template <class T>
void product(Mat<T> c, T alpha, Mat<T> a, Op op_a, Mat<T> b, Op op_b, T beta);
// B = op(A)^-1 B, or B op(A)^-1 if !left. Reads only the triangle of A; `unit`: its diagonal counts as ones.
template <class T>
void solve_triangular(Mat<T> a, bool upper, Op op, bool unit, bool left, Mat<T> b);
template <class T>
void copy(Mat<T> to, Mat<T> from);
// to = from^H.
template <class T>
void copy_adjoint(Mat<T> to, Mat<T> from);
// Zeros outside the triangle; the diagonal stays.
template <class T>
void keep_triangle(Mat<T> a, bool upper);
template <class T>
void set_identity(Mat<T> a);
template <class T>
bool all_finite(Mat<T> a);

// ---- factor.cpp ----

// A = L L^H from A's lower triangle, in place. Zero, or the order of the leading minor that is not positive-definite.
template <class T>
int32_t cholesky(Mat<T> a);
// A = P L U in place, with min(m, n) pivots. Zero, or one more than the place of the first zero on U's diagonal.
template <class T>
int32_t lu(Mat<T> a, int32_t* pivots);
// Applies the row exchanges in order, or in reverse.
template <class T>
void exchange_rows(Mat<T> b, const int32_t* pivots, int64_t count, bool reverse);
// Solves op(A) X = B in place with lu's result.
template <class T>
void lu_solve(Mat<T> lu, const int32_t* pivots, Op op, Mat<T> b);
// Bunch-Kaufman's A = L D L^T (or L^H) from the lower triangle, in place, with sytrf's pivots.
template <class T>
int32_t ldl(Mat<T> a, int32_t* pivots, bool hermitian);
template <class T>
void ldl_solve(Mat<T> ld, const int32_t* pivots, bool hermitian, Mat<T> b);

// ---- reflect.cpp ----

// A = Q R in place: R above, the reflectors' vectors below; min(m, n) factors in tau.
template <class T>
void qr(Mat<T> a, T* tau);
// The reflector that maps x (n elements) to (beta, 0, ...): x becomes beta and the vector's tail; returns tau.
template <class T>
T make_reflector(T* x, int64_t n, int64_t step = 1);
// C = op(Q) C, or C op(Q) if !left, for the k reflectors in the columns of v. Op::Transpose is of real Q alone.
template <class T>
void apply_q(Mat<T> v, const T* tau, int64_t k, bool left, Op op, Mat<T> c);
// The first q.n columns of Q, whose reflectors are in v.
template <class T>
void form_q(Mat<T> v, const T* tau, int64_t k, Mat<T> q);

// ---- svd.cpp ----

inline constexpr int32_t kNotFinite = -4;  // as LAPACK's gesdd reports it
// A = U diag(s) Vh; A is overwritten. U has m x m or m x k, Vh n x n or k x n elements; neither is read if their p is
// null.
template <class T>
int32_t svd(Mat<T> a, Mat<T> u, Real<T>* s, Mat<T> vh);

// ---- eigen_*.cpp, through Eigen ----

// Eigenvalues of the lower triangle; A becomes the eigenvectors if asked. Zero, or a code that it didn't converge.
template <class T>
int32_t eigh(Mat<T> a, bool vectors, Real<T>* values);
// Of a general matrix; vectors may be null.
template <class T>
int32_t eig(Mat<T> a, std::complex<Real<T>>* values, std::complex<Real<T>>* vectors);

// ---- exponential.cpp ----

// A becomes its exponential.
template <class T>
void exponential(Mat<T> a);

#define TN_FOR_EACH_ELEMENT(X) X(float) X(double) X(std::complex<float>) X(std::complex<double>)

}  // namespace tn::linalg
