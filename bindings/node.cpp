#include "bindings/node.h"

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/node_hooks.h"
#include "bindings/object_type.h"
#include "bindings/tensor.h"

namespace tn::py {

namespace {

struct NodeObject {
  PyObject_HEAD Node* node;  // owned
};

// ---- the object ------------------------------------------------------------------------------------------------

// All node classes share this layout and these functions, by which they are known.
Node* node_in(PyObject* self) { return reinterpret_cast<NodeObject*>(self)->node; }

PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("<%s object at %p>", Py_TYPE(self)->tp_name, static_cast<void*>(self));
}
// Where nothing but this object keeps the node, what the node owns is this object's.
int traverse(PyObject* self, visitproc visit, void* arg) {
  const Node* const node = node_in(self);
  if (!node || node->use_count() != 1) return 0;
  Py_VISIT(static_cast<PyObject*>(node->metadata));
  return visit_hooks(*node, visit, arg);
}
int clear(PyObject* self) {
  Node* const node = node_in(self);
  if (!node || node->use_count() != 1) return 0;
  clear_hooks(*node);
  if (void* const metadata = std::exchange(node->metadata, nullptr)) Py_DECREF(static_cast<PyObject*>(metadata));
  return 0;
}
void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Node* const node = node_in(self);
  if (node->pyobj == self) node->pyobj = nullptr;
  PyObject_GC_Del(self);
  const Ref<Node> last = Ref<Node>::adopt(node);
}
PyObject* call(PyObject* self, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    Node& node = own_node(self);
    if (static_cast<size_t>(PyTuple_GET_SIZE(args)) != node.num_inputs())
      raise(PyExc_TypeError, "expected %zu arguments, got %zd instead", node.num_inputs(), PyTuple_GET_SIZE(args));
    GradList grads(node.num_inputs());
    for (size_t i = 0; i < grads.size(); ++i) {
      PyObject* const item = PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i));
      if (item == Py_None) continue;
      if (!is_tensor(item)) raise(PyExc_TypeError, "argument %zu is not a Variable", i);
      grads[i] = tensor_of(item);
    }
    GradList results;
    {
      const GilRelease release;
      results = node.apply(std::move(grads));
    }
    PyRef tuple = PyRef::check(grads_tuple(results));
    return results.size() == 1 ? Py_NewRef(PyTuple_GET_ITEM(tuple.get(), 0)) : tuple.release();
  });
}
PyObject* variable(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const Tensor* const leaf = own_node(self).leaf();
    return leaf ? wrap(*leaf) : Py_NewRef(Py_None);
  });
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
                            {"_input_metadata", node_input_metadata, nullptr, nullptr, nullptr},
                            {"requires_grad", node_requires_grad, nullptr, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

// The name of a node's class: "AccumulateGrad" for torch::autograd::AccumulateGrad.
std::string_view class_name(const Node& node) {
  const std::string_view name = node.name();
  const size_t colons = name.rfind("::");
  return colons == name.npos ? name : name.substr(colons + 2);
}

struct NodeClass {
  PyTypeObject* type = nullptr;
  bool shows_saved = false;
};
NodeClass& class_entry(const std::string& name) {
  static auto& classes = *new std::unordered_map<std::string, NodeClass>();
  const auto [it, fresh] = classes.try_emplace(name);
  if (it->second.type) return it->second;
  auto* const type = new PyTypeObject();
  type->tp_dealloc = dealloc;
  type->tp_traverse = traverse;
  type->tp_clear = clear;
  type->tp_repr = repr;
  type->tp_call = call;
  type->tp_methods = methods;
  type->tp_getset = properties;
  if (!ready_type(*type, it->first.c_str(), sizeof(NodeObject), Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC))
    throw PythonError();
  it->second.type = type;
  return it->second;
}

void add_properties(PyTypeObject* type, PyGetSetDef* list) {
  for (; list->name; ++list) {
    const PyRef descriptor = PyRef::check(PyDescr_NewGetSet(type, list));
    if (PyDict_SetItemString(type->tp_dict, list->name, descriptor.get()) < 0) throw PythonError();
  }
}

// What a node keeps for its backward is known from its first object on.
PyTypeObject* class_of(Node& node) {
  const std::string name(class_name(node));
  NodeClass& known = class_entry(name);
  if (known.shows_saved) return known.type;
  static PyGetSetDef leaf_properties[] = {{"variable", variable, nullptr, nullptr, nullptr},
                                          {nullptr, nullptr, nullptr, nullptr, nullptr}};
  add_properties(known.type, node.leaf() ? leaf_properties : saved_properties(node));
  PyType_Modified(known.type);
  known.shows_saved = true;
  // torch.autograd.graph.Node knows a node's class by its place here.
  const PyRef functions = PyRef::check(PyImport_ImportModule("torch._C._functions"));
  if (PyObject_SetAttrString(functions.get(), name.c_str(), reinterpret_cast<PyObject*>(known.type)) < 0)
    throw PythonError();
  return known.type;
}

}  // namespace

PyObject* node_name(PyObject* self, PyObject*) {
  if (context_metadata(self) && !function_node(self)) return PyUnicode_FromString(Py_TYPE(self)->tp_name);
  return guarded([&] { return PyUnicode_FromString(own_node(self).name()); });
}
PyObject* node_register_hook(PyObject* self, PyObject* hook) {
  return guarded([&] { return add_post_hook(own_node(self), hook); });
}
PyObject* node_register_prehook(PyObject* self, PyObject* hook) {
  return guarded([&] { return add_pre_hook(own_node(self), hook); });
}
PyObject* node_register_hook_dict(PyObject* self, PyObject* tensor) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(tensor))
      raise(PyExc_TypeError, "_register_hook_dict expected a variable, got %s", Py_TYPE(tensor)->tp_name);
    const Tensor& t = tensor_of(tensor);
    PyObject* const dict = reinterpret_cast<TensorObject*>(tensor)->backward_hooks;
    if (dict) add_tensor_hooks(own_node(self), dict, t->autograd ? t->autograd->output_nr : 0);
    Py_RETURN_NONE;
  });
}
PyObject* node_sequence(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(own_node(self).sequence()); });
}
PyObject* node_set_sequence(PyObject* self, PyObject* value) {
  return guarded([&]() -> PyObject* {
    const unsigned long long n = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred()) return nullptr;
    own_node(self).set_sequence(n);
    Py_RETURN_NONE;
  });
}
PyObject* node_next_functions(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const std::vector<Edge>& edges = own_node(self).edges;
    PyRef tuple = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(edges.size())));
    for (size_t i = 0; i < edges.size(); ++i) {
      const PyRef fn = PyRef::check(node_object(edges[i].node));
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       PyRef::check(Py_BuildValue("(OI)", fn.get(), edges[i].input)).release());
    }
    return tuple.release();
  });
}
PyObject* node_requires_grad(PyObject*, void*) { Py_RETURN_TRUE; }

PyObject* grads_tuple(const GradList& grads) {
  PyRef tuple = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(grads.size())));
  for (size_t i = 0; i < grads.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), PyRef::check(wrap(grads[i])).release());
  return tuple.release();
}

bool is_node(PyObject* object) { return Py_TYPE(object)->tp_dealloc == dealloc; }
Ref<Node> node_of(PyObject* object) {
  if (is_node(object)) return Ref<Node>::share(node_in(object));
  return Ref<Node>::share(function_node(object));
}

PyObject* node_class(const char* name) {
  return guarded([&] { return reinterpret_cast<PyObject*>(class_entry(name).type); });
}

PyObject* node_object(const Ref<Node>& node) {
  if (!node) Py_RETURN_NONE;
  if (node->pyobj) return Py_NewRef(static_cast<PyObject*>(node->pyobj));
  PyTypeObject* const type = class_of(*node);
  if (!type) return nullptr;
  auto* const o = PyObject_GC_New(NodeObject, type);
  if (!o) return nullptr;
  o->node = Ref<Node>(node).release();
  node->pyobj = o;
  PyObject_GC_Track(o);
  return reinterpret_cast<PyObject*>(o);
}

Node& own_node(PyObject* self) {
  Node* const node = is_node(self) ? node_in(self) : function_node(self);
  if (!node)
    fail(ErrorKind::Runtime,
         "attribute of a Function's context: expected a context with a graph, got one whose graph is gone");
  return *node;
}

}  // namespace tn::py
