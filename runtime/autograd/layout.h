// Whether tensors lie alike, so that views of the one fit the other.
#pragma once
#include "runtime/tensor.h"

namespace tn {

// Same geometry (as far as elements tell), conjugate and negative bits, and size of the storage. A batched tensor's
// storage has a size of its own, which isn't compared.
bool same_layout(const Tensor& a, const Tensor& b);

}  // namespace tn
