// Operators of this family that upstream composes of others: they only call the door.
#pragma once
#include "runtime/tensor.h"

namespace tn::composite {

Tensor isfinite(const Tensor& self);
Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan);
bool allclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan);
Tensor celu(const Tensor& self, const Scalar& alpha);
Tensor positive(const Tensor& self);

}  // namespace tn::composite
