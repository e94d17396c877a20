// Products that upstream composes of others: they only call the door, or a kernel directly where nobody could tell.
#pragma once
#include <string_view>

#include "runtime/tensor.h"

namespace tn::composite {

Tensor matmul(const Tensor& self, const Tensor& other);
const Tensor& matmul_out(const Tensor& self, const Tensor& other, const Tensor& out);
Tensor linear(const Tensor& input, const Tensor& weight, OptionalTensor bias);
const Tensor& linear_out(const Tensor& input, const Tensor& weight, OptionalTensor bias, const Tensor& out);
Tensor outer(const Tensor& self, const Tensor& vec2);
const Tensor& outer_out(const Tensor& self, const Tensor& vec2, const Tensor& out);

// contract.cpp
Tensor einsum(std::string_view equation, TensorList tensors, OptionalIntArrayRef path);
Tensor tensordot(const Tensor& self, const Tensor& other, IntView dims_self, IntView dims_other);
const Tensor& tensordot_out(const Tensor& self, const Tensor& other, IntView dims_self, IntView dims_other,
                            const Tensor& out);
Tensor inner(const Tensor& self, const Tensor& other);
const Tensor& inner_out(const Tensor& self, const Tensor& other, const Tensor& out);
Tensor trilinear(const Tensor& i1, const Tensor& i2, const Tensor& i3, IntView expand1, IntView expand2,
                 IntView expand3, IntView sumdim, int64_t unroll_dim);
Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, OptionalTensor bias);

// chains.cpp
Tensor multi_dot(TensorList tensors);
const Tensor& multi_dot_out(TensorList tensors, const Tensor& out);
Tensor chain_matmul(TensorList matrices);
const Tensor& chain_matmul_out(TensorList matrices, const Tensor& out);
Tensor kron(const Tensor& self, const Tensor& other);
const Tensor& kron_out(const Tensor& self, const Tensor& other, const Tensor& out);
const Tensor& ger_out(const Tensor& self, const Tensor& vec2, const Tensor& out);

}  // namespace tn::composite
