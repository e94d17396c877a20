// torch.finfo and torch.iinfo.
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

#include "bindings/arguments.h"
#include "bindings/object_type.h"

namespace tn::py {

namespace {

PyTypeObject finfo_type{}, iinfo_type{};

ScalarType type_of(PyObject* self) { return reinterpret_cast<DTypeObject*>(self)->type; }

// The limits of a format: `digits` of 2 and of 10 as in std::numeric_limits.
struct FloatLimits {
  double eps;
  double lowest;
  double max;
  double smallest_normal;
  int digits10;
};

// Null for packed formats, which have no limits upstream.
const FloatLimits* limits_of(ScalarType t) {
  static constexpr FloatLimits kHalf{0x1p-10, -65504.0, 65504.0, 0x1p-14, 3};
  static constexpr FloatLimits kBFloat16{0x1p-7, -0x1.fep127, 0x1.fep127, 0x1p-126, 2};
  static constexpr FloatLimits kFloat{0x1p-23, -0x1.fffffep127, 0x1.fffffep127, 0x1p-126, 6};
  static constexpr FloatLimits kDouble{0x1p-52, -std::numeric_limits<double>::max(), std::numeric_limits<double>::max(),
                                       0x1p-1022, 15};
  static constexpr FloatLimits kE5m2{0.25, -57344.0, 57344.0, 0x1p-14, 0};
  static constexpr FloatLimits kE4m3fn{0.125, -448.0, 448.0, 0x1p-6, 0};
  static constexpr FloatLimits kE5m2fnuz{0.125, -57344.0, 57344.0, 0x1p-15, 0};
  static constexpr FloatLimits kE4m3fnuz{0.125, -240.0, 240.0, 0x1p-7, 0};
  static constexpr FloatLimits kE8m0fnu{1.0, 0x1p-127, 0x1p127, 0x1p-127, 0};
  switch (real_of(t)) {
    case ScalarType::Half: return &kHalf;
    case ScalarType::BFloat16: return &kBFloat16;
    case ScalarType::Float: return &kFloat;
    case ScalarType::Double: return &kDouble;
    case ScalarType::Float8_e5m2: return &kE5m2;
    case ScalarType::Float8_e4m3fn: return &kE4m3fn;
    case ScalarType::Float8_e5m2fnuz: return &kE5m2fnuz;
    case ScalarType::Float8_e4m3fnuz: return &kE4m3fnuz;
    case ScalarType::Float8_e8m0fnu: return &kE8m0fnu;
    default: return nullptr;
  }
}
const FloatLimits& limits_for(PyObject* self, const char* what) {
  const FloatLimits* l = limits_of(type_of(self));
  if (!l) fail(ErrorKind::NotImplemented, '"', what, "\" not implemented for '", scalar_type_name(type_of(self)), '\'');
  return *l;
}
double resolution(const FloatLimits& l) { return std::pow(10.0, -l.digits10); }

PyObject* allocate(PyTypeObject* type, ScalarType t) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self) reinterpret_cast<DTypeObject*>(self)->type = t;
  return self;
}

constexpr Formal kType[] = {{"type", Kind::DType}};

PyObject* create_finfo(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static constexpr Form kForms[] = {{kType}, {}};
    const Actuals given = parse("finfo", kForms, args, kwargs);
    const ScalarType t = given.form == 0 ? *given.dtype(0) : default_dtype();
    if (!is_floating(t) && !is_complex(t))
      raise(PyExc_TypeError, "torch.finfo() requires a floating point input type. Use torch.iinfo to handle '%s'",
            type->tp_name);
    return allocate(type, real_of(t));
  });
}
PyObject* create_iinfo(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static constexpr Form kForms[] = {{kType}};
    const ScalarType t = *parse("iinfo", kForms, args, kwargs).dtype(0);
    if (t == ScalarType::Bool) raise(PyExc_TypeError, "torch.bool is not supported by torch.iinfo");
    if (!is_integral(t, false) && !is_quantized(t))
      raise(PyExc_TypeError, "torch.iinfo() requires an integer input type. Use torch.finfo to handle '%s'",
            type->tp_name);
    return allocate(type, t);
  });
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (op != Py_EQ && op != Py_NE) Py_RETURN_NOTIMPLEMENTED;
  const bool same = Py_IS_TYPE(b, Py_TYPE(a)) && type_of(a) == type_of(b);
  return PyBool_FromLong(same == (op == Py_EQ));
}

PyObject* get_bits(PyObject* self, void*) { return PyLong_FromSize_t(item_size(type_of(self)) * 8); }
template <double FloatLimits::* Field>
PyObject* get_limit(PyObject* self, void* what) {
  return guarded([&] { return PyFloat_FromDouble(limits_for(self, static_cast<const char*>(what)).*Field); });
}
PyObject* get_resolution(PyObject* self, void* what) {
  return guarded([&] { return PyFloat_FromDouble(resolution(limits_for(self, static_cast<const char*>(what)))); });
}
PyObject* get_float_dtype(PyObject* self, void*) { return text_object(dtype_name(type_of(self))); }

struct IntLimits {
  int64_t min;
  uint64_t max;
};
IntLimits int_limits(ScalarType t) {
  const auto bits = static_cast<int>(item_size(t)) * 8;
  const bool with_sign = is_quantized(t) ? t != ScalarType::QUInt8 : is_signed(t);
  const uint64_t all = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  if (!with_sign) return {0, all};
  return {-static_cast<int64_t>(all >> 1) - 1, all >> 1};
}
PyObject* get_int_min(PyObject* self, void*) { return PyLong_FromLongLong(int_limits(type_of(self)).min); }
PyObject* get_int_max(PyObject* self, void*) { return PyLong_FromUnsignedLongLong(int_limits(type_of(self)).max); }
// Quantised dtypes have limits upstream, but no name here.
std::string_view int_name(ScalarType t) {
  if (is_quantized(t)) fail(ErrorKind::NotImplemented, "\"dtype\" not implemented for '", scalar_type_name(t), '\'');
  return dtype_name(t);
}
PyObject* get_int_dtype(PyObject* self, void*) {
  return guarded([&] { return text_object(int_name(type_of(self))); });
}

// As iostreams print doubles: six digits.
struct Six {
  double v;
  friend std::ostream& operator<<(std::ostream& out, Six s) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", s.v);
    return out << text;
  }
};

PyObject* repr_finfo(PyObject* self) {
  return guarded([&] {
    const FloatLimits& l = limits_for(self, "epsilon");
    return text_object(str("finfo(resolution=", Six{resolution(l)}, ", min=", Six{l.lowest}, ", max=", Six{l.max},
                           ", eps=", Six{l.eps}, ", smallest_normal=", Six{l.smallest_normal},
                           ", tiny=", Six{l.smallest_normal}, ", dtype=", dtype_name(type_of(self)), ")"));
  });
}
PyObject* repr_iinfo(PyObject* self) {
  return guarded([&] {
    const IntLimits l = int_limits(type_of(self));
    return text_object(str("iinfo(min=", Six{static_cast<double>(l.min)}, ", max=", Six{static_cast<double>(l.max)},
                           ", dtype=", int_name(type_of(self)), ")"));
  });
}

char kEpsilon[] = "epsilon", kMax[] = "max", kLowest[] = "lowest", kMin[] = "min", kDigits[] = "digits10";
PyGetSetDef finfo_properties[] = {
    {"bits", get_bits, nullptr, nullptr, nullptr},
    {"eps", get_limit<&FloatLimits::eps>, nullptr, nullptr, kEpsilon},
    {"max", get_limit<&FloatLimits::max>, nullptr, nullptr, kMax},
    {"min", get_limit<&FloatLimits::lowest>, nullptr, nullptr, kLowest},
    {"smallest_normal", get_limit<&FloatLimits::smallest_normal>, nullptr, nullptr, kMin},
    {"tiny", get_limit<&FloatLimits::smallest_normal>, nullptr, nullptr, kMin},
    {"resolution", get_resolution, nullptr, nullptr, kDigits},
    {"dtype", get_float_dtype, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyGetSetDef iinfo_properties[] = {
    {"bits", get_bits, nullptr, nullptr, nullptr},   {"max", get_int_max, nullptr, nullptr, nullptr},
    {"min", get_int_min, nullptr, nullptr, nullptr}, {"dtype", get_int_dtype, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

bool bind(PyObject* module, PyTypeObject& type, const char* dotted, newfunc create, reprfunc repr,
          PyGetSetDef* properties) {
  type.tp_new = create;
  type.tp_repr = repr;
  type.tp_str = repr;
  type.tp_richcompare = compare;
  type.tp_getset = properties;
  return ready_type(type, dotted, sizeof(DTypeObject)) && add_to_module(module, dotted + sizeof("torch.") - 1, type);
}

}  // namespace

bool bind_finfo(PyObject* module) {
  return bind(module, finfo_type, "torch.finfo", create_finfo, repr_finfo, finfo_properties) &&
         bind(module, iinfo_type, "torch.iinfo", create_iinfo, repr_iinfo, iinfo_properties);
}

}  // namespace tn::py
