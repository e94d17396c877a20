// Register-blocked kernels: a tile of C in registers, one broadcast of A and a few vectors of B for each step of k.
// Each element of C is one chain of multiply-adds in the order of k, whatever the tile: how C is cut never shows.

#if defined(TN_KERNELS_MATMUL_GEMM_MICRO_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TN_KERNELS_MATMUL_GEMM_MICRO_INL_H_
#undef TN_KERNELS_MATMUL_GEMM_MICRO_INL_H_
#else
#define TN_KERNELS_MATMUL_GEMM_MICRO_INL_H_
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "hwy/highway.h"
#include "kernels/common/hwy-compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 32 vector registers hold 14 x 2 sums, two vectors of B and a broadcast; 16 hold 6 x 2.
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_AVX2
inline constexpr int kMaxRows = 6;
inline constexpr int kMaxWideRows = 2;
#else
inline constexpr int kMaxRows = 14;
inline constexpr int kMaxWideRows = 6;  // of tiles four vectors wide
#endif

template <class T>
inline constexpr int64_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());

// A's element (i, p) is a[i * stride + p] if rows are contiguous, else a[i + p * stride] (columns, or a packed panel).
enum class Left { kRows, kColumns };

template <class T>
using MicroKernel = void (*)(int64_t k, const T* a, int64_t a_stride, const T* b, int64_t b_stride, T* c,
                             int64_t c_stride, bool add);

template <class T, int kRows, int kVecs, Left kLeft>
void Micro(int64_t k, const T* HWY_RESTRICT a, int64_t a_stride, const T* HWY_RESTRICT b, int64_t b_stride,
           T* HWY_RESTRICT c, int64_t c_stride, bool add) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  V sums[kRows][kVecs];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) sums[i][j] = hn::Zero(d);
  }
  for (int64_t p = 0; p < k; ++p) {
    V right[kVecs];
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) right[j] = hn::LoadU(d, b + j * kLanes<T>);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V left = hn::Set(d, kLeft == Left::kRows ? a[i * a_stride] : a[i]);
#pragma GCC unroll 4
      for (int j = 0; j < kVecs; ++j) sums[i][j] = hn::MulAdd(left, right[j], sums[i][j]);
    }
    a += kLeft == Left::kRows ? 1 : a_stride;
    b += b_stride;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) {
      T* to = c + i * c_stride + j * kLanes<T>;
      hn::StoreU(add ? hn::Add(hn::LoadU(d, to), sums[i][j]) : sums[i][j], d, to);
    }
  }
}

// The same for the first `cols` columns of one vector, reading and writing nothing beside them.
template <class T, int kRows, Left kLeft>
void MaskedMicro(int64_t k, const T* HWY_RESTRICT a, int64_t a_stride, const T* HWY_RESTRICT b, int64_t b_stride,
                 T* HWY_RESTRICT c, int64_t c_stride, bool add, int64_t cols) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto mask = hn::FirstN(d, static_cast<size_t>(cols));
  V sums[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) sums[i] = hn::Zero(d);
  for (int64_t p = 0; p < k; ++p) {
    const V right = hn::MaskedLoad(mask, d, b);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      sums[i] = hn::MulAdd(hn::Set(d, kLeft == Left::kRows ? a[i * a_stride] : a[i]), right, sums[i]);
    }
    a += kLeft == Left::kRows ? 1 : a_stride;
    b += b_stride;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    T* to = c + i * c_stride;
    hn::BlendedStore(add ? hn::Add(hn::MaskedLoad(mask, d, to), sums[i]) : sums[i], mask, d, to);
  }
}

constexpr bool HasMaskedMicro() { return !HWY_MEM_OPS_MIGHT_FAULT; }

template <class T>
using MaskedMicroKernel = void (*)(int64_t k, const T* a, int64_t a_stride, const T* b, int64_t b_stride, T* c,
                                   int64_t c_stride, bool add, int64_t cols);

template <class T, Left kLeft>
HWY_INLINE MaskedMicroKernel<T> FindMaskedMicro(int64_t rows) {
  constexpr auto kTable = []<size_t... i>(std::index_sequence<i...>) {
    return std::array<MaskedMicroKernel<T>, kMaxRows>{MaskedMicro<T, static_cast<int>(i + 1), kLeft>...};
  }(std::make_index_sequence<kMaxRows>());
  return kTable[static_cast<size_t>(rows - 1)];
}

// The kernel for rows x (vecs * lanes), vecs being 1, 2 or (up to kMaxWideRows) 4.
template <class T, Left kLeft>
HWY_INLINE MicroKernel<T> FindMicro(int64_t rows, int64_t vecs) {
  constexpr auto kTable = []<size_t... i>(std::index_sequence<i...>) {
    return std::array<MicroKernel<T>, 2 * kMaxRows>{
        Micro<T, static_cast<int>(i / 2 + 1), static_cast<int>(i % 2 + 1), kLeft>...};
  }(std::make_index_sequence<2 * kMaxRows>());
  constexpr auto kWide = []<size_t... i>(std::index_sequence<i...>) {
    return std::array<MicroKernel<T>, kMaxWideRows>{Micro<T, static_cast<int>(i + 1), 4, kLeft>...};
  }(std::make_index_sequence<kMaxWideRows>());
  const auto row = static_cast<size_t>(rows - 1);
  return vecs == 4 ? kWide[row] : kTable[row * 2 + static_cast<size_t>(vecs - 1)];
}

// C = alpha * sums + beta * C + bias over rows x cols, rounding once to the dtype of C.
template <class T, class S>
struct Epilogue {
  T alpha, beta;
  const S* bias;  // or null
  int64_t bias_rs, bias_cs;

  HWY_INLINE T One(T sum, S* c, int64_t i, int64_t j) const {
    T value = alpha * sum;
    if (beta != T{0}) value += beta * ToT(*c);
    if (bias != nullptr) value += ToT(bias[i * bias_rs + j * bias_cs]);
    return value;
  }

  static HWY_INLINE T ToT(S x) {
    if constexpr (std::is_same_v<S, T>) {
      return x;
    } else {
      return to_float(x);
    }
  }

  static HWY_INLINE void Put(T value, S* c) {
    if constexpr (std::is_same_v<S, BFloat16>) {
      *c = to_bfloat16(value);
    } else if constexpr (std::is_same_v<S, Half>) {
      *c = to_half(value);
    } else {
      *c = value;
    }
  }

  // (i0, j0) is the place of sums[0] and c[0] in the whole C, for the bias.
  void Apply(const T* sums, int64_t sums_stride, S* c, int64_t c_rs, int64_t c_cs, int64_t i0, int64_t j0, int64_t rows,
             int64_t cols) const {
    const hn::ScalableTag<T> d;
    constexpr int64_t kN = kLanes<T>;
    const auto scale = hn::Set(d, alpha), keep = hn::Set(d, beta);
    for (int64_t i = 0; i < rows; ++i) {
      const T* from = sums + i * sums_stride;
      S* to = c + i * c_rs;
      if (c_cs != 1) {
        for (int64_t j = 0; j < cols; ++j) Put(One(from[j], to + j * c_cs, i0 + i, j0 + j), to + j * c_cs);
        continue;
      }
      for (int64_t j = 0; j < cols; j += kN) {
        const bool whole = cols - j >= kN;
        const auto left = static_cast<size_t>(cols - j);
        auto value = whole ? hn::LoadU(d, from + j) : LoadUpTo(d, from + j, left);
        if (alpha != T{1}) value = hn::Mul(value, scale);
        if (beta != T{0}) value = hn::MulAdd(whole ? LoadAs(d, to + j) : LoadAsUpTo(d, to + j, left), keep, value);
        if (bias != nullptr) {
          const S* add = bias + (i0 + i) * bias_rs + (j0 + j) * bias_cs;
          const auto row = bias_cs == 0 ? hn::Set(d, ToT(*add)) : whole ? LoadAs(d, add) : LoadAsUpTo(d, add, left);
          value = hn::Add(value, row);
        }
        if (whole) {
          StoreAs(value, d, to + j);
        } else {
          StoreAsUpTo(value, d, to + j, left);
        }
      }
    }
  }
};

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // TN_KERNELS_MATMUL_GEMM_MICRO_INL_H_
