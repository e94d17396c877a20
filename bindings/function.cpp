// torch._C._FunctionBase: contexts of torch.autograd.Function, and the nodes that call them.
#include <new>
#include <string>

#include "bindings/function_parts.h"
#include "bindings/node.h"
#include "bindings/node_hooks.h"
#include "bindings/object_type.h"
#include "bindings/tensor.h"
#include "generated/ops/zeros.h"
#include "runtime/autograd/engine.h"
#include "runtime/autograd/saved_variable.h"
#include "runtime/refuse.h"

namespace tn::py {

namespace {

PyTypeObject function_type;

constexpr PyObject* Context::* kObjects[] = {&Context::to_save,          &Context::non_differentiable,
                                             &Context::dirty_tensors,    &Context::saved_for_forward,
                                             &Context::needs_input_grad, &Context::metadata};
}  // namespace

GradList FunctionNode::apply(GradList&& grads) {
  const GilAcquire gil;
  Context* const c = context_of(context_);
  PyRef args = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(grads.size())));
  for (size_t i = 0; i < grads.size(); ++i) {
    Tensor g = std::move(grads[i]);
    const InputMeta& m = inputs[i];
    if (!g.defined() && c->materialize_grads && !m.is_undefined() &&
        (differentiable[i] || c->materialize_non_diff_grads))
      g = at::zeros(m.shape.sizes(), m.dtype, Layout::Strided, m.device);
    PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), PyRef::check(wrap(std::move(g))).release());
  }
  grads.clear();
  const PyRef apply_fn = PyRef::check(PyObject_GetAttrString(context_, "apply"));
  PyRef answer = PyRef::check(PyObject_CallObject(apply_fn.get(), args.get()));
  args = PyRef();
  if (!PyTuple_Check(answer.get())) answer = PyRef::check(PyTuple_Pack(1, answer.get()));
  const std::vector<bool>& takes = *c->is_tensor;
  Py_ssize_t n = PyTuple_GET_SIZE(answer.get());
  const auto expected = static_cast<Py_ssize_t>(takes.size());
  // More than there are inputs is fine when all that is too much is None.
  while (n > expected && PyTuple_GET_ITEM(answer.get(), n - 1) == Py_None) --n;
  if (n != expected)
    fail(ErrorKind::Runtime, "function ", name(), " returned an incorrect number of gradients (expected ", expected,
         ", got ", n, ")");
  GradList out;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* const item = PyTuple_GET_ITEM(answer.get(), i);
    if (!takes[static_cast<size_t>(i)]) {
      if (item != Py_None)
        fail(ErrorKind::Runtime, "function ", name(), " returned a gradient different than None at position ", i + 1,
             ", but the corresponding forward input was not a Variable");
      continue;
    }
    if (item == Py_None) out.emplace_back();
    else if (is_tensor(item)) out.push_back(tensor_of(item));
    else fail(ErrorKind::Runtime, "expected Variable or None (got ", Py_TYPE(item)->tp_name, ")");
  }
  return out;
}

PyObject* owned_context(const Node& node) {
  return dynamic_cast<const FunctionNode*>(&node) ? static_cast<PyObject*>(node.pyobj) : nullptr;
}
PyObject** context_metadata(PyObject* object) {
  return PyType_IsSubtype(Py_TYPE(object), &function_type) ? &context_of(object)->metadata : nullptr;
}
Node* function_node(PyObject* object) {
  return PyType_IsSubtype(Py_TYPE(object), &function_type) ? context_of(object)->node : nullptr;
}

namespace {

// ---- the object --------------------------------------------------------------------------------------------------

PyObject* context_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* const self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  Context* const c = context_of(self);
  c->materialize_grads = true;
  c->materialize_non_diff_grads = true;
  c->saved = new std::vector<SavedVariable>();
  c->is_tensor = new std::vector<bool>();
  return self;
}
int context_traverse(PyObject* self, visitproc visit, void* arg) {
  for (auto member : kObjects) Py_VISIT(context_of(self)->*member);
  const Node* const node = context_of(self)->node;
  if (!node) return 0;
  Py_VISIT(static_cast<PyObject*>(node->metadata));
  return visit_hooks(*node, visit, arg);
}
int context_clear(PyObject* self) {
  for (auto member : kObjects) Py_CLEAR(context_of(self)->*member);
  if (Node* const node = context_of(self)->node) clear_hooks(*node);
  return 0;
}
void context_dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  context_clear(self);
  delete context_of(self)->saved;
  delete context_of(self)->is_tensor;
  type->tp_free(self);  // a Python subclass lets go of its class itself
}

template <PyObject* Context::* kMember>
PyObject* get_object(PyObject* self, void*) {
  return Py_NewRef(context_of(self)->*kMember ? context_of(self)->*kMember : Py_None);
}
template <PyObject* Context::* kMember>
int set_object(PyObject* self, PyObject* value, void*) {
  Py_XSETREF(context_of(self)->*kMember, value && value != Py_None ? Py_NewRef(value) : nullptr);
  return 0;
}
template <bool Context::* kMember>
PyObject* get_flag(PyObject* self, void*) {
  return new_bool(context_of(self)->*kMember);
}
template <bool Context::* kMember>
int set_flag(PyObject* self, PyObject* value, void*) {
  if (!value || !PyBool_Check(value)) {
    PyErr_Format(PyExc_TypeError, "expected a bool, got %s", value ? Py_TYPE(value)->tp_name : "a deletion");
    return -1;
  }
  context_of(self)->*kMember = value == Py_True;
  return 0;
}

// The node that what a context saved belongs to; RuntimeError after the backward, or once the graph is gone.
FunctionNode& saved_owner(PyObject* self) {
  auto* const node = static_cast<FunctionNode*>(context_of(self)->node);
  if (!node || node->released()) fail_released();
  return *node;
}
PyObject* saved_tensors(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Context* const c = context_of(self);
    if (c->saved_for_forward) return Py_NewRef(c->saved_for_forward);
    if (c->saved->empty() && !(c->node && static_cast<FunctionNode*>(c->node)->released())) return PyTuple_New(0);
    return grads_tuple(unpack_list(*c->saved, saved_owner(self)));
  });
}
PyObject* saved_variables(PyObject* self, void*) {
  if (PyErr_WarnEx(PyExc_DeprecationWarning, "'saved_variables' is deprecated; use 'saved_tensors'", 1) < 0)
    return nullptr;
  return saved_tensors(self, nullptr);
}
// Compiled autograd is read by torch.compile alone.
template <const char* kWhat>
PyObject* refuse_property(PyObject*, void*) {
  return guarded([]() -> PyObject* { refuse("torch._C._FunctionBase", kWhat, "torch.compile is not there"); });
}
constexpr char kState[] = "_compiled_autograd_backward_state";
PyObject* raw_saved_tensors(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    std::vector<SavedVariable>& saved = *context_of(self)->saved;
    const PyRef tuple = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(saved.size())));
    if (saved.empty()) return PyRef(tuple).release();
    FunctionNode& node = saved_owner(self);
    for (size_t i = 0; i < saved.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       PyRef::check(saved_tensor_object(saved[i], node)).release());
    return PyRef(tuple).release();
  });
}
PyObject* is_pure_view(PyObject*, void*) { Py_RETURN_FALSE; }
PyObject* compiled_symints(PyObject*, PyObject*) { return PyTuple_New(0); }
PyObject* clear_saved(PyObject* self, PyObject*) {
  if (!engine::keeps_graph())
    for (SavedVariable& s : *context_of(self)->saved) s.reset();
  Py_RETURN_NONE;
}

// ---- apply -------------------------------------------------------------------------------------------------------

void expect_tuple(PyObject* value, const char* what) {
  if (value && !PyTuple_Check(value))
    raise(PyExc_TypeError, "autograd internal error: %s attribute is expected to be a tuple but is %s", what,
          Py_TYPE(value)->tp_name);
}

void save_tensors(Context* c, PyObject* outputs) {
  if (!c->to_save) return;
  expect_tuple(c->to_save, "saved_tensors");
  c->saved->clear();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(c->to_save); ++i) {
    PyObject* const item = PyTuple_GET_ITEM(c->to_save, i);
    if (item == Py_None) {
      c->saved->emplace_back();
      continue;
    }
    if (!is_tensor(item))
      raise(PyExc_TypeError, "save_for_backward can only save variables, but argument %zd is of type %s", i,
            Py_TYPE(item)->tp_name);
    const Tensor& t = tensor_of(item);
    c->saved->emplace_back(t, contains(outputs, item) && t->autograd && grad_fn_of(t).get() == c->node);
  }
  Py_CLEAR(c->to_save);
}

PyObject* apply(PyObject* cls, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const PyRef backward_class = PyRef::check(PyObject_GetAttrString(cls, "_backward_cls"));
    const PyRef self = PyRef::check(PyObject_CallNoArgs(backward_class.get()));
    Context* const c = context_of(self.get());
    const Ref<Node> node = make_ref<FunctionNode>(self.get());
    Inputs inputs;
    const Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyRef needs = PyRef::check(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* const item = PyTuple_GET_ITEM(args, i);
      const bool tensor = is_tensor(item);
      const bool wants = tensor && tensor_of(item).requires_grad();
      c->is_tensor->push_back(tensor);
      if (tensor) inputs.tensors.push_back(item);
      inputs.needs |= wants;
      PyTuple_SET_ITEM(needs.get(), i, new_bool(wants));
    }
    const bool executable = inputs.needs && grad_mode();
    c->needs_input_grad = needs.release();
    for (PyObject* item : inputs.tensors) {
      if (executable) node->add_edge_of(tensor_of(item));
      else node->edges.emplace_back();
    }
    const PyRef module = PyRef::check(PyImport_ImportModule("torch.autograd.function"));
    const PyRef base = PyRef::check(PyObject_GetAttrString(module.get(), "_SingleLevelFunction"));
    const PyRef plain = PyRef::check(PyObject_GetAttrString(base.get(), "setup_context"));
    const PyRef setup = PyRef::check(PyObject_GetAttrString(cls, "setup_context"));
    const PyRef forward = PyRef::check(PyObject_GetAttrString(cls, "forward"));
    PyRef answer;
    {
      const GradModeGuard off(false);
      const FwGradModeGuard no_tangents(false);
      if (setup.get() == plain.get()) {
        PyRef with_context = PyRef::check(PyTuple_New(n + 1));
        PyTuple_SET_ITEM(with_context.get(), 0, Py_NewRef(self.get()));
        for (Py_ssize_t i = 0; i < n; ++i)
          PyTuple_SET_ITEM(with_context.get(), i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
        answer = PyRef::check(PyObject_CallObject(forward.get(), with_context.get()));
      } else {
        answer = PyRef::check(PyObject_CallObject(forward.get(), args));
        PyRef::check(PyObject_CallFunctionObjArgs(setup.get(), self.get(), args, answer.get(), nullptr));
      }
    }
    expect_tuple(c->dirty_tensors, "dirty_tensors");
    expect_tuple(c->non_differentiable, "non_differentiable");
    const bool one = !PyTuple_Check(answer.get());
    const PyRef results = one ? PyRef::check(PyTuple_Pack(1, answer.get())) : answer;
    bump_dirty(c->dirty_tensors);
    PyObject* const saved = setup.get() == plain.get() ? nullptr : c->to_save;
    expect_tuple(saved, "saved_tensors");
    const Finish finish{c, node, inputs, saved, executable, PyTuple_GET_SIZE(results.get())};
    const PyRef outputs = finish_outputs(finish, results.get());
    finish_tangents(finish, self.get(), results.get(), outputs.get());
    if (executable) save_tensors(c, outputs.get());
    else Py_CLEAR(c->to_save);
    Py_CLEAR(c->dirty_tensors);
    Py_CLEAR(c->non_differentiable);
    Py_CLEAR(c->saved_for_forward);
    return one ? Py_NewRef(PyTuple_GET_ITEM(outputs.get(), 0)) : PyRef(outputs).release();
  });
}

PyMethodDef methods[] = {{"apply", apply, METH_VARARGS | METH_CLASS, nullptr},
                         {"maybe_clear_saved_tensors", clear_saved, METH_NOARGS, nullptr},
                         {"_get_compiled_autograd_symints", compiled_symints, METH_NOARGS, nullptr},
                         {"name", node_name, METH_NOARGS, nullptr},
                         {"register_hook", node_register_hook, METH_O, nullptr},
                         {"register_prehook", node_register_prehook, METH_O, nullptr},
                         {"_register_hook_dict", node_register_hook_dict, METH_O, nullptr},
                         {"_sequence_nr", node_sequence, METH_NOARGS, nullptr},
                         {"_set_sequence_nr", node_set_sequence, METH_O, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyGetSetDef properties[] = {
    {"saved_tensors", saved_tensors, nullptr, nullptr, nullptr},
    {"_raw_saved_tensors", raw_saved_tensors, nullptr, nullptr, nullptr},
    {"_compiled_autograd_backward_state", refuse_property<kState>, nullptr, nullptr, nullptr},
    {"_input_metadata", node_input_metadata, nullptr, nullptr, nullptr},
    {"_is_pure_view", is_pure_view, nullptr, nullptr, nullptr},
    {"saved_variables", saved_variables, nullptr, nullptr, nullptr},
    {"next_functions", node_next_functions, nullptr, nullptr, nullptr},
    {"metadata", node_metadata, nullptr, nullptr, nullptr},
    {"requires_grad", node_requires_grad, nullptr, nullptr, nullptr},
    {"to_save", get_object<&Context::to_save>, set_object<&Context::to_save>, nullptr, nullptr},
    {"non_differentiable", get_object<&Context::non_differentiable>, set_object<&Context::non_differentiable>, nullptr,
     nullptr},
    {"dirty_tensors", get_object<&Context::dirty_tensors>, set_object<&Context::dirty_tensors>, nullptr, nullptr},
    {"saved_for_forward", get_object<&Context::saved_for_forward>, set_object<&Context::saved_for_forward>, nullptr,
     nullptr},
    {"needs_input_grad", get_object<&Context::needs_input_grad>, set_object<&Context::needs_input_grad>, nullptr,
     nullptr},
    {"materialize_grads", get_flag<&Context::materialize_grads>, set_flag<&Context::materialize_grads>, nullptr,
     nullptr},
    {"_materialize_non_diff_grads", get_flag<&Context::materialize_non_diff_grads>,
     set_flag<&Context::materialize_non_diff_grads>, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

bool bind_function(PyObject* module) {
  function_type.tp_new = context_new;
  function_type.tp_traverse = context_traverse;
  function_type.tp_clear = context_clear;
  function_type.tp_dealloc = context_dealloc;
  function_type.tp_methods = methods;
  function_type.tp_getset = properties;
  return ready_type(function_type, "torch._C._FunctionBase", sizeof(Context),
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC) &&
         add_to_module(module, "_FunctionBase", function_type);
}

}  // namespace tn::py
