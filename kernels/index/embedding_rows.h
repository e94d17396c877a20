// Arithmetic on rows of embedding tables. Elements are float, double, Half or BFloat16; sums of 16-bit ones are float.
#pragma once
#include <cstdint>

#include "runtime/dtype.h"

namespace tn::index {

// The rows at[0, n) of a table, summed up. Rows at `padding` don't count; `scales` may be null.
struct RowSum {
  const void* table;
  int64_t width;
  const int64_t* at;
  const double* scales;
  int64_t n;
  int64_t padding;
  int64_t known;  // positions that may be read from `at`: at least n, to fetch rows ahead
};
// out = sum * factor, with the sum in float (double for double).
void sum_rows(ScalarType dtype, const RowSum& rows, double factor, void* out);

// to[at[k]] += scales[k] * from[source[k]] for columns [begin, end) of rows of `width`: 16-bit floats round after each
// addition.
struct RowScatter {
  const void* from;
  void* to;
  int64_t width;
  const int64_t* at;
  const int64_t* source;  // null: k
  const double* scales;   // null: 1
  int64_t n;
  int64_t padding;  // a row that stays as it is
  int64_t rows;     // of `to`; positions outside are passed over
};
void scatter_rows(ScalarType dtype, const RowScatter& rows, int64_t begin, int64_t end);

// Where the row is larger: out = row and where[i] = position.
void max_row(ScalarType dtype, const void* row, int64_t position, void* out, int64_t* where, int64_t n);
double dot_rows(ScalarType dtype, const void* a, const void* b, int64_t n);

}  // namespace tn::index
