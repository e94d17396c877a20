// From C++ exceptions to Python's.
#include <new>

#include "bindings/py.h"

namespace tn::py {

PyObject* linalg_error = nullptr;
PyObject* out_of_memory_error = nullptr;
PyObject* refusal_error = nullptr;

static PyObject* class_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Runtime: return PyExc_RuntimeError;
    case ErrorKind::Index: return PyExc_IndexError;
    case ErrorKind::Type: return PyExc_TypeError;
    case ErrorKind::Value: return PyExc_ValueError;
    case ErrorKind::NotImplemented: return PyExc_NotImplementedError;
    case ErrorKind::LinAlg: return linalg_error ? linalg_error : PyExc_RuntimeError;
    case ErrorKind::OutOfMemory: return PyExc_RuntimeError;  // upstream keeps torch.OutOfMemoryError for accelerators
    case ErrorKind::Assertion: return PyExc_AssertionError;
    case ErrorKind::Attribute: return PyExc_AttributeError;
    case ErrorKind::Key: return PyExc_KeyError;
  }
  return PyExc_RuntimeError;
}

void set_error_from_current_exception() noexcept {
  try {
    throw;
  } catch (const PythonError&) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "an error was raised without an exception");
  } catch (const Refusal& e) {
    PyErr_SetString(refusal_error ? refusal_error : PyExc_NotImplementedError, e.what());
  } catch (const Error& e) {
    PyErr_SetString(class_of(e.kind()), e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_SystemError, "an unknown C++ exception");
  }
}

bool bind_errors(PyObject* module) {
  const auto add = [&](PyObject** slot, const char* full, const char* name, const char* doc, PyObject* base) {
    *slot = PyErr_NewExceptionWithDoc(full, doc, base, nullptr);
    return *slot && PyModule_AddObjectRef(module, name, *slot) == 0;
  };
  return add(&linalg_error, "torch._C._LinAlgError", "_LinAlgError", "Error raised by a linear algebra routine.",
             PyExc_RuntimeError) &&
         add(&out_of_memory_error, "torch.OutOfMemoryError", "OutOfMemoryError",
             "Exception raised when a device is out of memory", PyExc_RuntimeError) &&
         add(&refusal_error, "torch._C._Refusal", "_Refusal", "What this build does not serve.",
             PyExc_NotImplementedError);
}

}  // namespace tn::py
