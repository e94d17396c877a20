// The pieces of a softmax that is built up block by block, on rows of scores in memory.
#pragma once
#include <cstdint>

namespace tn::attention {

// Rows begin at 64-byte boundaries and have room up to a multiple of this many elements; the functions read and write
// that room, and what they add to a sum from it is zero.
inline constexpr int64_t kPad = 16;

// Writes -inf behind the n scores, adds the mask unless it is null, and gives the largest score.
float add_mask(float* scores, const float* mask, int64_t n);
double add_mask(double* scores, const double* mask, int64_t n);

// scores = exp(scores - shift), and their sum. Error of each below 1 ULP + that of the difference; -inf gives zero.
float exp_scores(float* scores, int64_t n, float shift);
double exp_scores(double* scores, int64_t n, double shift);

// values *= factor
void scale_row(float* values, int64_t n, float factor);
void scale_row(double* values, int64_t n, double factor);

}  // namespace tn::attention
