// torch.library and torch.ops: definitions and kernels from Python, lookup and calls of operators by name.
#pragma once
#include <Python.h>

namespace tn::py {

// Adds _dispatch_library, _jit_get_operation, _get_schema, _get_operation_overload, the _dispatch_* queries on
// operators and their classes to torch._C. False with an exception set.
bool bind_library(PyObject* module);

}  // namespace tn::py
