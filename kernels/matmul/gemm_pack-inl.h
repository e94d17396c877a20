// Packing: a panel of A or B as [k][width] in the type of the sums, so that the kernels read one stream.

#if defined(TN_KERNELS_MATMUL_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TN_KERNELS_MATMUL_GEMM_PACK_INL_H_
#undef TN_KERNELS_MATMUL_GEMM_PACK_INL_H_
#else
#define TN_KERNELS_MATMUL_GEMM_PACK_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "kernels/common/hwy-compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T, class S>
HWY_INLINE T Widen(S x) {
  if constexpr (std::is_same_v<S, T>) {
    return x;
  } else {
    return to_float(x);
  }
}

#if HWY_TARGET != HWY_SCALAR
// to[p * width + i] = from[i * stride + p] for 4 (float) or 2 (double) rows i and as many p.
template <class S>
HWY_INLINE void TransposeBlock(const S* from, int64_t stride, float* to, int64_t width) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> d2;
  const auto r0 = LoadAs(d, from), r1 = LoadAs(d, from + stride);
  const auto r2 = LoadAs(d, from + 2 * stride), r3 = LoadAs(d, from + 3 * stride);
  const auto low01 = hn::BitCast(d2, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(d2, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(d2, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(d2, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, low01, low23)), d, to + width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, high01, high23)), d, to + 2 * width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, high01, high23)), d, to + 3 * width);
}
HWY_INLINE void TransposeBlock(const double* from, int64_t stride, double* to, int64_t width) {
  const hn::FixedTag<double, 2> d;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + stride);
  hn::StoreU(hn::InterleaveLower(d, r0, r1), d, to);
  hn::StoreU(hn::InterleaveUpper(d, r0, r1), d, to + width);
}
#endif

// to[p * width + i] = from[i * i_stride + p * p_stride] for i < count, 0 for count <= i < width.
template <class T, class S>
void Pack(const S* HWY_RESTRICT from, int64_t i_stride, int64_t p_stride, int64_t count, int64_t k, T* HWY_RESTRICT to,
          int64_t width) {
  if (count < width) {
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t i = count; i < width; ++i) to[p * width + i] = T{0};
    }
  }
  if (i_stride == 1 && count > 1) {
    const hn::ScalableTag<T> d;
    constexpr int64_t kN = hn::MaxLanes(d);
    for (int64_t p = 0; p < k; ++p) {
      const S* row = from + p * p_stride;
      T* out = to + p * width;
      int64_t i = 0;
      for (; i + kN <= count; i += kN) hn::StoreU(LoadAs(d, row + i), d, out + i);
      if (i < count) {
        const auto left = static_cast<size_t>(count - i);
        StoreUpTo(LoadAsUpTo(d, row + i, left), d, out + i, left);
      }
    }
    return;
  }
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr int64_t kSide = 16 / sizeof(T);
  if (p_stride == 1) {
    for (; i + kSide <= count; i += kSide) {
      int64_t p = 0;
      for (; p + kSide <= k; p += kSide) TransposeBlock(from + i * i_stride + p, i_stride, to + p * width + i, width);
      for (; p < k; ++p) {
        for (int64_t q = i; q < i + kSide; ++q) to[p * width + q] = Widen<T>(from[q * i_stride + p]);
      }
    }
  }
#endif
  for (; i < count; ++i) {
    const S* row = from + i * i_stride;
    for (int64_t p = 0; p < k; ++p) to[p * width + i] = Widen<T>(row[p * p_stride]);
  }
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // TN_KERNELS_MATMUL_GEMM_PACK_INL_H_
