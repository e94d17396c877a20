// Vector bodies of the reductions of int64 rows. Sums wrap around.
#pragma once
#include <cstdint>

namespace tn::reduce {

int64_t sum_row(const int64_t* p, int64_t n);
int64_t largest_in_row(const int64_t* p, int64_t n);
int64_t smallest_in_row(const int64_t* p, int64_t n);

}  // namespace tn::reduce
