// Window functions for spectral analysis. A periodic window is the symmetric one of one more point, without its last.
#pragma once
#include "kernels/common/options.h"
#include "runtime/tensor.h"

namespace tn::composite {

Tensor bartlett_window(int64_t length, bool periodic, const NewTensor& options);
Tensor blackman_window(int64_t length, bool periodic, const NewTensor& options);
Tensor hann_window(int64_t length, bool periodic, const NewTensor& options);
// alpha - beta * cos(2 pi n / (length - 1))
Tensor hamming_window(int64_t length, bool periodic, double alpha, double beta, const NewTensor& options);
Tensor kaiser_window(int64_t length, bool periodic, double beta, const NewTensor& options);

}  // namespace tn::composite
