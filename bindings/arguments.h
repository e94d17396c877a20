// Argument parsing for hand-written functions, with the errors of upstream's parser. Operators use parser.h instead.
#pragma once
#include <Python.h>

#include <array>
#include <initializer_list>
#include <optional>
#include <span>

#include "bindings/objects.h"

namespace tn::py {

enum class Kind : uint8_t {
  Any,
  Tensor,
  Storage,
  DType,
  Device,
  Layout,
  MemoryFormat,
  Generator,
  Int,
  Bool,
  String,
  Sizes
};

struct Formal {
  const char* name;
  Kind kind;
  bool optional = false;       // has a default
  bool keyword = false;        // keyword-only
  bool nullable = false;       // takes None
  const char* shown = "None";  // the default, as messages print it; null where a default isn't None
};

struct Form {
  std::span<const Formal> formals;
  bool hidden = false;  // never in messages
};

inline constexpr size_t kMaxFormals = 8;

// The arguments of one call, sorted to their formals; absent and None are null.
struct Actuals {
  int form = 0;
  std::array<PyObject*, kMaxFormals> at{};

  PyObject* operator[](size_t i) const { return at[i]; }
  bool flag(size_t i, bool absent = false) const { return at[i] ? PyObject_IsTrue(at[i]) == 1 : absent; }
  std::optional<ScalarType> dtype(size_t i) const;
  std::optional<Device> device(size_t i) const;
  int64_t integer(size_t i, int64_t absent) const;  // throws on overflow
};

// Vectorcall arguments; a tuple and a dict fit too.
struct Given {
  PyObject* const* args;
  Py_ssize_t num;
  PyObject* names;  // tuple or null; values follow the positional ones
};

// Finds the first form that fits. Throws PythonError with upstream's TypeError if none does.
Actuals parse(const char* function, std::span<const Form> forms, Given given);
// The same with a tuple and a dict.
Actuals parse(const char* function, std::span<const Form> forms, PyObject* args, PyObject* kwargs);

}  // namespace tn::py
