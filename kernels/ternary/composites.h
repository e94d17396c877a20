// Explicit composites of this family: they only call the door.
#pragma once
#include "runtime/tensor.h"

namespace tn::composite {

Tensor clamp(const Tensor& self, OptionalTensor min, OptionalTensor max);

}  // namespace tn::composite
