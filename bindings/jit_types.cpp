// torch._C.Type and its subclasses: one object a type, made on first use and kept.
#include <cstring>
#include <vector>

#include "bindings/refused_method.h"
#include "bindings/schema.h"
#include "bindings/schema_support.h"
#include "runtime/refuse.h"

namespace tn {
namespace {

using schema_support::add_class;
using schema_support::guarded;
using schema_support::Owned;
using schema_support::text_of;
using schema_support::to_str;

struct PyType {
  PyObject_HEAD TypePtr type;
};

struct PyInferred {
  PyObject_HEAD TypePtr type;
  PyObject* reason;
};

PyTypeObject* base_class = nullptr;
PyTypeObject* inferred_class = nullptr;
// Kinds without a class of their own, such as ScalarType, stay null and are plain Type.
PyTypeObject* classes[kTypeKindCount] = {};

TypePtr type_at(PyObject* self) { return reinterpret_cast<PyType*>(self)->type; }

TypePtr expect_type(PyObject* object, const char* what) {
  TypePtr type = unwrap_type(object);
  if (!type) fail(ErrorKind::Type, what, ": expected a torch._C.Type, got ", Py_TYPE(object)->tp_name);
  return type;
}

std::vector<TypePtr> expect_types(PyObject* sequence, const char* what) {
  Owned items(PySequence_Fast(sequence, ""));
  if (!items) {
    PyErr_Clear();
    fail(ErrorKind::Type, what, ": expected a sequence of torch._C.Type, got ", Py_TYPE(sequence)->tp_name);
  }
  std::vector<TypePtr> types;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    types.push_back(expect_type(PySequence_Fast_GET_ITEM(items.get(), i), what));
  }
  return types;
}

PyObject* type_list(std::span<const TypePtr> types) {
  Owned list(PyList_New(static_cast<Py_ssize_t>(types.size())));
  if (!list) return nullptr;
  for (size_t i = 0; i < types.size(); ++i) {
    PyObject* item = wrap_type(types[i]);
    if (!item) return nullptr;
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), item);
  }
  return list.release();
}

TypeKind kind_of_class(PyObject* cls) {
  for (int i = 0; i < kTypeKindCount; ++i) {
    if (classes[i] && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), classes[i]))
      return static_cast<TypeKind>(i);
  }
  return TypeKind::kAny;
}

// ---- Type -------------------------------------------------------------------------------------------------------

PyObject* type_repr(PyObject* self) {
  return guarded([&] { return to_str(type_at(self)->annotation()); });
}
PyObject* type_str(PyObject* self, PyObject*) {
  return guarded([&] { return to_str(type_at(self)->str()); });
}
PyObject* type_annotation(PyObject* self, void*) { return type_repr(self); }
PyObject* type_kind(PyObject* self, PyObject*) { return to_str(kind_name(type_at(self)->kind())); }
PyObject* type_contained(PyObject* self, PyObject*) {
  return guarded([&] { return type_list(type_at(self)->contained()); });
}
PyObject* type_is_subtype(PyObject* self, PyObject* other) {
  return guarded([&] { return PyBool_FromLong(type_at(self)->is_subtype_of(expect_type(other, "isSubtypeOf()"))); });
}
PyObject* type_is_interface(PyObject* self, PyObject*) {
  return PyBool_FromLong(type_at(self)->kind() == TypeKind::kInterface);
}
// As upstream's: equality with what is no type is a mistake, except with None.
PyObject* type_compare(PyObject* self, PyObject* other, int op) {
  if (op != Py_EQ && op != Py_NE) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&] {
    bool equal = other != Py_None && type_at(self) == expect_type(other, "__eq__()");
    return PyBool_FromLong(equal == (op == Py_EQ));
  });
}

// Tensor types carry no shapes here: they serve tracing and scripting, which this build has none of.
void expect_tensor(PyObject* self, const char* what) {
  TN_CHECK(type_at(self)->kind() == TypeKind::kTensor, what, ": expected a TensorType, got ",
           type_at(self)->annotation());
}
template <const auto& name>
PyObject* tensor_unknown(PyObject* self, PyObject*) {
  return guarded([&] {
    expect_tensor(self, name);
    return Py_NewRef(Py_None);
  });
}
template <const auto& name, bool answer>
PyObject* tensor_flag(PyObject* self, PyObject*) {
  return guarded([&] {
    expect_tensor(self, name);
    return PyBool_FromLong(answer);
  });
}
template <const auto& name>
PyObject* tensor_refused(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    refuse(name, "a tensor type with shape, dtype or device", "types of this build describe schemas only");
  });
}
constexpr char kDim[] = "dim()", kSizes[] = "sizes()", kSymbolic[] = "symbolic_sizes()", kVarying[] = "varyingSizes()",
               kStrides[] = "strides()", kScalarType[] = "scalarType()", kDevice[] = "device()", kDtype[] = "dtype()",
               kUndefined[] = "undefined()", kRequiresGrad[] = "requires_grad()",
               kContiguous[] = "torch._C.Type.contiguous", kWithSizes[] = "torch._C.Type.with_sizes",
               kWithDevice[] = "torch._C.Type.with_device", kWithDtype[] = "torch._C.Type.with_dtype",
               kFromTensor[] = "torch._C.TensorType.create_from_tensor";

PyObject* type_new(PyTypeObject* cls, PyObject*, PyObject*) {
  PyErr_Format(PyExc_TypeError, "%s: No constructor defined!", cls->tp_name);
  return nullptr;
}

PyMethodDef type_methods[] = {
    {"str", type_str, METH_NOARGS, nullptr},
    {"kind", type_kind, METH_NOARGS, nullptr},
    {"containedTypes", type_contained, METH_NOARGS, nullptr},
    {"isSubtypeOf", type_is_subtype, METH_O, nullptr},
    {"is_interface_type", type_is_interface, METH_NOARGS, nullptr},
    {"dim", tensor_unknown<kDim>, METH_NOARGS, nullptr},
    {"sizes", tensor_unknown<kSizes>, METH_NOARGS, nullptr},
    {"symbolic_sizes", tensor_unknown<kSymbolic>, METH_NOARGS, nullptr},
    {"varyingSizes", tensor_unknown<kVarying>, METH_NOARGS, nullptr},
    {"strides", tensor_unknown<kStrides>, METH_NOARGS, nullptr},
    {"scalarType", tensor_unknown<kScalarType>, METH_NOARGS, nullptr},
    {"device", tensor_unknown<kDevice>, METH_NOARGS, nullptr},
    {"dtype", tensor_unknown<kDtype>, METH_NOARGS, nullptr},
    {"undefined", tensor_flag<kUndefined, false>, METH_NOARGS, nullptr},
    {"requires_grad", tensor_flag<kRequiresGrad, true>, METH_NOARGS, nullptr},
    {"contiguous", tensor_refused<kContiguous>, METH_NOARGS, nullptr},
    {"with_sizes", tensor_refused<kWithSizes>, METH_O, nullptr},
    {"with_device", tensor_refused<kWithDevice>, METH_O, nullptr},
    {"with_dtype", tensor_refused<kWithDtype>, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef type_getset[] = {
    {"annotation_str", type_annotation, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot type_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(type_new)},
    {Py_tp_repr, reinterpret_cast<void*>(type_repr)},
    {Py_tp_str, reinterpret_cast<void*>(type_repr)},
    {Py_tp_richcompare, reinterpret_cast<void*>(type_compare)},
    {Py_tp_hash, reinterpret_cast<void*>(PyObject_HashNotImplemented)},
    {Py_tp_methods, type_methods},
    {Py_tp_getset, type_getset},
    {0, nullptr},
};
PyType_Spec type_spec = {"torch._C.Type", sizeof(PyType), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, type_slots};

// ---- subclasses -------------------------------------------------------------------------------------------------

PyObject* get(PyObject* cls, PyObject*) { return wrap_type(simple_type(kind_of_class(cls))); }
PyObject* element(PyObject* self, PyObject*) { return wrap_type(type_at(self)->element()); }
PyObject* dict_value(PyObject* self, PyObject*) { return wrap_type(type_at(self)->contained()[1]); }
template <TypeKind kind>
PyObject* list_of(PyObject*, PyObject*) {
  return guarded([] { return wrap_type(list_type(simple_type(kind))); });
}
PyObject* optional_tensor(PyObject*, PyObject*) {
  return guarded([] { return wrap_type(optional_type(simple_type(TypeKind::kTensor))); });
}
PyObject* class_qualified_name(PyObject* self, PyObject*) { return to_str(type_at(self)->name()); }
PyObject* class_name(PyObject* self, PyObject*) {
  std::string_view name = type_at(self)->name();
  return to_str(name.substr(name.rfind('.') + 1));
}
PyObject* class_methods(PyObject*, PyObject*) { return PyList_New(0); }

#define TN_GET {"get", get, METH_NOARGS | METH_CLASS, nullptr}
#define TN_END {nullptr, nullptr, 0, nullptr}
PyMethodDef simple_methods[] = {TN_GET, TN_END};
PyMethodDef tensor_methods[] = {TN_GET,
                                {"getInferred", get, METH_NOARGS | METH_CLASS, nullptr},
                                {"create_from_tensor", tensor_refused<kFromTensor>, METH_O | METH_STATIC, nullptr},
                                TN_END};
PyMethodDef list_methods[] = {{"ofInts", list_of<TypeKind::kInt>, METH_NOARGS | METH_STATIC, nullptr},
                              {"ofTensors", list_of<TypeKind::kTensor>, METH_NOARGS | METH_STATIC, nullptr},
                              {"ofFloats", list_of<TypeKind::kFloat>, METH_NOARGS | METH_STATIC, nullptr},
                              {"ofComplexDoubles", list_of<TypeKind::kComplex>, METH_NOARGS | METH_STATIC, nullptr},
                              {"ofBools", list_of<TypeKind::kBool>, METH_NOARGS | METH_STATIC, nullptr},
                              {"ofStrings", list_of<TypeKind::kString>, METH_NOARGS | METH_STATIC, nullptr},
                              {"getElementType", element, METH_NOARGS, nullptr},
                              TN_END};
PyMethodDef optional_methods[] = {{"ofTensor", optional_tensor, METH_NOARGS | METH_STATIC, nullptr},
                                  {"getElementType", element, METH_NOARGS, nullptr},
                                  TN_END};
PyMethodDef element_methods[] = {{"getElementType", element, METH_NOARGS, nullptr}, TN_END};
PyMethodDef dict_methods[] = {
    {"getKeyType", element, METH_NOARGS, nullptr}, {"getValueType", dict_value, METH_NOARGS, nullptr}, TN_END};
PyMethodDef tuple_methods[] = {{"elements", type_contained, METH_NOARGS, nullptr}, TN_END};
PyMethodDef class_type_methods[] = {{"name", class_name, METH_NOARGS, nullptr},
                                    {"qualified_name", class_qualified_name, METH_NOARGS, nullptr},
                                    {"method_names", class_methods, METH_NOARGS, nullptr},
                                    TN_END};
PyMethodDef no_methods[] = {TN_END};
constexpr char kGetMethod[] = "torch._C.InterfaceType.getMethod",
               kGetMethodNames[] = "torch._C.InterfaceType.getMethodNames";
constexpr char kNoScript[] = "TorchScript is not part of torchnative";
PyMethodDef interface_methods[] = {tn::py::refused<kGetMethod, kNoScript>("getMethod"),
                                   tn::py::refused<kGetMethodNames, kNoScript>("getMethodNames"),
                                   {nullptr, nullptr, 0, nullptr}};
#undef TN_GET
#undef TN_END

// ListType(x) and its like: the types are interned, so the constructor may hand out an object that exists.
TypePtr construct(TypeKind kind, const char* name, PyObject* const* args, size_t count) {
  size_t wanted = kind == TypeKind::kDict ? 2 : 1;
  if (count != wanted) fail(ErrorKind::Type, name, "(): expected ", wanted, " argument(s), got ", count);
  switch (kind) {
    case TypeKind::kList: return list_type(expect_type(args[0], name));
    case TypeKind::kOptional: return optional_type(expect_type(args[0], name));
    case TypeKind::kFuture: return future_type(expect_type(args[0], name));
    case TypeKind::kAwait: return await_type(expect_type(args[0], name));
    case TypeKind::kRRef: return rref_type(expect_type(args[0], name));
    case TypeKind::kDict: return dict_type(expect_type(args[0], name), expect_type(args[1], name));
    case TypeKind::kTuple: return tuple_type(expect_types(args[0], name));
    case TypeKind::kUnion: return union_type(expect_types(args[0], name));
    case TypeKind::kClass: {
      std::string_view qualified = text_of(args[0], name);
      if (!known_class(qualified)) fail(ErrorKind::Type, name, ": expected a registered class, got ", qualified);
      return class_type(qualified);
    }
    default: fail(ErrorKind::Type, name, ": expected a type that TorchScript knows, got a new one");
  }
}

PyObject* compound_new(PyTypeObject* cls, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    if (kwargs && PyDict_GET_SIZE(kwargs) > 0) fail(ErrorKind::Type, cls->tp_name, "(): expected no keyword arguments");
    TypeKind kind = kind_of_class(reinterpret_cast<PyObject*>(cls));
    return wrap_type(
        construct(kind, cls->tp_name, &PyTuple_GET_ITEM(args, 0), static_cast<size_t>(PyTuple_GET_SIZE(args))));
  });
}
int compound_init(PyObject*, PyObject*, PyObject*) { return 0; }

struct Subclass {
  TypeKind kind;
  const char* name;
  PyMethodDef* methods;
  bool has_constructor;
};
const Subclass kSubclasses[] = {
    {TypeKind::kAny, "torch._C.AnyType", simple_methods, false},
    {TypeKind::kNumber, "torch._C.NumberType", simple_methods, false},
    {TypeKind::kInt, "torch._C.IntType", simple_methods, false},
    {TypeKind::kSymInt, "torch._C.SymIntType", simple_methods, false},
    {TypeKind::kSymBool, "torch._C.SymBoolType", simple_methods, false},
    {TypeKind::kFloat, "torch._C.FloatType", simple_methods, false},
    {TypeKind::kComplex, "torch._C.ComplexType", simple_methods, false},
    {TypeKind::kTensor, "torch._C.TensorType", tensor_methods, false},
    {TypeKind::kBool, "torch._C.BoolType", simple_methods, false},
    {TypeKind::kString, "torch._C.StringType", simple_methods, false},
    {TypeKind::kDeviceObj, "torch._C.DeviceObjType", simple_methods, false},
    {TypeKind::kStreamObj, "torch._C.StreamObjType", simple_methods, false},
    {TypeKind::kGenerator, "torch._C._GeneratorType", simple_methods, false},
    {TypeKind::kPyObject, "torch._C.PyObjectType", simple_methods, false},
    {TypeKind::kNone, "torch._C.NoneType", simple_methods, false},
    {TypeKind::kTuple, "torch._C.TupleType", tuple_methods, true},
    {TypeKind::kUnion, "torch._C.UnionType", no_methods, true},
    {TypeKind::kList, "torch._C.ListType", list_methods, true},
    {TypeKind::kDict, "torch._C.DictType", dict_methods, true},
    {TypeKind::kOptional, "torch._C.OptionalType", optional_methods, true},
    {TypeKind::kRRef, "torch._C.RRefType", element_methods, true},
    {TypeKind::kFuture, "torch._C.FutureType", element_methods, true},
    {TypeKind::kAwait, "torch._C.AwaitType", element_methods, true},
    {TypeKind::kClass, "torch._C.ClassType", class_type_methods, true},
    {TypeKind::kEnum, "torch._C.EnumType", no_methods, true},
    {TypeKind::kInterface, "torch._C.InterfaceType", interface_methods, true},
};

// ---- InferredType -----------------------------------------------------------------------------------------------

PyObject* make_inferred(TypePtr type, std::string_view reason) {
  Owned text(to_str(reason));
  if (!text) return nullptr;
  PyObject* object = inferred_class->tp_alloc(inferred_class, 0);
  if (!object) return nullptr;
  reinterpret_cast<PyInferred*>(object)->type = type;
  reinterpret_cast<PyInferred*>(object)->reason = text.release();
  return object;
}
PyObject* inferred_new(PyTypeObject*, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (PyTuple_GET_SIZE(args) != 1)
      fail(ErrorKind::Type, "InferredType(): expected 1 argument, got ", PyTuple_GET_SIZE(args));
    PyObject* given = PyTuple_GET_ITEM(args, 0);
    return PyUnicode_Check(given) ? make_inferred(nullptr, text_of(given, "InferredType()"))
                                  : make_inferred(expect_type(given, "InferredType()"), "");
  });
}
void inferred_dealloc(PyObject* self) {
  PyTypeObject* cls = Py_TYPE(self);
  Py_XDECREF(reinterpret_cast<PyInferred*>(self)->reason);
  cls->tp_free(self);
  Py_DECREF(cls);
}
PyObject* inferred_type(PyObject* self, PyObject*) {
  return guarded([&] {
    auto* inferred = reinterpret_cast<PyInferred*>(self);
    TN_CHECK(inferred->type, "Tried to get the type from an InferredType but the type is null. Reason: ",
             text_of(inferred->reason, "InferredType"));
    return wrap_type(inferred->type);
  });
}
PyObject* inferred_success(PyObject* self, PyObject*) {
  return PyBool_FromLong(reinterpret_cast<PyInferred*>(self)->type != nullptr);
}
PyObject* inferred_reason(PyObject* self, PyObject*) { return Py_NewRef(reinterpret_cast<PyInferred*>(self)->reason); }

PyMethodDef inferred_methods[] = {
    {"type", inferred_type, METH_NOARGS, nullptr},
    {"success", inferred_success, METH_NOARGS, nullptr},
    {"reason", inferred_reason, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot inferred_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(inferred_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(inferred_dealloc)},
    {Py_tp_methods, inferred_methods},
    {0, nullptr},
};
PyType_Spec inferred_spec = {"torch._C.InferredType", sizeof(PyInferred), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                             inferred_slots};

// Instance of a class of torch._C, found by name since other files make those classes.
bool is_instance(PyObject* module, PyObject* object, const char* class_name) {
  Owned cls(PyObject_GetAttrString(module, class_name));
  int answer = cls ? PyObject_IsInstance(object, cls.get()) : 0;
  if (!cls || answer < 0) PyErr_Clear();
  return answer == 1;
}

struct NamedClass {
  const char* name;
  TypeKind kind;
};
constexpr NamedClass kValueClasses[] = {
    {"TensorBase", TypeKind::kTensor}, {"dtype", TypeKind::kInt},         {"device", TypeKind::kDeviceObj},
    {"layout", TypeKind::kInt},        {"memory_format", TypeKind::kInt}, {"Generator", TypeKind::kGenerator},
    {"Stream", TypeKind::kStreamObj},
};

TypePtr infer(PyObject* module, PyObject* object, std::string& reason);

// What holds both kinds of elements: the more general of the two, or an Optional when one is None.
TypePtr unify(TypePtr a, TypePtr b) {
  if (a->is_subtype_of(b)) return b;
  if (b->is_subtype_of(a)) return a;
  if (a->kind() == TypeKind::kNone) return optional_type(b);
  if (b->kind() == TypeKind::kNone) return optional_type(a);
  return nullptr;
}

TypePtr infer_element(PyObject* module, PyObject* item, TypePtr so_far, const char* container, std::string& reason) {
  TypePtr type = infer(module, item, reason);
  if (!type || !so_far) return type;
  TypePtr joined = unify(so_far, type);
  if (!joined) {
    reason =
        str(container, " must have consistent element type. Found ", so_far->annotation(), " and ", type->annotation());
  }
  return joined;
}

TypePtr infer_sequence(PyObject* module, PyObject* object, std::string& reason) {
  bool is_tuple = PyTuple_Check(object);
  Owned items(PySequence_Fast(object, "expected a sequence"));
  std::vector<TypePtr> elements;
  TypePtr joined = nullptr;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    if (is_tuple) {
      TypePtr type = infer(module, item, reason);
      if (!type) return nullptr;
      elements.push_back(type);
    } else {
      joined = infer_element(module, item, joined, "List inputs to traced functions", reason);
      if (!joined) return nullptr;
    }
  }
  if (is_tuple) return tuple_type(elements);
  if (!joined) reason = "List trace inputs must have elements";
  return joined ? list_type(joined) : nullptr;
}

TypePtr infer_dict(PyObject* module, PyObject* object, std::string& reason) {
  TypePtr key_type = nullptr, value_type = nullptr;
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t pos = 0; PyDict_Next(object, &pos, &key, &value);) {
    key_type = infer_element(module, key, key_type, "Dictionary inputs to traced functions", reason);
    if (!key_type) return nullptr;
    value_type = infer_element(module, value, value_type, "Dictionary inputs to traced functions", reason);
    if (!value_type) return nullptr;
  }
  if (!key_type) reason = "Dictionary inputs must have entries";
  return key_type ? dict_type(key_type, value_type) : nullptr;
}

TypePtr infer(PyObject* module, PyObject* object, std::string& reason) {
  if (object == Py_None) return simple_type(TypeKind::kNone);
  if (PyBool_Check(object)) return simple_type(TypeKind::kBool);
  if (PyLong_Check(object)) return simple_type(TypeKind::kInt);
  if (PyFloat_Check(object)) return simple_type(TypeKind::kFloat);
  if (PyComplex_Check(object)) return simple_type(TypeKind::kComplex);
  if (PyUnicode_Check(object)) return simple_type(TypeKind::kString);
  for (const NamedClass& named : kValueClasses) {
    if (is_instance(module, object, named.name)) return simple_type(named.kind);
  }
  if (PyTuple_Check(object) || PyList_Check(object)) return infer_sequence(module, object, reason);
  if (PyDict_Check(object)) return infer_dict(module, object, reason);
  const char* name = strrchr(Py_TYPE(object)->tp_name, '.');
  reason =
      str("Only tensors and (possibly nested) tuples of tensors, lists, or dicts are supported as inputs or outputs of "
          "traced functions, but instead got value of type ",
          name ? name + 1 : Py_TYPE(object)->tp_name, ".");
  return nullptr;
}

PyObject* try_infer_type(PyObject* module, PyObject* object) {
  return guarded([&] {
    std::string reason;
    TypePtr type = infer(module, object, reason);
    return make_inferred(type, reason);
  });
}

PyMethodDef functions[] = {
    {"_jit_try_infer_type", try_infer_type, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* wrap_type(TypePtr type) {
  std::atomic<void*>& slot = type->wrapper();
  auto* object = static_cast<PyObject*>(slot.load(std::memory_order_acquire));
  if (!object) {
    PyTypeObject* cls = classes[static_cast<size_t>(type->kind())];
    if (!cls) cls = base_class;
    object = cls->tp_alloc(cls, 0);
    if (!object) return nullptr;
    reinterpret_cast<PyType*>(object)->type = type;
    slot.store(object, std::memory_order_release);  // the slot keeps this reference for good
  }
  return Py_NewRef(object);
}

TypePtr unwrap_type(PyObject* object) {
  return base_class && PyObject_TypeCheck(object, base_class) ? type_at(object) : nullptr;
}

void bind_jit_types(PyObject* module) {
  base_class = add_class(module, &type_spec);
  for (const Subclass& each : kSubclasses) {
    PyType_Slot slots[4] = {{Py_tp_methods, each.methods}, {0, nullptr}, {0, nullptr}, {0, nullptr}};
    if (each.has_constructor) {
      slots[1] = {Py_tp_new, reinterpret_cast<void*>(compound_new)};
      slots[2] = {Py_tp_init, reinterpret_cast<void*>(compound_init)};
    }
    PyType_Spec spec = {each.name, sizeof(PyType), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    classes[static_cast<size_t>(each.kind)] = add_class(module, &spec, reinterpret_cast<PyObject*>(base_class));
  }
  inferred_class = add_class(module, &inferred_spec);
  if (PyModule_AddFunctions(module, functions) < 0) fail(ErrorKind::Runtime, "torch._C: type functions can't be added");
}

}  // namespace tn
