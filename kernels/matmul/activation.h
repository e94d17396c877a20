// The functions that _addmm_activation applies to its product.
#pragma once
#include "runtime/tensor.h"

namespace tn::matmul {

enum class Activation : uint8_t { Relu, Gelu };

// In place, on a dense tensor of a floating dtype; integers have relu only.
void activate(const Tensor& t, Activation which);

}  // namespace tn::matmul
