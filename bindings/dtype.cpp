// torch.dtype: one immortal object for each dtype.
#include "bindings/object_type.h"
#include "bindings/objects.h"

namespace tn::py {

PyTypeObject dtype_type{};

namespace {

// In the order of ScalarType: torch._dtype_abbrs' names, then the second name under `torch`, if any.
struct DTypeNames {
  const char* abbr;
  const char* alias;
};
constexpr DTypeNames kNames[kNumScalarTypes] = {
    {"u8", nullptr},        {"i8", nullptr},         {"i16", "short"},        {"i32", "int"},
    {"i64", "long"},        {"f16", "half"},         {"f32", "float"},        {"f64", "double"},
    {"c32", "chalf"},       {"c64", "cfloat"},       {"c128", "cdouble"},     {"b8", nullptr},
    {"qint8", nullptr},     {"quint8", nullptr},     {"qint32", nullptr},     {"bf16", nullptr},
    {"quint4x2", nullptr},  {"quint2x4", nullptr},   {"b1x8", nullptr},       {"b2x4", nullptr},
    {"b4x2", nullptr},      {"b8x1", nullptr},       {"b16x1", nullptr},      {"f8e5m2", nullptr},
    {"f8e4m3fn", nullptr},  {"f8e5m2fnuz", nullptr}, {"f8e4m3fnuz", nullptr}, {"u16", nullptr},
    {"u32", nullptr},       {"u64", nullptr},        {"uint1", "bit"},        {"uint2", nullptr},
    {"uint3", nullptr},     {"uint4", nullptr},      {"uint5", nullptr},      {"uint6", nullptr},
    {"uint7", nullptr},     {"int1", nullptr},       {"int2", nullptr},       {"int3", nullptr},
    {"int4", nullptr},      {"int5", nullptr},       {"int6", nullptr},       {"int7", nullptr},
    {"f8e8m0fnu", nullptr}, {"f4e2m1fnx2", nullptr},
};

DTypeObject objects[kNumScalarTypes];

ScalarType type_of(PyObject* self) { return reinterpret_cast<DTypeObject*>(self)->type; }

PyObject* repr(PyObject* self) {
  return guarded([&] { return text_object(str("torch.", dtype_name(type_of(self)))); });
}
PyObject* reduce(PyObject* self, PyObject*) { return text_object(dtype_name(type_of(self))); }

PyObject* to_real(PyObject* self, PyObject*) { return Py_NewRef(dtype_object(real_of(type_of(self)))); }

PyObject* to_complex(PyObject* self, PyObject*) {
  return guarded([&] {
    const ScalarType t = type_of(self);
    // Upstream knows no complex partner of integers and float8, unlike type promotion.
    TN_CHECK(is_complex(t) || t == ScalarType::Float || t == ScalarType::Double || is_reduced_float(t),
             "Unknown Complex ScalarType for ", scalar_type_name(t));
    return Py_NewRef(dtype_object(complex_of(t)));
  });
}

PyObject* get_is_floating_point(PyObject* self, void*) { return PyBool_FromLong(is_floating(type_of(self))); }
PyObject* get_is_complex(PyObject* self, void*) { return PyBool_FromLong(is_complex(type_of(self))); }
PyObject* get_is_signed(PyObject* self, void*) {
  return guarded([&] {
    const ScalarType t = type_of(self);
    TN_CHECK(!is_quantized(t), "isSignedType not supported for quantized types");
    TN_CHECK(t < ScalarType::Bits1x8 || t > ScalarType::Bits16, "Bits types are undefined");
    return PyBool_FromLong(is_signed(t));
  });
}
PyObject* get_itemsize(PyObject* self, void*) { return PyLong_FromSize_t(item_size(type_of(self))); }
PyObject* get_abbr(PyObject* self, void*) { return PyUnicode_FromString(kNames[static_cast<int>(type_of(self))].abbr); }
// Instances must answer it too: pickle looks there for the module of a global that __reduce__ names.
PyObject* get_module(PyObject*, void*) { return PyUnicode_FromString("torch"); }

PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"to_real", to_real, METH_NOARGS, nullptr},
    {"to_complex", to_complex, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"is_floating_point", get_is_floating_point, nullptr, nullptr, nullptr},
    {"is_complex", get_is_complex, nullptr, nullptr, nullptr},
    {"is_signed", get_is_signed, nullptr, nullptr, nullptr},
    {"itemsize", get_itemsize, nullptr, nullptr, nullptr},
    {"abbr", get_abbr, nullptr, nullptr, nullptr},
    {"__module__", get_module, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// What upstream's c10 macros list as ordinary types: the quantised and the sub-byte ones are missing.
PyObject* get_all_dtypes(PyObject*, PyObject*) {
  PyRef list = PyRef::adopt(PyList_New(0));
  if (!list) return nullptr;
  for (int i = 0; i < kNumScalarTypes; ++i) {
    const auto t = static_cast<ScalarType>(i);
    if (is_quantized(t) || (t >= ScalarType::UInt1 && t <= ScalarType::Int7)) continue;
    if (PyList_Append(list.get(), dtype_object(t)) < 0) return nullptr;
  }
  return list.release();
}

PyObject* set_default(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    ScalarType t;
    TN_CHECK_AS(Type, is_dtype(o, &t),
                "invalid dtype object: only floating-point types are supported as the default type");
    TN_CHECK_AS(Type, is_floating(t), "only floating-point types are supported as the default type");
    // Upstream looks for a storage class of the dtype, and float8 has none.
    TN_CHECK_AS(Type, t == ScalarType::Float || t == ScalarType::Double || is_reduced_float(t),
                "couldn't find storage object ", scalar_type_name(t), "Storage");
    set_default_dtype(t);
    Py_RETURN_NONE;
  });
}
PyObject* get_default(PyObject*, PyObject*) { return Py_NewRef(dtype_object(default_dtype())); }

PyMethodDef functions[] = {
    {"_get_all_dtypes", get_all_dtypes, METH_NOARGS, nullptr},
    {"_set_default_dtype", set_default, METH_O, nullptr},
    {"get_default_dtype", get_default, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* dtype_object(ScalarType t) { return reinterpret_cast<PyObject*>(&objects[static_cast<int>(t)]); }

const char* dtype_alias(ScalarType t) { return kNames[static_cast<int>(t)].alias; }

bool dtype_argument(PyObject* o, ScalarType* out) {
  if (is_dtype(o, out)) return true;
  if (!PyType_Check(o)) return false;
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) *out = ScalarType::Double;
  else if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) *out = ScalarType::Long;
  else if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) *out = ScalarType::Bool;
  else if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) *out = ScalarType::ComplexDouble;
  else return false;
  return true;
}

bool bind_dtypes(PyObject* module) {
  dtype_type.tp_repr = repr;
  dtype_type.tp_methods = methods;
  dtype_type.tp_getset = properties;
  if (!ready_type(dtype_type, "torch.dtype", sizeof(DTypeObject),
                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION))
    return false;
  for (int i = 0; i < kNumScalarTypes; ++i) {
    PyObject_Init(reinterpret_cast<PyObject*>(&objects[i]), &dtype_type);
    objects[i].type = static_cast<ScalarType>(i);
  }
  return add_to_module(module, "dtype", reinterpret_cast<PyObject*>(&dtype_type)) &&
         PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace tn::py
