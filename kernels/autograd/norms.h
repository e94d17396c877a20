// Helpers of the formulas of normalisations.
#pragma once
#include "kernels/autograd/helpers.h"

namespace tn::autograd {

std::tuple<Tensor, Tensor, Tensor> batchnorm_double_backward(const Tensor& input, const Tensor& gamma,
                                                             const Tensor& ggi, const Tensor& ggw, const Tensor& ggb,
                                                             const Tensor& grad_out, const Tensor& running_mean,
                                                             const Tensor& running_var, bool training, double eps,
                                                             const Tensor& save_mean, const Tensor& save_rstd,
                                                             const std::array<bool, 3>& mask);
std::tuple<Tensor, Tensor, Tensor> layer_norm_double_backward(const Tensor& input, const Tensor& gamma,
                                                              const Tensor& ggi, const Tensor& ggw, const Tensor& ggb,
                                                              const Tensor& grad_out, const Tensor& mean,
                                                              const Tensor& rstd, IntArrayRef shape,
                                                              const std::array<bool, 3>& mask);

}  // namespace tn::autograd
