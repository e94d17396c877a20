// torch._C._distributed: how DTensor says that a mesh dimension splits, copies or partially holds a tensor. Values
// only; torch.distributed.tensor subclasses them in Python.
#include <cstdint>
#include <cstring>

#include "bindings/names/table.h"

namespace tn::py::names {
namespace {

enum class Kind : char { kPlacement, kShard, kStridedShard, kReplicate, kPartial };

struct Placement {
  PyObject_HEAD Kind kind;
  int64_t dim;
  int64_t split_factor;
  PyObject* reduce_op;  // str; null but for Partial
};

PyTypeObject* g_placement = nullptr;

Placement* as_placement(PyObject* object) { return reinterpret_cast<Placement*>(object); }

template <Kind kind>
PyObject* placement_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self != nullptr) as_placement(self)->kind = kind;
  return self;
}

void placement_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(as_placement(self)->reduce_op);
  type->tp_free(self);
  Py_DECREF(type);
}

int no_arguments_init(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {nullptr};
  return PyArg_ParseTupleAndKeywords(args, kwargs, "", const_cast<char**>(keywords)) ? 0 : -1;
}

int shard_init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"dim", nullptr};
  long long dim = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "L", const_cast<char**>(keywords), &dim)) return -1;
  as_placement(self)->dim = dim;
  return 0;
}

int strided_shard_init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"dim", "split_factor", nullptr};
  long long dim = 0, split_factor = 0;
  const char* format = "L$L";
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char**>(keywords), &dim, &split_factor)) return -1;
  as_placement(self)->dim = dim;
  as_placement(self)->split_factor = split_factor;
  return 0;
}

bool set_reduce_op(PyObject* self, PyObject* value) {
  PyObject* op = value == nullptr || value == Py_None ? PyUnicode_FromString("sum") : Py_NewRef(value);
  if (op == nullptr) return false;
  if (!PyUnicode_Check(op)) {
    PyErr_Format(PyExc_TypeError, "Partial: expected reduce_op str or None, got %s", Py_TYPE(op)->tp_name);
    Py_DECREF(op);
    return false;
  }
  Py_XSETREF(as_placement(self)->reduce_op, op);
  return true;
}

int partial_init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"reduce_op", nullptr};
  PyObject* value = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(keywords), &value)) return -1;
  return set_reduce_op(self, value) ? 0 : -1;
}

PyObject* is_shard(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"dim", nullptr};
  PyObject* dim = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(keywords), &dim)) return nullptr;
  int64_t wanted = as_placement(self)->dim;
  if (dim != Py_None) {
    PyObject* number = PyNumber_Index(dim);
    if (number == nullptr) return nullptr;
    wanted = PyLong_AsLongLong(number);
    Py_DECREF(number);
    if (wanted == -1 && PyErr_Occurred() != nullptr) return nullptr;
  }
  // Upstream's StridedShard is no Shard here.
  return PyBool_FromLong(as_placement(self)->kind == Kind::kShard && wanted == as_placement(self)->dim);
}

PyObject* is_replicate(PyObject* self, PyObject*) {
  return PyBool_FromLong(as_placement(self)->kind == Kind::kReplicate);
}

PyObject* is_partial(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"reduce_op", nullptr};
  const char* wanted = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z", const_cast<char**>(keywords), &wanted)) return nullptr;
  const Placement* placement = as_placement(self);
  const bool partial = placement->kind == Kind::kPartial && placement->reduce_op != nullptr;
  if (!partial || wanted == nullptr) return PyBool_FromLong(partial);
  return PyBool_FromLong(PyUnicode_CompareWithASCIIString(placement->reduce_op, wanted) == 0);
}

PyObject* compare(PyObject* self, PyObject* other, int op) {
  if ((op != Py_EQ && op != Py_NE) || !PyObject_TypeCheck(other, g_placement)) Py_RETURN_NOTIMPLEMENTED;
  const Placement* left = as_placement(self);
  const Placement* right = as_placement(other);
  if (left->kind != right->kind || left->kind == Kind::kPlacement) Py_RETURN_NOTIMPLEMENTED;
  bool equal = left->dim == right->dim && left->split_factor == right->split_factor;
  if (left->reduce_op != nullptr && right->reduce_op != nullptr) {
    equal = equal && PyUnicode_Compare(left->reduce_op, right->reduce_op) == 0;
  }
  return PyBool_FromLong(equal == (op == Py_EQ));
}

PyObject* get_dim(PyObject* self, void*) { return PyLong_FromLongLong(as_placement(self)->dim); }
PyObject* get_split_factor(PyObject* self, void*) { return PyLong_FromLongLong(as_placement(self)->split_factor); }
PyObject* get_reduce_op(PyObject* self, void*) {
  PyObject* op = as_placement(self)->reduce_op;
  return op == nullptr ? PyUnicode_FromString("sum") : Py_NewRef(op);
}

PyObject* get_state(PyObject* self, PyObject*) {
  const Placement* placement = as_placement(self);
  switch (placement->kind) {
    case Kind::kShard: return Py_BuildValue("{s:L}", "dim", static_cast<long long>(placement->dim));
    case Kind::kStridedShard:
      return Py_BuildValue("{s:L,s:L}", "dim", static_cast<long long>(placement->dim), "split_factor",
                           static_cast<long long>(placement->split_factor));
    case Kind::kPartial: return Py_BuildValue("{s:N}", "reduce_op", get_reduce_op(self, nullptr));
    default: return PyDict_New();
  }
}

bool read_state(PyObject* state, const char* key, int64_t* value) {
  PyObject* item = PyDict_GetItemString(state, key);
  if (item == nullptr) {
    PyErr_Format(PyExc_KeyError, "%s", key);
    return false;
  }
  *value = PyLong_AsLongLong(item);
  return *value != -1 || PyErr_Occurred() == nullptr;
}

PyObject* set_state(PyObject* self, PyObject* state) {
  Placement* placement = as_placement(self);
  if (!PyDict_Check(state)) {
    return PyErr_Format(PyExc_TypeError, "__setstate__: expected dict, got %s", Py_TYPE(state)->tp_name);
  }
  const bool has_dim = placement->kind == Kind::kShard || placement->kind == Kind::kStridedShard;
  if (has_dim && !read_state(state, "dim", &placement->dim)) return nullptr;
  if (placement->kind == Kind::kStridedShard && !read_state(state, "split_factor", &placement->split_factor)) {
    return nullptr;
  }
  if (placement->kind == Kind::kPartial && !set_reduce_op(self, PyDict_GetItemString(state, "reduce_op"))) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

template <typename F>
PyCFunction as_method(F* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

PyMethodDef base_methods[] = {
    {"is_shard", as_method(is_shard), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"is_replicate", is_replicate, METH_NOARGS, nullptr},
    {"is_partial", as_method(is_partial), METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef state_methods[] = {
    {"__getstate__", get_state, METH_NOARGS, nullptr},
    {"__setstate__", set_state, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef no_getset[] = {{nullptr, nullptr, nullptr, nullptr, nullptr}};
PyGetSetDef shard_getset[] = {
    {"dim", get_dim, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyGetSetDef strided_shard_getset[] = {
    {"dim", get_dim, nullptr, nullptr, nullptr},
    {"split_factor", get_split_factor, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyGetSetDef partial_getset[] = {
    {"reduce_op", get_reduce_op, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

template <typename F>
void* erase(F* function) {
  return reinterpret_cast<void*>(function);
}

PyObject* add_type(PyObject* module, const char* full_name, PyType_Slot* slots, PyObject* base) {
  PyType_Spec spec = {full_name, sizeof(Placement), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  PyObject* type = PyType_FromSpecWithBases(&spec, base);
  if (type == nullptr) return nullptr;
  const bool ok =
      set_opaque_base_metaclass(type) && PyObject_SetAttrString(module, std::strrchr(full_name, '.') + 1, type) == 0;
  Py_DECREF(type);  // the module holds it
  return ok ? type : nullptr;
}

template <Kind kind>
bool add_kind(PyObject* module, const char* full_name, initproc init, PyGetSetDef* getset) {
  PyType_Slot slots[] = {
      {Py_tp_new, erase(placement_new<kind>)},
      {Py_tp_init, erase(init)},
      {Py_tp_dealloc, erase(placement_dealloc)},
      {Py_tp_richcompare, erase(compare)},
      {Py_tp_hash, erase(PyObject_HashNotImplemented)},
      {Py_tp_methods, state_methods},
      {Py_tp_getset, getset},
      {0, nullptr},
  };
  return add_type(module, full_name, slots, reinterpret_cast<PyObject*>(g_placement)) != nullptr;
}

}  // namespace

bool add_placements(PyObject* root) {
  PyObject* module = PyObject_GetAttrString(root, "_distributed");
  PyObject* base = module == nullptr ? nullptr : pybind_object_type();
  if (base == nullptr) return false;
  PyType_Slot slots[] = {
      {Py_tp_new, erase(placement_new<Kind::kPlacement>)},
      {Py_tp_init, erase(no_arguments_init)},
      {Py_tp_dealloc, erase(placement_dealloc)},
      {Py_tp_methods, base_methods},
      {0, nullptr},
  };
  g_placement = reinterpret_cast<PyTypeObject*>(add_type(module, "torch._C._distributed.Placement", slots, base));
  const bool ok = g_placement != nullptr &&
                  add_kind<Kind::kShard>(module, "torch._C._distributed.Shard", shard_init, shard_getset) &&
                  add_kind<Kind::kStridedShard>(module, "torch._C._distributed.StridedShard", strided_shard_init,
                                                strided_shard_getset) &&
                  add_kind<Kind::kReplicate>(module, "torch._C._distributed.Replicate", no_arguments_init, no_getset) &&
                  add_kind<Kind::kPartial>(module, "torch._C._distributed.Partial", partial_init, partial_getset);
  Py_DECREF(module);
  return ok;
}

}  // namespace tn::py::names
