// Normalisations that upstream composes of others, and the checks that they share.
#pragma once
#include "runtime/array_ref.h"
#include "runtime/tensor.h"

namespace tn::composite {

// The input must end in the normalized shape, and the parameters must have it: upstream's errors.
void check_normalized_shape(const Tensor& input, IntView shape, OptionalTensor weight, OptionalTensor bias);
Tensor layer_norm(const Tensor& input, IntView shape, OptionalTensor weight, OptionalTensor bias, double eps, bool cudnn);

Tensor group_norm(const Tensor& input, int64_t groups, OptionalTensor weight, OptionalTensor bias, double eps, bool cudnn);
Tensor batch_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias, OptionalTensor running_mean, OptionalTensor running_var,
                  bool training, double momentum, double eps, bool cudnn);

}  // namespace tn::composite
