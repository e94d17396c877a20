// Grad mode, inference mode, autocast settings, guards, and the refusing engine.
#pragma once
#include <Python.h>

namespace tn::py {

bool bind_grad_mode(PyObject* module);

}  // namespace tn::py
