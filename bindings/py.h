// What every file of the bindings needs: owned references, the error in flight, and the one wrapper that catches.
#pragma once
#include <Python.h>

#include <utility>

#include "runtime/error.h"

namespace tn::py {

// Thrown through C++ while Python's own exception is set.
struct PythonError {};

// An owned reference. Everything here needs the GIL.
class PyRef {
 public:
  PyRef() noexcept = default;
  PyRef(PyRef&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  PyRef(const PyRef& o) noexcept : p_(o.p_) { Py_XINCREF(p_); }
  PyRef& operator=(PyRef o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~PyRef() { Py_XDECREF(p_); }

  static PyRef adopt(PyObject* owned) noexcept {
    PyRef r;
    r.p_ = owned;
    return r;
  }
  static PyRef share(PyObject* borrowed) noexcept {
    Py_XINCREF(borrowed);
    return adopt(borrowed);
  }
  // Adopts a call's result; throws where the call failed.
  static PyRef check(PyObject* owned) {
    if (!owned) throw PythonError();
    return adopt(owned);
  }

  PyObject* get() const noexcept { return p_; }
  PyObject* release() noexcept { return std::exchange(p_, nullptr); }
  explicit operator bool() const noexcept { return p_ != nullptr; }

 private:
  PyObject* p_ = nullptr;
};

// Sets Python's exception from the C++ exception being handled. Called inside a catch clause.
void set_error_from_current_exception() noexcept;

// Runs a body that returns a PyObject* (or int, with -1 for errors) and turns exceptions into Python's.
template <class F>
auto guarded(F&& body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    set_error_from_current_exception();
  }
  if constexpr (std::is_pointer_v<decltype(body())>) return nullptr;
  else return static_cast<decltype(body())>(-1);
}

// Raises through C++.
template <class... A>
[[noreturn, gnu::cold, gnu::noinline]] void raise(PyObject* type, const char* format, A... args) {
  PyErr_Format(type, format, args...);
  throw PythonError();
}

// The classes of errors that Python has no class for; made by bind_errors.
extern PyObject* linalg_error;
extern PyObject* out_of_memory_error;
extern PyObject* refusal_error;
bool bind_errors(PyObject* module);
// Warnings of the core become Python's.
void install_warnings();

class GilRelease {
 public:
  explicit GilRelease(bool really = true) : state_(really ? PyEval_SaveThread() : nullptr) {}
  ~GilRelease() {
    if (state_) PyEval_RestoreThread(state_);
  }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

// For Python called from kernels: whether the calling thread holds the GIL or not.
class GilAcquire {
 public:
  GilAcquire() : state_(PyGILState_Ensure()) {}
  ~GilAcquire() { PyGILState_Release(state_); }
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;

 private:
  PyGILState_STATE state_;
};

inline PyObject* new_bool(bool v) { return Py_NewRef(v ? Py_True : Py_False); }

}  // namespace tn::py
