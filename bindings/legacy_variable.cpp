// torch.autograd.Variable(...): since 0.4 only another way to a detached tensor.
#include "bindings/node.h"
#include "bindings/object_type.h"
#include "bindings/tensor.h"
#include "generated/ops/detach.h"
#include "generated/ops/empty.h"
#include "runtime/warn.h"

namespace tn::py {

namespace {

PyTypeObject legacy_variable_type;

PyObject* make(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"data", "requires_grad", "volatile", "_grad_fn", "name", nullptr};
    PyObject *data = nullptr, *grad_fn = nullptr;
    int requires_grad = 0, is_volatile = 0;
    const char* name = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OppOz", const_cast<char**>(names), &data, &requires_grad,
                                     &is_volatile, &grad_fn, &name))
      return nullptr;
    if (is_volatile) warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.");
    if (grad_fn && grad_fn != Py_None)
      raise(PyExc_ValueError, "Variable(): expected _grad_fn to be None, got %s", type_name(grad_fn));
    const bool given = data && data != Py_None;
    if (given && !is_tensor(data))
      raise(PyExc_TypeError, "Variable data has to be a tensor, but got %s", type_name(data));
    Tensor t = given ? at::detach(tensor_of(data)) : at::empty({0});
    if (requires_grad) set_requires_grad(t, true);
    if (name) autograd_meta(t).name = name;
    return wrap(std::move(t));
  });
}

}  // namespace

bool bind_legacy_variable(PyObject* module) {
  legacy_variable_type.tp_new = make;
  return ready_type(legacy_variable_type, "torch._C._LegacyVariableBase", sizeof(PyObject),
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE) &&
         add_to_module(module, "_LegacyVariableBase", legacy_variable_type);
}

}  // namespace tn::py
