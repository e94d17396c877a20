// Kernels for keys, not for operators: what happens at Conjugate, Negative and autograd when an operator has nothing
// there.
#pragma once
#include "runtime/door.h"

namespace tn {

// Applies pending conjugation or negation to the arguments, then continues below.
Ref<BoxedKernel> make_resolve_fallback();
// Below autograd the call goes on as it is; results that would be differentiable are marked with a node named after the
// operator, and running that node refuses.
Ref<BoxedKernel> make_graph_marker();

}  // namespace tn
