// Gradients of softmax and log_softmax along one dimension, vectorised; 16-bit floats compute in float.
#pragma once
#include <cstdint>

#include "runtime/dtype.h"

namespace tn::softmax {

// out = (grad - sum(grad * y)) * y, or grad - exp(y) * sum(grad) with log: `rows` rows of n elements.
void gradient_rows(ScalarType dtype, bool log, const void* grad, const void* y, int64_t rows, int64_t n, void* out);
// The same along the first dimension of [n, inner], for columns [first, first + count).
void gradient_columns(ScalarType dtype, bool log, const void* grad, const void* y, int64_t n, int64_t inner,
                      int64_t first, int64_t count, void* out);

}  // namespace tn::softmax
