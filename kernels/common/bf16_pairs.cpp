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

// Vectors as g++ knows them: its intrinsics for shuffles warn of uninitialised values.
using Pairs = uint32_t __attribute__((vector_size(64)));
using Shorts = uint16_t __attribute__((vector_size(64)));

TN_BF16_PAIRS inline __mmask16 first16(int64_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xFFFF : n <= 0 ? 0 : (1U << n) - 1);
}
TN_BF16_PAIRS inline __mmask32 first32(int64_t n) { return n >= 32 ? 0xFFFFFFFF : n <= 0 ? 0 : (uint32_t{1} << n) - 1; }

// k along the rows of memory: two rows are interleaved, 32 numbers of each at a time.
TN_BF16_PAIRS void interleave(const BFloat16* from, int64_t p_stride, int64_t count, int64_t k, uint32_t* to,
                              int64_t width) {
  for (int64_t p = 0; p < k; p += 2, from += 2 * p_stride, to += width) {
    for (int64_t i = 0; i < width; i += 2 * kLanes) {
      const __mmask32 mask = first32(count - i);
      const auto low = (Shorts)_mm512_maskz_loadu_epi16(mask, from + i);
      const auto high = (Shorts)_mm512_maskz_loadu_epi16(p + 1 < k ? mask : 0, from + i + (p + 1 < k ? p_stride : 0));
      const auto left = __builtin_shufflevector(low, high, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8,
                                                40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47);
      const auto right = __builtin_shufflevector(low, high, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23,
                                                 55, 24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63);
      _mm512_mask_storeu_epi32(to + i, first16(width - i), (__m512i)left);
      if (width - i > kLanes) _mm512_mask_storeu_epi32(to + i + kLanes, first16(width - i - kLanes), (__m512i)right);
    }
  }
}

TN_BF16_PAIRS inline void transpose(Pairs (&r)[16]) {
  Pairs t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
    t[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 4) {
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      const Pairs a = t[i + j], b = t[i + j + 2];
      r[i + 2 * j] = __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
      r[i + 2 * j + 1] = __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    }
  }
  // Now lane l of r[4 g + c] holds column 4 l + c of the rows from 4 g on.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const Pairs a = __builtin_shufflevector(r[c], r[4 + c], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    const Pairs b =
        __builtin_shufflevector(r[c], r[4 + c], 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    const Pairs e =
        __builtin_shufflevector(r[8 + c], r[12 + c], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    const Pairs f =
        __builtin_shufflevector(r[8 + c], r[12 + c], 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    t[c] = __builtin_shufflevector(a, e, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
    t[4 + c] = __builtin_shufflevector(a, e, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    t[8 + c] = __builtin_shufflevector(b, f, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
    t[12 + c] = __builtin_shufflevector(b, f, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = t[i];
}

// k along the columns of memory: blocks of 16 x 16 pairs.
TN_BF16_PAIRS void transpose_rows(const BFloat16* from, int64_t i_stride, int64_t count, int64_t k, uint32_t* to,
                                  int64_t width) {
  const int64_t pairs = (k + 1) / 2;
  for (int64_t i = 0; i < width; i += kLanes) {
    const __mmask16 out = first16(width - i);
    for (int64_t p = 0; p < pairs; p += kLanes) {
      const __mmask32 in = first32(k - 2 * p);
      Pairs r[16];
#pragma GCC unroll 16
      for (int j = 0; j < 16; ++j) {
        const bool there = i + j < count;
        r[j] = (Pairs)_mm512_maskz_loadu_epi16(there ? in : 0, from + (there ? i + j : 0) * i_stride + 2 * p);
      }
      transpose(r);
      uint32_t* const block = to + p * width + i;
#pragma GCC unroll 16
      for (int j = 0; j < 16; ++j) {
        if (p + j < pairs) _mm512_mask_storeu_epi32(block + j * width, out, (__m512i)r[j]);
      }
    }
  }
}

// In integers, for what the instruction would flush or whose payload it would keep.
TN_BF16_PAIRS inline void shorten_exactly(__m512 v, uint16_t* to, int64_t n) {
  const auto bits = (Pairs)v;
  const Pairs rounded = (bits + (bits >> 16 & 1) + 0x7FFF) >> 16;
  const __mmask16 is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  const __m512i all = _mm512_mask_set1_epi32((__m512i)rounded, is_nan, 0x7FC0);
  _mm512_mask_cvtepi32_storeu_epi16(to, first16(n), all);
}

TN_BF16_PAIRS void shorten_runs(const float* from, uint16_t* to, int64_t n) {
  constexpr int kQuiet = 0x01, kSubnormal = 0x20, kSignalling = 0x80, kSpecial = kQuiet | kSubnormal | kSignalling;
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const __m512 a = _mm512_loadu_ps(from + i), b = _mm512_loadu_ps(from + i + kLanes);
    if (__builtin_expect(_mm512_fpclass_ps_mask(a, kSpecial) | _mm512_fpclass_ps_mask(b, kSpecial), 0)) {
      shorten_exactly(a, to + i, kLanes);
      shorten_exactly(b, to + i + kLanes, kLanes);
    } else {
      _mm512_storeu_si512(to + i, (__m512i)_mm512_cvtne2ps_pbh(b, a));
    }
  }
  for (; i < n; i += kLanes) shorten_exactly(_mm512_maskz_loadu_ps(first16(n - i), from + i), to + i, n - i);
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

void pack(const BFloat16* from, int64_t i_stride, int64_t p_stride, int64_t count, int64_t k, uint32_t* to,
          int64_t width) {
  if (i_stride == 1) interleave(from, p_stride, count, k, to, width);
  else transpose_rows(from, i_stride, count, k, to, width);
}
void shorten(const float* from, uint16_t* to, int64_t n) { shorten_runs(from, to, n); }

#else

bool available() { return false; }
void disable_for_test(bool) {}
Kernel find(int64_t, int64_t, bool) { return nullptr; }
void dots(int64_t, int64_t, int64_t, const BFloat16*, int64_t, const BFloat16*, int64_t, float*, int64_t, bool) {}
void pack(const BFloat16*, int64_t, int64_t, int64_t, int64_t, uint32_t*, int64_t) {}
void shorten(const float*, uint16_t*, int64_t) {}

#endif

}  // namespace tn::bf16_pairs
