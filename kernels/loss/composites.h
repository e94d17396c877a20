// Losses over classes that upstream composes.
#pragma once
#include "runtime/tensor.h"

namespace tn::composite {

Tensor nll_loss_nd(const Tensor& self, const Tensor& target, OptionalTensor weight, int64_t reduction, int64_t ignore_index);
Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, OptionalTensor weight, int64_t reduction, int64_t ignore_index,
                          double label_smoothing);

}  // namespace tn::composite
