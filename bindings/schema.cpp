// torch._C.FunctionSchema, Argument, _AliasInfo and parse_schema.
//
// Written against CPython directly: `import torch` makes 4,375 schemas and every Python kernel reads `arguments`, so
// these objects are cached and cheap. Upstream's errors for wrong argument types are pybind11's and are not imitated.
#include "bindings/schema.h"

#include <structmember.h>

#include <cstring>

#include "bindings/schema_support.h"
#include "runtime/schema_parser.h"

namespace tn {
namespace {

using schema_support::add_class;
using schema_support::guarded;
using schema_support::Owned;
using schema_support::text_of;
using schema_support::to_str;

struct PySchema {
  PyObject_HEAD FunctionSchema* schema;  // holds a reference; null until __init__ of a subclass ran
  PyObject* arguments;                   // tuples of Argument, made on first use
  PyObject* returns;
  PyObject* name;
  PyObject* weakrefs;
};

struct PyArgument {
  PyObject_HEAD const Argument* argument;
  FunctionSchema* owner;  // keeps `argument`; null for an Argument made in Python, which owns it
  PyObject* name;
};

struct PyAlias {
  PyObject_HEAD AliasInfo* alias;
};

PyTypeObject* schema_class = nullptr;
PyTypeObject* argument_class = nullptr;
PyTypeObject* alias_class = nullptr;

PyObject* module_object = nullptr;  // torch._C, borrowed: it outlives every schema

// ---- _AliasInfo -------------------------------------------------------------------------------------------------

PyObject* wrap_alias(const AliasInfo& alias) {
  PyObject* object = alias_class->tp_alloc(alias_class, 0);
  if (object) reinterpret_cast<PyAlias*>(object)->alias = new AliasInfo(alias);
  return object;
}
const AliasInfo& alias_at(PyObject* self) { return *reinterpret_cast<PyAlias*>(self)->alias; }

PyObject* name_set(const AliasSet& set) {
  Owned names(PySet_New(nullptr));
  for (std::string_view name : set.names()) {
    Owned text(to_str(name));
    if (!text || PySet_Add(names.get(), text.get()) < 0) return nullptr;
  }
  return names.release();
}

void read_alias_set(PyObject* names, AliasSet& out) {
  Owned items(PyObject_GetIter(names));
  if (!items) {
    PyErr_Clear();
    fail(ErrorKind::Type, "_AliasInfo(): expected a set of names, got ", Py_TYPE(names)->tp_name);
  }
  while (PyObject* next = PyIter_Next(items.get())) {
    Owned item(next);
    std::string_view name = text_of(item.get(), "_AliasInfo()");
    size_t colons = name.find("::");
    TN_CHECK(colons != std::string_view::npos,
             "all symbols must have a namespace, <namespace>::<string>, but found: ", name);
    out.add(name.substr(colons + 2));
  }
}

PyObject* alias_new(PyTypeObject*, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    int is_write = 0;
    PyObject *before = nullptr, *after = nullptr;
    if (!PyArg_ParseTuple(args, "pOO:_AliasInfo", &is_write, &before, &after)) return nullptr;
    AliasInfo alias;
    alias.is_write = is_write != 0;
    read_alias_set(before, alias.before);
    read_alias_set(after, alias.after);
    return wrap_alias(alias);
  });
}
void alias_dealloc(PyObject* self) {
  PyTypeObject* cls = Py_TYPE(self);
  delete reinterpret_cast<PyAlias*>(self)->alias;
  cls->tp_free(self);
  Py_DECREF(cls);
}
PyObject* alias_is_write(PyObject* self, void*) { return PyBool_FromLong(alias_at(self).is_write); }
PyObject* alias_before(PyObject* self, void*) {
  return guarded([&] { return name_set(alias_at(self).before); });
}
PyObject* alias_after(PyObject* self, void*) {
  return guarded([&] { return name_set(alias_at(self).after); });
}

PyGetSetDef alias_getset[] = {
    {"is_write", alias_is_write, nullptr, nullptr, nullptr},
    {"before_set", alias_before, nullptr, nullptr, nullptr},
    {"after_set", alias_after, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot alias_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(alias_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(alias_dealloc)},
    {Py_tp_getset, alias_getset},
    {0, nullptr},
};
PyType_Spec alias_spec = {"torch._C._AliasInfo", sizeof(PyAlias), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                          alias_slots};

// ---- Argument ---------------------------------------------------------------------------------------------------

// Takes over `argument` when there is no owner.
PyObject* wrap_argument(const Argument* argument, FunctionSchema* owner) {
  PyObject* object = argument_class->tp_alloc(argument_class, 0);
  if (!object) return nullptr;
  auto* self = reinterpret_cast<PyArgument*>(object);
  self->argument = argument;
  self->owner = owner;
  if (owner) owner->retain();
  return object;
}
const Argument& argument_at(PyObject* self) { return *reinterpret_cast<PyArgument*>(self)->argument; }

template <class T>
std::vector<T> read_list(PyObject* list, T (*read)(PyObject*)) {
  std::vector<T> out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list); ++i) {
    out.push_back(read(PySequence_Fast_GET_ITEM(list, i)));
    if (PyErr_Occurred()) {
      PyErr_Clear();
      fail(ErrorKind::Type, "Argument(): expected list elements of one type, got others (default_value)");
    }
  }
  return out;
}
int64_t read_int(PyObject* object) { return PyLong_AsLongLong(object); }
double read_double(PyObject* object) { return PyFloat_AsDouble(object); }
Bit read_bit(PyObject* object) { return static_cast<Bit>(object == Py_True); }

DefaultValue read_list_default(PyObject* object) {
  if (PySequence_Fast_GET_SIZE(object) == 0) return std::vector<int64_t>();
  PyObject* first = PySequence_Fast_GET_ITEM(object, 0);
  if (PyBool_Check(first)) return read_list<Bit>(object, read_bit);
  if (PyFloat_Check(first)) return read_list<double>(object, read_double);
  return read_list<int64_t>(object, read_int);
}

DefaultValue read_default(PyObject* object) {
  if (PyBool_Check(object)) return object == Py_True;
  if (PyLong_Check(object)) {
    int overflow = 0;
    int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow) fail(ErrorKind::Value, "Argument(): expected an int of 64 bits, got a larger one (default_value)");
    return value;
  }
  if (PyFloat_Check(object)) return PyFloat_AS_DOUBLE(object);
  if (PyComplex_Check(object))
    return std::complex<double>(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object));
  if (PyUnicode_Check(object)) return std::string(text_of(object, "Argument()"));
  if (PyList_Check(object) || PyTuple_Check(object)) return read_list_default(object);
  fail(ErrorKind::Type, "Argument(): expected a number, a str, None or a list of numbers, got ",
       Py_TYPE(object)->tp_name, " (default_value)");
}

PyObject* argument_new(PyTypeObject*, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject *name, *type, *size, *default_value, *alias;
    int kwarg_only = 0;
    if (!PyArg_ParseTuple(args, "OOOOpO:Argument", &name, &type, &size, &default_value, &kwarg_only, &alias))
      return nullptr;
    auto argument = std::make_unique<Argument>();
    argument->name = text_of(name, "Argument()");
    argument->type = argument->real_type = unwrap_type(type);
    if (!argument->type)
      fail(ErrorKind::Type, "Argument(): expected a torch._C.Type, got ", Py_TYPE(type)->tp_name, " (type)");
    if (size != Py_None) {
      argument->size = static_cast<int32_t>(PyLong_AsLong(size));
      if (PyErr_Occurred()) return nullptr;
    }
    if (default_value != Py_None) argument->default_value = read_default(default_value);
    argument->kwarg_only = kwarg_only != 0;
    if (alias != Py_None) {
      if (!PyObject_TypeCheck(alias, alias_class)) {
        fail(ErrorKind::Type, "Argument(): expected an _AliasInfo, got ", Py_TYPE(alias)->tp_name, " (alias_info)");
      }
      argument->alias = std::make_unique<AliasInfo>(alias_at(alias));
    }
    PyObject* wrapped = wrap_argument(argument.get(), nullptr);
    if (wrapped) argument.release();
    return wrapped;
  });
}

void argument_dealloc(PyObject* object) {
  auto* self = reinterpret_cast<PyArgument*>(object);
  PyTypeObject* cls = Py_TYPE(object);
  Py_XDECREF(self->name);
  if (self->owner) {
    SchemaRef::adopt(self->owner);  // drops the reference
  } else {
    delete self->argument;
  }
  cls->tp_free(object);
  Py_DECREF(cls);
}

PyObject* argument_name(PyObject* object, void*) {
  auto* self = reinterpret_cast<PyArgument*>(object);
  if (!self->name) {
    self->name = to_str(self->argument->name);
    if (!self->name) return nullptr;
    PyUnicode_InternInPlace(&self->name);
  }
  return Py_NewRef(self->name);
}
PyObject* argument_type(PyObject* self, void*) { return wrap_type(argument_at(self).type); }
PyObject* argument_real_type(PyObject* self, void*) { return wrap_type(argument_at(self).real_type); }
PyObject* argument_size(PyObject* self, void*) {
  const std::optional<int32_t>& size = argument_at(self).size;
  return size ? PyLong_FromLong(*size) : Py_NewRef(Py_None);
}
PyObject* argument_default(PyObject* self, void*) {
  const std::optional<DefaultValue>& value = argument_at(self).default_value;
  return value ? default_to_python(*value) : Py_NewRef(Py_None);
}
PyObject* argument_has_default(PyObject* self, PyObject*) {
  return PyBool_FromLong(argument_at(self).default_value.has_value());
}
PyObject* argument_alias(PyObject* self, void*) {
  const AliasInfo* alias = argument_at(self).alias.get();
  return alias ? guarded([&] { return wrap_alias(*alias); }) : Py_NewRef(Py_None);
}
PyObject* argument_is_write(PyObject* self, void*) {
  const AliasInfo* alias = argument_at(self).alias.get();
  return PyBool_FromLong(alias && alias->is_write);
}
PyObject* argument_is_out(PyObject* self, void*) { return PyBool_FromLong(argument_at(self).is_out()); }
PyObject* argument_kwarg_only(PyObject* self, void*) { return PyBool_FromLong(argument_at(self).kwarg_only); }

PyGetSetDef argument_getset[] = {
    {"name", argument_name, nullptr, nullptr, nullptr},
    {"type", argument_type, nullptr, nullptr, nullptr},
    {"real_type", argument_real_type, nullptr, nullptr, nullptr},
    {"N", argument_size, nullptr, nullptr, nullptr},
    {"default_value", argument_default, nullptr, nullptr, nullptr},
    {"alias_info", argument_alias, nullptr, nullptr, nullptr},
    {"is_write", argument_is_write, nullptr, nullptr, nullptr},
    {"is_out", argument_is_out, nullptr, nullptr, nullptr},
    {"kwarg_only", argument_kwarg_only, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef argument_methods[] = {
    {"has_default_value", argument_has_default, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot argument_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(argument_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(argument_dealloc)},
    {Py_tp_getset, argument_getset},
    {Py_tp_methods, argument_methods},
    {0, nullptr},
};
PyType_Spec argument_spec = {"torch._C.Argument", sizeof(PyArgument), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                             argument_slots};

// ---- FunctionSchema ---------------------------------------------------------------------------------------------

PySchema* schema_self(PyObject* object) { return reinterpret_cast<PySchema*>(object); }

const FunctionSchema& schema_at(PyObject* object) {
  TN_CHECK(schema_self(object)->schema, "FunctionSchema: expected __init__ to have run, got an empty object");
  return *schema_self(object)->schema;
}

void set_schema(PySchema* self, SchemaRef schema) {
  SchemaRef::adopt(self->schema);  // drops the old one
  self->schema = schema.release();
  Py_CLEAR(self->arguments);
  Py_CLEAR(self->returns);
  Py_CLEAR(self->name);
}

PyObject* schema_new(PyTypeObject* cls, PyObject*, PyObject*) { return cls->tp_alloc(cls, 0); }

std::vector<Argument> read_arguments(PyObject* sequence) {
  Owned items(PySequence_Fast(sequence, ""));
  if (!items) {
    PyErr_Clear();
    fail(ErrorKind::Type, "FunctionSchema(): expected a sequence of Argument, got ", Py_TYPE(sequence)->tp_name);
  }
  std::vector<Argument> out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    if (!PyObject_TypeCheck(item, argument_class)) {
      fail(ErrorKind::Type, "FunctionSchema(): expected a sequence of Argument, got ", Py_TYPE(item)->tp_name,
           " in it");
    }
    out.push_back(argument_at(item));
  }
  return out;
}

int schema_init(PyObject* object, PyObject* args, PyObject*) {
  return guarded<int>(-1, [&] {
    PyObject *name, *overload_name, *arguments, *returns;
    int is_vararg = 0, is_varret = 0;
    if (!PyArg_ParseTuple(args, "UUOOpp:FunctionSchema", &name, &overload_name, &arguments, &returns, &is_vararg,
                          &is_varret)) {
      return -1;
    }
    set_schema(schema_self(object), make_ref<FunctionSchema>(std::string(text_of(name, "FunctionSchema()")),
                                                             std::string(text_of(overload_name, "FunctionSchema()")),
                                                             read_arguments(arguments), read_arguments(returns),
                                                             is_vararg != 0, is_varret != 0));
    return 0;
  });
}

void schema_dealloc(PyObject* object) {
  PySchema* self = schema_self(object);
  PyTypeObject* cls = Py_TYPE(object);
  if (self->weakrefs) PyObject_ClearWeakRefs(object);
  set_schema(self, nullptr);
  cls->tp_free(object);
  Py_DECREF(cls);
}

PyObject* schema_name(PyObject* object, void*) {
  return guarded([&]() -> PyObject* {
    PySchema* self = schema_self(object);
    if (!self->name) self->name = to_str(schema_at(object).name());
    return Py_XNewRef(self->name);
  });
}
PyObject* schema_overload_name(PyObject* self, void*) {
  return guarded([&] { return to_str(schema_at(self).overload_name()); });
}

// A new list each time, as upstream's: callers may change it. The Argument objects are shared.
PyObject* argument_list(PySchema* self, const std::vector<Argument>& arguments, PyObject*& cache) {
  if (!cache) {
    Owned made(PyTuple_New(static_cast<Py_ssize_t>(arguments.size())));
    if (!made) return nullptr;
    for (size_t i = 0; i < arguments.size(); ++i) {
      PyObject* item = wrap_argument(&arguments[i], self->schema);
      if (!item) return nullptr;
      PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), item);
    }
    cache = made.release();
  }
  Py_ssize_t size = PyTuple_GET_SIZE(cache);
  PyObject* list = PyList_New(size);
  for (Py_ssize_t i = 0; list && i < size; ++i) PyList_SET_ITEM(list, i, Py_NewRef(PyTuple_GET_ITEM(cache, i)));
  return list;
}
PyObject* schema_arguments(PyObject* self, void*) {
  return guarded(
      [&] { return argument_list(schema_self(self), schema_at(self).arguments(), schema_self(self)->arguments); });
}
PyObject* schema_returns(PyObject* self, void*) {
  return guarded(
      [&] { return argument_list(schema_self(self), schema_at(self).returns(), schema_self(self)->returns); });
}
PyObject* schema_is_mutable(PyObject* self, void*) {
  return guarded([&] { return PyBool_FromLong(schema_at(self).is_mutable()); });
}
PyObject* schema_is_view_op(PyObject* self, PyObject*) {
  return guarded([&] { return PyBool_FromLong(schema_at(self).is_view_op()); });
}
PyObject* schema_repr(PyObject* self) {
  return guarded([&] { return to_str(schema_at(self).str()); });
}
Py_hash_t schema_hash(PyObject* self) {
  return guarded<Py_hash_t>(-1, [&] {
    auto hash = static_cast<Py_hash_t>(schema_at(self).hash());
    return hash == -1 ? -2 : hash;
  });
}

const FunctionSchema& expect_schema(PyObject* object, const char* what) {
  if (!unwrap_schema(object))
    fail(ErrorKind::Type, what, ": expected a FunctionSchema, got ", Py_TYPE(object)->tp_name);
  return schema_at(object);
}
// As upstream's: comparing with what is no schema is a mistake.
PyObject* schema_compare(PyObject* self, PyObject* other, int op) {
  if (op != Py_EQ && op != Py_NE) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&] {
    bool equal = schema_at(self) == expect_schema(other, "FunctionSchema.__eq__()");
    return PyBool_FromLong(equal == (op == Py_EQ));
  });
}
PyObject* schema_is_backward_compatible(PyObject* self, PyObject* old) {
  return guarded([&] {
    return PyBool_FromLong(
        schema_at(self).is_backward_compatible_with(expect_schema(old, "is_backward_compatible_with()")));
  });
}
PyObject* schema_check_forward_compatible(PyObject* self, PyObject* old) {
  return guarded([&]() -> PyObject* {
    std::string why_not;
    bool ok =
        schema_at(self).is_forward_compatible_with(expect_schema(old, "check_forward_compatible_with()"), why_not);
    Owned reason(to_str(why_not));
    return reason ? PyTuple_Pack(2, ok ? Py_True : Py_False, reason.get()) : nullptr;
  });
}
PyObject* schema_getstate(PyObject* self, PyObject*) { return schema_repr(self); }
PyObject* schema_setstate(PyObject* self, PyObject* state) {
  return guarded([&] {
    set_schema(schema_self(self), parse_schema(text_of(state, "FunctionSchema.__setstate__()")));
    return Py_NewRef(Py_None);
  });
}

PyGetSetDef schema_getset[] = {
    {"name", schema_name, nullptr, nullptr, nullptr},
    {"overload_name", schema_overload_name, nullptr, nullptr, nullptr},
    {"arguments", schema_arguments, nullptr, nullptr, nullptr},
    {"returns", schema_returns, nullptr, nullptr, nullptr},
    {"is_mutable", schema_is_mutable, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef schema_methods[] = {
    {"_is_view_op", schema_is_view_op, METH_NOARGS, nullptr},
    {"is_backward_compatible_with", schema_is_backward_compatible, METH_O, nullptr},
    {"check_forward_compatible_with", schema_check_forward_compatible, METH_O, nullptr},
    {"__getstate__", schema_getstate, METH_NOARGS, nullptr},
    {"__setstate__", schema_setstate, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef schema_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PySchema, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot schema_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(schema_new)},
    {Py_tp_init, reinterpret_cast<void*>(schema_init)},
    {Py_tp_dealloc, reinterpret_cast<void*>(schema_dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(schema_repr)},
    {Py_tp_str, reinterpret_cast<void*>(schema_repr)},
    {Py_tp_hash, reinterpret_cast<void*>(schema_hash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(schema_compare)},
    {Py_tp_getset, schema_getset},
    {Py_tp_methods, schema_methods},
    {Py_tp_members, schema_members},
    {0, nullptr},
};
PyType_Spec schema_spec = {"torch._C.FunctionSchema", sizeof(PySchema), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           schema_slots};

PyObject* parse_schema_function(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"schema", "allow_typevars", nullptr};
    PyObject* text = nullptr;
    int allow_typevars = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|p:parse_schema", const_cast<char**>(names), &text,
                                     &allow_typevars)) {
      return nullptr;
    }
    return wrap_schema(parse_schema(text_of(text, "parse_schema()"), allow_typevars != 0));
  });
}

PyMethodDef functions[] = {
    {"parse_schema", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(parse_schema_function)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

// ---- defaults ---------------------------------------------------------------------------------------------------

struct ToPython {
  PyObject* operator()(std::monostate) const { return Py_NewRef(Py_None); }
  PyObject* operator()(bool value) const { return PyBool_FromLong(value); }
  PyObject* operator()(Bit value) const { return PyBool_FromLong(value == Bit::kTrue); }
  PyObject* operator()(int64_t value) const { return PyLong_FromLongLong(value); }
  PyObject* operator()(double value) const { return PyFloat_FromDouble(value); }
  PyObject* operator()(const std::complex<double>& value) const {
    return PyComplex_FromDoubles(value.real(), value.imag());
  }
  PyObject* operator()(const std::string& value) const { return to_str(value); }
  PyObject* operator()(Device value) const {
    return PyObject_CallMethod(module_object, "device", "s", value.str().c_str());
  }
  template <class T>
  PyObject* operator()(const std::vector<T>& values) const {
    Owned list(PyList_New(static_cast<Py_ssize_t>(values.size())));
    for (size_t i = 0; list && i < values.size(); ++i) {
      PyObject* item = (*this)(values[i]);
      if (!item) return nullptr;
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), item);
    }
    return list.release();
  }
};

}  // namespace

PyObject* default_to_python(const DefaultValue& value) { return std::visit(ToPython(), value); }

PyObject* wrap_schema(const SchemaRef& schema) {
  PyObject* object = schema_class->tp_alloc(schema_class, 0);
  if (object) schema_self(object)->schema = SchemaRef(schema).release();
  return object;
}

FunctionSchema* unwrap_schema(PyObject* object) {
  return schema_class && PyObject_TypeCheck(object, schema_class) ? schema_self(object)->schema : nullptr;
}

void bind_schema(PyObject* module) {
  module_object = module;
  alias_class = add_class(module, &alias_spec);
  argument_class = add_class(module, &argument_spec);
  schema_class = add_class(module, &schema_spec);
  bind_schema_info(module);
  if (PyModule_AddFunctions(module, functions) < 0)
    fail(ErrorKind::Runtime, "torch._C: schema functions can't be added");
}

}  // namespace tn
