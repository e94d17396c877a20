// Eigenvalues through Eigen. Each dtype has a file of its own: a second of them costs as much again.
#pragma once
#include <cmath>
#include <complex>

#include <Eigen/Eigenvalues>

#include "kernels/linalg/dense.h"

namespace tn::linalg {

template <class T>
int32_t eigh(Mat<T> a, bool vectors, Real<T>* values) {
  using M = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
  const Eigen::Map<M> in(a.p, a.n, a.n);
  // Without the full tridiagonal form there is no count of what didn't converge; LAPACK's code is at most n - 1.
  const Eigen::SelfAdjointEigenSolver<M> solver(in, vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (solver.info() != Eigen::Success) return static_cast<int32_t>(a.n > 1 ? a.n - 1 : 1);
  std::copy(solver.eigenvalues().data(), solver.eigenvalues().data() + a.n, values);
  if (vectors) Eigen::Map<M>(a.p, a.n, a.n) = solver.eigenvectors();
  return 0;
}

template <class T>
int32_t eig(Mat<T> a, std::complex<Real<T>>* values, std::complex<Real<T>>* vectors) {
  using M = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
  using C = std::complex<Real<T>>;
  using Solver = std::conditional_t<is_complex_v<T>, Eigen::ComplexEigenSolver<M>, Eigen::EigenSolver<M>>;
  const Eigen::Map<M> in(a.p, a.n, a.n);
  const Solver solver(in, vectors != nullptr);
  if (solver.info() != Eigen::Success) return static_cast<int32_t>(a.n);
  std::copy(solver.eigenvalues().data(), solver.eigenvalues().data() + a.n, values);
  if (vectors == nullptr) return 0;
  Eigen::Map<Eigen::Matrix<C, Eigen::Dynamic, Eigen::Dynamic>>(vectors, a.n, a.n) = solver.eigenvectors();
  // As LAPACK's geev: length one, and the largest component is real.
  for (int64_t j = 0; j < a.n; ++j) {
    C* x = vectors + j * a.n;
    if constexpr (!is_complex_v<T>) {
      if (values[j].imag() == 0) continue;
    }
    int64_t most = 0;
    for (int64_t i = 1; i < a.n; ++i)
      if (std::norm(x[i]) > std::norm(x[most])) most = i;
    const Real<T> size = std::abs(x[most]);
    if (!(size > 0)) continue;
    const C turn = std::conj(x[most]) / size;
    for (int64_t i = 0; i < a.n; ++i) x[i] *= turn;
    x[most] = x[most].real();
  }
  return 0;
}

}  // namespace tn::linalg
