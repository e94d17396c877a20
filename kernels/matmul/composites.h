// Products that upstream composes of others: they only call the door, or a kernel directly where nobody could tell.
#pragma once
#include "runtime/tensor.h"

namespace tn::composite {

Tensor matmul(const Tensor& self, const Tensor& other);
const Tensor& matmul_out(const Tensor& self, const Tensor& other, const Tensor& out);
Tensor linear(const Tensor& input, const Tensor& weight, OptionalTensor bias);
const Tensor& linear_out(const Tensor& input, const Tensor& weight, OptionalTensor bias, const Tensor& out);
Tensor outer(const Tensor& self, const Tensor& vec2);
const Tensor& outer_out(const Tensor& self, const Tensor& vec2, const Tensor& out);

}  // namespace tn::composite
