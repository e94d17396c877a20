// One matrix of a job with its types, and what all ways of multiplying share.

#if defined(TN_KERNELS_MATMUL_GEMM_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TN_KERNELS_MATMUL_GEMM_PRODUCT_INL_H_
#undef TN_KERNELS_MATMUL_GEMM_PRODUCT_INL_H_
#else
#define TN_KERNELS_MATMUL_GEMM_PRODUCT_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "kernels/matmul/gemm_job.h"
#include "kernels/matmul/gemm_micro-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using gemm::Job;

// S in memory, T in the sums.
template <class T, class S>
struct Product {
  int64_t m, n, k;
  const S* a;
  int64_t a_rs, a_cs;
  const S* b;
  int64_t b_rs, b_cs;
  S* c;
  int64_t c_rs, c_cs;
  Epilogue<T, S> epilogue;
};

template <class T, class S>
Product<T, S> MakeProduct(const Job& job, int64_t batch) {
  return {job.m,
          job.n,
          job.k,
          static_cast<const S*>(job.a) + batch * job.a_bs,
          job.a_rs,
          job.a_cs,
          static_cast<const S*>(job.b) + batch * job.b_bs,
          job.b_rs,
          job.b_cs,
          static_cast<S*>(job.c) + batch * job.c_bs,
          job.c_rs,
          job.c_cs,
          {job.alpha.to<T>(), job.beta.to<T>(), static_cast<const S*>(job.bias), job.bias_rs, job.bias_cs}};
}

constexpr int64_t CeilDiv(int64_t x, int64_t y) { return (x + y - 1) / y; }

enum Slot { kSlotB, kSlotA, kSlotSums, kSlotRows, kSlotPartials };

template <class T>
T* Scratch(Slot slot, int64_t count) {
  return static_cast<T*>(gemm::scratch(slot, static_cast<size_t>(count) * sizeof(T)));
}

// Columns of B packed at a time.
inline constexpr int64_t kBlockCols = 512;

// Rows far apart by a large power of two share few sets of the cache: reading 14 of them in turn evicts them at once.
inline bool Crowded(int64_t stride_bytes) { return stride_bytes % 1024 == 0; }

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // TN_KERNELS_MATMUL_GEMM_PRODUCT_INL_H_
