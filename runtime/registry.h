// Which kernel a row has for a key: registrations, composites, fallbacks, in upstream's order of precedence.
#pragma once
#include "runtime/door.h"

namespace tn {

struct Found {
  BoxedKernel* boxed = nullptr;
  AnyFn typed = nullptr;
  bool fallthrough = false;
};

// Runs upstream's decomposition of operators that are served that way; set by the bindings, null without Python.
extern constinit Ref<BoxedKernel> python_decomposition;

// For the highest key of the set; neither pointer is set when there is none.
Found find_kernel(const OpRow& row, KeySet keys);
Found find_kernel_for(const OpRow& row, DispatchKey key);

}  // namespace tn
