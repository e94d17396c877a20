#include "kernels/ternary/composites.h"

#include "generated/ops/maximum.h"
#include "generated/ops/minimum.h"

namespace tn::composite {

// A NaN bound gives NaN, and max wins where the bounds cross: both fall out of this order.
Tensor clamp(const Tensor& self, OptionalTensor min, OptionalTensor max) {
  TN_CHECK(min || max, "torch.clamp: At least one of 'min' or 'max' must not be None");
  if (!max) return at::maximum(self, *min);
  if (!min) return at::minimum(self, *max);
  return at::minimum(at::maximum(self, *min), *max);
}

}  // namespace tn::composite
