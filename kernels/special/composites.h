// Operators of this family that upstream composes of others: they only call the door.
#pragma once
#include "runtime/tensor.h"

namespace tn::composite {

Tensor mvlgamma(const Tensor& self, int64_t p);
Tensor ndtr(const Tensor& self);

}  // namespace tn::composite
