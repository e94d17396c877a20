// Integer and complex products: loops that the compiler can vectorise, blocked so that a row of C stays in cache.

#include <algorithm>
#include <complex>
#include <type_traits>

#include "kernels/matmul/gemm_job.h"
#include "runtime/threads.h"

namespace tn::gemm {
namespace {

constexpr int64_t kCols = 256;  // of C at a time

// Products of std::complex by the textbook formula: operator* would repair NaN, which BLAS doesn't.
template <class T>
std::complex<T> times(std::complex<T> x, std::complex<T> y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}

// Wraps around, also where C++ leaves signed overflow undefined.
template <class T>
T times(T x, T y) {
  using U = std::conditional_t<(sizeof(T) < sizeof(unsigned)), unsigned, std::make_unsigned_t<T>>;
  return static_cast<T>(static_cast<U>(x) * static_cast<U>(y));
}

template <class T>
std::complex<T> plus(std::complex<T> x, std::complex<T> y) {
  return x + y;
}

template <class T>
T plus(T x, T y) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<U>(x) + static_cast<U>(y));
}

// Row i of C, columns [j0, j0 + cols).
template <class T>
void row_block(const Job& job, int64_t batch, int64_t i, int64_t j0, int64_t cols) {
  const T* a = static_cast<const T*>(job.a) + batch * job.a_bs + i * job.a_rs;
  const T* b = static_cast<const T*>(job.b) + batch * job.b_bs + j0 * job.b_cs;
  T* c = static_cast<T*>(job.c) + batch * job.c_bs + i * job.c_rs + j0 * job.c_cs;
  T sums[kCols] = {};
  if (job.b_cs == 1) {
    for (int64_t p = 0; p < job.k; ++p) {
      const T x = a[p * job.a_cs];
      const T* row = b + p * job.b_rs;
      for (int64_t j = 0; j < cols; ++j) sums[j] = plus(sums[j], times(x, row[j]));
    }
  } else {
    for (int64_t j = 0; j < cols; ++j) {
      const T* column = b + j * job.b_cs;
      T sum{};
      for (int64_t p = 0; p < job.k; ++p) sum = plus(sum, times(a[p * job.a_cs], column[p * job.b_rs]));
      sums[j] = sum;
    }
  }
  const T alpha = job.alpha.to<T>(), beta = job.beta.to<T>();
  const T* bias = static_cast<const T*>(job.bias);
  for (int64_t j = 0; j < cols; ++j) {
    T value = times(alpha, sums[j]);
    if (beta != T{}) value = plus(value, times(beta, c[j * job.c_cs]));
    if (bias != nullptr) value = plus(value, bias[j0 + j]);
    c[j * job.c_cs] = value;
  }
}

template <class T>
void run(const Job& job) {
  const int64_t blocks = (job.n + kCols - 1) / kCols;
  const int64_t work = std::max<int64_t>(1, job.k * std::min(job.n, kCols));
  parallel_for(0, job.batch * job.m * blocks, std::max<int64_t>(1, (int64_t{1} << 17) / work),
               [&](int64_t from, int64_t to) {
                 for (int64_t index = from; index < to; ++index) {
                   const int64_t j0 = index % blocks * kCols, row = index / blocks;
                   row_block<T>(job, row / job.m, row % job.m, j0, std::min(kCols, job.n - j0));
                 }
               });
}

}  // namespace

void run_plain(ScalarType dtype, const Job& job) {
  switch (dtype) {
    case ScalarType::Byte: return run<uint8_t>(job);
    case ScalarType::Char: return run<int8_t>(job);
    case ScalarType::Short: return run<int16_t>(job);
    case ScalarType::Int: return run<int32_t>(job);
    case ScalarType::Long: return run<int64_t>(job);
    case ScalarType::ComplexFloat: return run<std::complex<float>>(job);
    case ScalarType::ComplexDouble: return run<std::complex<double>>(job);
    default: return;  // gemm_batched has refused it
  }
}

}  // namespace tn::gemm
