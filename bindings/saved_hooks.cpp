#include "bindings/saved_hooks.h"

#include "bindings/py.h"

namespace tn::py {
namespace {

// Owned text, or null while hooks are allowed.
constinit thread_local PyObject* disabled_message = nullptr;

PyObject* disable(PyObject*, PyObject* args) {
  PyObject* message;
  int fail_if_non_empty = 1;
  if (!PyArg_ParseTuple(args, "U|p:_saved_tensors_hooks_disable", &message, &fail_if_non_empty)) return nullptr;
  Py_XSETREF(disabled_message, Py_NewRef(message));
  Py_RETURN_NONE;
}
PyObject* enable(PyObject*, PyObject*) {
  Py_CLEAR(disabled_message);
  Py_RETURN_NONE;
}
PyObject* is_enabled(PyObject*, PyObject*) { return new_bool(disabled_message == nullptr); }
PyObject* message(PyObject*, PyObject*) { return Py_NewRef(disabled_message ? disabled_message : Py_None); }

PyMethodDef functions[] = {
    {"_saved_tensors_hooks_disable", disable, METH_VARARGS, nullptr},
    {"_saved_tensors_hooks_enable", enable, METH_NOARGS, nullptr},
    {"_saved_tensors_hooks_is_enabled", is_enabled, METH_NOARGS, nullptr},
    {"_saved_tensors_hooks_get_disabled_error_message", message, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool bind_saved_hooks(PyObject* module) {
  const PyRef autograd = PyRef::adopt(PyObject_GetAttrString(module, "_autograd"));
  return autograd && PyModule_AddFunctions(autograd.get(), functions) == 0;
}

}  // namespace tn::py
