// torch._C._dynamo: the frame hook stays None. Setting a callable is where torch.compile is refused, and only there.
#include <cstring>
#include <initializer_list>

#include "bindings/names/table.h"

namespace tn::py::names {
namespace {

constexpr const char* kReason = "torch.compile is not part of torchnative";

PyObject* g_callback = nullptr;  // None or False; upstream: None is off, False runs without compiling

PyObject* set_eval_frame(PyObject*, PyObject* callback) {
  if (callback != Py_None && callback != Py_False) {
    if (!PyCallable_Check(callback)) return PyErr_Format(PyExc_TypeError, "expected a callable");
    return raise_refusal("_dynamo.eval_frame.set_eval_frame", "a callable", kReason);
  }
  PyObject* before = g_callback;
  g_callback = Py_NewRef(callback);
  return before;
}

long g_recursion_limit = -1;  // kept for the getter; frames are never evaluated by a hook of ours

PyObject* set_c_recursion_limit(PyObject*, PyObject* value) {
  const long limit = PyLong_AsLong(value);
  if (limit == -1 && PyErr_Occurred() != nullptr) return nullptr;
  if (limit < 1 && limit != -1) {
    return PyErr_Format(PyExc_ValueError, "recursion limit must be >= 1, or -1 to reset");
  }
  g_recursion_limit = limit;
  Py_RETURN_NONE;
}

PyObject* get_c_recursion_limit(PyObject*, PyObject*) { return PyLong_FromLong(g_recursion_limit); }

PyObject* get_eval_frame_callback(PyObject*, PyObject*) { return Py_NewRef(g_callback); }

PyObject* need_code(PyObject* code) {
  if (PyCode_Check(code)) return code;
  return PyErr_Format(PyExc_TypeError, "expected a code object");
}

PyObject* code_framelocals_names(PyObject*, PyObject* code) {
  if (need_code(code) == nullptr) return nullptr;
  PyObject* names = PyTuple_New(0);
  for (const char* part : {"co_varnames", "co_cellvars", "co_freevars"}) {
    PyObject* some = PyObject_GetAttrString(code, part);
    PyObject* joined = some == nullptr || names == nullptr ? nullptr : PySequence_Concat(names, some);
    Py_XDECREF(some);
    Py_XDECREF(names);
    names = joined;
  }
  return names;
}

PyObject* second_argument(PyObject*, PyObject* args) {
  PyObject* first = nullptr;
  PyObject* second = nullptr;
  return PyArg_ParseTuple(args, "OO", &first, &second) ? Py_NewRef(second) : nullptr;
}

PyObject* check_obj_id(PyObject*, PyObject* args) {
  PyObject* object = nullptr;
  PyObject* expected = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &object, &expected)) return nullptr;
  return PyBool_FromLong(PyLong_AsVoidPtr(expected) == object && PyErr_Occurred() == nullptr);
}

PyObject* check_type_id(PyObject*, PyObject* args) {
  PyObject* object = nullptr;
  PyObject* expected = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &object, &expected)) return nullptr;
  return PyBool_FromLong(PyLong_AsVoidPtr(expected) == Py_TYPE(object) && PyErr_Occurred() == nullptr);
}

PyObject* is_valid_var_name(PyObject*, PyObject* name) { return PyObject_CallMethod(name, "isidentifier", nullptr); }

// "f(x).y" names x: the innermost text between the last opening and the first closing parenthesis.
PyObject* strip_function_call(PyObject*, PyObject* text) {
  Py_ssize_t size = 0;
  const char* utf8 = PyUnicode_AsUTF8AndSize(text, &size);
  if (utf8 == nullptr) return nullptr;
  const char* open = std::strrchr(utf8, '(');
  const char* begin = open == nullptr ? utf8 : open + 1;
  size_t length = 0;
  while (begin[length] != '\0' &&
         (Py_UNICODE_ISALNUM(static_cast<unsigned char>(begin[length])) || begin[length] == '_')) {
    ++length;
  }
  return PyUnicode_FromStringAndSize(begin, static_cast<Py_ssize_t>(length));
}

PyObject* is_instancemethod(PyObject*, PyObject* object) { return PyBool_FromLong(PyInstanceMethod_Check(object)); }

// Returns what was set before: always no compiler.
PyObject* set_autograd_compiler(PyObject*, PyObject* args) {
  PyObject* compiler = nullptr;
  int dynamic = 0;
  if (!PyArg_ParseTuple(args, "Op", &compiler, &dynamic)) return nullptr;
  if (compiler != Py_None) {
    return raise_refusal("_dynamo.compiled_autograd.set_autograd_compiler", "a compiler", kReason);
  }
  return PyTuple_Pack(2, Py_None, Py_False);
}

PyMethodDef compiled_autograd_methods[] = {
    {"set_autograd_compiler", set_autograd_compiler, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef eval_frame_methods[] = {
    {"set_eval_frame", set_eval_frame, METH_O, nullptr},
    {"get_eval_frame_callback", get_eval_frame_callback, METH_NOARGS, nullptr},
    {"set_c_recursion_limit", set_c_recursion_limit, METH_O, nullptr},
    {"get_c_recursion_limit", get_c_recursion_limit, METH_NOARGS, nullptr},
    {"code_framelocals_names", code_framelocals_names, METH_O, nullptr},
    {"unsupported", second_argument, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef guard_methods[] = {
    {"check_obj_id", check_obj_id, METH_VARARGS, nullptr},
    {"check_type_id", check_type_id, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef dynamo_methods[] = {
    {"is_valid_var_name", is_valid_var_name, METH_O, nullptr},
    {"strip_function_call", strip_function_call, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef utils_methods[] = {
    {"is_instancemethod", is_instancemethod, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

bool add_to(PyObject* parent, const char* name, PyMethodDef* methods) {
  PyObject* module = PyObject_GetAttrString(parent, name);
  if (module == nullptr) return false;
  const int failed = PyModule_AddFunctions(module, methods);
  Py_DECREF(module);
  return failed == 0;
}

}  // namespace

bool add_dynamo_functions(PyObject* module) {
  g_callback = Py_NewRef(Py_None);
  PyObject* dynamo = PyObject_GetAttrString(module, "_dynamo");
  if (dynamo == nullptr) return false;
  const bool ok = PyModule_AddFunctions(dynamo, dynamo_methods) == 0 &&
                  add_to(dynamo, "eval_frame", eval_frame_methods) && add_to(dynamo, "guards", guard_methods) &&
                  add_to(dynamo, "utils", utils_methods) &&
                  add_to(dynamo, "compiled_autograd", compiled_autograd_methods);
  Py_DECREF(dynamo);
  return ok;
}

}  // namespace tn::py::names
