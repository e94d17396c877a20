// Small functions of torch._C on tensors, storages and threads.
#pragma once
#include <Python.h>

namespace tn::py {

bool bind_utilities(PyObject* module);

}  // namespace tn::py
