// Upstream's own argument errors that several elementwise operators share, as `check` of a slot.
#pragma once
#include <span>

#include "runtime/error.h"
#include "runtime/slots.h"
#include "runtime/tensor.h"
#include "runtime/value.h"

namespace tn::checks {

using Inputs = std::span<const Tensor* const>;

inline bool any_complex(Inputs inputs) {
  for (const Tensor* t : inputs)
    if (t->is_complex()) return true;
  return false;
}

// alpha of add, sub and rsub; `result` is the common dtype.
inline void alpha(ScalarType result, const Scalar& alpha) {
  TN_CHECK(!alpha.is_bool() || result == ScalarType::Bool, "Boolean alpha only supported for Boolean results.");
  TN_CHECK(is_floating(result) || is_complex(result) || alpha.is_integral(true),
           "For integral input tensors, argument alpha must not be a floating point number.");
  TN_CHECK(is_complex(result) || !alpha.is_complex(),
           "For non-complex input tensors, argument alpha must not be a complex number.");
}

}  // namespace tn::checks
