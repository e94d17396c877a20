// Few rows against a matrix whose columns are contiguous (F.linear of few tokens): dot products along k, B read once
// and never packed.

#if defined(TN_KERNELS_MATMUL_GEMM_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TN_KERNELS_MATMUL_GEMM_DOT_INL_H_
#undef TN_KERNELS_MATMUL_GEMM_DOT_INL_H_
#else
#define TN_KERNELS_MATMUL_GEMM_DOT_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "kernels/common/hwy-compat-inl.h"
#include "kernels/matmul/gemm_micro-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_AVX2
inline constexpr int kMaxDotRows = 2;
#else
inline constexpr int kMaxDotRows = 6;
#endif

// out[i * out_stride + j] = sum over p of a[i * a_stride + p] * b[j * b_stride + p]. Each element has one vector of
// sums, so its bits don't depend on the tile that it falls in.
template <class T, class S, int kRows, int kCols>
void DotTile(int64_t k, const T* a, int64_t a_stride, const S* b, int64_t b_stride, T* out, int64_t out_stride) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int64_t kN = kLanes<T>;
  V sums[kRows][kCols];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kCols; ++j) sums[i][j] = hn::Zero(d);
  }
  int64_t p = 0;
  for (; p + kN <= k; p += kN) {
    V right[kCols];
#pragma GCC unroll 8
    for (int j = 0; j < kCols; ++j) right[j] = LoadAs(d, b + j * b_stride + p);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const V left = hn::LoadU(d, a + i * a_stride + p);
#pragma GCC unroll 8
      for (int j = 0; j < kCols; ++j) sums[i][j] = hn::MulAdd(left, right[j], sums[i][j]);
    }
  }
  if (p < k) {
    const auto left_over = static_cast<size_t>(k - p);
    V right[kCols];
#pragma GCC unroll 8
    for (int j = 0; j < kCols; ++j) right[j] = LoadAsUpTo(d, b + j * b_stride + p, left_over);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const V left = LoadUpTo(d, a + i * a_stride + p, left_over);
#pragma GCC unroll 8
      for (int j = 0; j < kCols; ++j) sums[i][j] = hn::MulAdd(left, right[j], sums[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kCols; ++j) out[i * out_stride + j] = SumLanes(d, sums[i][j]);
  }
}

// One long dot product, in four sums so that the adder's latency doesn't bound it.
template <class T>
T LongDot(int64_t k, const T* a, const T* b) {
  const hn::ScalableTag<T> d;
  constexpr int64_t kN = kLanes<T>;
  auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  int64_t p = 0;
  for (; p + 4 * kN <= k; p += 4 * kN) {
    s0 = hn::MulAdd(hn::LoadU(d, a + p), hn::LoadU(d, b + p), s0);
    s1 = hn::MulAdd(hn::LoadU(d, a + p + kN), hn::LoadU(d, b + p + kN), s1);
    s2 = hn::MulAdd(hn::LoadU(d, a + p + 2 * kN), hn::LoadU(d, b + p + 2 * kN), s2);
    s3 = hn::MulAdd(hn::LoadU(d, a + p + 3 * kN), hn::LoadU(d, b + p + 3 * kN), s3);
  }
  for (; p < k; p += kN) {
    const auto left = static_cast<size_t>(k - p < kN ? k - p : kN);
    s0 = hn::MulAdd(LoadUpTo(d, a + p, left), LoadUpTo(d, b + p, left), s0);
  }
  return SumLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
}

// rows x cols of dot products. One row takes eight columns at a time, which share its loads; or, to stream B from
// memory, one after another, since the hardware's prefetchers then see a single run of addresses.
template <class T, class S>
void DotBlock(int64_t rows, int64_t cols, int64_t k, const T* a, int64_t a_stride, const S* b, int64_t b_stride, T* out,
              int64_t out_stride, bool stream) {
  using Kernel = void (*)(int64_t, const T*, int64_t, const S*, int64_t, T*, int64_t);
  constexpr auto kTables = []<size_t... i>(std::index_sequence<i...>) {
    return std::array<std::array<Kernel, kMaxDotRows>, 2>{
        {{DotTile<T, S, static_cast<int>(i + 1), 1>...}, {DotTile<T, S, static_cast<int>(i + 1), 4>...}}};
  }(std::make_index_sequence<kMaxDotRows>());
  const int64_t panels = (rows + kMaxDotRows - 1) / kMaxDotRows;
  for (int64_t j = 0; j < cols;) {
    const int64_t wide = stream ? 1 : cols - j >= 8 && rows == 1 ? 8 : cols - j >= 4 ? 4 : 1;
    for (int64_t i = 0, panel = 0; i < rows; ++panel) {
      const int64_t take = (rows - i + panels - panel - 1) / (panels - panel);
      const Kernel kernel = wide == 8 ? DotTile<T, S, 1, 8> : kTables[wide == 4][static_cast<size_t>(take - 1)];
      kernel(k, a + i * a_stride, a_stride, b + j * b_stride, b_stride, out + i * out_stride + j, out_stride);
      i += take;
    }
    j += wide;
  }
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // TN_KERNELS_MATMUL_GEMM_DOT_INL_H_
