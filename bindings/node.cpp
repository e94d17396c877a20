#include "bindings/node.h"

#include <string>
#include <unordered_map>

#include "bindings/object_type.h"
#include "bindings/tensor.h"
#include "runtime/autograd/engine.h"

namespace tn::py {

namespace {

struct NodeObject {
  PyObject_HEAD Node* node;  // owned
};

PyTypeObject node_type;

// ---- hooks -----------------------------------------------------------------------------------------------------

// A dict of hooks, shared with the handles that remove them.
class HookDict {
 public:
  explicit HookDict(PyObject* dict) : dict_(Py_NewRef(dict)) {}
  HookDict(const HookDict&) = delete;
  HookDict& operator=(const HookDict&) = delete;
  ~HookDict() {
    const GilAcquire gil;
    Py_DECREF(dict_);
  }
  PyObject* get() const { return dict_; }
  PyRef values() const { return PyRef::check(PyObject_CallMethod(dict_, "values", nullptr)); }

 private:
  PyObject* dict_;
};

void check_replacement(PyObject* answer, const Tensor& before) {
  if (!is_tensor(answer)) raise(PyExc_TypeError, "expected Tensor, but hook returned '%s'", Py_TYPE(answer)->tp_name);
  const Tensor& now = tensor_of(answer);
  if (before.defined() && now.sizes() != before.sizes()) fail(ErrorKind::Runtime, "hook has changed the size of value");
}

// One tensor's hooks among a node's gradients.
class TensorHookDict final : public PreHook {
 public:
  TensorHookDict(PyObject* dict, uint32_t index) : dict_(dict), index_(index) {}
  void call(GradList& grads) override {
    if (index_ >= grads.size() || !grads[index_].defined()) return;
    const GilAcquire gil;
    run(dict_.get(), grads[index_]);
  }
  static void run(PyObject* dict, Tensor& grad) {
    const PyRef values = PyRef::check(PyMapping_Values(dict));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
      const PyRef value = PyRef::check(wrap(grad));
      const PyRef answer = PyRef::check(PyObject_CallOneArg(PyList_GET_ITEM(values.get(), i), value.get()));
      if (answer.get() == Py_None) continue;
      check_replacement(answer.get(), grad);
      grad = tensor_of(answer.get());
    }
  }

 private:
  HookDict dict_;
  uint32_t index_;
};

class NodePreHook final : public PreHook {
 public:
  explicit NodePreHook(PyObject* dict) : dict_(dict) {}
  PyObject* dict() const { return dict_.get(); }
  void call(GradList& grads) override {
    const GilAcquire gil;
    const PyRef values = PyRef::check(PyMapping_Values(dict_.get()));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
      const PyRef given = PyRef::check(grads_tuple(grads));
      const PyRef answer = PyRef::check(PyObject_CallOneArg(PyList_GET_ITEM(values.get(), i), given.get()));
      if (answer.get() != Py_None) take_grads(answer.get(), grads, "hook");
    }
  }

 private:
  HookDict dict_;
};

class NodePostHook final : public PostHook {
 public:
  explicit NodePostHook(PyObject* dict) : dict_(dict) {}
  PyObject* dict() const { return dict_.get(); }
  void call(GradList& results, const GradList& grads) override {
    const GilAcquire gil;
    const PyRef given = PyRef::check(grads_tuple(grads));
    const PyRef values = PyRef::check(PyMapping_Values(dict_.get()));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
      const PyRef made = PyRef::check(grads_tuple(results));
      const PyRef answer = PyRef::check(
          PyObject_CallFunctionObjArgs(PyList_GET_ITEM(values.get(), i), made.get(), given.get(), nullptr));
      if (answer.get() != Py_None) take_grads(answer.get(), results, "hook");
    }
  }

 private:
  HookDict dict_;
};

// The dict of the node's last hook of this kind, made when there is none; then a handle that removes what was added.
template <class Hook, class List>
PyObject* register_in(List& hooks, PyObject* hook) {
  PyRef dict;
  for (const auto& h : hooks)
    if (auto* const own = dynamic_cast<Hook*>(h.get())) dict = PyRef::share(own->dict());
  const PyRef module = PyRef::check(PyImport_ImportModule("torch.utils.hooks"));
  if (!dict) {
    const PyRef collections = PyRef::check(PyImport_ImportModule("collections"));
    dict = PyRef::check(PyObject_CallMethod(collections.get(), "OrderedDict", nullptr));
    hooks.push_back(make_ref<Hook>(dict.get()));
  }
  PyRef handle = PyRef::check(PyObject_CallMethod(module.get(), "RemovableHandle", "O", dict.get()));
  const PyRef id = PyRef::check(PyObject_GetAttrString(handle.get(), "id"));
  if (PyObject_SetItem(dict.get(), id.get(), hook) < 0) throw PythonError();
  return handle.release();
}

// ---- the object ------------------------------------------------------------------------------------------------

Node& of(PyObject* self) {
  Node* const node =
      Py_TYPE(self)->tp_base == &node_type ? reinterpret_cast<NodeObject*>(self)->node : function_node(self);
  if (!node)
    fail(ErrorKind::Runtime,
         "attribute of a Function's context: expected a context with a graph, got one whose graph is gone");
  return *node;
}

PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("<%s object at %p>", of(self).name(), static_cast<void*>(self));
}
void dealloc(PyObject* self) {
  Node* const node = reinterpret_cast<NodeObject*>(self)->node;
  PyTypeObject* const type = Py_TYPE(self);
  if (node->pyobj == self) node->pyobj = nullptr;
  const Ref<Node> owned = Ref<Node>::adopt(node);
  PyObject_Free(self);
  Py_DECREF(type);
}
PyObject* call(PyObject* self, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    GradList grads(static_cast<size_t>(PyTuple_GET_SIZE(args)));
    for (size_t i = 0; i < grads.size(); ++i) {
      PyObject* const item = PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i));
      if (item == Py_None) continue;
      if (!is_tensor(item)) raise(PyExc_TypeError, "expected Tensor or None, got %s", Py_TYPE(item)->tp_name);
      grads[i] = tensor_of(item);
    }
    GradList results;
    {
      const GilRelease release;
      results = of(self).apply(std::move(grads));
    }
    PyRef tuple = PyRef::check(grads_tuple(results));
    return results.size() == 1 ? Py_NewRef(PyTuple_GET_ITEM(tuple.get(), 0)) : tuple.release();
  });
}
PyObject* variable(PyObject* self, void*) {
  auto* const leaf = dynamic_cast<AccumulateGrad*>(&of(self));
  if (!leaf) return PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute 'variable'", of(self).name());
  return wrap(leaf->variable());
}

PyMethodDef methods[] = {{"name", node_name, METH_NOARGS, nullptr},
                         {"register_hook", node_register_hook, METH_O, nullptr},
                         {"register_prehook", node_register_prehook, METH_O, nullptr},
                         {"_register_hook_dict", node_register_hook_dict, METH_O, nullptr},
                         {"_sequence_nr", node_sequence, METH_NOARGS, nullptr},
                         {"_set_sequence_nr", node_set_sequence, METH_O, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyGetSetDef properties[] = {{"next_functions", node_next_functions, nullptr, nullptr, nullptr},
                            {"metadata", node_metadata, nullptr, nullptr, nullptr},
                            {"requires_grad", node_requires_grad, nullptr, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

// One class a name, as upstream has them.
PyTypeObject* class_of(Node& node) {
  const char* const name = node.name();
  static auto& classes = *new std::unordered_map<std::string, PyTypeObject*>();
  PyTypeObject*& type = classes[name];
  if (type) return type;
  static PyGetSetDef leaf_properties[] = {{"variable", variable, nullptr, nullptr, nullptr},
                                          {nullptr, nullptr, nullptr, nullptr, nullptr}};
  PyType_Slot slots[] = {
      {Py_tp_getset, std::string_view(name) == "AccumulateGrad" ? leaf_properties : saved_properties(node)},
      // Python's own for such types would give up the type's reference a second time.
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
      {0, nullptr}};
  const std::string dotted = std::string("builtins.") + name;  // where upstream's say that they live
  PyType_Spec spec = {dotted.c_str(), sizeof(NodeObject), 0, Py_TPFLAGS_DEFAULT, slots};
  type = reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(&node_type)));
  if (!type) throw PythonError();
  // torch.autograd.graph.Node knows a node's class by its place here.
  const PyRef functions = PyRef::check(PyImport_ImportModule("torch._C._functions"));
  if (PyObject_SetAttrString(functions.get(), name, reinterpret_cast<PyObject*>(type)) < 0) throw PythonError();
  return type;
}

void release_metadata(void* dict) noexcept {
  const GilAcquire gil;
  Py_DECREF(static_cast<PyObject*>(dict));
}

// ---- hooks on leaves: Python keeps them on the tensor's object ---------------------------------------------------

void leaf_hooks(const Tensor& leaf, Tensor& grad) {
  if (!leaf->pyobj) return;
  const GilAcquire gil;
  const PyRef self = PyRef::check(wrap(leaf));
  PyObject* const dict = reinterpret_cast<TensorObject*>(self.get())->backward_hooks;
  if (!dict) return;
  const PyRef kept = PyRef::share(dict);
  TensorHookDict::run(dict, grad);
}
void accumulated_hooks(const Tensor& leaf) {
  if (!leaf->pyobj) return;
  const GilAcquire gil;
  const PyRef self = PyRef::check(wrap(leaf));
  PyObject* const dict = reinterpret_cast<TensorObject*>(self.get())->post_accumulate_grad_hooks;
  if (!dict) return;
  const PyRef values = PyRef::check(PyMapping_Values(dict));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
    const PyRef answer = PyRef::check(PyObject_CallOneArg(PyList_GET_ITEM(values.get(), i), self.get()));
    if (answer.get() != Py_None) raise(PyExc_RuntimeError, "Tensor post accumulate grad hooks should return None.");
  }
}

}  // namespace

PyObject* node_name(PyObject* self, PyObject*) {
  return guarded([&] { return PyUnicode_FromString(of(self).name()); });
}
PyObject* node_register_hook(PyObject* self, PyObject* hook) {
  return guarded([&] { return register_in<NodePostHook>(of(self).post_hooks, hook); });
}
PyObject* node_register_prehook(PyObject* self, PyObject* hook) {
  return guarded([&] { return register_in<NodePreHook>(of(self).pre_hooks, hook); });
}
PyObject* node_register_hook_dict(PyObject* self, PyObject* tensor) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(tensor))
      raise(PyExc_TypeError, "_register_hook_dict(): expected a Tensor, got %s", Py_TYPE(tensor)->tp_name);
    const Tensor& t = tensor_of(tensor);
    PyObject* const dict = reinterpret_cast<TensorObject*>(tensor)->backward_hooks;
    if (dict) of(self).tensor_hooks.push_back(make_ref<TensorHookDict>(dict, t->autograd ? t->autograd->output_nr : 0));
    Py_RETURN_NONE;
  });
}
PyObject* node_sequence(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(of(self).sequence()); });
}
PyObject* node_set_sequence(PyObject* self, PyObject* value) {
  return guarded([&]() -> PyObject* {
    const unsigned long long n = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred()) return nullptr;
    of(self).set_sequence(n);
    Py_RETURN_NONE;
  });
}
PyObject* node_next_functions(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const std::vector<Edge>& edges = of(self).edges;
    PyRef tuple = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(edges.size())));
    for (size_t i = 0; i < edges.size(); ++i) {
      const PyRef fn = PyRef::check(node_object(edges[i].node));
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       PyRef::check(Py_BuildValue("(OI)", fn.get(), edges[i].input)).release());
    }
    return tuple.release();
  });
}
PyObject* node_metadata(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Node& n = of(self);
    if (!n.metadata) n.metadata = PyRef::check(PyDict_New()).release();
    return Py_NewRef(static_cast<PyObject*>(n.metadata));
  });
}
PyObject* node_requires_grad(PyObject*, void*) { Py_RETURN_TRUE; }

PyObject* grads_tuple(const GradList& grads) {
  PyRef tuple = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(grads.size())));
  for (size_t i = 0; i < grads.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), PyRef::check(wrap(grads[i])).release());
  return tuple.release();
}

void take_grads(PyObject* answer, GradList& grads, const char* what) {
  const PyRef tuple = PyTuple_Check(answer) ? PyRef::share(answer) : PyRef::check(PyTuple_Pack(1, answer));
  if (PyTuple_GET_SIZE(tuple.get()) != static_cast<Py_ssize_t>(grads.size()))
    fail(ErrorKind::Runtime, what, " has returned an incorrect number of values (got ", PyTuple_GET_SIZE(tuple.get()),
         ", but expected ", grads.size(), ")");
  for (size_t i = 0; i < grads.size(); ++i) {
    PyObject* const item = PyTuple_GET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i));
    if (item == Py_None) {
      grads[i].reset();
      continue;
    }
    check_replacement(item, grads[i]);
    grads[i] = tensor_of(item);
  }
}

bool is_node(PyObject* object) { return PyType_IsSubtype(Py_TYPE(object), &node_type); }
Ref<Node> node_of(PyObject* object) {
  if (is_node(object)) return Ref<Node>::share(reinterpret_cast<NodeObject*>(object)->node);
  return Ref<Node>::share(function_node(object));
}

PyObject* node_object(const Ref<Node>& node) {
  if (!node) Py_RETURN_NONE;
  if (node->pyobj) return Py_NewRef(static_cast<PyObject*>(node->pyobj));
  PyTypeObject* const type = class_of(*node);
  if (!type) return nullptr;
  auto* const o = PyObject_New(NodeObject, type);
  if (!o) return nullptr;
  o->node = Ref<Node>(node).release();
  node->pyobj = o;
  return reinterpret_cast<PyObject*>(o);
}

bool bind_nodes(PyObject* module) {
  node_type.tp_dealloc = dealloc;
  node_type.tp_repr = repr;
  node_type.tp_call = call;
  node_type.tp_methods = methods;
  node_type.tp_getset = properties;
  Node::release_metadata = release_metadata;
  engine::tensor_hooks = {leaf_hooks, accumulated_hooks};
  return ready_type(node_type, "torch._C._Node", sizeof(NodeObject), Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE) &&
         add_to_module(module, "_Node", node_type);
}

}  // namespace tn::py
