// Small functions of torch._C on tensors, storages and threads.
#pragma once
#include <Python.h>

namespace tn::py {

bool bind_utilities(PyObject* module);
// What optimisers ask of lists of tensors.
bool bind_foreach(PyObject* module);
// Operators outside native_functions.yaml that have nothing to do here: profiler ranges, questions on absent libraries.
bool bind_no_op_kernels();

}  // namespace tn::py
