// Helpers of the formulas of pooling.
#pragma once
#include "kernels/autograd/helpers.h"

namespace tn::autograd {

Tensor max_pool_double_backward(const Tensor& grad, const Tensor& indices, int dim);

}  // namespace tn::autograd
