// Telling Python of a call below autograd: the innermost dispatch mode first, then each class that overrides.
#pragma once
#include <Python.h>

#include <span>
#include <string>

#include "bindings/py.h"

namespace tn::py {

bool in_dispatch_mode();
// While it lives, the thread has no dispatch modes.
class StashedDispatchModes {
 public:
  StashedDispatchModes();
  ~StashedDispatchModes();
  StashedDispatchModes(const StashedDispatchModes&) = delete;
  StashedDispatchModes& operator=(const StashedDispatchModes&) = delete;

 private:
  void* modes_;
};

// `name` is what the TypeError calls the operator ("torch.ops.aten.add.Tensor") when all decline.
PyRef call_torch_dispatch(std::span<const PyRef> overloaded, bool in_mode, PyObject* func, PyObject* args,
                          PyObject* kwargs, const std::string& name);

}  // namespace tn::py
