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

#if HWY_TARGET != HWY_SCALAR
// to[p * width + i] = the pair p of row i, for four rows and as many pairs.
HWY_INLINE void TransposePairs(const BFloat16* from, int64_t stride, uint32_t* to, int64_t width) {
  const hn::FixedTag<uint16_t, 8> d16;
  const hn::FixedTag<uint32_t, 4> d;
  const hn::FixedTag<uint64_t, 2> d2;
  const auto load = [&](int64_t i) HWY_ATTR {
    return hn::BitCast(d, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(from + i * stride)));
  };
  const auto r0 = load(0), r1 = load(1), r2 = load(2), r3 = load(3);
  const auto low01 = hn::BitCast(d2, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(d2, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(d2, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(d2, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, low01, low23)), d, to + width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, high01, high23)), d, to + 2 * width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, high01, high23)), d, to + 3 * width);
}
#endif

// to[p * width + i] = from[i * i_stride + 2 p * p_stride] and its neighbour in k (0 past an odd k) for i < count, else
// 0.
inline void PackPairs(const BFloat16* HWY_RESTRICT from, int64_t i_stride, int64_t p_stride, int64_t count, int64_t k,
                      uint32_t* HWY_RESTRICT to, int64_t width) {
  const int64_t pairs = CeilDiv(k, 2), whole = k / 2;
  const auto one = [&](int64_t i, int64_t p) {
    const BFloat16* at = from + i * i_stride + 2 * p * p_stride;
    return at[0].bits | (2 * p + 1 < k ? static_cast<uint32_t>(at[p_stride].bits) << 16 : 0U);
  };
  if (count < width) {
    for (int64_t p = 0; p < pairs; ++p) std::fill(to + p * width + count, to + (p + 1) * width, 0U);
  }
  int64_t i = 0;
  if (i_stride == 1) {
    const hn::ScalableTag<uint32_t> d;
    const hn::Rebind<uint16_t, decltype(d)> half;
    constexpr int64_t kN = hn::MaxLanes(d);
    for (; i + kN <= count; i += kN) {
      for (int64_t p = 0; p < pairs; ++p) {
        const auto* at = reinterpret_cast<const uint16_t*>(from + i + 2 * p * p_stride);
        auto pair = hn::PromoteTo(d, hn::LoadU(half, at));
        if (p < whole) pair = hn::Or(pair, hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(half, at + p_stride))));
        hn::StoreU(pair, d, to + p * width + i);
      }
    }
  }
#if HWY_TARGET != HWY_SCALAR
  if (p_stride == 1) {
    for (; i + 4 <= count; i += 4) {
      int64_t p = 0;
      for (; p + 4 <= whole; p += 4) TransposePairs(from + i * i_stride + 2 * p, i_stride, to + p * width + i, width);
      for (; p < pairs; ++p) {
        for (int64_t q = i; q < i + 4; ++q) to[p * width + q] = one(q, p);
      }
    }
  }
#endif
  for (; i < count; ++i) {
    for (int64_t p = 0; p < pairs; ++p) to[p * width + i] = one(i, p);
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
