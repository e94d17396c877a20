// Where the largest and smallest values are: the first of several, and the first NaN before all others.
#pragma once
#include <cstdint>

namespace tn::reduce {

// values[j] and places[j] of `rows` rows at p[i * stride + j]; rows < 2^31.
void extreme_columns(const float* p, int64_t stride, int64_t rows, int64_t cols, bool largest, float* values,
                     int32_t* places);
void extreme_columns(const double* p, int64_t stride, int64_t rows, int64_t cols, bool largest, double* values,
                     int64_t* places);

}  // namespace tn::reduce
