// Between the files that make tensors.
#pragma once
#include "bindings/objects.h"
#include "bindings/torch_function.h"

namespace tn::py {

// Tells an active __torch_function__ mode that a function of `torch` was called; true if it took the call.
bool mode_takes(const char* function, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, PyObject** result);
// What the thread's modes and transforms make of a tensor that appeared out of nowhere.
Tensor lifted(Tensor t);
// RuntimeError: there is no pinned memory on the CPU alone.
void check_pin_memory(bool asked);

PyObject* torch_asarray(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
PyObject* torch_frombuffer(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

}  // namespace tn::py
