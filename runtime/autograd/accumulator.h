// What holds a leaf's gradient together with its shape.
#pragma once
#include "runtime/tensor.h"

namespace tn {

// The leaf got another shape, dtype or device: gradients from now on are of that kind, so it gets a new accumulator.
void forget_accumulator(const Tensor& leaf);

}  // namespace tn
