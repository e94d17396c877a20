// torch._C._functorch: Python's way to the function transforms.
#pragma once
#include <Python.h>

namespace tn::py {

bool bind_functorch(PyObject* module);
// RuntimeError for Tensor.requires_grad_() inside of a transform, unless the transform itself calls it.
void check_requires_grad_allowed();

}  // namespace tn::py
