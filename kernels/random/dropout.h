// Dropout and normal tensors with tensor parameters: composed of other operators; each call passes the door.
#pragma once
#include <optional>
#include <tuple>

#include "runtime/tensor.h"

namespace tn {
class GeneratorImpl;
}

namespace tn::composite {

Tensor dropout(const Tensor& input, double p, bool train);
const Tensor& dropout_(const Tensor& self, double p, bool train);
Tensor alpha_dropout(const Tensor& input, double p, bool train);
const Tensor& alpha_dropout_(const Tensor& self, double p, bool train);
// Whole channels (the second dimension) go together.
Tensor feature_dropout(const Tensor& input, double p, bool train);
const Tensor& feature_dropout_(const Tensor& self, double p, bool train);
Tensor feature_alpha_dropout(const Tensor& input, double p, bool train);
const Tensor& feature_alpha_dropout_(const Tensor& self, double p, bool train);

std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p, std::optional<bool> train);
Tensor native_dropout_backward(const Tensor& grad_output, const Tensor& mask, double scale);

Tensor normal(const Tensor& mean, double std, GeneratorImpl* generator);
Tensor normal(double mean, const Tensor& std, GeneratorImpl* generator);
Tensor normal(const Tensor& mean, const Tensor& std, GeneratorImpl* generator);

}  // namespace tn::composite
