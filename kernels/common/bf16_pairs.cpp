#include "kernels/common/bf16_pairs.h"

#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#define TN_BF16_PAIRS __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma,bmi2")))
#endif

namespace tn::bf16_pairs {

#if defined(__x86_64__)
namespace {

constinit std::atomic<int> g_state{0};  // 0: not asked yet, 1: there, 2: not there

template <int kRows, int kVecs, bool kByRows>
TN_BF16_PAIRS void tile(int64_t pairs, const void* a, int64_t a_stride, const uint32_t* b, int64_t b_stride, float* c,
                        int64_t c_stride, bool add) {
  const char* left = static_cast<const char*>(a);
  const int64_t row_bytes = kByRows ? a_stride * 2 : 4, step_bytes = kByRows ? 4 : a_stride * 4;
  __m512 sums[kRows][kVecs];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) sums[i][j] = _mm512_setzero_ps();
  }
  for (int64_t p = 0; p < pairs; ++p) {
    __m512bh right[kVecs];
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) right[j] = (__m512bh)_mm512_loadu_si512(b + j * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      int32_t pair;
      std::memcpy(&pair, left + (kByRows ? i * row_bytes : i * 4), 4);
      const auto broadcast = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 4
      for (int j = 0; j < kVecs; ++j) sums[i][j] = _mm512_dpbf16_ps(sums[i][j], broadcast, right[j]);
    }
    left += step_bytes;
    b += b_stride;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) {
      float* to = c + i * c_stride + j * kLanes;
      _mm512_storeu_ps(to, add ? _mm512_add_ps(_mm512_loadu_ps(to), sums[i][j]) : sums[i][j]);
    }
  }
}

// Not _mm512_reduce_add_ps: g++ 12 warns of an uninitialised value inside it. Zero-masking avoids the same in extracts.
TN_BF16_PAIRS inline float sum(__m512 v) {
  const __m256 half = _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xFF, v, 0), _mm512_maskz_extractf32x8_ps(0xFF, v, 1));
  const __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  const __m128 pair = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
  return _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps(pair, pair, 1)));
}

template <int kRows, int kCols>
TN_BF16_PAIRS void dot_tile(int64_t k, const BFloat16* a, int64_t a_stride, const BFloat16* b, int64_t b_stride,
                            float* c, int64_t c_stride) {
  __m512 sums[kRows][kCols];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kCols; ++j) sums[i][j] = _mm512_setzero_ps();
  }
  int64_t p = 0;
  for (; p + 2 * kLanes <= k; p += 2 * kLanes) {
    __m512bh right[kCols];
#pragma GCC unroll 8
    for (int j = 0; j < kCols; ++j) right[j] = (__m512bh)_mm512_loadu_si512(b + j * b_stride + p);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const auto left = (__m512bh)_mm512_loadu_si512(a + i * a_stride + p);
#pragma GCC unroll 8
      for (int j = 0; j < kCols; ++j) sums[i][j] = _mm512_dpbf16_ps(sums[i][j], left, right[j]);
    }
  }
  if (p < k) {
    const auto mask = static_cast<__mmask32>((uint32_t{1} << (k - p)) - 1);
    __m512bh right[kCols];
#pragma GCC unroll 8
    for (int j = 0; j < kCols; ++j) right[j] = (__m512bh)_mm512_maskz_loadu_epi16(mask, b + j * b_stride + p);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const auto left = (__m512bh)_mm512_maskz_loadu_epi16(mask, a + i * a_stride + p);
#pragma GCC unroll 8
      for (int j = 0; j < kCols; ++j) sums[i][j] = _mm512_dpbf16_ps(sums[i][j], left, right[j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kCols; ++j) c[i * c_stride + j] = sum(sums[i][j]);
  }
}

template <bool kByRows, size_t... i>
constexpr std::array<Kernel, 2 * kMaxRows> narrow(std::index_sequence<i...>) {
  return {tile<static_cast<int>(i / 2 + 1), static_cast<int>(i % 2 + 1), kByRows>...};
}
template <bool kByRows, size_t... i>
constexpr std::array<Kernel, kMaxWideRows> wide(std::index_sequence<i...>) {
  return {tile<static_cast<int>(i + 1), 4, kByRows>...};
}
using DotKernel = void (*)(int64_t, const BFloat16*, int64_t, const BFloat16*, int64_t, float*, int64_t);
template <int kCols, size_t... i>
constexpr std::array<DotKernel, kMaxWideRows> dot_tiles(std::index_sequence<i...>) {
  return {dot_tile<static_cast<int>(i + 1), kCols>...};
}

}  // namespace

bool available() {
  const int state = g_state.load(std::memory_order_relaxed);
  if (state != 0) return state == 1;
  const bool there = __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  g_state.store(there ? 1 : 2, std::memory_order_relaxed);
  return there;
}

void disable_for_test(bool disabled) { g_state.store(disabled ? 2 : 0, std::memory_order_relaxed); }

Kernel find(int64_t rows, int64_t vecs, bool by_rows) {
  static constexpr auto kNarrow = std::to_array({narrow<false>(std::make_index_sequence<2 * kMaxRows>()),
                                                 narrow<true>(std::make_index_sequence<2 * kMaxRows>())});
  static constexpr auto kWide = std::to_array(
      {wide<false>(std::make_index_sequence<kMaxWideRows>()), wide<true>(std::make_index_sequence<kMaxWideRows>())});
  const auto row = static_cast<size_t>(rows - 1);
  return vecs == 4 ? kWide[by_rows][row] : kNarrow[by_rows][row * 2 + static_cast<size_t>(vecs - 1)];
}

void dots(int64_t rows, int64_t cols, int64_t k, const BFloat16* a, int64_t a_stride, const BFloat16* b,
          int64_t b_stride, float* c, int64_t c_stride, bool stream) {
  static constexpr auto kOne = dot_tiles<1>(std::make_index_sequence<kMaxWideRows>());
  static constexpr auto kFour = dot_tiles<4>(std::make_index_sequence<kMaxWideRows>());
  const int64_t panels = (rows + kMaxWideRows - 1) / kMaxWideRows;
  for (int64_t j = 0; j < cols;) {
    const int64_t take_cols = stream ? 1 : cols - j >= 8 && rows == 1 ? 8 : cols - j >= 4 ? 4 : 1;
    for (int64_t i = 0, panel = 0; i < rows; ++panel) {
      const int64_t take = (rows - i + panels - panel - 1) / (panels - panel);
      const auto row = static_cast<size_t>(take - 1);
      const DotKernel kernel = take_cols == 8 ? dot_tile<1, 8> : take_cols == 4 ? kFour[row] : kOne[row];
      kernel(k, a + i * a_stride, a_stride, b + j * b_stride, b_stride, c + i * c_stride + j, c_stride);
      i += take;
    }
    j += take_cols;
  }
}

#else

bool available() { return false; }
void disable_for_test(bool) {}
Kernel find(int64_t, int64_t, bool) { return nullptr; }
void dots(int64_t, int64_t, int64_t, const BFloat16*, int64_t, const BFloat16*, int64_t, float*, int64_t, bool) {}

#endif

}  // namespace tn::bf16_pairs
