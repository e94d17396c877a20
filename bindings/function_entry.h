// The C entry of a Function: what a generated PyMethodDef points to. For generated files only.
#pragma once
#include "bindings/parser.h"

namespace tn::py {

template <const Function& F>
PyObject* function_entry(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return call_function(F, self, args, nargs, kwnames);
}

// __torch_function__ dispatch happens in call_function, so classes and modules share one kind of entry.
template <const Function& F>
PyMethodDef method_def() {
  return {F.name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&function_entry<F>)),
          METH_FASTCALL | METH_KEYWORDS | (F.method ? 0 : METH_STATIC), nullptr};
}

}  // namespace tn::py
