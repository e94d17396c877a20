// Mean and sum of squared distances from it, in two passes and in double.
#pragma once
#include <cstdint>

namespace tn::reduce {

struct Spread {
  double mean;
  double squares;
};
Spread spread_of(const float* x, int64_t n);
Spread spread_of(const double* x, int64_t n);

// cols <= kSpreadColumns neighbouring columns of n rows.
inline constexpr int64_t kSpreadColumns = 64;
void spread_of_columns(const float* x, int64_t stride, int64_t n, int64_t cols, Spread* out);
void spread_of_columns(const double* x, int64_t stride, int64_t n, int64_t cols, Spread* out);

}  // namespace tn::reduce
