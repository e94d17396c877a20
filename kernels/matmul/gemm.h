#pragma once

// Matrix products on raw memory, for callers that have no tensors at hand (convolution, attention, recurrent layers).

#include <cstdint>

#include "runtime/dtype.h"
#include "runtime/scalar.h"

namespace tn::gemm {

// Strides count elements, may be zero or negative, and fit any transposition.
struct Mat {
  const void* data;
  int64_t row_stride;
  int64_t col_stride;
};

struct OutMat {
  void* data;
  int64_t row_stride;
  int64_t col_stride;
};

// True for what the functions below take: the integers up to 64 bits, the floats from 16 bits, complex64 and
// complex128.
bool supports(ScalarType dtype);

// C[m,n] = alpha * A[m,k] B[k,n] + beta * C + bias[n]. C overlaps neither A nor B.
// - beta == 0: C is not read, whatever it holds. k == 0: the product is zero.
// - Half and BFloat16 are summed in float and rounded once, bias included; integers wrap around.
// - bias may be null. It has the dtype, and its elements are adjacent.
// - The bits of C depend on shapes and strides, never on the number of threads.
void gemm(ScalarType dtype, int64_t m, int64_t n, int64_t k, const Mat& a, const Mat& b, const OutMat& c,
          const Scalar& alpha = 1, const Scalar& beta = 0, const void* bias = nullptr);

// The same for each of `batch` matrices; batch strides count elements, and that of A or B may be zero.
void gemm_batched(ScalarType dtype, int64_t batch, int64_t m, int64_t n, int64_t k, const Mat& a,
                  int64_t a_batch_stride, const Mat& b, int64_t b_batch_stride, const OutMat& c, int64_t c_batch_stride,
                  const Scalar& alpha = 1, const Scalar& beta = 0, const void* bias = nullptr);

// y[m] = alpha * A[m,k] x[k] + beta * y.
inline void gemv(ScalarType dtype, int64_t m, int64_t k, const Mat& a, const void* x, int64_t x_stride, void* y,
                 int64_t y_stride, const Scalar& alpha = 1, const Scalar& beta = 0) {
  gemm(dtype, m, 1, k, a, {x, x_stride, 1}, {y, y_stride, 1}, alpha, beta);
}

// *out = sum of x[i] y[i]; complex numbers are not conjugated.
inline void dot(ScalarType dtype, int64_t n, const void* x, int64_t x_stride, const void* y, int64_t y_stride,
                void* out) {
  gemm(dtype, 1, 1, n, {x, 1, x_stride}, {y, y_stride, 1}, {out, 1, 1});
}

}  // namespace tn::gemm
