// TensorBase and its metaclass.
#include "bindings/tensor.h"

#include <cstring>
#include <vector>

#include "bindings/convert.h"
#include "bindings/objects.h"
#include "bindings/parser.h"
#include "bindings/tensor_parts.h"
#include "bindings/torch_function.h"

namespace tn::py {

namespace {

PyTypeObject empty_type(const char* name, Py_ssize_t size) {
  PyTypeObject t{};
  t.ob_base.ob_base.ob_refcnt = 1;
  t.tp_name = name;
  t.tp_basicsize = size;
  return t;
}

bool is_named(PyTypeObject* cls, const char* name, const char* module) {
  if (std::strcmp(cls->tp_name, name) != 0) return false;
  PyObject* const m = PyDict_GetItemString(cls->tp_dict, "__module__");
  return m && PyUnicode_Check(m) && PyUnicode_CompareWithASCIIString(m, module) == 0;
}

// Every Python class of tensors passes here: it gets our dealloc, and the two that matter become known.
// Who takes calls below autograd isn't told of them above it as well, unless it says so itself.
bool prefer_dispatch(PyTypeObject* cls) {
  static PyObject* const dispatch = PyUnicode_InternFromString("__torch_dispatch__");
  static PyObject* const function = PyUnicode_InternFromString("__torch_function__");
  PyObject* const handler = _PyType_Lookup(cls, dispatch);
  if (!handler || handler == disabled_torch_dispatch_impl || handler == _PyType_Lookup(tensor_class, dispatch))
    return true;
  if (_PyType_Lookup(cls, function) != _PyType_Lookup(tensor_class, function)) return true;
  return PyObject_SetAttr(reinterpret_cast<PyObject*>(cls), function, disabled_torch_function_impl) == 0;
}

int meta_init(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (PyType_Type.tp_init(self, args, kwargs) < 0) return -1;
  auto* const cls = reinterpret_cast<PyTypeObject*>(self);
  if (!PyType_IsSubtype(cls, &tensor_base_type)) {
    PyErr_SetString(PyExc_TypeError, "_TensorMeta: expected a class derived from torch.Tensor, got another class");
    return -1;
  }
  if (tensor_class && !PyType_IsSubtype(cls, tensor_class)) {
    PyErr_SetString(PyExc_RuntimeError, "Cannot subclass _TensorBase directly");
    return -1;
  }
  adopt_class(cls);
  if (tensor_class) install_number_slots(cls);
  if (tensor_class && !prefer_dispatch(cls)) return -1;
  if (!tensor_class && is_named(cls, "Tensor", "torch")) {
    tensor_class = cls;
    Py_INCREF(cls);
    install_number_slots(cls);
  } else if (!parameter_class && is_named(cls, "Parameter", "torch.nn.parameter")) {
    parameter_class = cls;
    Py_INCREF(cls);
  }
  return 0;
}

PyObject* base_new(PyTypeObject* cls, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    if (cls == &tensor_base_type)
      raise(PyExc_RuntimeError, "Cannot directly construct TensorBase; subclass it and then construct that");
    Tensor made = legacy_constructor(default_dtype(), Device(), args, kwargs);
    return wrap_fresh(cls, std::move(made));
  });
}

Py_ssize_t length(PyObject* self) {
  return guarded([&]() -> Py_ssize_t {
    PyObject* told;
    if (needs_override(self) && method_override(self, "__len__", nullptr, 0, nullptr, &told)) {
      const PyRef owned = PyRef::adopt(told);
      return PyLong_AsSsize_t(told);
    }
    const Tensor& t = tensor_of(self);
    return t.dim() == 0 ? 0 : t.size(0);  // Tensor.__len__ raises for these
  });
}

// An index may hold tensors that override: each is told of it.
bool index_override(PyObject* self, PyObject* index, PyObject* value, PyObject** result) {
  if (torch_function_state.skip_next) {
    torch_function_state.skip_next = false;
    return false;
  }
  Overloaded who;
  const auto look = [&](PyObject* o) {
    if (overrides(o)) who.add(o);
  };
  look(self);
  if (PyTuple_Check(index) || PyList_Check(index))
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(index); ++i) look(PySequence_Fast_GET_ITEM(index, i));
  else look(index);
  if (value) look(value);
  if (who.empty() && !torch_function_mode_active()) return false;
  const char* const name = value ? "__setitem__" : "__getitem__";
  const PyRef func = PyRef::check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_class), name));
  PyObject* const args[] = {index, value};
  *result = call_torch_function(who, func.get(), self, args, value ? 2 : 1, nullptr, "torch.Tensor", name);
  return true;
}

PyObject* getitem(PyObject* self, PyObject* index) {
  return guarded([&]() -> PyObject* {
    PyObject* told;
    if (index_override(self, index, nullptr, &told)) return told;
    return tensor_getitem(self, index);
  });
}

int setitem(PyObject* self, PyObject* index, PyObject* value) {
  return guarded([&]() -> int {
    PyObject* told;
    if (value && index_override(self, index, value, &told)) {
      Py_DECREF(told);
      return 0;
    }
    return tensor_setitem(self, index, value);
  });
}

PyMappingMethods mapping = {length, getitem, setitem};

// All of TensorBase's methods in one table: hand-written ones first, since the first of a name stays.
PyMethodDef* all_methods() {
  auto* const all = new std::vector<PyMethodDef>();
  const auto add = [&](const PyMethodDef* m) {
    for (; m->ml_name; ++m) {
      bool known = false;
      for (const PyMethodDef& other : *all) known = known || std::strcmp(other.ml_name, m->ml_name) == 0;
      if (!known) all->push_back(*m);
    }
  };
  add(tensor_hand_methods);
  add(tensor_view_methods);
  add(tensor_convert_methods);
  add(tensor_construct_methods);
  add(tensor_number_methods);
  add(tensor_object_methods);
  for (const FunctionGroup* const* shard = function_group_shards; *shard; ++shard)
    for (const FunctionGroup* g = *shard; g->where; ++g)
      if (std::strcmp(g->where, "TensorBase") == 0) add(g->methods);
  all->push_back({nullptr, nullptr, 0, nullptr});
  return all->data();
}

}  // namespace

PyTypeObject tensor_meta_type, tensor_base_type;

bool bind_tensor(PyObject* module) {
  fill_number_methods();
  fill_properties();
  PyTypeObject& meta = tensor_meta_type;
  meta = empty_type("torch._C._TensorMeta", 0);
  meta.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  meta.tp_base = &PyType_Type;
  meta.tp_init = meta_init;
  if (PyType_Ready(&meta) < 0) return false;
  PyTypeObject& base = tensor_base_type;
  base = empty_type("torch._C.TensorBase", sizeof(TensorObject));
  Py_SET_TYPE(&base, &meta);
  base.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  base.tp_traverse = tensor_base_traverse;
  base.tp_as_mapping = &mapping;
  base.tp_getset = tensor_properties;
  base.tp_methods = all_methods();
  base.tp_new = base_new;
  base.tp_hash = PyObject_HashNotImplemented;
  if (PyType_Ready(&base) < 0) return false;
  return PyModule_AddObjectRef(module, "_TensorMeta", reinterpret_cast<PyObject*>(&meta)) == 0 &&
         PyModule_AddObjectRef(module, "TensorBase", reinterpret_cast<PyObject*>(&base)) == 0 &&
         PyModule_AddObjectRef(module, "_TensorBase", reinterpret_cast<PyObject*>(&base)) == 0;
}

}  // namespace tn::py
