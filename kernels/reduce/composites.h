// Small pieces of upstream's composites.
#pragma once
#include <optional>

#include "runtime/scalar.h"
#include "runtime/tensor.h"

namespace tn::composite {

// The inverse of a broadcast: sums over what expanding `size` to self's shape would repeat.
Tensor sum_to_size(const Tensor& self, IntView size);

inline std::optional<Scalar> unbiased_correction(bool unbiased) { return Scalar(unbiased ? 1 : 0); }

}  // namespace tn::composite
