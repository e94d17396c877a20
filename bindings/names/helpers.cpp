// Small functions of torch._C that upstream's Python calls at import or between tests, and that really act.
#include <signal.h>
#include <sys/prctl.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "bindings/names/names.h"
#include "bindings/node.h"
#include "bindings/observe.h"
#include "bindings/tensor_parts.h"
#include "bindings/names/table.h"

namespace tn::py::names {
namespace {

PyObject* g_module = nullptr;          // borrowed: torch._C
PyObject* g_opaque_types = nullptr;    // a set of names
std::string* g_privateuse1 = nullptr;  // null until renamed

PyObject* register_opaque_type(PyObject*, PyObject* name) {
  if (PySet_Add(g_opaque_types, name)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* unregister_opaque_type(PyObject*, PyObject* name) {
  if (PySet_Discard(g_opaque_types, name) < 0) return nullptr;
  Py_RETURN_NONE;
}

PyObject* is_opaque_type_registered(PyObject*, PyObject* name) {
  const int found = PySet_Contains(g_opaque_types, name);
  return found < 0 ? nullptr : PyBool_FromLong(found);
}

// Python refuses `Generator.__class__ = ...` for a static type, and upstream's opaque-type check wants the metaclass.
PyObject* set_generator_metaclass(PyObject*, PyObject* metaclass) {
  if (!PyType_Check(metaclass)) {
    return PyErr_Format(PyExc_TypeError, "_set_generator_metaclass: expected a type, got %s",
                        Py_TYPE(metaclass)->tp_name);
  }
  PyObject* generator = PyObject_GetAttrString(g_module, "Generator");
  if (generator == nullptr) return nullptr;
  PyTypeObject* before = Py_TYPE(generator);
  Py_SET_TYPE(generator, reinterpret_cast<PyTypeObject*>(Py_NewRef(metaclass)));
  if (before->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_DECREF(before);
  PyType_Modified(reinterpret_cast<PyTypeObject*>(generator));
  Py_DECREF(generator);
  Py_RETURN_NONE;
}

PyObject* custom_class_python_wrapper(PyObject*, PyObject* args) {
  const char* space = nullptr;
  const char* name = nullptr;
  if (!PyArg_ParseTuple(args, "ss", &space, &name)) return nullptr;
  if (std::strcmp(space, "aten") != 0 || std::strcmp(name, "OpaqueObject") != 0) {
    return PyErr_Format(PyExc_RuntimeError,
                        "Tried to instantiate class '%s.%s', but it does not exist! Ensure that it is registered",
                        space, name);
  }
  for (int i = 0; i < kClassCount; ++i) {
    if (std::strcmp(kClasses[i].path, "ScriptClass") == 0) return g_types[i]->tp_alloc(g_types[i], 0);
  }
  return PyErr_Format(PyExc_SystemError, "torch._C.ScriptClass is missing");
}

PyObject* privateuse1_name(PyObject*, PyObject*) {
  return PyUnicode_FromString(g_privateuse1 == nullptr ? "privateuseone" : g_privateuse1->c_str());
}

PyObject* rename_privateuse1(PyObject*, PyObject* args) {
  const char* name = nullptr;
  if (!PyArg_ParseTuple(args, "s", &name)) return nullptr;
  if (g_privateuse1 != nullptr && *g_privateuse1 != name) {
    return PyErr_Format(PyExc_RuntimeError,
                        "torch.register_privateuse1_backend() has already been set! Current backend: %s",
                        g_privateuse1->c_str());
  }
  if (g_privateuse1 == nullptr) g_privateuse1 = new std::string(name);
  Py_RETURN_NONE;
}

PyObject* set_pdeathsig(PyObject*, PyObject* args) {
  int signal_number = 0;
  if (!PyArg_ParseTuple(args, "i", &signal_number)) return nullptr;
  if (prctl(PR_SET_PDEATHSIG, signal_number) != 0) return PyErr_SetFromErrno(PyExc_OSError);
  Py_RETURN_NONE;
}

PyMethodDef pdeathsig_method = {"_prctl_pr_set_pdeathsig", set_pdeathsig, METH_VARARGS, nullptr};

PyObject* multiprocessing_init(PyObject*, PyObject*) {
  PyObject* module = PyImport_ImportModule("torch.multiprocessing");
  if (module == nullptr) return nullptr;
  PyObject* function = PyCFunction_NewEx(&pdeathsig_method, nullptr, nullptr);
  const int failed = function == nullptr || PyObject_SetAttrString(module, "_prctl_pr_set_pdeathsig", function) != 0;
  Py_XDECREF(function);
  Py_DECREF(module);
  if (failed) return nullptr;
  Py_RETURN_TRUE;
}

PyObject* after_install(const char* submodule) {
  if (!install_submodule(submodule)) return nullptr;
  Py_RETURN_TRUE;
}

PyObject* autograd_init(PyObject*, PyObject*) {
  if (!install_submodule("_autograd") || !bind_saved_hooks(g_module) || !bind_view_functions(g_module) ||
      !bind_profiler(g_module))
    return nullptr;
  Py_RETURN_TRUE;
}
PyObject* c10d_init(PyObject*, PyObject*) { return after_install("_distributed_c10d"); }
PyObject* rpc_init(PyObject*, PyObject*) { return after_install("_distributed_rpc"); }
PyObject* dist_autograd_init(PyObject*, PyObject*) { return after_install("_distributed_autograd"); }

// Objects that belong to a thread, by name: Python's own per-thread dictionary frees them with the thread.
PyObject* thread_objects() {
  constexpr const char* kKey = "torch._C objects";
  PyObject* state = PyThreadState_GetDict();
  if (state == nullptr) return PyErr_Format(PyExc_RuntimeError, "no thread state");
  PyObject* objects = PyDict_GetItemString(state, kKey);
  if (objects != nullptr) return objects;
  objects = PyDict_New();
  if (objects == nullptr) return nullptr;
  const int failed = PyDict_SetItemString(state, kKey, objects);
  Py_DECREF(objects);
  return failed ? nullptr : objects;
}

PyObject* stash_obj_in_tls(PyObject*, PyObject* args) {
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  if (!PyArg_ParseTuple(args, "UO", &key, &value)) return nullptr;
  PyObject* objects = thread_objects();
  if (objects == nullptr || PyDict_SetItem(objects, key, value)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* get_obj_in_tls(PyObject*, PyObject* key) {
  PyObject* objects = thread_objects();
  if (objects == nullptr) return nullptr;
  PyObject* value = PyDict_GetItemWithError(objects, key);
  if (value != nullptr) return Py_NewRef(value);
  if (PyErr_Occurred() != nullptr) return nullptr;
  return PyErr_Format(PyExc_RuntimeError, "_get_obj_in_tls: expected a key of this thread, got %R", key);
}

PyObject* is_key_in_tls(PyObject*, PyObject* key) {
  PyObject* objects = thread_objects();
  const int found = objects == nullptr ? -1 : PyDict_Contains(objects, key);
  return found < 0 ? nullptr : PyBool_FromLong(found);
}

PyObject* remove_obj_from_tls(PyObject*, PyObject* key) {
  PyObject* objects = thread_objects();
  if (objects == nullptr) return nullptr;
  if (PyDict_DelItem(objects, key) != 0) {
    if (!PyErr_ExceptionMatches(PyExc_KeyError)) return nullptr;
    PyErr_Clear();
  }
  Py_RETURN_NONE;
}

PyObject* jit_emit_hooks(PyObject*, PyObject*) { return PyTuple_Pack(2, Py_None, Py_None); }

PyMethodDef methods[] = {
    {"_register_opaque_type", register_opaque_type, METH_O, nullptr},
    {"_unregister_opaque_type", unregister_opaque_type, METH_O, nullptr},
    {"_is_opaque_type_registered", is_opaque_type_registered, METH_O, nullptr},
    {"_set_generator_metaclass", set_generator_metaclass, METH_O, nullptr},
    {"_get_custom_class_python_wrapper", custom_class_python_wrapper, METH_VARARGS, nullptr},
    {"_get_privateuse1_backend_name", privateuse1_name, METH_NOARGS, nullptr},
    {"_rename_privateuse1_backend", rename_privateuse1, METH_VARARGS, nullptr},
    {"_multiprocessing_init", multiprocessing_init, METH_NOARGS, nullptr},
    {"_autograd_init", autograd_init, METH_NOARGS, nullptr},
    {"_c10d_init", c10d_init, METH_NOARGS, nullptr},
    {"_rpc_init", rpc_init, METH_NOARGS, nullptr},
    {"_dist_autograd_init", dist_autograd_init, METH_NOARGS, nullptr},
    {"_stash_obj_in_tls", stash_obj_in_tls, METH_VARARGS, nullptr},
    {"_get_obj_in_tls", get_obj_in_tls, METH_O, nullptr},
    {"_is_key_in_tls", is_key_in_tls, METH_O, nullptr},
    {"_remove_obj_from_tls", remove_obj_from_tls, METH_O, nullptr},
    {"_jit_get_emit_hooks", jit_emit_hooks, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool add_helper_functions(PyObject* module) {
  g_module = module;
  g_opaque_types = PySet_New(nullptr);
  return g_opaque_types != nullptr && PyModule_AddFunctions(module, methods) == 0;
}

}  // namespace tn::py::names

namespace tn::py {

bool is_opaque_type(const char* name) {
  PyObject* key = PyUnicode_FromString(name);
  const int found = key == nullptr ? -1 : PySet_Contains(names::g_opaque_types, key);
  Py_XDECREF(key);
  if (found < 0) PyErr_Clear();
  return found > 0;
}

}  // namespace tn::py
