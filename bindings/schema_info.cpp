// torch._C._SchemaInfo and _SchemaArgument: aliasing and writes of one call, for the schema check mode and FakeTensor.
#include <cstring>
#include <map>
#include <vector>

#include "bindings/schema.h"
#include "bindings/schema_support.h"
#include "runtime/schema_info.h"

namespace tn {
namespace {

using schema_support::add_class;
using schema_support::guarded;
using schema_support::Owned;
using schema_support::text_of;

struct PySlot {
  PyObject_HEAD PyObject* side;  // a _SchemaArgType
  SchemaSlot slot;
};

struct Call {
  explicit Call(SchemaRef schema) : info(std::move(schema)) {}
  SchemaInfo info;
  std::map<size_t, Owned> values;  // by argument
  bool current = true;             // info knows the values
};
struct PyInfo {
  PyObject_HEAD Call* call;
};

PyTypeObject* slot_class = nullptr;
PyTypeObject* info_class = nullptr;
PyObject* module_object = nullptr;

// ---- _SchemaArgument --------------------------------------------------------------------------------------------

PyObject* slot_new(PyTypeObject* cls, PyObject* args, PyObject*) {
  PyObject* side = nullptr;
  Py_ssize_t index = 0;
  if (!PyArg_ParseTuple(args, "On:_SchemaArgument", &side, &index)) return nullptr;
  Owned number(PyNumber_Index(side));
  if (!number) return nullptr;
  long value = PyLong_AsLong(number.get());
  if (value < 0 || value > 1 || index < 0) {
    PyErr_SetString(PyExc_ValueError, "_SchemaArgument(): expected a _SchemaArgType and an index, got others");
    return nullptr;
  }
  PyObject* object = cls->tp_alloc(cls, 0);
  if (!object) return nullptr;
  auto* self = reinterpret_cast<PySlot*>(object);
  self->side = Py_NewRef(side);
  self->slot = {static_cast<SchemaSlot::Side>(value), static_cast<size_t>(index)};
  return object;
}
void slot_dealloc(PyObject* self) {
  PyTypeObject* cls = Py_TYPE(self);
  Py_XDECREF(reinterpret_cast<PySlot*>(self)->side);
  cls->tp_free(self);
  Py_DECREF(cls);
}
PyObject* slot_type(PyObject* self, void*) { return Py_NewRef(reinterpret_cast<PySlot*>(self)->side); }
PyObject* slot_index(PyObject* self, void*) { return PyLong_FromSize_t(reinterpret_cast<PySlot*>(self)->slot.index); }

SchemaSlot expect_slot(PyObject* object, const char* what) {
  if (!PyObject_TypeCheck(object, slot_class)) {
    fail(ErrorKind::Type, what, ": expected a _SchemaArgument, got ", Py_TYPE(object)->tp_name);
  }
  return reinterpret_cast<PySlot*>(object)->slot;
}

PyGetSetDef slot_getset[] = {
    {"type", slot_type, nullptr, nullptr, nullptr},
    {"index", slot_index, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot slot_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(slot_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(slot_dealloc)},
    {Py_tp_getset, slot_getset},
    {0, nullptr},
};
PyType_Spec slot_spec = {"torch._C._SchemaArgument", sizeof(PySlot), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                         slot_slots};

// ---- facts on values --------------------------------------------------------------------------------------------

bool is_tensor(PyObject* object) {
  Owned cls(PyObject_GetAttrString(module_object, "TensorBase"));
  int answer = cls ? PyObject_IsInstance(object, cls.get()) : -1;
  if (answer < 0) fail(ErrorKind::Runtime, "_SchemaInfo: expected torch._C.TensorBase to exist, got an error");
  return answer == 1;
}

bool share_memory(PyObject* a, PyObject* b) {
  if (!is_tensor(a) || !is_tensor(b)) return false;
  Owned answer(PyObject_CallMethod(module_object, "_is_alias_of", "OO", a, b));
  if (!answer) {
    PyErr_Clear();
    fail(ErrorKind::Runtime, "_SchemaInfo: expected torch._C._is_alias_of to answer for two tensors, got an error");
  }
  return PyObject_IsTrue(answer.get()) == 1;
}

// Some tensor inside the container shares memory with `item`.
bool holds(PyObject* container, PyObject* item) {
  if (PyDict_Check(container)) {
    Owned values(PyDict_Values(container));
    return values && holds(values.get(), item);
  }
  if (!PyList_Check(container) && !PyTuple_Check(container)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(container); ++i) {
    PyObject* inner = PySequence_Fast_GET_ITEM(container, i);
    if (share_memory(inner, item) || holds(inner, item)) return true;
  }
  return false;
}

std::optional<bool> training_flag(const Call& call) {
  for (const char* name : {"training", "train", "use_input_stats"}) {
    std::optional<size_t> index = call.info.schema().argument_index(name);
    auto found = index ? call.values.find(*index) : call.values.end();
    if (found != call.values.end()) return PyObject_IsTrue(found->second.get()) == 1;
  }
  return std::nullopt;
}

const SchemaInfo& current_info(PyObject* self) {
  Call& call = *reinterpret_cast<PyInfo*>(self)->call;
  if (call.current) return call.info;
  std::vector<SchemaInfo::Pair> aliases, contains;
  for (const auto& [i, left] : call.values) {
    for (const auto& [j, right] : call.values) {
      if (i == j) continue;
      if (i < j && share_memory(left.get(), right.get())) aliases.push_back({i, j});
      if (holds(left.get(), right.get())) contains.push_back({i, j});
    }
  }
  call.info.set_values(aliases, contains, training_flag(call));
  call.current = true;
  return call.info;
}

// ---- _SchemaInfo ------------------------------------------------------------------------------------------------

PyObject* info_new(PyTypeObject* cls, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject* given = nullptr;
    if (!PyArg_ParseTuple(args, "O:_SchemaInfo", &given)) return nullptr;
    FunctionSchema* schema = unwrap_schema(given);
    if (!schema) fail(ErrorKind::Type, "_SchemaInfo(): expected a FunctionSchema, got ", Py_TYPE(given)->tp_name);
    auto call = std::make_unique<Call>(SchemaRef::share(schema));
    PyObject* object = cls->tp_alloc(cls, 0);
    if (object) reinterpret_cast<PyInfo*>(object)->call = call.release();
    return object;
  });
}
void info_dealloc(PyObject* self) {
  PyTypeObject* cls = Py_TYPE(self);
  delete reinterpret_cast<PyInfo*>(self)->call;
  cls->tp_free(self);
  Py_DECREF(cls);
}

size_t expect_argument(const FunctionSchema& schema, std::string_view name) {
  std::optional<size_t> index = schema.argument_index(name);
  TN_CHECK(index, "Schema has no argument named ", name);
  return *index;
}

PyObject* info_is_mutable(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    const SchemaInfo& info = current_info(self);
    if (count == 0) return PyBool_FromLong(info.is_mutable());
    if (PyUnicode_Check(args[0])) {
      size_t index = expect_argument(info.schema(), text_of(args[0], "is_mutable()"));
      return PyBool_FromLong(info.is_mutable({SchemaSlot::kInput, index}));
    }
    return PyBool_FromLong(info.is_mutable(expect_slot(args[0], "is_mutable()")));
  });
}

PyObject* info_has_argument(PyObject* self, PyObject* name) {
  return guarded([&] {
    const FunctionSchema& schema = reinterpret_cast<PyInfo*>(self)->call->info.schema();
    return PyBool_FromLong(schema.argument_index(text_of(name, "has_argument()")).has_value());
  });
}

template <bool (SchemaInfo::*ask)(SchemaSlot, SchemaSlot) const>
PyObject* info_pair(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *left = nullptr, *right = nullptr;
    if (!PyArg_ParseTuple(args, "OO", &left, &right)) return nullptr;
    SchemaSlot a = expect_slot(left, "_SchemaInfo"), b = expect_slot(right, "_SchemaInfo");
    return PyBool_FromLong((current_info(self).*ask)(a, b));
  });
}

void add_value(Call& call, std::string_view name, PyObject* value) {
  const FunctionSchema& schema = call.info.schema();
  // torch.fx renames arguments called self.
  if (name == "input" && !schema.argument_index("input")) name = "self";
  call.values[expect_argument(schema, name)] = Owned(Py_NewRef(value));
  call.current = false;
}

PyObject* info_add_value(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *name = nullptr, *value = nullptr;
    if (!PyArg_ParseTuple(args, "UO:add_argument_value", &name, &value)) return nullptr;
    add_value(*reinterpret_cast<PyInfo*>(self)->call, text_of(name, "add_argument_value()"), value);
    return Py_NewRef(Py_None);
  });
}
PyObject* info_add_values(PyObject* self, PyObject* values) {
  return guarded([&]() -> PyObject* {
    if (!PyDict_Check(values)) {
      fail(ErrorKind::Type, "add_argument_values(): expected a dict, got ", Py_TYPE(values)->tp_name);
    }
    PyObject *name = nullptr, *value = nullptr;
    for (Py_ssize_t pos = 0; PyDict_Next(values, &pos, &name, &value);) {
      add_value(*reinterpret_cast<PyInfo*>(self)->call, text_of(name, "add_argument_values()"), value);
    }
    return Py_NewRef(Py_None);
  });
}

PyMethodDef info_methods[] = {
    {"is_mutable", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(info_is_mutable)), METH_FASTCALL,
     nullptr},
    {"has_argument", info_has_argument, METH_O, nullptr},
    {"may_alias", info_pair<&SchemaInfo::may_alias>, METH_VARARGS, nullptr},
    {"may_contain_alias", info_pair<&SchemaInfo::may_contain_alias>, METH_VARARGS, nullptr},
    {"add_argument_value", info_add_value, METH_VARARGS, nullptr},
    {"add_argument_values", info_add_values, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot info_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(info_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(info_dealloc)},
    {Py_tp_methods, info_methods},
    {0, nullptr},
};
PyType_Spec info_spec = {"torch._C._SchemaInfo", sizeof(PyInfo), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                         info_slots};

}  // namespace

void bind_schema_info(PyObject* module) {
  module_object = module;
  slot_class = add_class(module, &slot_spec);
  info_class = add_class(module, &info_spec);
}

}  // namespace tn
