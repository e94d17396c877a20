// For hand-written methods and functions whose arguments the parser reads: tables beside the code, no operator in them.
#pragma once
#include "bindings/convert.h"
#include "bindings/parse.h"
#include "bindings/tensor.h"

namespace tn::py {

// The one shape of hand-written tables: `num_args` argument places with these defaults, no operator behind.
constexpr Signature form(const char* text, const Param* params, int num_params, int num_positional, const Arg* defaults,
                         int num_args) {
  return {text,
          params,
          defaults,
          static_cast<uint8_t>(num_params),
          static_cast<uint8_t>(num_positional),
          static_cast<uint8_t>(num_args),
          0,
          Signature::kNoOp,
          Signature::kNoOp,
          0,
          0,
          nullptr};
}

// Every hand-written method is one of these: reads its parsed arguments, answers a new reference or throws.
using Body = PyObject* (*)(PyObject* self, Parsed& p, int which);

template <const Function& F, Body kBody>
PyObject* hand_method(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    Parsed p;
    PyObject* told = nullptr;
    const Signature* const s = parse(F, {F.method ? self : nullptr, args, nargs, kwnames}, p, &told);
    if (!s) return told;
    return kBody(self, p, static_cast<int>(s - F.signatures));
  });
}

// A method without arguments, told of by its own name.
using PlainBody = PyObject* (*)(PyObject* self, const Tensor& t);
template <const char* const& kName, PlainBody kBody>
PyObject* plain_method(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject* told;
    if (__builtin_expect(needs_override(self), 0) && method_override(self, kName, nullptr, 0, nullptr, &told))
      return told;
    return kBody(self, tensor_of(self));
  });
}

}  // namespace tn::py

// Rows of hand-written tables. Macros, as TN_METHOD, since the casts must stay constant initialisers.
#define TN_HAND_METHOD(function, body)                                                                       \
  {function.name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&hand_method<function, body>)), \
   METH_FASTCALL | METH_KEYWORDS, nullptr}
#define TN_PLAIN_METHOD(name, body) {name, &plain_method<name, body>, METH_NOARGS, nullptr}
