// Helpers of the formulas of losses.
#pragma once
#include "kernels/autograd/helpers.h"

namespace tn::autograd {

Tensor binary_cross_entropy_with_logits_backward(const Tensor& grad, const Tensor& input, const Tensor& target,
                                                 const Tensor& weight, const Tensor& pos_weight, int64_t reduction);
Tensor binary_cross_entropy_with_logits_target_backward(const Tensor& grad, const Tensor& input, const Tensor& target,
                                                        const Tensor& weight, const Tensor& pos_weight,
                                                        int64_t reduction);
Tensor binary_cross_entropy_double_backward(const Tensor& grad_output, const Tensor& grad, const Tensor& input,
                                            const Tensor& target, const Tensor& weight, int64_t reduction);
Tensor binary_cross_entropy_double_backward_target(const Tensor& grad, const Tensor& grad_output, const Tensor& input,
                                                   const Tensor& target, const Tensor& weight, int64_t reduction);
Tensor binary_cross_entropy_double_backward_grad_output(const Tensor& grad, const Tensor& input, const Tensor& target,
                                                        const Tensor& weight, int64_t reduction);
Tensor huber_loss_double_backward_grad_output(const Tensor& grad, const Tensor& grad_output, const Tensor& input,
                                              const Tensor& target, int64_t reduction, double delta);
Tensor soft_margin_loss_double_backward(const Tensor& grad, const Tensor& input, const Tensor& target,
                                        int64_t reduction);
Tensor soft_margin_loss_double_backward_grad_output(const Tensor& grad, const Tensor& grad_output, const Tensor& input,
                                                    const Tensor& target, int64_t reduction);

}  // namespace tn::autograd
