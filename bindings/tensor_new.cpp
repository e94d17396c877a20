// torch.tensor, as_tensor, from_numpy, Tensor.new_tensor, tolist, item: tensors from Python's data and back.
#include "bindings/tensor_new.h"

#include "bindings/arguments.h"
#include "bindings/calls.h"
#include "bindings/numpy.h"
#include "bindings/object_type.h"
#include "bindings/python_data.h"
#include "bindings/tensor.h"
#include "runtime/autograd_meta.h"
#include "runtime/copy.h"
#include "runtime/func/layers.h"
#include "runtime/refuse.h"

namespace tn::py {

namespace {

constexpr Formal kTensorFormals[] = {{"data", Kind::Any},
                                     {"dtype", Kind::DType, true, true, true, "None"},
                                     {"device", Kind::Device, true, true, true, "None"},
                                     {"pin_memory", Kind::Bool, true, true, false, "False"},
                                     {"requires_grad", Kind::Bool, true, true, false, "False"},
                                     {"names", Kind::Any, true, true, true, "None"}};

Tensor from_tensor(const Tensor& source, const NewTensor& how, std::optional<Device> device) {
  TN_CHECK(!how.pin_memory, "Can't pin tensor constructed from a variable");
  const Tensor t = how.copy_variables ? call_detach(source) : source;
  initialize_device(device.value_or(source.device()));
  return call_to(t, device.value_or(source.device()), how.infer ? source.dtype() : how.dtype, how.copy_variables);
}

Tensor from_storage(const Storage& s, IntView sizes, ScalarType dtype) {
  DimVector strides(sizes.size());
  contiguous_strides(sizes, strides.data());
  return tensor_over(s, dtype, sizes, strides);
}

Tensor converted(const Tensor& t, Device device, ScalarType dtype, bool copy) {
  if (!thread_has_modes() && device.is_cpu() && t.is_cpu()) return cast(t, dtype, copy);
  initialize_device(device);
  return call_to(t, device, dtype, copy);
}

// Shared by all; `device` is absent where the data's own decides.
Tensor make(PyObject* data, const NewTensor& how, std::optional<Device> device) {
  if (PyUnicode_Check(data) || PyBytes_Check(data))
    fail(ErrorKind::Type, "new(): invalid data type '", type_name(data), "'");
  if (is_tensor(data)) return from_tensor(tensor_of(data), how, device);
  const Device target = device.value_or(how.device);
  if (is_numpy_array(data)) {
    TN_CHECK(!how.pin_memory, "Can't pin tensor constructed from numpy");
    const Tensor t = lifted(tensor_from_numpy(data, true, !how.copy_numpy));
    return converted(t, target, how.infer ? t.dtype() : how.dtype, how.copy_numpy);
  }
  check_pin_memory(how.pin_memory);
  DimVector sizes;
  data_sizes(data, how.dtype, sizes);
  const ScalarType dtype = how.infer ? infer_dtype(data) : how.dtype;
  Storage storage;
  std::optional<ScalarType> storage_dtype;
  Tensor t;
  if (!PyList_CheckExact(data) && !PyTuple_CheckExact(data) && storage_argument(data, &storage, &storage_dtype)) {
    TN_CHECK(!storage_dtype || *storage_dtype == how.dtype || how.infer, "Expected a Storage of type ",
             scalar_type_name(how.dtype), " or an UntypedStorage, but got ",
             storage_dtype ? scalar_type_name(*storage_dtype) : "");
    t = from_storage(storage, sizes, storage_dtype.value_or(dtype));
  } else {
    if (target.is_meta()) return call_empty(sizes, dtype, target);
    t = empty(sizes, dtype);
    store_data(data, t);
  }
  if (!target.is_cpu()) {
    initialize_device(target);
    t = call_to(t, target, dtype, false);
  }
  return lifted(std::move(t));
}

PyObject* finish(Tensor t, bool requires_grad) {
  if (requires_grad) set_requires_grad(t, true);
  return wrap(std::move(t));
}

PyObject* torch_tensor(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&] {
    PyObject* taken = nullptr;
    if (mode_takes("tensor", args, nargs, kwnames, &taken)) return taken;
    Actuals given;
    if (nargs == 1 && kwnames == nullptr) {
      given.at[0] = args[0];
    } else {
      static constexpr Form kForms[] = {{kTensorFormals}};
      given = parse("tensor", kForms, Given{args, nargs, kwnames});
    }
    if (given[5]) refuse("torch.tensor", "names", "named tensors are not there");
    PyObject* data = given[0];
    if (is_tensor(data) &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                     "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
                     1) < 0)
      throw PythonError();
    const std::optional<ScalarType> dtype = given.dtype(1);
    const NewTensor how{
        .dtype = dtype.value_or(default_dtype()), .device = Device(), .infer = !dtype, .pin_memory = given.flag(3)};
    return finish(make(data, how, given.device(2)), given.flag(4));
  });
}

PyObject* torch_as_tensor(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&] {
    PyObject* taken = nullptr;
    if (mode_takes("as_tensor", args, nargs, kwnames, &taken)) return taken;
    static constexpr Formal kFormals[] = {{"data", Kind::Any},
                                          {"dtype", Kind::DType, true, false, true, "None"},
                                          {"device", Kind::Device, true, false, true, "None"}};
    static constexpr Form kForms[] = {{kFormals}};
    const Actuals given = parse("as_tensor", kForms, Given{args, nargs, kwnames});
    const std::optional<ScalarType> dtype = given.dtype(1);
    const NewTensor how{.dtype = dtype.value_or(default_dtype()),
                        .device = Device(),
                        .copy_variables = false,
                        .copy_numpy = false,
                        .infer = !dtype};
    return wrap(make(given[0], how, given.device(2)));
  });
}

PyObject* torch_from_numpy(PyObject*, PyObject* array) {
  return guarded([&] { return wrap(lifted(tensor_from_numpy(array, true))); });
}

PyObject* no_from_blob(PyObject*, PyObject*, PyObject*) {
  return guarded([]() -> PyObject* { refuse("torch._from_blob", "a raw pointer", "not built"); });
}

// ---- methods
// ----------------------------------------------------------------------------------------------------------------
PyObject* new_tensor(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&] {
    PyObject* taken = nullptr;
    if (needs_override(self) && method_override(self, "new_tensor", args, nargs, kwnames, &taken)) return taken;
    static constexpr Form kForms[] = {{kTensorFormals}};
    const Actuals given = parse("new_tensor", kForms, Given{args, nargs, kwnames});
    if (given[5]) refuse("Tensor.new_tensor", "names", "named tensors are not there");
    PyObject* data = given[0];
    if (is_tensor(data) &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                     "sourceTensor.detach().clone().requires_grad_(True), rather than tensor.new_tensor(sourceTensor).",
                     1) < 0)
      throw PythonError();
    const Tensor& like = tensor_of(self);
    const NewTensor how{.dtype = given.dtype(1).value_or(like.dtype()), .device = like.device(), .infer = false};
    return finish(make(data, how, given.device(2).value_or(like.device())), given.flag(4));
  });
}

PyObject* numpy_method(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&] {
    PyObject* taken = nullptr;
    if (needs_override(self) && method_override(self, "numpy", args, nargs, kwnames, &taken)) return taken;
    static constexpr Formal kFormals[] = {{"force", Kind::Bool, true, true, false, "False"}};
    static constexpr Form kForms[] = {{kFormals}};
    return tensor_to_numpy(tensor_of(self), parse("numpy", kForms, Given{args, nargs, kwnames}).flag(0));
  });
}

PyObject* new_method(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    PyObject* taken = nullptr;
    if (needs_override(self) &&
        method_override(self, "new", &PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args), nullptr, &taken))
      return taken;
    return wrap(legacy_new(tensor_of(self), args, kwargs));
  });
}

template <PyObject* (*F)(const Tensor&)>
PyObject* plain_method(PyObject* self, const char* name) {
  return guarded([&] {
    PyObject* taken = nullptr;
    if (needs_override(self) && method_override(self, name, nullptr, 0, nullptr, &taken)) return taken;
    return F(tensor_of(self));
  });
}
PyObject* tolist_method(PyObject* self, PyObject*) { return plain_method<tensor_tolist>(self, "tolist"); }
PyObject* item_method(PyObject* self, PyObject*) { return plain_method<tensor_item>(self, "item"); }

PyObject* storage_of_tensor(const Tensor& t) {
  if (t.layout() != Layout::Strided)
    fail(ErrorKind::NotImplemented, "Cannot access storage of ",
         t.layout() == Layout::Sparse ? "SparseTensorImpl" : "SparseCsrTensorImpl");
  return storage_object(t.storage());
}
PyObject* storage_method(PyObject* self, PyObject*) { return plain_method<storage_of_tensor>(self, "untyped_storage"); }

PyObject* list_of(ScalarType dtype, const char* data, IntView sizes, IntView strides) {
  if (sizes.empty()) return load_number(dtype, data);
  const int64_t n = sizes[0], step = strides[0] * static_cast<int64_t>(item_size(dtype));
  PyRef list = PyRef::check(PyList_New(n));
  for (int64_t i = 0; i < n; ++i) {
    PyObject* item =
        list_of(dtype, data + i * step, sizes.slice(1, sizes.size() - 1), strides.slice(1, strides.size() - 1));
    if (item == nullptr) throw PythonError();
    PyList_SET_ITEM(list.get(), i, item);
  }
  return list.release();
}

// The values as plain memory on the CPU, gone through the door if anything is special about them.
Tensor readable(const Tensor& self) {
  if (self.is_cpu() && self.layout() == Layout::Strided && !self->python_dispatch && !thread_has_modes())
    return resolve(self);
  return resolve(call_to(call_detach(self), Device(), self.dtype(), false));
}

}  // namespace

bool mode_takes(const char* function, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, PyObject** result) {
  if (!torch_function_mode_active()) return false;
  const PyRef module = PyRef::check(PyImport_ImportModule("torch._C"));
  const PyRef functions = PyRef::check(PyObject_GetAttrString(module.get(), "_VariableFunctions"));
  const PyRef f = PyRef::check(PyObject_GetAttrString(functions.get(), function));
  *result = call_torch_function(Overloaded(), f.get(), nullptr, args, nargs, kwnames, "torch", function);
  return true;
}

Tensor lifted(Tensor t) {
  if (!thread_has_modes()) return t;
  const ExcludeGuard below(KeySet(DispatchKey::ADInplaceOrView) | KeySet(DispatchKey::AutogradFunctionality));
  return call_lift_fresh(t);
}

void check_pin_memory(bool asked) {
  TN_CHECK(!asked,
           "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on "
           "this system.");
}

Tensor tensor_from_data(PyObject* data, const NewTensor& how) {
  return make(data, how, is_tensor(data) ? std::optional<Device>() : how.device);
}

PyObject* tensor_item(const Tensor& self) {
  TN_CHECK(self.numel() == 1, "a Tensor with ", self.numel(), " elements cannot be converted to Scalar");
  if (self.is_cpu() && self.layout() == Layout::Strided && !self->python_dispatch && !self->wrapper &&
      !thread_has_modes() && !self->is_conj() && !self->is_neg())
    return load_number(self.dtype(), self.data_ptr());
  static OpRow& op = required_op("aten::item", "");
  const Arg args[] = {Arg::of(self)};
  Value out;
  door::call_boxed(op, args, &out);
  return number_object(out.arg().scalar());
}

PyObject* number_object(const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Double: return PyFloat_FromDouble(s.to_double());
    case Scalar::Kind::Int: return PyLong_FromLongLong(s.to_int64());
    case Scalar::Kind::UInt: return PyLong_FromUnsignedLongLong(s.to_uint64());
    case Scalar::Kind::Bool: return PyBool_FromLong(s.to_bool());
    case Scalar::Kind::Complex: return PyComplex_FromDoubles(s.to_complex().real(), s.to_complex().imag());
  }
  Py_UNREACHABLE();
}

PyObject* tensor_tolist(const Tensor& self) {
  if (self->python_dispatch) {
    const PyRef object = PyRef::check(wrap(self));
    raise(PyExc_RuntimeError, ".tolist() is not supported for tensor subclasses, got %s",
          Py_TYPE(object.get())->tp_name);
  }
  return guarded([&] {
    if (func::holds_batch(self))
      fail(ErrorKind::Runtime,
           "vmap: It looks like you're calling .tolist() on a Tensor. We don't support vmap over it.");
    const Tensor t = readable(self);
    // An empty tensor has no memory, and its lists no numbers.
    return list_of(t.dtype(), t.numel() == 0 ? nullptr : static_cast<const char*>(t.data_ptr()), t.sizes(),
                   t.strides());
  });
}

PyMethodDef tensor_object_methods[] = {
    {"new", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(new_method)), METH_VARARGS | METH_KEYWORDS,
     nullptr},
    {"new_tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(new_tensor)),
     METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"numpy", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(numpy_method)), METH_FASTCALL | METH_KEYWORDS,
     nullptr},
    {"tolist", tolist_method, METH_NOARGS, nullptr},
    {"item", item_method, METH_NOARGS, nullptr},
    {"untyped_storage", storage_method, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef tensor_object_functions[] = {
    {"tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(torch_tensor)),
     METH_FASTCALL | METH_KEYWORDS | METH_STATIC, nullptr},
    {"as_tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(torch_as_tensor)),
     METH_FASTCALL | METH_KEYWORDS | METH_STATIC, nullptr},
    {"asarray", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(torch_asarray)),
     METH_FASTCALL | METH_KEYWORDS | METH_STATIC, nullptr},
    {"frombuffer", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(torch_frombuffer)),
     METH_FASTCALL | METH_KEYWORDS | METH_STATIC, nullptr},
    {"from_numpy", torch_from_numpy, METH_O | METH_STATIC, nullptr},
    {"_from_blob", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(no_from_blob)),
     METH_VARARGS | METH_KEYWORDS | METH_STATIC, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace tn::py
