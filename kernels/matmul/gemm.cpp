#include "kernels/matmul/gemm.h"

#include <cstdlib>
#include <new>

#include "kernels/matmul/gemm_job.h"
#include "runtime/error.h"
#include "runtime/refuse.h"

namespace tn::gemm {
namespace {

// Grows and never shrinks: bounded by the largest block of gemm_float.cpp.
struct Scratch {
  void* data[kScratchSlots] = {};
  size_t bytes[kScratchSlots] = {};
  ~Scratch() {
    for (void* p : data) std::free(p);
  }
};

constinit thread_local Scratch t_scratch;

bool is_vector_float(ScalarType dtype) {
  return dtype == ScalarType::Float || dtype == ScalarType::Double || dtype == ScalarType::Half ||
         dtype == ScalarType::BFloat16;
}

}  // namespace

void* scratch(int slot, size_t bytes) {
  Scratch& own = t_scratch;
  if (own.bytes[slot] >= bytes) return own.data[slot];
  std::free(own.data[slot]);
  own.bytes[slot] = 0;
  const size_t rounded = (bytes + 4095) / 4096 * 4096;
  own.data[slot] = std::aligned_alloc(64, rounded);
  if (own.data[slot] == nullptr) throw std::bad_alloc();
  own.bytes[slot] = rounded;
  return own.data[slot];
}

bool supports(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Byte:
    case ScalarType::Char:
    case ScalarType::Short:
    case ScalarType::Int:
    case ScalarType::Long:
    case ScalarType::ComplexFloat:
    case ScalarType::ComplexDouble: return true;
    default: return is_vector_float(dtype);
  }
}

void gemm_batched(ScalarType dtype, int64_t batch, int64_t m, int64_t n, int64_t k, const Mat& a,
                  int64_t a_batch_stride, const Mat& b, int64_t b_batch_stride, const OutMat& c, int64_t c_batch_stride,
                  const Scalar& alpha, const Scalar& beta, const void* bias) {
  if (!supports(dtype)) refuse("gemm", str("dtype ", dtype_name(dtype)), "no kernel for this dtype");
  if (batch <= 0 || m <= 0 || n <= 0) return;
  const Job job = {.m = m,
                   .n = n,
                   .k = k,
                   .a = a.data,
                   .a_rs = a.row_stride,
                   .a_cs = a.col_stride,
                   .b = b.data,
                   .b_rs = b.row_stride,
                   .b_cs = b.col_stride,
                   .c = c.data,
                   .c_rs = c.row_stride,
                   .c_cs = c.col_stride,
                   .alpha = alpha,
                   .beta = beta,
                   .bias = bias,
                   .batch = batch,
                   .a_bs = a_batch_stride,
                   .b_bs = b_batch_stride,
                   .c_bs = c_batch_stride};
  if (is_vector_float(dtype)) {
    run_float(dtype, job);
  } else {
    run_plain(dtype, job);
  }
}

void gemm(ScalarType dtype, int64_t m, int64_t n, int64_t k, const Mat& a, const Mat& b, const OutMat& c,
          const Scalar& alpha, const Scalar& beta, const void* bias) {
  gemm_batched(dtype, 1, m, n, k, a, 0, b, 0, c, 0, alpha, beta, bias);
}

}  // namespace tn::gemm
