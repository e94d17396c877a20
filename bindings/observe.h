#pragma once
#include <Python.h>

namespace tn::py {

bool bind_observe(PyObject* module);
// torch.profiler; after the names of torch._C._autograd.
bool bind_profiler(PyObject* module);

}  // namespace tn::py
