// Dispatch seen from Python: key sets and guards, the stack of dispatch modes, and the kernel behind the Python key.
#pragma once
#include <Python.h>

namespace tn::py {

bool bind_dispatch_keys(PyObject* module);
// _SafeKernelFunction and the queries that give one.
bool bind_kernel_handles(PyObject* module);
// The mode stack's functions, and __torch_dispatch__ as the fallback of the Python key.
bool bind_torch_dispatch(PyObject* module);

}  // namespace tn::py
