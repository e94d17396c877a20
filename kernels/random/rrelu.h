// The leaky rectifier with random slopes (Xu et al. 2015, "Empirical Evaluation of Rectified Activations").
#pragma once
#include "runtime/tensor.h"

namespace tn {
class GeneratorImpl;
}

namespace tn::composite {

Tensor rrelu(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training, GeneratorImpl* generator);
const Tensor& rrelu_(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
                     GeneratorImpl* generator);
Tensor rrelu_backward(const Tensor& grad, const Tensor& self, const Tensor& noise, const Scalar& lower,
                      const Scalar& upper, bool training, bool self_is_result);

}  // namespace tn::composite
