// From Python's objects to tagged arguments, by the parameter's type.
#include <cmath>
#include <cstring>
#include <new>

#include "bindings/convert.h"
#include "bindings/objects.h"
#include "bindings/parse.h"
#include "bindings/tensor.h"
#include "runtime/copy.h"
#include "runtime/refuse.h"

namespace tn::py {

const char* param_type_name(ParamType t) {
  switch (t) {
    case ParamType::Tensor: return "Tensor";
    case ParamType::Scalar: return "Number";
    case ParamType::Int: return "int";
    case ParamType::Double: return "float";
    case ParamType::Bool: return "bool";
    case ParamType::TensorList:
    case ParamType::OptionalTensorList: return "tuple of Tensors";
    case ParamType::IntList: return "tuple of ints";
    case ParamType::DoubleList: return "tuple of floats";
    case ParamType::BoolList: return "tuple of bools";
    case ParamType::ScalarList: return "tuple of Scalars";
    case ParamType::Generator: return "torch.Generator";
    case ParamType::Storage: return "torch.Storage";
    case ParamType::ScalarType: return "torch.dtype";
    case ParamType::Layout: return "torch.layout";
    case ParamType::MemoryFormat: return "torch.memory_format";
    case ParamType::Device: return "torch.device";
    case ParamType::Stream: return "torch.Stream";
    case ParamType::String: return "str";
    case ParamType::Dimname: return "name";
    case ParamType::DimnameList: return "tuple of names";
    case ParamType::QScheme: return "torch.qscheme";
    case ParamType::Object: return "object";
  }
  return "object";
}

namespace {

bool is_symbolic(PyObject* o, const char* name) {
  return (Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE) && std::strcmp(Py_TYPE(o)->tp_name, name) == 0;
}
bool is_symbolic(PyObject* o) {
  return is_symbolic(o, "SymInt") || is_symbolic(o, "SymFloat") || is_symbolic(o, "SymBool");
}
[[noreturn]] void refuse_symbolic() {
  refuse("symbolic number", "a SymInt, SymFloat or SymBool as an argument", "typed kernels take plain numbers only");
}

// An int or whatever has __index__ (numpy integers, integral tensors of one element), but no bool.
bool is_index(PyObject* o) {
  if (PyLong_CheckExact(o)) return true;
  if (PyBool_Check(o)) return false;
  if (PyLong_Check(o)) return true;
  if (PyFloat_Check(o) || PyUnicode_Check(o) || PyTuple_Check(o) || PyList_Check(o) || o == Py_None) return false;
  if (is_symbolic(o, "SymInt")) refuse_symbolic();
  if (!PyIndex_Check(o)) return false;
  const PyRef index = PyRef::adopt(PyNumber_Index(o));
  if (!index) PyErr_Clear();
  return static_cast<bool>(index);
}

// False with an exception set.
bool to_int(PyObject* o, int64_t* out) {
  const PyRef index = PyLong_CheckExact(o) ? PyRef::share(o) : PyRef::adopt(PyNumber_Index(o));
  if (!index) return false;
  int overflow = 0;
  *out = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (overflow != 0) {
    PyErr_SetString(PyExc_RuntimeError, "Overflow when unpacking long long");
    return false;
  }
  return !(*out == -1 && PyErr_Occurred());
}

bool number_from_tensor(PyObject* o, Parsed& p, Arg* out) {
  if (!is_tensor(o)) return false;
  const Tensor& t = tensor_of(o);
  if (t.dim() != 0 || t.requires_grad()) return false;
  const Arg arg = Arg::of(t);
  static OpRow& op = required_op("aten::_local_scalar_dense", "");
  Value v;
  door::call_boxed(op, {&arg, 1}, &v);
  (void)p;
  *out = v.arg();  // numbers borrow nothing
  return true;
}

// Several elements of a list or tuple, which are plain ones nearly always.
struct Items {
  PyObject* const* data;
  Py_ssize_t n;
};
bool items_of(PyObject* o, Items* out) {
  if (PyTuple_Check(o)) {
    *out = {&PyTuple_GET_ITEM(o, 0), PyTuple_GET_SIZE(o)};
    return true;
  }
  if (PyList_Check(o)) {
    *out = {reinterpret_cast<PyListObject*>(o)->ob_item, PyList_GET_SIZE(o)};
    return true;
  }
  return false;
}

int ints_from_items(const Param& param, Items items, Parsed& p, Arg* out, Py_ssize_t* failed) {
  if (items.n > 0 && !is_index(items.data[0])) {
    *failed = 0;
    return 0;
  }
  auto* const data = static_cast<int64_t*>(p.allocate(sizeof(int64_t) * static_cast<size_t>(items.n)));
  for (Py_ssize_t i = 0; i < items.n; ++i) {
    PyObject* const item = items.data[i];
    if (PyLong_CheckExact(item)) {
      if (to_int(item, &data[i])) continue;
    } else if (is_index(item)) {
      if (to_int(item, &data[i])) continue;
    } else {
      // Upstream looks at the first element to choose the signature, and at the others afterwards.
      PyErr_Format(PyExc_TypeError,
                   "%s(): argument '%s' failed to unpack the object at pos %zd with error \"type must be tuple of "
                   "ints,but got %s\"",
                   p.function_name, param.name, i + 1, Py_TYPE(item)->tp_name);
    }
    p.defer_error();
    data[i] = 0;
  }
  *out = Arg::of(IntArrayRef(data, static_cast<size_t>(items.n)));
  return 1;
}

int accept_tensor(const Param& param, PyObject* obj, Parsed& p, Arg* out) {
  if (overrides(obj)) {
    p.overloaded.add(obj);
    *out = Arg();
    if (is_tensor(obj)) *out = Arg::of_impl(impl_of(obj));
    return 1;
  }
  if (is_tensor(obj)) {
    *out = Arg::of_impl(impl_of(obj));
    return 1;
  }
  if ((param.flags & Param::kNumbers) == 0) return 0;
  Arg number;
  if (!number_argument(obj, &number)) return 0;
  *out = p.keep(wrapped_scalar(number.scalar()));
  return 1;
}

int accept_tensors(PyObject* obj, int position, Parsed& p, Arg* out) {
  Items items;
  if (!items_of(obj, &items)) return 0;
  auto** const data = static_cast<TensorImpl**>(p.allocate(sizeof(TensorImpl*) * static_cast<size_t>(items.n)));
  for (Py_ssize_t i = 0; i < items.n; ++i) {
    PyObject* const item = items.data[i];
    data[i] = nullptr;
    if (is_exact_tensor(item)) {
      data[i] = impl_of(item);
      if (data[i]->numel() >= kLargeNumel) p.large = true;
    } else if (overrides(item)) {
      p.overloaded.add(item);
      if (is_tensor(item)) data[i] = impl_of(item);
    } else if (is_tensor(item)) {
      data[i] = impl_of(item);
    } else {
      raise(PyExc_TypeError, "expected Tensor as element %zd in argument %d, but got %s", i, position,
            Py_TYPE(item)->tp_name);
    }
  }
  *out = Arg::list(Tag::TensorList, data, static_cast<size_t>(items.n));
  return 1;
}

int accept_doubles(PyObject* obj, Parsed& p, Arg* out) {
  Items items;
  if (!items_of(obj, &items)) return 0;
  auto* const data = static_cast<double*>(p.allocate(sizeof(double) * static_cast<size_t>(items.n)));
  for (Py_ssize_t i = 0; i < items.n; ++i) {
    Arg number;
    if (!number_argument(items.data[i], &number) || PyBool_Check(items.data[i])) {
      if (i == 0) return 0;
      PyErr_Format(PyExc_TypeError, "must be real number, not %s", Py_TYPE(items.data[i])->tp_name);
      p.defer_error();
    }
    data[i] = number.number();
  }
  *out = Arg::of(ArrayRef<double>(data, static_cast<size_t>(items.n)));
  return 1;
}

int accept_scalars(PyObject* obj, Parsed& p, Arg* out) {
  Items items;
  if (!items_of(obj, &items)) return 0;
  auto* const data = static_cast<Scalar*>(p.allocate(sizeof(Scalar) * static_cast<size_t>(items.n)));
  for (Py_ssize_t i = 0; i < items.n; ++i) {
    Arg number;
    if (!number_argument(items.data[i], &number)) return 0;
    new (&data[i]) Scalar(number.scalar());
  }
  *out = Arg::of(ArrayRef<Scalar>(data, static_cast<size_t>(items.n)));
  return 1;
}

int accept_bools(PyObject* obj, Parsed& p, Arg* out) {
  Items items;
  if (!items_of(obj, &items)) return 0;
  auto* const data = static_cast<bool*>(p.allocate(static_cast<size_t>(items.n)));
  for (Py_ssize_t i = 0; i < items.n; ++i) {
    if (!PyBool_Check(items.data[i])) return 0;
    data[i] = items.data[i] == Py_True;
  }
  *out = Arg::of(ArrayRef<bool>(data, static_cast<size_t>(items.n)));
  return 1;
}

int accept_text(PyObject* obj, Arg* out) {
  if (!PyUnicode_Check(obj)) return 0;
  Py_ssize_t n;
  const char* const text = PyUnicode_AsUTF8AndSize(obj, &n);
  if (!text) throw PythonError();
  *out = Arg::of(std::string_view(text, static_cast<size_t>(n)));
  return 1;
}

// A float parameter: any real number, a 0-dim tensor, but no bool.
int accept_double(PyObject* obj, Parsed& p, Arg* out) {
  if (PyFloat_CheckExact(obj)) {
    *out = Arg::of(PyFloat_AS_DOUBLE(obj));
    return 1;
  }
  Arg number;
  if (PyBool_Check(obj)) return 0;
  if (is_symbolic(obj)) refuse_symbolic();
  if (PyComplex_Check(obj) || !(number_argument(obj, &number) || number_from_tensor(obj, p, &number))) return 0;
  *out = Arg::of(number.tag == Tag::Bool ? static_cast<double>(number.i) : number.number());
  return 1;
}

int accept_int(PyObject* obj, Parsed& p, Arg* out) {
  if (!is_index(obj)) return 0;
  if (is_tensor(obj) && tensor_of(obj).requires_grad()) return 0;
  int64_t v = 0;
  if (!to_int(obj, &v)) p.defer_error();
  *out = Arg::of(v);
  return 1;
}

}  // namespace

bool number_argument(PyObject* obj, Arg* out) {
  if (PyFloat_Check(obj)) {  // numpy.float64 is one
    *out = Arg::of(PyFloat_AS_DOUBLE(obj));
    return true;
  }
  if (PyBool_Check(obj)) {
    *out = Arg::of(obj == Py_True);
    return true;
  }
  if (PyLong_Check(obj)) {
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(obj, &overflow);
    if (overflow == 0) {
      *out = Arg::of(static_cast<int64_t>(v));
      return true;
    }
    const unsigned long long u = overflow > 0 ? PyLong_AsUnsignedLongLong(obj) : 0;
    if (overflow < 0 || PyErr_Occurred()) {
      PyErr_SetString(PyExc_OverflowError, "int too big to convert");
      throw PythonError();
    }
    *out = Arg::of(Scalar(static_cast<uint64_t>(u)));
    return true;
  }
  if (PyComplex_Check(obj)) {
    *out = Arg::of(std::complex<double>(PyComplex_RealAsDouble(obj), PyComplex_ImagAsDouble(obj)));
    return true;
  }
  if (is_exact_tensor(obj) || obj == Py_None || PyUnicode_Check(obj) || PyTuple_Check(obj) || PyList_Check(obj))
    return false;
  if (is_symbolic(obj)) refuse_symbolic();
  if (is_numpy_bool(obj)) {
    *out = Arg::of(PyObject_IsTrue(obj) == 1);
    return true;
  }
  if (is_numpy_integer(obj)) {
    const PyRef index = PyRef::check(PyNumber_Index(obj));
    return number_argument(index.get(), out);
  }
  if (is_numpy_scalar(obj)) {
    const PyRef f = PyRef::adopt(PyNumber_Float(obj));
    if (!f) {
      PyErr_Clear();
      return false;
    }
    *out = Arg::of(PyFloat_AS_DOUBLE(f.get()));
    return true;
  }
  return false;
}

int accept(const Param& param, PyObject* obj, int position, Parsed& p, Arg* out, Py_ssize_t* failed) {
  switch (param.type) {
    case ParamType::Tensor:
      if (__builtin_expect(is_exact_tensor(obj), 1)) {
        *out = Arg::of_impl(impl_of(obj));
        if (impl_of(obj)->numel() >= kLargeNumel) p.large = true;
        return 1;
      }
      return accept_tensor(param, obj, p, out);
    case ParamType::Scalar:
      if (is_symbolic(obj)) refuse_symbolic();
      return number_argument(obj, out) || number_from_tensor(obj, p, out);
    case ParamType::Int: return accept_int(obj, p, out);
    case ParamType::Double: return accept_double(obj, p, out);
    case ParamType::Bool:
      if (!PyBool_Check(obj)) return 0;
      *out = Arg::of(obj == Py_True);
      return 1;
    case ParamType::TensorList:
    case ParamType::OptionalTensorList: return accept_tensors(obj, position, p, out);
    case ParamType::IntList: {
      Items items;
      if (items_of(obj, &items)) return ints_from_items(param, items, p, out, failed);
      if (param.size <= 0 || !is_index(obj)) return 0;
      int64_t v = 0;
      if (!to_int(obj, &v)) p.defer_error();
      auto* const data = static_cast<int64_t*>(p.allocate(sizeof(int64_t) * static_cast<size_t>(param.size)));
      for (int i = 0; i < param.size; ++i) data[i] = v;
      *out = Arg::of(IntArrayRef(data, static_cast<size_t>(param.size)));
      return 1;
    }
    case ParamType::DoubleList: return accept_doubles(obj, p, out);
    case ParamType::BoolList: return accept_bools(obj, p, out);
    case ParamType::ScalarList: return accept_scalars(obj, p, out);
    case ParamType::Generator:
      if (!is_generator(obj)) return 0;
      *out = Arg::of(generator_of(obj));
      return 1;
    case ParamType::Storage: {
      Storage storage;
      if (!storage_argument(obj, &storage)) return 0;
      *out = p.keep(std::move(storage));
      return 1;
    }
    case ParamType::ScalarType: {
      ScalarType t;
      if (!dtype_argument(obj, &t)) return 0;
      *out = Arg::of(static_cast<int64_t>(t));
      return 1;
    }
    case ParamType::Layout:
      if (!is_layout(obj)) return 0;
      *out = Arg::of(static_cast<int64_t>(enum_value(obj)));
      return 1;
    case ParamType::MemoryFormat:
      if (!is_memory_format(obj)) return 0;
      *out = Arg::of(static_cast<int64_t>(enum_value(obj)));
      return 1;
    case ParamType::QScheme:
      if (!is_qscheme(obj)) return 0;
      *out = Arg::of(static_cast<int64_t>(enum_value(obj)));
      return 1;
    case ParamType::Device:
      if (!is_device_argument(obj)) return 0;
      *out = Arg::of(device_argument(obj));
      if (const Device d = out->device(); !d.is_cpu() && !d.is_meta()) p.absent_device = d;
      return 1;
    case ParamType::String:
    case ParamType::Dimname: return accept_text(obj, out);
    case ParamType::Object: *out = Arg::list(Tag::Object, obj, 0); return 1;
    case ParamType::Stream:
      if (!is_stream(obj)) return 0;
      *out = Arg::of(*new (p.allocate(sizeof(Stream))) Stream(stream_of(obj)));
      return 1;
    case ParamType::DimnameList: return 0;
  }
  return 0;
}

int accept_varargs(const Param& param, const PyCall& call, Parsed& p, Arg* out) {
  Py_ssize_t failed = -1;
  return ints_from_items(param, {call.args, call.nargs}, p, out, &failed);
}

}  // namespace tn::py
