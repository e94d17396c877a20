#pragma once

// Kernels for CPUs that multiply pairs of bfloat16 and add both products to a float, which Highway 1.0.3 has no target
// for: twice the rate of float. As that instruction does, they flush subnormals to zero. A pair is two neighbours in k,
// the first in the low half.

#include <cstdint>

#include "runtime/dtype.h"

namespace tn::bf16_pairs {

inline constexpr int kMaxRows = 14;     // of a tile one or two vectors wide
inline constexpr int kMaxWideRows = 6;  // of a tile four vectors wide, and of dot products
inline constexpr int kLanes = 16;       // floats of a vector

// False where the CPU or the build lacks them; nothing else below may then be called.
bool available();
// Tests: pretend that there are none.
void disable_for_test(bool disabled);

// c[rows][vecs * 16] (+)= A B, with A's pairs at a[i * a_stride + p] (by_rows; strides then count bfloat16 numbers and
// any alignment will do) or a[i + p * a_stride], and B's at b[p * b_stride + j].
using Kernel = void (*)(int64_t pairs, const void* a, int64_t a_stride, const uint32_t* b, int64_t b_stride, float* c,
                        int64_t c_stride, bool add);
Kernel find(int64_t rows, int64_t vecs, bool by_rows);

// c[i * c_stride + j] = sum of a[i * a_stride + p] b[j * b_stride + p] for rows x cols dot products of length k.
// stream: one column after the other, for B that comes from memory.
void dots(int64_t rows, int64_t cols, int64_t k, const BFloat16* a, int64_t a_stride, const BFloat16* b,
          int64_t b_stride, float* c, int64_t c_stride, bool stream);

// to[p * width + i] = from[i * i_stride + 2 p * p_stride] and its neighbour in k (0 past an odd k) for i < count, 0 for
// count <= i < width. One of the strides is 1.
void pack(const BFloat16* from, int64_t i_stride, int64_t p_stride, int64_t count, int64_t k, uint32_t* to,
          int64_t width);

// As shorten() of halves.h, subnormals and NaN included.
void shorten(const float* from, uint16_t* to, int64_t n);

}  // namespace tn::bf16_pairs
