// What the operators of matrix products share: errors in upstream's words, and operands for gemm.
#pragma once
#include <string>

#include "kernels/matmul/gemm.h"
#include "runtime/error.h"
#include "runtime/tensor.h"

namespace tn::matmul {

// True for what run_product takes: gemm's dtypes, and float8, which is summed in float.
bool has_product(ScalarType t);
// NotImplementedError `"<kernel>" not implemented for 'Bool'` for a dtype that upstream doesn't multiply either.
void check_product_dtype(ScalarType t, const char* kernel);

inline gemm::Mat mat(const Tensor& t, int64_t row_dim = 0) {
  return {t->raw_data(), t->stride(row_dim), t->stride(row_dim + 1)};
}
inline gemm::OutMat out_mat(const Tensor& t, int64_t row_dim = 0) {
  return {t->raw_data(), t->stride(row_dim), t->stride(row_dim + 1)};
}

// out = beta * out + alpha * a b (+ bias): matrices, or batches of them if all have three dimensions. All have one
// dtype. `out` may share memory with a or b.
void run_product(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
                 const void* bias = nullptr);

// out = beta * out for a product over nothing; the numbers' kinds as upstream's mul checks them.
void scale_empty_product(const Tensor& out, const Tensor& self, const Scalar& beta);

// A view of self with the sizes, by upstream's broadcast rules and messages.
Tensor expanded(const Tensor& self, IntView sizes);

inline bool is_zero(const Scalar& s) { return s.to_complex() == std::complex<double>(0, 0); }
inline bool is_one(const Scalar& s) { return s.to_complex() == std::complex<double>(1, 0); }

}  // namespace tn::matmul
