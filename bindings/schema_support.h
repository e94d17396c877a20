// Small helpers that the schema and type bindings share.
#pragma once

#include <Python.h>

#include <memory>
#include <new>
#include <string_view>

#include "runtime/error.h"

namespace tn::schema_support {

inline void set_python_error(const Error& error) {
  PyObject* kind = PyExc_RuntimeError;
  switch (error.kind()) {
    case ErrorKind::Index: kind = PyExc_IndexError; break;
    case ErrorKind::Type: kind = PyExc_TypeError; break;
    case ErrorKind::Value: kind = PyExc_ValueError; break;
    case ErrorKind::NotImplemented: kind = PyExc_NotImplementedError; break;
    default: break;
  }
  PyErr_SetString(kind, error.what());
}

// Runs the body of a slot: no C++ exception leaves it.
template <class R, class F>
R guarded(R failed, F&& body) {
  try {
    return body();
  } catch (const Error& error) {
    set_python_error(error);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return failed;
}
template <class F>
PyObject* guarded(F&& body) {
  return guarded<PyObject*>(nullptr, body);
}

struct Decref {
  void operator()(PyObject* object) const { Py_XDECREF(object); }
};
using Owned = std::unique_ptr<PyObject, Decref>;

inline PyObject* to_str(std::string_view text) {
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

// Borrows the text of a str; TypeError for anything else.
inline std::string_view text_of(PyObject* object, const char* what) {
  if (!PyUnicode_Check(object)) fail(ErrorKind::Type, what, ": expected a str, got ", Py_TYPE(object)->tp_name);
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(object, &size);
  if (!data) {
    PyErr_Clear();
    fail(ErrorKind::Value, what, ": expected valid Unicode text, got lone surrogates");
  }
  return {data, static_cast<size_t>(size)};
}

// Creates a class and adds it to the module under its last name.
inline PyTypeObject* add_class(PyObject* module, PyType_Spec* spec, PyObject* base = nullptr) {
  PyObject* created = base ? PyType_FromSpecWithBases(spec, base) : PyType_FromSpec(spec);
  if (!created || PyModule_AddObjectRef(module, strrchr(spec->name, '.') + 1, created) < 0) {
    fail(ErrorKind::Runtime, "torch._C: class ", spec->name, " can't be created");
  }
  return reinterpret_cast<PyTypeObject*>(created);
}

}  // namespace tn::schema_support
