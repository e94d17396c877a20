// Warnings of the core as Python's.
#include "bindings/py.h"
#include "runtime/warn.h"

namespace tn::py {

namespace {

void python_warning(const std::string& message, WarnKind kind) {
  if (!Py_IsInitialized()) return;
  const GilAcquire gil;
  PyObject* const cls = kind == WarnKind::User ? PyExc_UserWarning : PyExc_DeprecationWarning;
  if (PyErr_WarnEx(cls, message.c_str(), 1) < 0) throw PythonError();
}

}  // namespace

void install_warnings() { warn_hook = python_warning; }

}  // namespace tn::py
