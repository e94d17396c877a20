// Methods that only have to exist: upstream's own C++ tests and TorchScript call them. Each refuses by name.
#pragma once
#include <Python.h>

#include "bindings/py.h"
#include "runtime/refuse.h"

namespace tn::py {

// The names are objects, since a template takes no literal: constexpr char kName[] = "torch._C.X.y".
template <const char* kName, const char* kReason>
PyObject* refused_method(PyObject*, PyObject*, PyObject*) {
  return guarded([]() -> PyObject* { refuse(kName, "call", kReason); });
}
template <const char* kName, const char* kReason>
PyMethodDef refused(const char* name) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&refused_method<kName, kReason>)),
          METH_VARARGS | METH_KEYWORDS, nullptr};
}

}  // namespace tn::py
