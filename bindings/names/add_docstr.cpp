// torch._C._add_docstr: upstream's Python writes the documentation of C objects through it, once for each.
#include <Python.h>

#include <cstring>

#include "bindings/names/table.h"

namespace tn::py::names {
namespace {

PyObject* refuse_twice(const char* kind, const char* name) {
  return PyErr_Format(PyExc_RuntimeError, "%s '%s' already has a docstring", kind, name);
}

// The object keeps only a pointer, so the string must never go away.
bool attach(const char** place, PyObject* text) {
  const char* utf8 = PyUnicode_AsUTF8(text);
  if (utf8 == nullptr) return false;
  Py_INCREF(text);
  *place = utf8;
  return true;
}

// A heap type answers __doc__ from its dictionary, a static one from tp_doc.
PyObject* document_type(PyObject* object, PyObject* text) {
  PyTypeObject* type = reinterpret_cast<PyTypeObject*>(object);
  PyObject* known = PyDict_GetItemString(type->tp_dict, "__doc__");
  const bool has_doc = type->tp_doc != nullptr || (known != nullptr && known != Py_None);
  if (has_doc) return refuse_twice("Type", type->tp_name);
  if (PyDict_SetItemString(type->tp_dict, "__doc__", text)) return nullptr;
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) && !attach(&type->tp_doc, text)) return nullptr;
  PyType_Modified(type);
  return Py_NewRef(object);
}

PyObject* add_docstr(PyObject*, PyObject* args) {
  PyObject* object = nullptr;
  PyObject* text = nullptr;
  if (!PyArg_ParseTuple(args, "OU", &object, &text)) return nullptr;
  const char** place = nullptr;
  const char* kind = nullptr;
  const char* name = nullptr;
  PyTypeObject* type = Py_TYPE(object);
  if (type == &PyCFunction_Type) {
    PyMethodDef* def = reinterpret_cast<PyCFunctionObject*>(object)->m_ml;
    place = &def->ml_doc, kind = "function", name = def->ml_name;
  } else if (type == &PyMethodDescr_Type || type == &PyClassMethodDescr_Type) {
    PyMethodDef* def = reinterpret_cast<PyMethodDescrObject*>(object)->d_method;
    place = &def->ml_doc, kind = "method", name = def->ml_name;
  } else if (type == &PyGetSetDescr_Type) {
    PyGetSetDef* def = reinterpret_cast<PyGetSetDescrObject*>(object)->d_getset;
    place = &def->doc, kind = "attribute", name = def->name;
  } else if (PyType_Check(object)) {
    return document_type(object, text);
  } else {
    return PyErr_Format(PyExc_TypeError, "don't know how to add docstring to type '%s'", type->tp_name);
  }
  if (*place != nullptr) return refuse_twice(kind, name);
  if (!attach(place, text)) return nullptr;
  return Py_NewRef(object);
}

PyMethodDef methods[] = {
    {"_add_docstr", add_docstr, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool add_docstr_functions(PyObject* module) { return PyModule_AddFunctions(module, methods) == 0; }

}  // namespace tn::py::names
