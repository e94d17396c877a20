// torch._C._functions.UndefinedGrad and DelayedError: identities whose backward is the point, used by gradcheck.
#include <string>

#include "bindings/node.h"
#include "bindings/object_type.h"
#include "bindings/tensor.h"

namespace tn::py {

namespace {

class UndefinedGradBackward final : public Node {
 public:
  UndefinedGradBackward() : Node("torch::autograd::UndefinedGradBackward") {}
  GradList apply(GradList&& grads) override { return GradList(grads.size()); }
};
class DelayedErrorBackward final : public Node {
 public:
  explicit DelayedErrorBackward(std::string message) : Node("torch::autograd::Error"), message_(std::move(message)) {}
  GradList apply(GradList&&) override { fail(ErrorKind::Runtime, message_); }

 private:
  std::string message_;
};

struct Identity {
  PyObject_HEAD PyObject* message;  // null: UndefinedGrad
};
PyTypeObject undefined_grad_type, delayed_error_type;
Identity* identity_of(PyObject* o) { return reinterpret_cast<Identity*>(o); }

PyObject* new_undefined_grad(PyTypeObject* type, PyObject* args, PyObject*) {
  return PyArg_ParseTuple(args, ":UndefinedGrad") ? type->tp_alloc(type, 0) : nullptr;
}
PyObject* new_delayed_error(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* message = nullptr;
  int num_inputs = 0;
  const char* text = nullptr;
  if (PyTuple_GET_SIZE(args) == 2 && PyBytes_Check(PyTuple_GET_ITEM(args, 0)))
    text = PyBytes_AS_STRING(PyTuple_GET_ITEM(args, 0));  // as once_differentiable passes it
  if (!(text ? PyArg_ParseTuple(args, "Oi:DelayedError", &message, &num_inputs)
             : PyArg_ParseTuple(args, "Ui:DelayedError", &message, &num_inputs)))
    return nullptr;
  PyObject* const self = type->tp_alloc(type, 0);
  if (self) identity_of(self)->message = text ? PyUnicode_FromString(text) : Py_NewRef(message);
  return self;
}
void dealloc(PyObject* self) {
  Py_XDECREF(identity_of(self)->message);
  Py_TYPE(self)->tp_free(self);
}

PyObject* call(PyObject* self, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject* const message = identity_of(self)->message;
    const Py_ssize_t n = PyTuple_GET_SIZE(args);
    GradList results;
    Ref<Node> node;
    if (message) node = make_ref<DelayedErrorBackward>(PyUnicode_AsUTF8(message));
    else node = make_ref<UndefinedGradBackward>();
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* const item = PyTuple_GET_ITEM(args, i);
      if (item == Py_None && message) {  // a gradient that once_differentiable's function doesn't have
        node->edges.emplace_back();
        node->add_input(Tensor());
        results.emplace_back();
        continue;
      }
      if (!is_tensor(item))
        raise(PyExc_TypeError, "%s: expected Tensors, got %s", Py_TYPE(self)->tp_name, Py_TYPE(item)->tp_name);
      const Tensor& t = tensor_of(item);
      // An error waits for every result, whether or not its input has a graph.
      if (t.requires_grad()) node->add_edge_of(t);
      else node->edges.emplace_back();
      results.push_back(alias_with_geometry(t, t.sizes(), t.strides(), t.storage_offset()));
      set_history(results.back(), node);
    }
    const PyRef tuple = PyRef::check(grads_tuple(results));
    return n == 1 ? Py_NewRef(PyTuple_GET_ITEM(tuple.get(), 0)) : Py_NewRef(tuple.get());
  });
}

bool ready(PyTypeObject& type, const char* name, newfunc make, PyObject* functions, const char* attribute) {
  type.tp_new = make;
  type.tp_dealloc = dealloc;
  type.tp_call = call;
  return ready_type(type, name, sizeof(Identity), Py_TPFLAGS_DEFAULT) && add_to_module(functions, attribute, type);
}

}  // namespace

bool bind_forward_nodes(PyObject* module) {
  const PyRef functions = PyRef::adopt(PyObject_GetAttrString(module, "_functions"));
  return functions &&
         ready(undefined_grad_type, "torch._C._functions.UndefinedGrad", new_undefined_grad, functions.get(),
               "UndefinedGrad") &&
         ready(delayed_error_type, "torch._C._functions.DelayedError", new_delayed_error, functions.get(),
               "DelayedError");
}

}  // namespace tn::py
