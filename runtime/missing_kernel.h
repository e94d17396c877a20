// Who wants to say more than the door when an operator has no kernel for a key.
#pragma once
#include "runtime/door.h"

namespace tn {

// May throw an error of its own; if it returns, the refusal follows. Set by the bindings.
using MissingKernel = void (*)(const OpRow& op, DispatchKey key);
extern constinit MissingKernel missing_kernel;

}  // namespace tn
