// numpy without its headers: arrays are read through __array_struct__ and made by numpy.asarray over an object that has
// one, so that the build needs no numpy and `import torch` works without it.
#include <bit>
#include <string>

#include "bindings/calls.h"
#include "bindings/numpy.h"
#include "bindings/object_type.h"
#include "bindings/tensor.h"
#include "runtime/copy.h"
#include "runtime/shape.h"

namespace tn::py {

namespace {

// The struct in the capsule of __array_struct__, as numpy documents it.
struct ArrayInterface {
  int two;
  int num_dims;
  char kind;
  int item_size;
  int flags;
  Py_intptr_t* shape;
  Py_intptr_t* strides;
  void* data;
  PyObject* description;

  static constexpr int kContiguous = 0x1;
  static constexpr int kAligned = 0x100;
  static constexpr int kNotSwapped = 0x200;
  static constexpr int kWriteable = 0x400;
};

struct NumpyTypes {
  PyTypeObject* array = nullptr;
  PyTypeObject* scalar = nullptr;
  PyTypeObject* integer = nullptr;
  PyTypeObject* boolean = nullptr;
  PyObject* as_array = nullptr;
};

// Null until someone imports numpy: before that no object can be numpy's.
const NumpyTypes* numpy_types() {
  static NumpyTypes types;
  if (types.as_array) return &types;
  PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");
  if (module == nullptr || !PyModule_Check(module)) return nullptr;
  const auto type = [&](const char* name) {
    return reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(module, name));
  };
  NumpyTypes found{type("ndarray"), type("generic"), type("integer"), type("bool_"),
                   PyObject_GetAttrString(module, "asarray")};
  if (!found.array || !found.scalar || !found.integer || !found.boolean || !found.as_array) {
    PyErr_Clear();  // numpy is being imported just now
    return nullptr;
  }
  types = found;
  return &types;
}

// Python's own types are no numpy types, and asking them is what happens most.
bool is_builtin_number(PyObject* o) {
  return PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o) || PyComplex_CheckExact(o) ||
         PyUnicode_CheckExact(o) || PyList_CheckExact(o) || PyTuple_CheckExact(o) || o == Py_None;
}
bool is_a(PyObject* o, PyTypeObject* NumpyTypes::* which) {
  if (is_builtin_number(o)) return false;
  const NumpyTypes* types = numpy_types();
  return types && PyObject_TypeCheck(o, types->*which);
}

// Undefined for kinds that tensors don't have.
ScalarType dtype_of(char kind, int size) {
  switch (kind) {
    case 'f':
      return size == 4   ? ScalarType::Float
             : size == 8 ? ScalarType::Double
             : size == 2 ? ScalarType::Half
                         : ScalarType::Undefined;
    case 'c':
      return size == 8 ? ScalarType::ComplexFloat : size == 16 ? ScalarType::ComplexDouble : ScalarType::Undefined;
    case 'b': return ScalarType::Bool;
    case 'i':
      return size == 8   ? ScalarType::Long
             : size == 4 ? ScalarType::Int
             : size == 2 ? ScalarType::Short
             : size == 1 ? ScalarType::Char
                         : ScalarType::Undefined;
    case 'u':
      return size == 8   ? ScalarType::UInt64
             : size == 4 ? ScalarType::UInt32
             : size == 2 ? ScalarType::UInt16
             : size == 1 ? ScalarType::Byte
                         : ScalarType::Undefined;
    default: return ScalarType::Undefined;
  }
}

[[noreturn]] void refuse_kind(PyObject* array) {
  const PyRef dtype = PyRef::check(PyObject_GetAttrString(array, "dtype"));
  const PyRef type = PyRef::check(PyObject_GetAttrString(dtype.get(), "type"));
  raise(PyExc_TypeError,
        "can't convert np.ndarray of type %s. The only supported types are: float64, float32, float16, complex64, "
        "complex128, int64, "
        "int32, int16, int8, uint64, uint32, uint16, uint8, and bool.",
        PyType_Check(type.get()) ? reinterpret_cast<PyTypeObject*>(type.get())->tp_name : "?");
}

// Holds the capsule, which owns the struct.
struct Reading {
  explicit Reading(PyObject* array) : capsule(PyRef::check(PyObject_GetAttrString(array, "__array_struct__"))) {
    interface = static_cast<ArrayInterface*>(PyCapsule_GetPointer(capsule.get(), nullptr));
    if (interface == nullptr) throw PythonError();
    // datetime64 and structured types have fitting sizes but other kinds, and answer Undefined.
    dtype = dtype_of(interface->kind, interface->item_size);
    if (dtype == ScalarType::Undefined) refuse_kind(array);
  }
  PyRef capsule;
  ArrayInterface* interface;
  ScalarType dtype;
};

void warn_readonly() {
  static bool warned = false;
  if (warned) return;
  warned = true;
  if (PyErr_WarnEx(
          PyExc_UserWarning,
          "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means "
          "writing to this "
          "tensor will result in undefined behavior. You may want to copy the array to protect its data or make it "
          "writable "
          "before converting it to a tensor. This type of warning will be suppressed for the rest of this program.",
          1) < 0)
    throw PythonError();
}

void release_object(void* object) {
  const GilAcquire gil;
  Py_DECREF(static_cast<PyObject*>(object));
}

// ---- exporting
// ------------------------------------------------------------------------------------------------------------ What
// numpy.asarray is given; the array keeps it as its base, and it keeps the tensor.
struct ArraySource {
  PyObject_HEAD TensorImpl* tensor;
};

bool numpy_kind(ScalarType t, char* kind) {
  switch (t) {
    case ScalarType::Half:
    case ScalarType::Float:
    case ScalarType::Double: *kind = 'f'; return true;
    case ScalarType::ComplexFloat:
    case ScalarType::ComplexDouble: *kind = 'c'; return true;
    case ScalarType::Bool: *kind = 'b'; return true;
    case ScalarType::Char:
    case ScalarType::Short:
    case ScalarType::Int:
    case ScalarType::Long: *kind = 'i'; return true;
    case ScalarType::Byte:
    case ScalarType::UInt16:
    case ScalarType::UInt32:
    case ScalarType::UInt64: *kind = 'u'; return true;
    default: return false;
  }
}

struct SourceStruct {
  ArrayInterface interface;
  Py_intptr_t shape[kMaxDims];
  Py_intptr_t strides[kMaxDims];
};
void free_struct(PyObject* capsule) { delete static_cast<SourceStruct*>(PyCapsule_GetPointer(capsule, nullptr)); }

PyObject* source_struct(PyObject* self, void*) {
  const TensorImpl& t = *reinterpret_cast<ArraySource*>(self)->tensor;
  auto* s = new SourceStruct{};
  s->interface = {2,
                  static_cast<int>(t.dim()),
                  0,
                  static_cast<int>(item_size(t.dtype())),
                  ArrayInterface::kAligned | ArrayInterface::kNotSwapped | ArrayInterface::kWriteable,
                  s->shape,
                  s->strides,
                  t.raw_data(),
                  nullptr};
  numpy_kind(t.dtype(), &s->interface.kind);
  for (int64_t d = 0; d < t.dim(); ++d) {
    s->shape[d] = t.size(d);
    s->strides[d] = t.stride(d) * s->interface.item_size;
  }
  // numpy wants an address even for arrays without elements.
  static char nothing[16];
  if (s->interface.data == nullptr) s->interface.data = nothing;
  PyObject* capsule = PyCapsule_New(s, nullptr, free_struct);
  if (capsule == nullptr) delete s;
  return capsule;
}
void dealloc_source(PyObject* self) {
  Ref<TensorImpl>::adopt(reinterpret_cast<ArraySource*>(self)->tensor);
  Py_TYPE(self)->tp_free(self);
}
PyGetSetDef source_properties[] = {{"__array_struct__", source_struct, nullptr, nullptr, nullptr},
                                   {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyTypeObject source_type{};

bool ready_source_type() {
  if (source_type.tp_name) return true;
  source_type.tp_dealloc = dealloc_source;
  source_type.tp_getset = source_properties;
  return ready_type(source_type, "torch._C._ArraySource", sizeof(ArraySource),
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION);
}

void check_exportable(const Tensor& self) {
  if (!self.is_cpu())
    fail(ErrorKind::Type, "can't convert ", self.device().str(),
         " device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.");
  if (self.layout() != Layout::Strided)
    fail(ErrorKind::Type, "can't convert ", layout_name(self.layout()),
         " layout tensor to numpy. Use Tensor.to_dense() first.");
  TN_CHECK(!(self.requires_grad() && grad_mode()),
           "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
  TN_CHECK(!self->is_conj(),
           "Can't call numpy() on Tensor that has conjugate bit set. Use tensor.resolve_conj().numpy() instead.");
  TN_CHECK(!self->is_neg(),
           "Can't call numpy() on Tensor that has negative bit set. Use tensor.resolve_neg().numpy() instead.");
  TN_CHECK(!self->python_dispatch, ".numpy() is not supported for tensor subclasses.");
}

}  // namespace

bool is_numpy_array(PyObject* o) { return is_a(o, &NumpyTypes::array); }
bool is_numpy_scalar(PyObject* o) { return is_a(o, &NumpyTypes::scalar); }
bool is_numpy_integer(PyObject* o) { return is_a(o, &NumpyTypes::integer); }
bool is_numpy_bool(PyObject* o) { return is_a(o, &NumpyTypes::boolean); }

ScalarType numpy_dtype(PyObject* array_or_scalar) { return Reading(array_or_scalar).dtype; }

Tensor tensor_over(Storage storage, ScalarType dtype, IntView sizes, IntView strides) {
  const Device device = storage->device();
  TensorImpl* t = TensorImpl::create();
  Tensor result = Tensor::adopt(t);
  t->set_storage(std::move(storage));
  t->set_dtype(dtype);
  t->set_device(device);
  t->set_keys(keys_of_new(device));
  t->set_geometry(sizes, strides, 0);
  return result;
}

Tensor tensor_from_numpy(PyObject* array, bool share, bool warn_if_readonly) {
  if (!is_numpy_array(array)) raise(PyExc_TypeError, "expected np.ndarray (got %s)", type_name(array));
  const Reading r(array);
  const ArrayInterface& a = *r.interface;
  if (!(a.flags & ArrayInterface::kWriteable) && warn_if_readonly) warn_readonly();
  DimVector sizes, strides;
  for (int d = 0; d < a.num_dims; ++d) {
    const Py_intptr_t step = a.strides[d];
    if (step < 0)
      fail(ErrorKind::Value,
           "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
           "currently supported. (You "
           "can probably work around this by making a copy of your array  with array.copy().) ");
    if (step % a.item_size != 0)
      fail(ErrorKind::Value,
           "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the "
           "memory.");
    sizes.push_back(a.shape[d]);
    strides.push_back(step / a.item_size);
  }
  if (!(a.flags & ArrayInterface::kNotSwapped) && a.item_size > 1)
    fail(ErrorKind::Value,
         "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
         "currently not supported.");
  const size_t nbytes = storage_bytes(sizes, strides, 0, static_cast<size_t>(a.item_size));
  Tensor t = tensor_over(Storage::borrow(a.data, nbytes, release_object, Py_NewRef(array)), r.dtype, sizes, strides);
  if (!share) return clone(t, MemoryFormat::Contiguous);
  return t;
}

PyObject* tensor_to_numpy(const Tensor& self, bool force) {
  return guarded([&] {
    Tensor t = self;
    if (force) {
      t = call_detach(self);
      if (!t.is_cpu()) t = call_to(t, Device(), t.dtype(), false);
      t = resolve(t);
    } else {
      check_exportable(self);
    }
    char kind;
    if (!numpy_kind(t.dtype(), &kind))
      fail(ErrorKind::Type, "Got unsupported ScalarType ", scalar_type_name(t.dtype()));
    const NumpyTypes* numpy = numpy_types();
    if (numpy == nullptr) {
      const PyRef module = PyRef::adopt(PyImport_ImportModule("numpy"));
      if (!module) PyErr_Clear();
      numpy = numpy_types();
    }
    TN_CHECK(numpy != nullptr, "Numpy is not available");
    if (!ready_source_type()) throw PythonError();
    // The array sees this memory for as long as it lives.
    if (t.storage()) t.storage()->set_resizable(false);
    const PyRef source = PyRef::check(source_type.tp_alloc(&source_type, 0));
    reinterpret_cast<ArraySource*>(source.get())->tensor = t.release();
    return PyObject_CallOneArg(numpy->as_array, source.get());
  });
}

}  // namespace tn::py
