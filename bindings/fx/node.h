// The C part of torch.fx: `_NodeBase`, `_NodeIter`, `_fx_map_arg`, `_fx_map_aggregate`.
#pragma once

#include <Python.h>

namespace tn::py {

// Adds them to torch._C. False: a Python error is set.
bool install_fx(PyObject* module);

}  // namespace tn::py
