// Arithmetic on rows of embedding tables. Elements are float, double, Half or BFloat16; sums of 16-bit ones are float.
#pragma once
#include <cstdint>

#include "runtime/dtype.h"

namespace tn::index {

// sum += scale * row, where sum has the row's type: 16-bit floats round after each addition.
void add_row(ScalarType dtype, const void* row, double scale, void* sum, int64_t n);
// The same with a sum in float (double for double).
void add_row_wide(ScalarType dtype, const void* row, double scale, void* sum, int64_t n);
// out = sum * scale, from the wide sum.
void store_row(ScalarType dtype, const void* sum, double scale, void* out, int64_t n);
// Where the row is larger: out = row and where[i] = position.
void max_row(ScalarType dtype, const void* row, int64_t position, void* out, int64_t* where, int64_t n);
double dot_rows(ScalarType dtype, const void* a, const void* b, int64_t n);

}  // namespace tn::index
