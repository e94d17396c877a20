#include "bindings/fx/node.h"

#include <structmember.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <vector>

#include "bindings/fx/aggregate.h"

namespace tn::py {
namespace fx {
namespace {

// A node of the graph's circular doubly linked list. An erased node keeps its links, so that an iterator standing on it
// can go on.
struct Node {
  PyObject_HEAD Node* prev;
  Node* next;
  PyObject* graph;
  PyObject* name;
  PyObject* op;
  PyObject* target;
  PyObject* type;
  PyObject* input_nodes;  // dict used as an ordered set
  PyObject* args;
  PyObject* kwargs;
  PyObject* users;  // dict used as an ordered set
  PyObject* repr_fn;
  PyObject* meta;
  std::vector<int64_t> sort_key;  // orders the nodes of a graph lexicographically, without renumbering on insertion
  char erased;
};

PyTypeObject* g_node_type = nullptr;

bool is_node(PyObject* object) { return PyObject_TypeCheck(object, g_node_type); }
Node* as_node(PyObject* object) { return reinterpret_cast<Node*>(object); }
PyObject* as_object(Node* node) { return reinterpret_cast<PyObject*>(node); }

template <typename F>
void each_field(Node* node, F visit) {
  for (PyObject** field : {&node->graph, &node->name, &node->op, &node->target, &node->type, &node->input_nodes,
                           &node->args, &node->kwargs, &node->users, &node->repr_fn, &node->meta}) {
    visit(field);
  }
}

void set_link(Node** link, Node* value) {
  Node* before = *link;
  Py_XINCREF(as_object(value));
  *link = value;
  Py_XDECREF(as_object(before));
}

PyObject* node_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self != nullptr) new (&as_node(self)->sort_key) std::vector<int64_t>();
  return self;
}

int node_init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"graph", "name", "op", "target", "return_type", nullptr};
  PyObject *graph = nullptr, *name = nullptr, *op = nullptr, *target = nullptr, *return_type = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOO", const_cast<char**>(keywords), &graph, &name, &op, &target,
                                   &return_type)) {
    return -1;
  }
  PyObject* fresh[] = {PyDict_New(), PyTuple_New(0), PyDict_New(), PyDict_New(), PyDict_New()};
  for (PyObject* object : fresh) {
    if (object != nullptr) continue;
    for (PyObject* other : fresh) Py_XDECREF(other);
    return -1;
  }
  Node* node = as_node(self);
  node->erased = 0;
  set_link(&node->prev, node);
  set_link(&node->next, node);
  Py_XSETREF(node->graph, Py_NewRef(graph));
  Py_XSETREF(node->name, Py_NewRef(name));
  Py_XSETREF(node->op, Py_NewRef(op));
  Py_XSETREF(node->target, Py_NewRef(target));
  Py_XSETREF(node->type, Py_NewRef(return_type));
  Py_XSETREF(node->repr_fn, Py_NewRef(Py_None));
  Py_XSETREF(node->input_nodes, fresh[0]);
  Py_XSETREF(node->args, fresh[1]);
  Py_XSETREF(node->kwargs, fresh[2]);
  Py_XSETREF(node->users, fresh[3]);
  Py_XSETREF(node->meta, fresh[4]);
  node->sort_key.clear();
  return 0;
}

int node_traverse(PyObject* self, visitproc visit, void* arg) {
  Node* node = as_node(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_object(node->prev));
  Py_VISIT(as_object(node->next));
  int stopped = 0;
  each_field(node, [&](PyObject** field) {
    if (stopped == 0 && *field != nullptr) stopped = visit(*field, arg);
  });
  return stopped;
}

int node_clear(PyObject* self) {
  Node* node = as_node(self);
  set_link(&node->prev, nullptr);
  set_link(&node->next, nullptr);
  each_field(node, [](PyObject** field) { Py_CLEAR(*field); });
  return 0;
}

void node_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  // A long list of nodes would otherwise free itself recursively.
  Py_TRASHCAN_BEGIN(self, node_dealloc) node_clear(self);
  as_node(self)->sort_key.~vector();
  type->tp_free(self);
  Py_DECREF(type);
  Py_TRASHCAN_END
}

// --- arguments

// Registers each node among the arguments as an input of `context`, and that as its user.
PyObject* connect_leaf(void* context, PyObject* leaf) {
  if (is_node(leaf)) {
    Node* user = static_cast<Node*>(context);
    Node* input = as_node(leaf);
    if (PyDict_SetDefault(user->input_nodes, leaf, Py_None) == nullptr) return nullptr;
    if (PyDict_SetDefault(input->users, as_object(user), Py_None) == nullptr) return nullptr;
  }
  return Py_NewRef(leaf);
}

bool disconnect_inputs(Node* node) {
  PyObject* inputs = PyDict_Keys(node->input_nodes);
  if (inputs == nullptr) return false;
  bool ok = true;
  for (Py_ssize_t i = 0; ok && i < PyList_GET_SIZE(inputs); ++i) {
    PyObject* users = as_node(PyList_GET_ITEM(inputs, i))->users;
    if (PyDict_DelItem(users, as_object(node)) == 0) continue;
    ok = PyErr_ExceptionMatches(PyExc_KeyError);
    if (ok) PyErr_Clear();
  }
  Py_DECREF(inputs);
  PyObject* fresh = ok ? PyDict_New() : nullptr;
  if (fresh == nullptr) return false;
  Py_XSETREF(node->input_nodes, fresh);
  return true;
}

bool set_arguments(Node* node, PyObject* args, PyObject* kwargs) {
  // The new values may live only in the old ones.
  Py_INCREF(args);
  Py_INCREF(kwargs);
  const LeafMap connect = {connect_leaf, node};
  bool ok = disconnect_inputs(node);
  PyObject* new_args = ok ? map_aggregate(args, connect) : nullptr;
  if (new_args != nullptr) Py_XSETREF(node->args, new_args);
  PyObject* new_kwargs = new_args != nullptr ? map_aggregate(kwargs, connect) : nullptr;
  if (new_kwargs != nullptr) Py_XSETREF(node->kwargs, new_kwargs);
  Py_DECREF(args);
  Py_DECREF(kwargs);
  return new_kwargs != nullptr;
}

// Unpickling and __new__ alone leave fields unset.
bool need_fields(Node* node, const char* method) {
  if (node->input_nodes != nullptr && node->args != nullptr && node->kwargs != nullptr && node->users != nullptr &&
      node->prev != nullptr && node->next != nullptr) {
    return true;
  }
  PyErr_Format(PyExc_RuntimeError, "%s: expected an initialised node, got one without fields", method);
  return false;
}

PyObject* update_args_kwargs(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) {
    return PyErr_Format(PyExc_TypeError, "_update_args_kwargs() requires exactly 2 arguments (new_args, new_kwargs)");
  }
  if (!need_fields(as_node(self), "_update_args_kwargs")) return nullptr;
  if (!set_arguments(as_node(self), args[0], args[1])) return nullptr;
  Py_RETURN_NONE;
}

PyObject* replace_leaf(void* context, PyObject* leaf) {
  PyObject* const* pair = static_cast<PyObject* const*>(context);
  return Py_NewRef(leaf == pair[0] ? pair[1] : leaf);
}

PyObject* replace_input_with(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || !is_node(args[0])) {
    return PyErr_Format(PyExc_TypeError, "_replace_input_with() requires a Node and its replacement");
  }
  Node* node = as_node(self);
  if (!need_fields(node, "_replace_input_with")) return nullptr;
  PyObject* pair[] = {args[0], args[1]};
  const LeafMap replace = {replace_leaf, pair};
  PyObject* new_args = map_aggregate(node->args, replace);
  PyObject* new_kwargs = new_args == nullptr ? nullptr : map_aggregate(node->kwargs, replace);
  const bool ok = new_kwargs != nullptr && set_arguments(node, new_args, new_kwargs);
  Py_XDECREF(new_args);
  Py_XDECREF(new_kwargs);
  if (!ok) return nullptr;
  Py_RETURN_NONE;
}

// --- the list

void unlink(Node* node) {
  Node* before = node->prev;
  Node* after = node->next;
  set_link(&before->next, after);
  set_link(&after->prev, before);
}

PyObject* remove_from_list(PyObject* self, PyObject*) {
  if (!need_fields(as_node(self), "_remove_from_list")) return nullptr;
  unlink(as_node(self));
  Py_RETURN_NONE;
}

// A key between the neighbours': one level deeper than equal lengths, else the longer one's next or previous.
std::vector<int64_t> key_between(const std::vector<int64_t>& before, const std::vector<int64_t>& after) {
  std::vector<int64_t> key;
  if (before.size() > after.size()) {
    key.assign(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(after.size()) + 1);
    key.back() += 1;
  } else if (before.size() < after.size()) {
    key.assign(after.begin(), after.begin() + static_cast<std::ptrdiff_t>(before.size()) + 1);
    key.back() -= 1;
  } else {
    key = before;
    key.push_back(0);
  }
  return key;
}

PyObject* prepend(PyObject* self, PyObject* other) {
  if (!is_node(other)) return PyErr_Format(PyExc_TypeError, "_prepend() argument must be a Node");
  if (self == other) Py_RETURN_NONE;
  Node* node = as_node(self);
  Node* moved = as_node(other);
  if (!need_fields(node, "_prepend") || !need_fields(moved, "_prepend")) return nullptr;
  if (node->graph != moved->graph) {
    return PyErr_Format(PyExc_AssertionError, "Attempting to move a Node into a different Graph");
  }
  unlink(moved);
  Node* before = node->prev;
  moved->sort_key = key_between(before->sort_key, node->sort_key);
  set_link(&moved->prev, before);
  set_link(&moved->next, node);
  set_link(&before->next, moved);
  set_link(&node->prev, moved);
  Py_RETURN_NONE;
}

// --- order

template <int op>
PyObject* compare(PyObject* self, PyObject* other) {
  if (!is_node(other)) Py_RETURN_NOTIMPLEMENTED;
  const std::vector<int64_t>& left = as_node(self)->sort_key;
  const std::vector<int64_t>& right = as_node(other)->sort_key;
  switch (op) {
    case Py_LT: return PyBool_FromLong(left < right);
    case Py_GT: return PyBool_FromLong(left > right);
    case Py_LE: return PyBool_FromLong(left <= right);
    default: return PyBool_FromLong(left >= right);
  }
}

PyObject* get_sort_key(PyObject* self, void*) {
  const std::vector<int64_t>& key = as_node(self)->sort_key;
  PyObject* result = PyTuple_New(static_cast<Py_ssize_t>(key.size()));
  for (size_t i = 0; result != nullptr && i < key.size(); ++i) {
    PyObject* item = PyLong_FromLongLong(key[i]);
    if (item == nullptr) return Py_DECREF(result), nullptr;
    PyTuple_SET_ITEM(result, static_cast<Py_ssize_t>(i), item);
  }
  return result;
}

int set_sort_key(PyObject* self, PyObject* value, void*) {
  if (value == nullptr || !PyTuple_Check(value)) {
    PyErr_SetString(PyExc_TypeError, "_sort_key must be a tuple of ints");
    return -1;
  }
  std::vector<int64_t> key;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) {
    key.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(value, i)));
    if (key.back() == -1 && PyErr_Occurred() != nullptr) return -1;
  }
  as_node(self)->sort_key.swap(key);
  return 0;
}

template <typename F>
PyCFunction as_method(F* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

PyMethodDef node_methods[] = {
    {"_update_args_kwargs", as_method(update_args_kwargs), METH_FASTCALL, nullptr},
    {"_replace_input_with", as_method(replace_input_with), METH_FASTCALL, nullptr},
    {"_remove_from_list", remove_from_list, METH_NOARGS, nullptr},
    {"_prepend", prepend, METH_O, nullptr},
    {"__lt__", compare<Py_LT>, METH_O, nullptr},
    {"__gt__", compare<Py_GT>, METH_O, nullptr},
    {"__le__", compare<Py_LE>, METH_O, nullptr},
    {"__ge__", compare<Py_GE>, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // Node has no bases and no virtual functions
PyMemberDef node_members[] = {
    {"_erased", T_BOOL, offsetof(Node, erased), 0, nullptr},
    {"_prev", T_OBJECT_EX, offsetof(Node, prev), 0, nullptr},
    {"_next", T_OBJECT_EX, offsetof(Node, next), 0, nullptr},
    {"graph", T_OBJECT_EX, offsetof(Node, graph), 0, nullptr},
    {"name", T_OBJECT_EX, offsetof(Node, name), 0, nullptr},
    {"op", T_OBJECT_EX, offsetof(Node, op), 0, nullptr},
    {"target", T_OBJECT_EX, offsetof(Node, target), 0, nullptr},
    {"type", T_OBJECT_EX, offsetof(Node, type), 0, nullptr},
    {"_input_nodes", T_OBJECT_EX, offsetof(Node, input_nodes), 0, nullptr},
    {"_args", T_OBJECT_EX, offsetof(Node, args), 0, nullptr},
    {"_kwargs", T_OBJECT_EX, offsetof(Node, kwargs), 0, nullptr},
    {"users", T_OBJECT_EX, offsetof(Node, users), 0, nullptr},
    {"_repr_fn", T_OBJECT_EX, offsetof(Node, repr_fn), 0, nullptr},
    {"meta", T_OBJECT_EX, offsetof(Node, meta), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
#pragma GCC diagnostic pop

PyGetSetDef node_getset[] = {
    {"_sort_key", get_sort_key, set_sort_key, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// --- iteration: skips erased nodes, also when the current one is erased on the way

struct NodeIter {
  PyObject_HEAD Node* root;
  Node* current;
  int reversed;
};

NodeIter* as_iter(PyObject* object) { return reinterpret_cast<NodeIter*>(object); }

int iter_init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"root", "reversed", nullptr};
  PyObject* root = nullptr;
  int reversed = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!p", const_cast<char**>(keywords), g_node_type, &root, &reversed)) {
    return -1;
  }
  NodeIter* iter = as_iter(self);
  set_link(&iter->root, as_node(root));
  set_link(&iter->current, as_node(root));
  iter->reversed = reversed;
  return 0;
}

PyObject* iter_next(PyObject* self) {
  NodeIter* iter = as_iter(self);
  if (iter->root == nullptr) return nullptr;
  do {
    Node* step = iter->reversed ? iter->current->prev : iter->current->next;
    if (step == nullptr) return nullptr;  // the garbage collector took the list apart
    set_link(&iter->current, step);
    if (step == iter->root) return nullptr;
  } while (iter->current->erased);
  return Py_NewRef(as_object(iter->current));
}

int iter_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_object(as_iter(self)->root));
  Py_VISIT(as_object(as_iter(self)->current));
  return 0;
}

int iter_clear(PyObject* self) {
  set_link(&as_iter(self)->root, nullptr);
  set_link(&as_iter(self)->current, nullptr);
  return 0;
}

void iter_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  iter_clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// --- module functions

PyObject* call_leaf(void* function, PyObject* leaf) {
  return PyObject_CallOneArg(static_cast<PyObject*>(function), leaf);
}

PyObject* call_node_leaf(void* function, PyObject* leaf) {
  return is_node(leaf) ? call_leaf(function, leaf) : Py_NewRef(leaf);
}

PyObject* fx_map_aggregate(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) return PyErr_Format(PyExc_TypeError, "map_aggregate() takes exactly two arguments");
  return map_aggregate(args[0], {call_leaf, args[1]});
}

PyObject* fx_map_arg(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) return PyErr_Format(PyExc_TypeError, "map_arg() takes exactly two arguments");
  return map_aggregate(args[0], {call_node_leaf, args[1]});
}

PyMethodDef functions[] = {
    {"_fx_map_aggregate", as_method(fx_map_aggregate), METH_FASTCALL,
     "Maps a function over every leaf of an argument."},
    {"_fx_map_arg", as_method(fx_map_arg), METH_FASTCALL, "Maps a function over every node of an argument."},
    {nullptr, nullptr, 0, nullptr},
};

template <typename F>
void* erase(F* function) {
  return reinterpret_cast<void*>(function);
}

PyType_Slot node_slots[] = {
    {Py_tp_new, erase(node_new)},           {Py_tp_init, erase(node_init)},   {Py_tp_dealloc, erase(node_dealloc)},
    {Py_tp_traverse, erase(node_traverse)}, {Py_tp_clear, erase(node_clear)}, {Py_tp_methods, node_methods},
    {Py_tp_members, node_members},          {Py_tp_getset, node_getset},      {0, nullptr},
};
PyType_Spec node_spec = {"torch._C._NodeBase", sizeof(Node), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, node_slots};

PyType_Slot iter_slots[] = {
    {Py_tp_new, erase(PyType_GenericNew)}, {Py_tp_init, erase(iter_init)},
    {Py_tp_dealloc, erase(iter_dealloc)},  {Py_tp_traverse, erase(iter_traverse)},
    {Py_tp_clear, erase(iter_clear)},      {Py_tp_iter, erase(PyObject_SelfIter)},
    {Py_tp_iternext, erase(iter_next)},    {0, nullptr},
};
PyType_Spec iter_spec = {"torch._C._NodeIter", sizeof(NodeIter), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                         iter_slots};

}  // namespace
}  // namespace fx

bool install_fx(PyObject* module) {
  using namespace fx;
  g_node_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&node_spec));
  if (g_node_type == nullptr || PyModule_AddObjectRef(module, "_NodeBase", reinterpret_cast<PyObject*>(g_node_type))) {
    return false;
  }
  PyObject* iter_type = PyType_FromSpec(&iter_spec);
  const int failed = iter_type == nullptr || PyModule_AddObjectRef(module, "_NodeIter", iter_type);
  Py_XDECREF(iter_type);
  return failed == 0 && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace tn::py
