// torch._C._autograd: whether hooks over saved tensors may be set, and the message when not.
#pragma once
#include <Python.h>

namespace tn::py {

// Adds its functions to the `_autograd` submodule, once that is installed.
bool bind_saved_hooks(PyObject* module);

}  // namespace tn::py
