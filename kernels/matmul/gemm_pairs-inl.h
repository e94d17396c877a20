// Products of bfloat16 by the kernels of bf16_pairs.h: as BlockTile, with pairs in place of numbers.

#if defined(TN_KERNELS_MATMUL_GEMM_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TN_KERNELS_MATMUL_GEMM_PAIRS_INL_H_
#undef TN_KERNELS_MATMUL_GEMM_PAIRS_INL_H_
#else
#define TN_KERNELS_MATMUL_GEMM_PAIRS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/common/bf16_pairs.h"
#include "kernels/matmul/gemm_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The kernels' vectors are those of the one target that they need.
inline bool UsePairs() { return kLanes<float> == bf16_pairs::kLanes && bf16_pairs::available(); }

// to[p * width + i] = from[i * i_stride + 2 p * p_stride] and its neighbour in k (0 past an odd k) for i < count, else
// 0.
inline void PackPairs(const BFloat16* HWY_RESTRICT from, int64_t i_stride, int64_t p_stride, int64_t count, int64_t k,
                      uint32_t* HWY_RESTRICT to, int64_t width) {
  if (i_stride == 1 || p_stride == 1) return bf16_pairs::pack(from, i_stride, p_stride, count, k, to, width);
  for (int64_t p = 0; p < CeilDiv(k, 2); ++p) {
    for (int64_t i = 0; i < count; ++i) {
      const BFloat16* at = from + i * i_stride + 2 * p * p_stride;
      to[p * width + i] = at[0].bits | (2 * p + 1 < k ? static_cast<uint32_t>(at[p_stride].bits) << 16 : 0U);
    }
    std::fill(to + p * width + count, to + (p + 1) * width, 0U);
  }
}

// Rows [i0, i1) x columns [j0, j1) of C.
inline void PairTile(const Product<float, BFloat16>& x, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  constexpr int64_t kN = bf16_pairs::kLanes, kBlock = 768, kRows = bf16_pairs::kMaxRows;
  const int64_t rows = i1 - i0, panels = CeilDiv(rows, kRows);
  const int64_t width = (CeilDiv(rows, panels) <= bf16_pairs::kMaxWideRows ? 4 : 2) * kN;
  const int64_t k_blocks = std::max<int64_t>(1, CeilDiv(x.k, kBlock));
  const int64_t k_block = CeilDiv(CeilDiv(x.k, k_blocks), 2) * 2;  // whole pairs, but for the last
  const bool read_a = x.a_cs == 1 && x.k % 2 == 0 && !Crowded(x.a_rs * 2);
  for (int64_t jc = j0; jc < j1; jc += kBlockCols) {
    const int64_t cols = std::min(kBlockCols, j1 - jc), padded = CeilDiv(cols, width) * width;
    const int64_t whole = cols / width * width;
    const int64_t tail_vecs = CeilDiv(cols - whole, kN) == 3 ? 4 : CeilDiv(cols - whole, kN);
    float* const sums = k_blocks > 1 ? Scratch<float>(kSlotSums, rows * padded) : nullptr;
    for (int64_t kb = 0; kb < k_blocks; ++kb) {
      const int64_t p0 = kb * k_block, depth = std::max<int64_t>(0, std::min(k_block, x.k - p0));
      const int64_t pairs = CeilDiv(depth, 2);
      const BFloat16* const b_block = x.b + p0 * x.b_rs + jc * x.b_cs;
      auto* const packed_b = Scratch<uint32_t>(kSlotB, pairs * padded);
      for (int64_t j = 0; j < cols; j += width) {
        const int64_t vecs = j == whole ? tail_vecs : width / kN;
        PackPairs(b_block + j * x.b_cs, x.b_cs, x.b_rs, std::min(width, cols - j), depth, packed_b + j * pairs,
                  vecs * kN);
      }
      for (int64_t i = i0, panel = 0; i < i1; ++panel) {
        const int64_t take = CeilDiv(i1 - i, panels - panel);
        const void* left = x.a + i * x.a_rs + p0 * x.a_cs;
        int64_t left_stride = x.a_rs;
        if (!read_a) {
          auto* const packed_a = Scratch<uint32_t>(kSlotA, kRows * pairs);
          PackPairs(static_cast<const BFloat16*>(left), x.a_rs, x.a_cs, take, depth, packed_a, take);
          left = packed_a, left_stride = take;
        }
        for (int64_t j = 0; j < cols; j += width) {
          const int64_t vecs = j == whole ? tail_vecs : width / kN;
          const auto kernel = bf16_pairs::find(take, vecs, read_a);
          const uint32_t* const right = packed_b + j * pairs;
          if (sums != nullptr) {
            kernel(pairs, left, left_stride, right, vecs * kN, sums + (i - i0) * padded + j, padded, kb > 0);
            continue;
          }
          alignas(64) float tile[kRows * 2 * kN];
          kernel(pairs, left, left_stride, right, vecs * kN, tile, vecs * kN, false);
          x.epilogue.Apply(tile, vecs * kN, x.c + i * x.c_rs + (jc + j) * x.c_cs, x.c_rs, x.c_cs, i, jc + j, take,
                           std::min(width, cols - j));
        }
        i += take;
      }
    }
    if (sums != nullptr) {
      x.epilogue.Apply(sums, padded, x.c + i0 * x.c_rs + jc * x.c_cs, x.c_rs, x.c_cs, i0, jc, rows, cols);
    }
  }
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // TN_KERNELS_MATMUL_GEMM_PAIRS_INL_H_
