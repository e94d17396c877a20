#include "bindings/python_data.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

#include "bindings/numpy.h"
#include "bindings/object_type.h"
#include "bindings/tensor.h"
#include "runtime/copy.h"

namespace tn::py {

namespace {

constexpr size_t kMaxNesting = 128;

bool is_text(PyObject* o) { return PyUnicode_Check(o) || PyBytes_Check(o); }

// ---- one number
// -----------------------------------------------------------------------------------------------------------
double number_as_double(PyObject* o) {
  if (PyFloat_CheckExact(o)) return PyFloat_AS_DOUBLE(o);
  const double v = PyFloat_AsDouble(o);
  if (v == -1.0 && PyErr_Occurred()) throw PythonError();
  return v;
}
int64_t number_as_int(PyObject* o) {
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (v == -1 && PyErr_Occurred()) throw PythonError();
  if (overflow) fail(ErrorKind::Value, "Overflow when unpacking long long");
  return v;
}
uint64_t number_as_uint(PyObject* o) {
  const PyRef index = PyRef::check(PyNumber_Index(o));
  const unsigned long long v = PyLong_AsUnsignedLongLong(index.get());
  if (!PyErr_Occurred()) return v;
  PyErr_Clear();
  return static_cast<uint64_t>(number_as_int(index.get()));
}

[[noreturn]] void overflow(ScalarType t) {
  fail(ErrorKind::Runtime, "value cannot be converted to type ", dtype_name(t), " without overflow");
}

template <class T>
T checked_from_double(double v, ScalarType t) {
  // The upper limit of a 64-bit type rounds up to a power of two, as in upstream's comparison.
  if (std::isnan(v) || v < static_cast<double>(std::numeric_limits<T>::lowest()) ||
      v > static_cast<double>(std::numeric_limits<T>::max()))
    overflow(t);
  return static_cast<T>(v);
}
template <class T>
T number_as(PyObject* o, ScalarType t) {
  if (PyFloat_Check(o)) return checked_from_double<T>(PyFloat_AS_DOUBLE(o), t);
  if constexpr (std::is_same_v<T, uint64_t>) {
    return number_as_uint(o);
  } else {
    const int64_t v = number_as_int(o);
    if constexpr (std::is_same_v<T, int64_t>) return v;
    // Unsigned types take negative numbers down to minus their maximum, and wrap.
    const int64_t low =
        std::is_signed_v<T> ? std::numeric_limits<T>::min() : -static_cast<int64_t>(std::numeric_limits<T>::max());
    if (v < low || v > static_cast<int64_t>(std::numeric_limits<T>::max())) overflow(t);
    return static_cast<T>(v);
  }
}
std::complex<double> number_as_complex(PyObject* o) {
  const Py_complex v = PyComplex_AsCComplex(o);
  if (v.real == -1.0 && PyErr_Occurred()) throw PythonError();
  return {v.real, v.imag};
}
bool number_as_bool(PyObject* o) {
  const int v = PyObject_IsTrue(o);
  if (v < 0) throw PythonError();
  return v != 0;
}
template <class T>
void put(void* at, T v) {
  std::memcpy(at, &v, sizeof v);
}

// ---- sequences
// ------------------------------------------------------------------------------------------------------------
void warn_arrays_in_list() {
  static bool warned = false;
  if (warned) return;
  warned = true;
  if (PyErr_WarnEx(PyExc_UserWarning,
                   "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the "
                   "list to a single "
                   "numpy.ndarray with numpy.array() before converting to a tensor.",
                   1) < 0)
    throw PythonError();
}

// The innermost loops of the dtypes that lists usually become; the others go number by number.
void store_row(PyObject* const* items, int64_t n, ScalarType dtype, char* to) {
  switch (dtype) {
    case ScalarType::Float:
      for (int64_t i = 0; i < n; ++i) put(to + i * 4, static_cast<float>(number_as_double(items[i])));
      return;
    case ScalarType::Double:
      for (int64_t i = 0; i < n; ++i) put(to + i * 8, number_as_double(items[i]));
      return;
    case ScalarType::Long:
      for (int64_t i = 0; i < n; ++i) put(to + i * 8, number_as<int64_t>(items[i], dtype));
      return;
    default: {
      const auto size = static_cast<int64_t>(item_size(dtype));
      for (int64_t i = 0; i < n; ++i) store_number(items[i], dtype, to + i * size);
    }
  }
}

class Store {
 public:
  Store(IntView sizes, ScalarType dtype, char* to) : sizes_(sizes), dtype_(dtype), to_(to) {}

  void run(PyObject* data, size_t dim) {
    const int64_t n = sizes_[dim];
    const PyRef sequence = PyRef::check(PySequence_Fast(data, "not a sequence"));
    const Py_ssize_t length = PySequence_Fast_GET_SIZE(sequence.get());
    if (length != n) fail(ErrorKind::Value, "expected sequence of length ", n, " at dim ", dim, " (got ", length, ")");
    PyObject** items = PySequence_Fast_ITEMS(sequence.get());
    if (n > 0 && is_numpy_array(items[0])) warn_arrays_in_list();
    if (dim + 1 == sizes_.size()) {
      store_row(items, n, dtype_, to_);
      to_ += n * static_cast<int64_t>(item_size(dtype_));
      return;
    }
    for (int64_t i = 0; i < n; ++i) run(items[i], dim + 1);
  }

 private:
  IntView sizes_;
  ScalarType dtype_;
  char* to_;
};

ScalarType complex_default() {
  const ScalarType t = default_dtype();
  return t == ScalarType::Double ? ScalarType::ComplexDouble
         : t == ScalarType::Half ? ScalarType::ComplexHalf
                                 : ScalarType::ComplexFloat;
}

// The exact types that most data consists of.
bool infer_plain(PyObject* o, ScalarType* out) {
  if (PyFloat_CheckExact(o)) *out = default_dtype();
  else if (PyLong_CheckExact(o)) *out = ScalarType::Long;
  else if (PyBool_Check(o)) *out = ScalarType::Bool;
  else return false;
  return true;
}

ScalarType infer_sequence(PyObject* data) {
  if (!PyList_CheckExact(data) && !PyTuple_CheckExact(data)) {
    const Py_ssize_t n = PySequence_Length(data);
    if (n < 0) throw PythonError();
    std::optional<ScalarType> common;
    for (Py_ssize_t i = 0; i < n; ++i) {
      const PyRef item = PyRef::check(PySequence_GetItem(data, i));
      if (item.get() == data) fail(ErrorKind::Type, "new(): self-referential lists are incompatible");
      const ScalarType t = infer_dtype(item.get());
      common = common && *common != t ? promote_types(*common, t) : t;
    }
    return common.value_or(default_dtype());
  }
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(data);
  if (n == 0) return default_dtype();
  PyObject** items = PySequence_Fast_ITEMS(data);
  ScalarType common = ScalarType::Undefined;
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (items[i] == data) fail(ErrorKind::Type, "new(): self-referential lists are incompatible");
    ScalarType t;
    if (!infer_plain(items[i], &t)) t = infer_dtype(items[i]);
    if (t == common) continue;
    common = common == ScalarType::Undefined ? t : promote_types(common, t);
    if (common == ScalarType::ComplexDouble) return common;
  }
  return common;
}

template <class T>
T get(const void* at) {
  T v;
  std::memcpy(&v, at, sizeof v);
  return v;
}

}  // namespace

void data_sizes(PyObject* data, ScalarType dtype, DimVector& sizes) {
  Storage storage;
  const bool from_storage = !PyList_CheckExact(data) && !PyTuple_CheckExact(data) && storage_argument(data, &storage);
  PyRef holder;
  while (!is_tensor(data) && PySequence_Check(data)) {
    Py_ssize_t length = PySequence_Length(data);
    if (length < 0) throw PythonError();
    if (from_storage && is_untyped_storage(data)) length /= static_cast<Py_ssize_t>(item_size(dtype));
    sizes.push_back(length);
    if (sizes.size() > kMaxNesting) fail(ErrorKind::Value, "too many dimensions '", type_name(data), "'");
    if (length == 0 || from_storage) break;
    PyObject* first = PySequence_GetItem(data, 0);
    if (first == nullptr) {
      PyErr_Clear();
      fail(ErrorKind::Value, "could not determine the shape of object type '", type_name(data), "'");
    }
    holder = PyRef::adopt(first);
    data = first;
  }
}

ScalarType infer_dtype(PyObject* data) {
  ScalarType t;
  if (infer_plain(data, &t)) return t;
  if (PyList_CheckExact(data) || PyTuple_CheckExact(data)) return infer_sequence(data);
  if (is_tensor(data)) return tensor_of(data).dtype();
  // numpy.float64 is a float too, but keeps its own dtype.
  if (is_numpy_array(data) || is_numpy_scalar(data)) return numpy_dtype(data);
  if (PyFloat_Check(data)) return default_dtype();
  if (PyLong_Check(data)) return ScalarType::Long;
  if (PyComplex_Check(data)) return complex_default();
  if (is_text(data)) fail(ErrorKind::Type, "new(): invalid data type '", type_name(data), "'");
  if (PySequence_Check(data)) return infer_sequence(data);
  fail(ErrorKind::Runtime, "Could not infer dtype of ", type_name(data));
}

void store_number(PyObject* o, ScalarType t, void* at) {
  switch (t) {
    case ScalarType::Byte: return put(at, number_as<uint8_t>(o, t));
    case ScalarType::Char: return put(at, number_as<int8_t>(o, t));
    case ScalarType::Short: return put(at, number_as<int16_t>(o, t));
    case ScalarType::Int: return put(at, number_as<int32_t>(o, t));
    case ScalarType::Long: return put(at, number_as<int64_t>(o, t));
    case ScalarType::UInt16: return put(at, number_as<uint16_t>(o, t));
    case ScalarType::UInt32: return put(at, number_as<uint32_t>(o, t));
    case ScalarType::UInt64: return put(at, number_as<uint64_t>(o, t));
    case ScalarType::Bool: return put(at, number_as_bool(o));
    case ScalarType::Float: return put(at, static_cast<float>(number_as_double(o)));
    case ScalarType::Double: return put(at, number_as_double(o));
    case ScalarType::ComplexFloat: return put(at, std::complex<float>(number_as_complex(o)));
    case ScalarType::ComplexDouble: return put(at, number_as_complex(o));
    default: break;
  }
  if (t == ScalarType::ComplexHalf) {
    const std::complex<double> v = number_as_complex(o);
    convert_row(ScalarType::ComplexDouble, reinterpret_cast<const char*>(&v), sizeof v, t, static_cast<char*>(at), 4,
                1);
  } else if (is_reduced_float(t) || is_float8(t)) {
    const double v = number_as_double(o);
    convert_row(ScalarType::Double, reinterpret_cast<const char*>(&v), sizeof v, t, static_cast<char*>(at), 1, 1);
  } else {
    fail(ErrorKind::Runtime, "store_scalar: invalid type");
  }
}

void store_data(PyObject* data, const Tensor& into) {
  if (into.numel() == 0) return;
  if (into.dim() == 0) return store_number(data, into.dtype(), into->raw_data());
  Store(into.sizes(), into.dtype(), static_cast<char*>(into->raw_data())).run(data, 0);
}

PyObject* load_number(ScalarType t, const void* at) {
  switch (t) {
    case ScalarType::Byte: return PyLong_FromLong(get<uint8_t>(at));
    case ScalarType::Char: return PyLong_FromLong(get<int8_t>(at));
    case ScalarType::Short: return PyLong_FromLong(get<int16_t>(at));
    case ScalarType::Int: return PyLong_FromLong(get<int32_t>(at));
    case ScalarType::Long: return PyLong_FromLongLong(get<int64_t>(at));
    case ScalarType::UInt16: return PyLong_FromLong(get<uint16_t>(at));
    case ScalarType::UInt32: return PyLong_FromUnsignedLong(get<uint32_t>(at));
    case ScalarType::UInt64: return PyLong_FromUnsignedLongLong(get<uint64_t>(at));
    case ScalarType::Bool: return PyBool_FromLong(get<uint8_t>(at) != 0);
    case ScalarType::Float: return PyFloat_FromDouble(get<float>(at));
    case ScalarType::Double: return PyFloat_FromDouble(get<double>(at));
    case ScalarType::ComplexFloat: {
      const auto v = get<std::complex<float>>(at);
      return PyComplex_FromDoubles(v.real(), v.imag());
    }
    case ScalarType::ComplexDouble: {
      const auto v = get<std::complex<double>>(at);
      return PyComplex_FromDoubles(v.real(), v.imag());
    }
    default: break;
  }
  if (t == ScalarType::ComplexHalf) {
    std::complex<double> v;
    convert_row(t, static_cast<const char*>(at), 4, ScalarType::ComplexDouble, reinterpret_cast<char*>(&v), sizeof v,
                1);
    return PyComplex_FromDoubles(v.real(), v.imag());
  }
  if (is_reduced_float(t) || is_float8(t)) {
    double v = 0;
    convert_row(t, static_cast<const char*>(at), 1, ScalarType::Double, reinterpret_cast<char*>(&v), sizeof v, 1);
    return PyFloat_FromDouble(v);
  }
  fail(ErrorKind::Runtime, "load_scalar: invalid type");
}

}  // namespace tn::py
