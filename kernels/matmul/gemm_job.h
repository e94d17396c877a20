#pragma once

// What gemm() hands to the implementations: one product, or a batch of them, of one dtype.

#include <cstdint>

#include "runtime/dtype.h"
#include "runtime/scalar.h"

namespace tn::gemm {

struct Job {
  int64_t m, n, k;
  const void* a;
  int64_t a_rs, a_cs;
  const void* b;
  int64_t b_rs, b_cs;
  void* c;
  int64_t c_rs, c_cs;
  Scalar alpha, beta;
  const void* bias = nullptr;
  int64_t bias_rs = 0, bias_cs = 1;  // one of them is 0: bias lies along rows of C or, in the transposed job, columns
  int64_t batch = 1;
  int64_t a_bs = 0, b_bs = 0, c_bs = 0;
};

// The job of C^T = B^T A^T.
inline Job transposed(const Job& job) {
  Job t = job;
  t.m = job.n, t.n = job.m;
  t.a = job.b, t.a_rs = job.b_cs, t.a_cs = job.b_rs, t.a_bs = job.b_bs;
  t.b = job.a, t.b_rs = job.a_cs, t.b_cs = job.a_rs, t.b_bs = job.a_bs;
  t.c_rs = job.c_cs, t.c_cs = job.c_rs;
  t.bias_rs = job.bias_cs, t.bias_cs = job.bias_rs;
  return t;
}

// Float, Double, Half and BFloat16 (gemm_float.cpp); the others (gemm_plain.cpp).
void run_float(ScalarType dtype, const Job& job);
void run_plain(ScalarType dtype, const Job& job);

// Memory of the calling thread for packed panels, 64-byte aligned, valid until its next call with the same slot.
void* scratch(int slot, size_t bytes);
inline constexpr int kScratchSlots = 5;

}  // namespace tn::gemm
