// Concatenation below the door, for operators that are made of it.
#pragma once
#include "runtime/tensor.h"

namespace tn {

Tensor concatenate(TensorList tensors, int64_t dim);

}  // namespace tn
