// What library.cpp and operators.cpp share.
#pragma once
#include <Python.h>

#include <optional>
#include <string>

#include "runtime/keyset.h"

namespace tn::py {

// A DispatchKey or its name. RuntimeError for unknown names.
DispatchKey key_argument(PyObject* object);
// A torch._C.DispatchKeySet.
KeySet keyset_argument(PyObject* object);
// A kernel registered for an operator that isn't defined yet; any key if none is given.
bool has_pending_kernel(const std::string& op, std::optional<DispatchKey> key);
bool bind_operators(PyObject* module);

}  // namespace tn::py
