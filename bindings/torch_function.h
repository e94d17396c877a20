// __torch_function__: who overrides, in which order, and the stack of modes.
#pragma once
#include <Python.h>

#include <vector>

#include "bindings/py.h"
#include "bindings/tensor.h"

namespace tn::py {

// The thread's state. One load and branch tells that no mode can be active.
struct TorchFunctionState {
  enum Disabled : uint8_t { kEnabled, kSubclasses, kAll };
  Disabled disabled;
  bool skip_next;
  uint32_t num_modes;  // while not disabled; see mode_active
  std::vector<PyObject*>* stack;
};
// Initial-exec: a few bytes of the static block, and no call to find them.
extern constinit thread_local TorchFunctionState torch_function_state [[gnu::tls_model("initial-exec")]];

inline bool torch_function_mode_active() {
  return __builtin_expect(torch_function_state.num_modes != 0, 0) &&
         torch_function_state.disabled != TorchFunctionState::kAll;
}

extern PyObject* disabled_torch_function_impl;  // torch._C._disabled_torch_function_impl
extern PyObject* disabled_torch_dispatch_impl;

// Whether the object's class overrides; exact tensors and Python's plain types never do. Ignores modes.
bool overrides_slow(PyObject* o);
inline bool overrides(PyObject* o) { return !is_exact_tensor(o) && overrides_slow(o); }

// Arguments that override, one for each class, subclasses before their bases. Borrowed.
class Overloaded {
 public:
  void clear() { n_ = 0; }
  bool empty() const { return n_ == 0; }
  int size() const { return n_; }
  PyObject* operator[](int i) const { return items_[i]; }
  void add(PyObject* o);

 private:
  static constexpr int kMax = 16;
  PyObject* items_[kMax];
  int n_ = 0;
};

// Calls the active mode, then each override. `func` is what is told to have been called. Throws PythonError.
// `where` and `name` are for the message when all answer NotImplemented.
PyObject* call_torch_function(const Overloaded& who, PyObject* func, PyObject* args, PyObject* kwargs,
                              const char* where, const char* name);
// The same for arguments in vectorcall form; self is prepended where not null.
PyObject* call_torch_function(const Overloaded& who, PyObject* func, PyObject* self, PyObject* const* args,
                              Py_ssize_t nargs, PyObject* kwnames, const char* where, const char* name);

// For hand-written methods: if self or a mode takes the call, stores the result and returns true.
bool method_override(PyObject* self, const char* name, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
                     PyObject** result);
// For properties: the descriptor's __get__, __set__ or __delete__ is what is told.
bool getter_override(PyObject* self, const char* name, PyObject** result);
bool setter_override(PyObject* self, const char* name, PyObject* value, int* result);
// For functions called with a tuple and a dict: whether an argument, or an element of a list of them, or a mode takes
// it.
bool function_override(PyObject* func, PyObject* args, PyObject* kwargs, const char* where, const char* name,
                       PyObject** result);
inline bool needs_override(PyObject* self) {
  return torch_function_mode_active() || (!is_exact_tensor(self) && overrides_slow(self));
}

bool bind_torch_function(PyObject* module);

}  // namespace tn::py
