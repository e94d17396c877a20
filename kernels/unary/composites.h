// Operators of this family that upstream composes of others: they only call the door.
#pragma once
#include "runtime/tensor.h"

namespace tn::composite {

Tensor isfinite(const Tensor& self);
Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan);
bool allclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan);
Tensor celu(const Tensor& self, const Scalar& alpha);
Tensor positive(const Tensor& self);

Tensor hardtanh(const Tensor& self, const Scalar& min_val, const Scalar& max_val);
Tensor scale_angle(const Tensor& self, double factor, const char* name);
Tensor isreal(const Tensor& self);
Tensor conj_physical(const Tensor& self);
Tensor prelu(const Tensor& self, const Tensor& weight);
const Tensor& log_sigmoid_out(const Tensor& self, const Tensor& out);
Tensor glu(const Tensor& self, int64_t dim);
Tensor glu_jvp(const Tensor& glu, const Tensor& x, const Tensor& dx, int64_t dim);
Tensor glu_backward(const Tensor& grad_output, const Tensor& self, int64_t dim);

}  // namespace tn::composite
