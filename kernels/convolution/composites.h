// The convolutions that decompose into aten::convolution.
#pragma once
#include <array>
#include <string_view>
#include <tuple>

#include "runtime/array_ref.h"
#include "runtime/tensor.h"

namespace tn::composite {

Tensor conv(int64_t dims, const Tensor& input, const Tensor& weight, OptionalTensor bias, IntView stride,
            IntView padding, IntView dilation, int64_t groups);
// "valid" or "same".
Tensor conv(int64_t dims, const Tensor& input, const Tensor& weight, OptionalTensor bias, IntView stride,
            std::string_view padding, IntView dilation, int64_t groups);
Tensor conv_mode(const Tensor& input, const Tensor& weight, OptionalTensor bias, IntView stride,
                 std::string_view padding, IntView dilation, int64_t groups);
Tensor conv_transpose(int64_t dims, const Tensor& input, const Tensor& weight, OptionalTensor bias, IntView stride,
                      IntView padding, IntView output_padding, int64_t groups, IntView dilation);
// Slow convolutions under their own names, all by aten::convolution.
Tensor conv_of_kernel(const Tensor& self, const Tensor& weight, IntView kernel, OptionalTensor bias, IntView stride,
                      IntView padding, IntView dilation, bool transposed, IntView output_padding, int64_t groups);
std::tuple<Tensor, Tensor, Tensor> conv_double_backward(OptionalTensor gg_input, OptionalTensor gg_weight,
                                                        OptionalTensor gg_bias, const Tensor& grad,
                                                        const Tensor& weight, const Tensor& input, IntView stride,
                                                        IntView padding, IntView dilation, bool transposed,
                                                        IntView output_padding, int64_t groups,
                                                        std::array<bool, 3> mask);
Tensor conv_tbc(const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad);

}  // namespace tn::composite
