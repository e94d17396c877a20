// Helpers for static type objects and texts.
#pragma once
#include <Python.h>

#include <cstddef>
#include <string_view>

#include "bindings/py.h"

namespace tn::py {

inline PyObject* text_object(std::string_view s) {
  return PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()));
}
inline const char* type_name(PyObject* o) { return Py_TYPE(o)->tp_name; }

// Fills in and readies a static type. `name` is dotted: what precedes its last dot is the __module__.
inline bool ready_type(PyTypeObject& type, const char* name, size_t size, unsigned long flags = Py_TPFLAGS_DEFAULT) {
  Py_SET_REFCNT(&type, 1);
  type.tp_name = name;
  type.tp_basicsize = static_cast<Py_ssize_t>(size);
  type.tp_flags = flags;
  return PyType_Ready(&type) == 0;
}

inline bool add_to_module(PyObject* module, const char* name, PyObject* object) {
  return PyModule_AddObjectRef(module, name, object) == 0;
}
inline bool add_to_module(PyObject* module, const char* name, PyTypeObject& type) {
  return add_to_module(module, name, reinterpret_cast<PyObject*>(&type));
}

}  // namespace tn::py
