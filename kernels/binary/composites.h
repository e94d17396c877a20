// Operators of this family that upstream composes of others: they only call the door.
#pragma once
#include "runtime/tensor.h"

namespace tn::composite {

// pow in double, or complex double.
Tensor float_power(const Tensor& self, const Tensor& exponent);
Tensor float_power(const Tensor& self, const Scalar& exponent);
Tensor float_power(const Scalar& self, const Tensor& exponent);
const Tensor& float_power_out(const Tensor& self, const Tensor& exponent, const Tensor& out);
const Tensor& float_power_out(const Tensor& self, const Scalar& exponent, const Tensor& out);
const Tensor& float_power_out(const Scalar& self, const Tensor& exponent, const Tensor& out);
const Tensor& float_power_(const Tensor& self, const Tensor& exponent);
const Tensor& float_power_(const Tensor& self, const Scalar& exponent);
Tensor ldexp(const Tensor& self, const Tensor& other);

}  // namespace tn::composite
