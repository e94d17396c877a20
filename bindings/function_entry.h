// The C entry of a Function: what a generated PyMethodDef points to. For generated files only.
#pragma once
#include "bindings/parser.h"

namespace tn::py {

template <const Function& F>
PyObject* function_entry(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return call_function(F, self, args, nargs, kwnames);
}

}  // namespace tn::py

// A row of a PyMethodDef table. A macro since CPython wants one pointer type for every kind of entry, and a cast in a
// function would turn the table into a run-time initialiser.
#define TN_METHOD(f, flags)                                                                 \
  {f.name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&function_entry<f>)), \
   METH_FASTCALL | METH_KEYWORDS | (flags), nullptr}
