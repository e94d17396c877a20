#include <Python.h>
#include <structmember.h>

#include <cstring>
#include <string>

#include "bindings/names/names.h"
#include "bindings/names/table.h"
#include "bindings/node.h"

namespace tn::py::names {
namespace {

PyObject* g_pybind_type = nullptr;
PyObject* g_pybind_object = nullptr;
PyObject* g_reduce_op_meta = nullptr;

// RRef's Python copies the docstrings of PyRRef's methods and stops on a missing one.
constexpr const char* kMemberDoc = "Not served by torchnative: a call refuses.";

const ClassRow* row_of(PyTypeObject* type) {
  for (; type != nullptr; type = type->tp_base) {
    for (int i = 0; i < kClassCount; ++i) {
      if (g_types[i] == type) return &kClasses[i];
    }
  }
  return nullptr;
}

PyObject* refuse_new(PyTypeObject* type, PyObject*, PyObject*) {
  const ClassRow* row = row_of(type);
  if (row == nullptr)
    return raise_refusal(std::strrchr(type->tp_name, '.') + 1, "construction", kReasons[kAutogradNodeReason]);
  return raise_refusal(row->path, "construction", kReasons[row->reason]);
}

PyObject* inert_new(PyTypeObject* type, PyObject*, PyObject*) { return type->tp_alloc(type, 0); }

int inert_init(PyObject*, PyObject*, PyObject*) { return 0; }

// A record: an object head and then one reference for each field. Its fields hold enums and numbers, never cycles.
PyObject** fields_of(PyObject* self) { return reinterpret_cast<PyObject**>(self + 1); }

int field_count(const ClassRow& row) {
  int count = 0;
  while (count < row.member_count && kMembers[row.first_member + count].kind == Member::kField) ++count;
  return count;
}

int record_init(PyObject* self, PyObject* args, PyObject* kwargs) {
  const ClassRow& row = *row_of(Py_TYPE(self));
  const int count = field_count(row);
  const Py_ssize_t given = PyTuple_GET_SIZE(args);
  for (int i = 0; i < count; ++i) {
    const char* name = kMembers[row.first_member + i].name;
    PyObject* value =
        i < given ? PyTuple_GET_ITEM(args, i) : (kwargs == nullptr ? nullptr : PyDict_GetItemString(kwargs, name));
    if (value == nullptr || given > count) {
      PyErr_Format(PyExc_TypeError, "%s: expected %d arguments, got another number (%s)", row.path, count, name);
      return -1;
    }
    Py_XSETREF(fields_of(self)[i], Py_NewRef(value));
  }
  return 0;
}

void record_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  const int count = field_count(*row_of(type));
  for (int i = 0; i < count; ++i) Py_XDECREF(fields_of(self)[i]);
  type->tp_free(self);
  Py_DECREF(type);
}

PyTypeObject* make_record_type(const ClassRow& row, PyObject* base) {
  const int count = field_count(row);
  // Never freed: the type's member descriptors point to it.
  PyMemberDef* members = new PyMemberDef[count + 1]();
  for (int i = 0; i < count; ++i) {
    members[i].name = kMembers[row.first_member + i].name;
    members[i].type = T_OBJECT_EX;
    members[i].offset = static_cast<Py_ssize_t>(sizeof(PyObject) + i * sizeof(PyObject*));
  }
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(inert_new)},
      {Py_tp_init, reinterpret_cast<void*>(record_init)},
      {Py_tp_dealloc, reinterpret_cast<void*>(record_dealloc)},
      {Py_tp_members, members},
      {0, nullptr},
  };
  PyType_Spec spec = {row.spec_name, static_cast<int>(sizeof(PyObject) + count * sizeof(PyObject*)), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&spec, base));
}

// Turns a type that was made with metaclass `type` into one of `metaclass`: Python allows the same by assigning
// __class__, but PyType_FromMetaclass only exists from 3.12 on.
void set_metaclass(PyObject* type, PyObject* metaclass) {
  PyTypeObject* before = Py_TYPE(type);
  if (reinterpret_cast<PyObject*>(before) == metaclass) return;
  Py_SET_TYPE(type, reinterpret_cast<PyTypeObject*>(Py_NewRef(metaclass)));
  if (before->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_DECREF(before);
}

bool make_pybind_types() {
  if (g_pybind_object != nullptr) return true;
  PyType_Slot type_slots[] = {{0, nullptr}};
  PyType_Spec type_spec = {"pybind11_builtins.pybind11_type", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           type_slots};
  g_pybind_type = PyType_FromSpecWithBases(&type_spec, reinterpret_cast<PyObject*>(&PyType_Type));
  if (g_pybind_type == nullptr) return false;
  PyType_Slot object_slots[] = {{Py_tp_new, reinterpret_cast<void*>(refuse_new)}, {0, nullptr}};
  PyType_Spec object_spec = {"pybind11_builtins.pybind11_object", sizeof(PyObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, object_slots};
  g_pybind_object = PyType_FromSpec(&object_spec);
  if (g_pybind_object == nullptr) return false;
  set_metaclass(g_pybind_object, g_pybind_type);
  return true;
}

// isinstance(ReduceOp.SUM, ReduceOp) holds although SUM is a member of ReduceOp.RedOpType.
PyObject* reduce_op_instancecheck(PyObject* cls, PyObject* object) {
  PyTypeObject* type = reinterpret_cast<PyTypeObject*>(cls);
  if (PyObject_TypeCheck(object, type)) Py_RETURN_TRUE;
  PyObject* member_type = PyObject_GetAttrString(cls, "RedOpType");
  if (member_type == nullptr) return nullptr;
  const bool is_member = PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(member_type));
  Py_DECREF(member_type);
  return PyBool_FromLong(is_member);
}

PyMethodDef reduce_op_meta_methods[] = {
    {"__instancecheck__", reduce_op_instancecheck, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyObject* reduce_op_meta() {
  if (g_reduce_op_meta == nullptr) {
    PyType_Slot slots[] = {{Py_tp_methods, reduce_op_meta_methods}, {0, nullptr}};
    PyType_Spec spec = {"torch._C._distributed_c10d._ReduceOpMeta", 0, 0, Py_TPFLAGS_DEFAULT, slots};
    g_reduce_op_meta = PyType_FromSpecWithBases(&spec, g_pybind_type);
  }
  return g_reduce_op_meta;
}

bool apply_metaclass(const ClassRow& row, PyObject* type) {
  switch (row.metaclass) {
    case Metaclass::kType: return true;
    case Metaclass::kPybindType: set_metaclass(type, g_pybind_type); return true;
    case Metaclass::kReduceOpMeta: {
      PyObject* meta = reduce_op_meta();
      if (meta == nullptr) return false;
      set_metaclass(type, meta);
      return true;
    }
    case Metaclass::kOpaqueBaseMeta: return set_opaque_base_metaclass(type);
  }
  return true;
}

PyObject* base_of(const ClassRow& row) {
  switch (row.base) {
    case Base::kObject: return reinterpret_cast<PyObject*>(&PyBaseObject_Type);
    case Base::kPybindObject: return g_pybind_object;
    case Base::kRuntimeError: return PyExc_RuntimeError;
    case Base::kException: return PyExc_Exception;
    case Base::kOwn: return reinterpret_cast<PyObject*>(g_types[row.base_index]);
  }
  return nullptr;
}

PyTypeObject* make_plain_type(const ClassRow& row, PyObject* base) {
  if (row.flags & kIsException) {
    return reinterpret_cast<PyTypeObject*>(PyErr_NewException(row.spec_name, base, nullptr));
  }
  PyType_Slot slots[3] = {};
  int count = 0;
  if (row.flags & kIsConstructible) {
    slots[count++] = {Py_tp_new, reinterpret_cast<void*>(inert_new)};
    slots[count++] = {Py_tp_init, reinterpret_cast<void*>(inert_init)};
  } else {
    slots[count++] = {Py_tp_new, reinterpret_cast<void*>(refuse_new)};
  }
  slots[count] = {0, nullptr};
  PyType_Spec spec = {row.spec_name, sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, slots};
  if (row.flags & kIsBase) spec.flags |= Py_TPFLAGS_BASETYPE;
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&spec, base));
}

PyObject* make_member(const ClassRow& row, const MemberRow& member, PyObject* module_name) {
  PyObject* function = make_callable(row.path, member.name, member.action, member.argument, module_name, kMemberDoc);
  if (function == nullptr) return nullptr;
  PyObject* result = nullptr;
  switch (member.kind) {
    case Member::kMethod: result = PyInstanceMethod_New(function); break;
    case Member::kStatic: result = PyStaticMethod_New(function); break;
    case Member::kProperty:
    case Member::kStaticProperty:
    case Member::kField: result = PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyProperty_Type), function); break;
  }
  Py_DECREF(function);
  return result;
}

bool is_dunder(const char* name) { return name[0] == '_' && name[1] == '_'; }

bool add_members(const ClassRow& row, PyTypeObject* type, PyObject* module_name) {
  for (int i = 0; i < row.member_count; ++i) {
    const MemberRow& member = kMembers[row.first_member + i];
    if (member.kind == Member::kField) continue;
    PyObject* value = make_member(row, member, module_name);
    if (value == nullptr) return false;
    // Slots follow from dunders, which only setattr keeps in step; the rest goes the short way.
    const int failed = is_dunder(member.name)
                           ? PyObject_SetAttrString(reinterpret_cast<PyObject*>(type), member.name, value)
                           : PyDict_SetItemString(type->tp_dict, member.name, value);
    Py_DECREF(value);
    if (failed) return false;
  }
  PyType_Modified(type);
  return true;
}

bool set_qualname(const ClassRow& row, PyTypeObject* type) {
  if (row.qualname == nullptr) return true;
  PyObject* qualname = PyUnicode_FromString(row.qualname);
  if (qualname == nullptr) return false;
  const int failed = PyObject_SetAttrString(reinterpret_cast<PyObject*>(type), "__qualname__", qualname);
  Py_DECREF(qualname);
  return failed == 0;
}

}  // namespace

PyObject* pybind_object_type() { return make_pybind_types() ? g_pybind_object : nullptr; }

// The metaclass is Python: torch/_opaque_base.py, which imports nothing of torch.
bool set_opaque_base_metaclass(PyObject* type) {
  PyObject* module = PyImport_ImportModule("torch._opaque_base");
  PyObject* meta = module == nullptr ? nullptr : PyObject_GetAttrString(module, "OpaqueBaseMeta");
  Py_XDECREF(module);
  if (meta == nullptr) return false;
  set_metaclass(type, meta);
  Py_DECREF(meta);
  return true;
}

bool make_class(int index, PyObject* owner, PyObject* module_name) {
  const ClassRow& row = kClasses[index];
  if (!make_pybind_types()) return false;
  PyObject* base = base_of(row);
  PyTypeObject* type = row.flags & kIsEnum     ? make_enum_type(row, base)
                       : row.flags & kIsRecord ? make_record_type(row, base)
                                               : make_plain_type(row, base);
  if (type == nullptr) return false;
  g_types[index] = type;
  PyObject* object = reinterpret_cast<PyObject*>(type);
  if (!set_qualname(row, type) || !add_members(row, type, module_name)) return false;
  if (row.flags & kIsEnum && !fill_enum_type(row, type)) return false;
  if (!apply_metaclass(row, object)) return false;
  // A late stage must not hide what real bindings have set by then.
  if (row.stage != Stage::kLoad && row.parent < 0 && PyObject_HasAttrString(owner, row.attribute)) return true;
  return PyObject_SetAttrString(owner, row.attribute, object) == 0;
}

bool add_autograd_node_types(PyObject* module) {
  for (int i = 0; i < kAutogradNodeCount; ++i) {
    PyObject* const type = node_class(kAutogradNodes[i]);
    if (!type || PyDict_SetItemString(PyModule_GetDict(module), kAutogradNodes[i], type) < 0) return false;
  }
  return true;
}

}  // namespace tn::py::names
