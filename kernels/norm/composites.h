// Normalisations that upstream composes of others, and the checks that they share.
#pragma once
#include <array>
#include <optional>
#include <tuple>

#include "runtime/array_ref.h"
#include "runtime/tensor.h"

namespace tn::composite {

// The input must end in the normalized shape, and the parameters must have it: upstream's errors.
void check_normalized_shape(const Tensor& input, IntView shape, OptionalTensor weight, OptionalTensor bias);
Tensor layer_norm(const Tensor& input, IntView shape, OptionalTensor weight, OptionalTensor bias, double eps,
                  bool cudnn);

std::tuple<Tensor, Tensor> fused_rms_norm(const Tensor& input, IntView shape, OptionalTensor weight,
                                          std::optional<double> eps);
Tensor rms_norm(const Tensor& input, IntView shape, OptionalTensor weight, std::optional<double> eps);

Tensor group_norm(const Tensor& input, int64_t groups, OptionalTensor weight, OptionalTensor bias, double eps,
                  bool cudnn);

std::tuple<Tensor, Tensor, Tensor, Tensor, int64_t> batch_norm_impl_index(const Tensor& input, OptionalTensor weight,
                                                                          OptionalTensor bias,
                                                                          OptionalTensor running_mean,
                                                                          OptionalTensor running_var, bool training,
                                                                          double momentum, double eps, bool cudnn);
std::tuple<Tensor, Tensor, Tensor> batch_norm_impl_index_backward(int64_t impl, const Tensor& input, const Tensor& grad,
                                                                  OptionalTensor weight, OptionalTensor running_mean,
                                                                  OptionalTensor running_var, OptionalTensor save_mean,
                                                                  OptionalTensor save_var, bool train, double eps,
                                                                  std::array<bool, 3> mask, const Tensor& reserve);
Tensor batch_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias, OptionalTensor running_mean,
                  OptionalTensor running_var, bool training, double momentum, double eps, bool cudnn);
Tensor instance_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias, OptionalTensor running_mean,
                     OptionalTensor running_var, bool use_input_stats, double momentum, double eps, bool cudnn);

// weight_norm_composites.cpp
Tensor norm_except_dim(const Tensor& v, int64_t pow, int64_t dim);
Tensor weight_norm(const Tensor& v, const Tensor& g, int64_t dim);
std::tuple<Tensor, Tensor> weight_norm_differentiable_backward(const Tensor& grad, const Tensor& v, const Tensor& g,
                                                               const Tensor& norms, int64_t dim);

}  // namespace tn::composite
