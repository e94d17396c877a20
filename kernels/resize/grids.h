// Grids of sampling positions from affine maps.
#pragma once
#include "runtime/array_ref.h"
#include "runtime/tensor.h"

namespace tn::composite {

Tensor affine_grid(const Tensor& theta, IntView size, bool align_corners);
Tensor affine_grid_backward(const Tensor& grad, IntView size, bool align_corners);

}  // namespace tn::composite
