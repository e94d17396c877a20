// Softmax over a dimension, in another dtype if asked: upstream's composites.
#pragma once
#include <optional>

#include "runtime/tensor.h"

namespace tn::composite {

Tensor softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype);
Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype);

}  // namespace tn::composite
