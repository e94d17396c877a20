// Operators of this family with two results.
#include <cmath>

#include "generated/slots/unary.h"
#include "kernels/unary/parts.h"
#include "runtime/error.h"
#include "runtime/op_table.h"

namespace tn {
namespace {

constexpr DTypeSet kFloating((1u << static_cast<int>(ScalarType::Float)) |
                             (1u << static_cast<int>(ScalarType::Double)) | (1u << static_cast<int>(ScalarType::Half)) |
                             (1u << static_cast<int>(ScalarType::BFloat16)));

Tensor run(OpId op, const PointwiseSlot& slot, std::initializer_list<const Tensor*> inputs) {
  const Arg none[] = {Arg()};
  return pointwise({op_infos[op], slot, kFloating}, {inputs.begin(), inputs.size()}, none);
}

}  // namespace

// The buffer, exp(-|x|), is kept for the gradient.
std::tuple<Tensor, Tensor> native::log_sigmoid_forward(const Tensor& self) {
  Tensor buffer = run(kOp_log_sigmoid_forward, parts::log_sigmoid_buffer, {&self});
  Tensor output = run(kOp_log_sigmoid_forward, parts::log_sigmoid, {&self});
  return {std::move(output), std::move(buffer)};
}

std::tuple<Tensor, Tensor> native::_prelu_kernel_backward(const Tensor& grad_output, const Tensor& self,
                                                          const Tensor& weight) {
  return {run(kOp__prelu_kernel_backward, parts::prelu_input_gradient, {&grad_output, &self, &weight}),
          run(kOp__prelu_kernel_backward, parts::prelu_weight_gradient, {&grad_output, &self})};
}

}  // namespace tn
