// Runs of 16-bit floats to and from float, on the best instruction set. n elements, contiguous.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/dtype.h"

namespace tn {

// `dtype` is Half or BFloat16.
void widen(ScalarType dtype, const uint16_t* from, float* to, size_t n);
// Rounds to nearest, ties to even.
void shorten(ScalarType dtype, const float* from, uint16_t* to, size_t n);

}  // namespace tn
