// The dtype gate of structured slots.
#pragma once
#include "runtime/fwd.h"
#include "runtime/refuse.h"
#include "runtime/tensor.h"

namespace tn {

// Refuses by name when the tensor's dtype is not among the claim's.
inline void gate(const OpInfo& op, DTypeSet dtypes, const Tensor& t) {
  if (__builtin_expect(!dtypes.has(t.dtype()), 0)) refuse_dtype(op, t.dtype());
}
inline void gate(const OpInfo& op, DTypeSet dtypes, TensorList list) {
  for (const Tensor& t : list) gate(op, dtypes, t);
}

}  // namespace tn
