// torch.autograd.graph.saved_tensors_hooks: Python packs the tensors that nodes save, and unpacks them for the
// backward.
#include <string>
#include <vector>

#include "bindings/node.h"
#include "bindings/object_type.h"
#include "bindings/tensor.h"
#include "runtime/autograd/saved_variable.h"

namespace tn::py {

namespace {

struct Hooks {
  PyObject *pack, *unpack;  // owned
};
struct State {
  std::vector<Hooks> stack;
  std::string disabled;  // why hooks can't be used; empty: they can
  bool tracing = false;
};
// Made on first use, and never freed: a thread's end may come after the interpreter's.
State& state() {
  static thread_local State* const own = new State();
  return *own;
}

class PythonPacked final : public PackedTensor {
 public:
  PythonPacked(PyObject* packed, PyObject* unpack) : packed_(packed), unpack_(Py_NewRef(unpack)) {}
  ~PythonPacked() override {
    if (!Py_IsInitialized()) return;
    const GilAcquire gil;
    Py_DECREF(packed_);
    Py_DECREF(unpack_);
  }
  Tensor unpack() override {
    const GilAcquire gil;
    const PyRef answer = PyRef::check(PyObject_CallOneArg(unpack_, packed_));
    if (!is_tensor(answer.get()))
      raise(PyExc_TypeError, "Output of saved tensor unpack_hook expected to be a Tensor but got result of type %s",
            Py_TYPE(answer.get())->tp_name);
    return tensor_of(answer.get());
  }

  PyObject* packed() const { return packed_; }
  PyObject* unpack_hook() const { return unpack_; }

 private:
  PyObject *packed_, *unpack_;
};

Ref<PackedTensor> pack(const Tensor& t) {
  const GilAcquire gil;
  const Hooks hooks = state().stack.back();
  const uint32_t version = t->version();
  const PyRef given = PyRef::check(wrap(t));
  PyRef answer = PyRef::check(PyObject_CallOneArg(hooks.pack, given.get()));
  TN_CHECK(t->version() == version,
           "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be "
           "modified by in-place "
           "operations as this can lead to unexpected side-effects. Please open an issue if you need to perform "
           "in-place operations on the input "
           "to a pack hook.");
  return make_ref<PythonPacked>(answer.release(), hooks.unpack);
}

void install() { saved_tensor_packer = state().stack.empty() || state().tracing ? nullptr : pack; }

PyObject* push(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *pack_hook, *unpack_hook;
    if (!PyArg_ParseTuple(args, "OO", &pack_hook, &unpack_hook)) return nullptr;
    State& s = state();
    TN_CHECK(s.disabled.empty(), s.disabled);
    s.stack.push_back({Py_NewRef(pack_hook), Py_NewRef(unpack_hook)});
    install();
    Py_RETURN_NONE;
  });
}
PyObject* pop(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    State& s = state();
    TN_CHECK(!s.stack.empty(), "_pop_saved_tensors_default_hooks: expected hooks that were pushed, got none");
    const Hooks last = s.stack.back();
    s.stack.pop_back();
    install();
    Py_DECREF(last.pack);
    Py_DECREF(last.unpack);
    Py_RETURN_NONE;
  });
}
PyObject* top(PyObject*, PyObject* ignore_tracing) {
  const State& s = state();
  if (s.stack.empty() || (s.tracing && ignore_tracing != Py_True)) Py_RETURN_NONE;
  return PyTuple_Pack(2, s.stack.back().pack, s.stack.back().unpack);
}
PyObject* disable(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"error_message", "fail_if_non_empty", nullptr};
    const char* message = nullptr;
    int fail_if_non_empty = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|p", const_cast<char**>(names), &message, &fail_if_non_empty))
      return nullptr;
    TN_CHECK(!fail_if_non_empty || state().stack.empty(), message);
    state().disabled = message;
    Py_RETURN_NONE;
  });
}
PyObject* enable(PyObject*, PyObject*) {
  state().disabled.clear();
  Py_RETURN_NONE;
}
PyObject* is_enabled(PyObject*, PyObject*) { return new_bool(state().disabled.empty()); }
PyObject* disabled_message(PyObject*, PyObject*) {
  if (state().disabled.empty()) Py_RETURN_NONE;
  return PyUnicode_FromString(state().disabled.c_str());
}
PyObject* set_tracing(PyObject*, PyObject* on) {
  const bool before = state().tracing;
  state().tracing = on == Py_True;
  install();
  return new_bool(before);
}

// ---- SavedTensor: a tensor kept as a node keeps it ---------------------------------------------------------------

struct SavedTensor {
  PyObject_HEAD SavedVariable* saved;
  Node* owner;  // owned: whose saved tensor it is; of results the node that made them
  bool own;     // saved dies with this object, and not with the node
};
PyTypeObject saved_type;
SavedTensor* saved_of(PyObject* o) { return reinterpret_cast<SavedTensor*>(o); }

class NoNode final : public Node {
 public:
  NoNode() : Node("SavedTensor") {}
  GradList apply(GradList&& grads) override { return std::move(grads); }
};

PyObject* make_saved(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"tensor", "is_output", "is_inplace_on_view", nullptr};
    PyObject* tensor = nullptr;
    int is_output = 0, inplace_on_view = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Op|p", const_cast<char**>(names), &tensor, &is_output,
                                     &inplace_on_view))
      return nullptr;
    if (!is_tensor(tensor))
      raise(PyExc_TypeError, "_make_saved_tensor(): expected a Tensor, got %s", Py_TYPE(tensor)->tp_name);
    const Tensor& t = tensor_of(tensor);
    const PyRef self = PyRef::check(saved_type.tp_alloc(&saved_type, 0));
    Ref<Node> owner = is_output ? grad_fn_of(t) : Ref<Node>();
    if (!owner) owner = make_ref<NoNode>();
    saved_of(self.get())->owner = owner.release();
    saved_of(self.get())->saved = new SavedVariable(t, is_output != 0);
    saved_of(self.get())->own = true;
    return PyRef(self).release();
  });
}
PyObject* refuse_saved(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_RuntimeError, "Trying to create a SavedTensor object from Python is forbidden.");
  return nullptr;
}
void dealloc_saved(PyObject* self) {
  if (saved_of(self)->own) delete saved_of(self)->saved;
  if (Node* const owner = saved_of(self)->owner) const Ref<Node> last = Ref<Node>::adopt(owner);
  Py_TYPE(self)->tp_free(self);
}
PyObject* unpack_saved(PyObject* self, PyObject*) {
  return guarded([&] { return wrap(saved_of(self)->saved->unpack(*saved_of(self)->owner)); });
}
// All packed tensors here are Python's.
const PythonPacked* packed_of(PyObject* self) {
  return static_cast<const PythonPacked*>(saved_of(self)->saved->packed());
}
PyObject* saved_data(PyObject* self, void*) {
  if (const PythonPacked* const packed = packed_of(self)) return Py_NewRef(packed->packed());
  return guarded([&] { return wrap(saved_of(self)->saved->data()); });
}
PyObject* saved_unpack_hook(PyObject* self, void*) {
  const PythonPacked* const packed = packed_of(self);
  return Py_NewRef(packed ? packed->unpack_hook() : Py_None);
}
PyObject* register_saved_hooks(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* const pack_hook = PyTuple_GET_SIZE(args) == 2 ? PyTuple_GET_ITEM(args, 0) : nullptr;
    PyObject* const unpack_hook = pack_hook ? PyTuple_GET_ITEM(args, 1) : nullptr;
    if (!pack_hook || !PyCallable_Check(pack_hook) || !PyCallable_Check(unpack_hook))
      raise(PyExc_TypeError,
            "register_hooks(): incompatible function arguments: expected two callables, pack_hook and unpack_hook");
    State& s = state();
    s.stack.push_back({pack_hook, unpack_hook});  // borrowed, for this call
    struct Pop {
      ~Pop() { state().stack.pop_back(); }
    } const after;
    saved_of(self)->saved->set_packer(pack);
    Py_RETURN_NONE;
  });
}
PyMethodDef saved_methods[] = {{"unpack", unpack_saved, METH_NOARGS, nullptr},
                               {"register_hooks", register_saved_hooks, METH_VARARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};
PyGetSetDef tensor_properties[] = {{"data", saved_data, nullptr, nullptr, nullptr},
                                   {"unpack_hook", saved_unpack_hook, nullptr, nullptr, nullptr},
                                   {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMethodDef methods[] = {
    {"_make_saved_tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_saved)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_push_saved_tensors_default_hooks", push, METH_VARARGS, nullptr},
    {"_pop_saved_tensors_default_hooks", pop, METH_NOARGS, nullptr},
    {"_top_saved_tensors_default_hooks", top, METH_O, nullptr},
    {"_saved_tensors_hooks_disable", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(disable)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_saved_tensors_hooks_enable", enable, METH_NOARGS, nullptr},
    {"_saved_tensors_hooks_is_enabled", is_enabled, METH_NOARGS, nullptr},
    {"_saved_tensors_hooks_get_disabled_error_message", disabled_message, METH_NOARGS, nullptr},
    {"_saved_tensors_hooks_set_tracing", set_tracing, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* saved_tensor_object(SavedVariable& saved, Node& owner) {
  const PyRef self = PyRef::check(saved_type.tp_alloc(&saved_type, 0));
  saved_of(self.get())->saved = &saved;
  saved_of(self.get())->owner = Ref<Node>::share(&owner).release();
  return PyRef(self).release();
}

namespace {

void keep(const std::vector<Hooks>& stack) {
  for (const Hooks& h : stack) {
    Py_INCREF(h.pack);
    Py_INCREF(h.unpack);
  }
}
void drop(const std::vector<Hooks>& stack) {
  for (const Hooks& h : stack) {
    Py_DECREF(h.pack);
    Py_DECREF(h.unpack);
  }
}

}  // namespace

SavedHooksScope::SavedHooksScope() {
  if (state().stack.empty()) return;
  keep(state().stack);
  before_ = new std::vector<Hooks>(state().stack);
}
SavedHooksScope::~SavedHooksScope() {
  const std::vector<Hooks> now = std::move(state().stack);
  state().stack.clear();
  if (auto* const before = static_cast<std::vector<Hooks>*>(before_)) {
    state().stack = std::move(*before);
    delete before;
  }
  install();
  drop(now);
}

bool bind_saved_hooks(PyObject* module) {
  const PyRef autograd = PyRef::adopt(PyObject_GetAttrString(module, "_autograd"));
  if (!autograd || PyModule_AddFunctions(autograd.get(), methods) != 0 || !bind_node_metadata(autograd.get()) ||
      !bind_run_state(module, autograd.get()))
    return false;
  if (saved_type.tp_name) return true;
  saved_type.tp_new = refuse_saved;
  saved_type.tp_dealloc = dealloc_saved;
  saved_type.tp_methods = saved_methods;
  saved_type.tp_getset = tensor_properties;
  return ready_type(saved_type, "torch._C._autograd.SavedTensor", sizeof(SavedTensor),
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE) &&
         add_to_module(autograd.get(), "SavedTensor", saved_type);
}

}  // namespace tn::py
