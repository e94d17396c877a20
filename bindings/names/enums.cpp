// Enums that look and pickle like upstream's pybind11 enums.
#include <cstring>
#include <string>

#include "bindings/names/names.h"
#include "bindings/names/table.h"

namespace tn::py {
namespace names {
namespace {

struct EnumObject {
  PyObject_HEAD int64_t value;
};

struct EnumTable {
  PyObject** members = nullptr;  // one for each value row, in the table's order
  PyObject** dense = nullptr;    // by value, for values from 0 up to dense_count
  int64_t dense_count = 0;
};

constexpr int64_t kDenseLimit = 256;
EnumTable* g_tables = nullptr;  // parallel to kClasses

int64_t value_of(PyObject* self) { return reinterpret_cast<EnumObject*>(self)->value; }

int index_of(PyTypeObject* type) {
  for (int i = 0; i < kClassCount; ++i) {
    if (g_types[i] == type) return i;
  }
  return -1;
}

const char* name_of(PyObject* self) {
  const int index = index_of(Py_TYPE(self));
  if (index >= 0) {
    const ClassRow& row = kClasses[index];
    for (int i = row.first_value; i < row.first_value + row.value_count; ++i) {
      if (kValues[i].value == value_of(self)) return kValues[i].name;
    }
  }
  return "???";
}

PyObject* make_member(PyTypeObject* type, int64_t value) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self != nullptr) reinterpret_cast<EnumObject*>(self)->value = value;
  return self;
}

bool as_value(PyObject* object, int64_t* value) {
  PyObject* number = PyNumber_Index(object);
  if (number == nullptr) return false;
  *value = PyLong_AsLongLong(number);
  Py_DECREF(number);
  return *value != -1 || PyErr_Occurred() == nullptr;
}

// The value may be missing: unpickling makes an empty object and then calls __setstate__.
PyObject* enum_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"value", nullptr};
  PyObject* number = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(keywords), &number)) return nullptr;
  int64_t value = 0;
  if (number != nullptr && !as_value(number, &value)) return nullptr;
  return make_member(type, value);
}

PyObject* enum_repr(PyObject* self) {
  PyObject* type_name = PyType_GetName(Py_TYPE(self));
  if (type_name == nullptr) return nullptr;
  PyObject* text =
      PyUnicode_FromFormat("<%U.%s: %lld>", type_name, name_of(self), static_cast<long long>(value_of(self)));
  Py_DECREF(type_name);
  return text;
}

PyObject* enum_str(PyObject* self) {
  PyObject* type_name = PyType_GetName(Py_TYPE(self));
  if (type_name == nullptr) return nullptr;
  PyObject* text = PyUnicode_FromFormat("%U.%s", type_name, name_of(self));
  Py_DECREF(type_name);
  return text;
}

Py_hash_t enum_hash(PyObject* self) {
  const Py_hash_t hash = static_cast<Py_hash_t>(value_of(self));
  return hash == -1 ? -2 : hash;
}

// A plain enum equals members of its own type only; an arithmetic one also compares with numbers and orders.
PyObject* plain_compare(PyObject* self, PyObject* other, int op) {
  if (op != Py_EQ && op != Py_NE) Py_RETURN_NOTIMPLEMENTED;
  const bool equal = Py_TYPE(self) == Py_TYPE(other) && value_of(self) == value_of(other);
  return PyBool_FromLong(equal == (op == Py_EQ));
}

PyObject* arithmetic_compare(PyObject* self, PyObject* other, int op) {
  if (!PyIndex_Check(other)) {
    if (op == Py_EQ) Py_RETURN_FALSE;
    if (op == Py_NE) Py_RETURN_TRUE;
    Py_RETURN_NOTIMPLEMENTED;
  }
  int64_t value = 0;
  if (!as_value(other, &value)) return nullptr;
  Py_RETURN_RICHCOMPARE(value_of(self), value, op);
}

PyObject* enum_int(PyObject* self) { return PyLong_FromLongLong(value_of(self)); }

template <typename F>
PyObject* bitwise(PyObject* left, PyObject* right, F combine) {
  int64_t a = 0, b = 0;
  if (!PyIndex_Check(left) || !PyIndex_Check(right)) Py_RETURN_NOTIMPLEMENTED;
  if (!as_value(left, &a) || !as_value(right, &b)) return nullptr;
  return PyLong_FromLongLong(combine(a, b));
}

PyObject* enum_and(PyObject* a, PyObject* b) {
  return bitwise(a, b, [](int64_t x, int64_t y) { return x & y; });
}
PyObject* enum_or(PyObject* a, PyObject* b) {
  return bitwise(a, b, [](int64_t x, int64_t y) { return x | y; });
}
PyObject* enum_xor(PyObject* a, PyObject* b) {
  return bitwise(a, b, [](int64_t x, int64_t y) { return x ^ y; });
}
PyObject* enum_invert(PyObject* self) { return PyLong_FromLongLong(~value_of(self)); }

PyObject* get_name(PyObject* self, void*) { return PyUnicode_FromString(name_of(self)); }
PyObject* get_value(PyObject* self, void*) { return enum_int(self); }
PyObject* get_state(PyObject* self, PyObject*) { return enum_int(self); }

PyObject* set_state(PyObject* self, PyObject* state) {
  int64_t value = 0;
  if (!as_value(state, &value)) return nullptr;
  reinterpret_cast<EnumObject*>(self)->value = value;
  Py_RETURN_NONE;
}

PyGetSetDef enum_getset[] = {
    {"name", get_name, nullptr, nullptr, nullptr},
    {"value", get_value, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef enum_methods[] = {
    {"__getstate__", get_state, METH_NOARGS, nullptr},
    {"__setstate__", set_state, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

template <typename F>
PyType_Slot slot(int id, F* function) {
  return {id, reinterpret_cast<void*>(function)};
}

bool add_entry(PyObject* entries, PyObject* members, const char* name, PyObject* member) {
  PyObject* entry = PyTuple_Pack(2, member, Py_None);  // (member, its docstring)
  if (entry == nullptr) return false;
  const int failed = PyDict_SetItemString(entries, name, entry) || PyDict_SetItemString(members, name, member);
  Py_DECREF(entry);
  return failed == 0;
}

}  // namespace

PyTypeObject* make_enum_type(const ClassRow& row, PyObject* base) {
  PyType_Slot slots[16] = {
      slot(Py_tp_new, enum_new),   slot(Py_tp_repr, enum_repr),   slot(Py_tp_str, enum_str),
      slot(Py_tp_hash, enum_hash), slot(Py_nb_int, enum_int),     slot(Py_nb_index, enum_int),
      {Py_tp_getset, enum_getset}, {Py_tp_methods, enum_methods},
  };
  int count = 8;
  if (row.flags & kIsArithmetic) {
    slots[count++] = slot(Py_tp_richcompare, arithmetic_compare);
    slots[count++] = slot(Py_nb_and, enum_and);
    slots[count++] = slot(Py_nb_or, enum_or);
    slots[count++] = slot(Py_nb_xor, enum_xor);
    slots[count++] = slot(Py_nb_invert, enum_invert);
  } else {
    slots[count++] = slot(Py_tp_richcompare, plain_compare);
  }
  slots[count] = {0, nullptr};
  PyType_Spec spec = {row.spec_name, sizeof(EnumObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&spec, base));
}

bool fill_enum_type(const ClassRow& row, PyTypeObject* type) {
  if (g_tables == nullptr) g_tables = new EnumTable[kClassCount]();
  EnumTable& table = g_tables[&row - kClasses];
  table.members = new PyObject*[row.value_count]();
  PyObject* entries = PyDict_New();
  PyObject* members = PyDict_New();
  if (entries == nullptr || members == nullptr) return false;
  for (int i = 0; i < row.value_count; ++i) {
    const ValueRow& value = kValues[row.first_value + i];
    PyObject* member = make_member(type, value.value);
    if (member == nullptr || !add_entry(entries, members, value.name, member)) return false;
    table.members[i] = member;
    if (PyDict_SetItemString(type->tp_dict, value.name, member)) return false;
    if (value.value < kDenseLimit && value.value >= table.dense_count) table.dense_count = value.value + 1;
  }
  table.dense = new PyObject*[table.dense_count]();
  for (int i = row.value_count - 1; i >= 0; --i) {  // the first of equal values stays
    const int64_t value = kValues[row.first_value + i].value;
    if (value >= 0 && value < table.dense_count) table.dense[value] = table.members[i];
  }
  const int failed = PyDict_SetItemString(type->tp_dict, "__entries", entries) ||
                     PyDict_SetItemString(type->tp_dict, "__members__", members);
  Py_DECREF(entries);
  Py_DECREF(members);
  PyType_Modified(type);
  return failed == 0;
}

PyObject* enum_member_by_name(int class_index, const char* name) {
  const ClassRow& row = kClasses[class_index];
  for (int i = 0; i < row.value_count; ++i) {
    if (std::strcmp(kValues[row.first_value + i].name, name) == 0) {
      if (g_tables == nullptr || g_tables[class_index].members == nullptr) break;
      return Py_NewRef(g_tables[class_index].members[i]);
    }
  }
  return PyErr_Format(PyExc_SystemError, "enum %s: expected a member, got %s", row.path, name);
}

}  // namespace names

EnumType find_enum(const char* path) {
  using namespace names;
  for (int i = 0; i < kClassCount; ++i) {
    if (std::strcmp(kClasses[i].path, path) == 0 && kClasses[i].flags & kIsEnum) return {g_types[i], i};
  }
  return {};
}

PyObject* enum_member(const EnumType& found, long value) {
  using namespace names;
  if (found.type == nullptr || g_tables == nullptr) return nullptr;
  const EnumTable& table = g_tables[found.index];
  if (value >= 0 && value < table.dense_count) return table.dense[value];
  const ClassRow& row = kClasses[found.index];
  for (int i = 0; i < row.value_count; ++i) {
    if (kValues[row.first_value + i].value == value) return table.members[i];
  }
  return nullptr;
}

bool enum_value(const EnumType& found, PyObject* object, long* value) {
  if (found.type == nullptr || Py_TYPE(object) != found.type) return false;
  *value = static_cast<long>(names::value_of(object));
  return true;
}

}  // namespace tn::py
