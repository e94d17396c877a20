#pragma once
#include <Python.h>

namespace tn::py {

bool bind_observe(PyObject* module);

}  // namespace tn::py
