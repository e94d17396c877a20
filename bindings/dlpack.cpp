// DLPack: capsules out and in, with and without a version, and the exchange table for C code.
#include <type_traits>
#include <memory>
#include <utility>

#include "bindings/arguments.h"
#include "bindings/calls.h"
#include "bindings/dlpack_abi.h"
#include "bindings/numpy.h"
#include "bindings/object_type.h"
#include "bindings/tensor.h"
#include "runtime/copy.h"
#include "runtime/shape.h"

namespace tn::py {

namespace {

template <class M>
constexpr const char* kCapsule = std::is_same_v<M, dlpack::Managed> ? "dltensor" : "dltensor_versioned";
template <class M>
constexpr const char* kUsed = std::is_same_v<M, dlpack::Managed> ? "used_dltensor" : "used_dltensor_versioned";

dlpack::DataType type_out(ScalarType t) {
  const auto bits = static_cast<uint8_t>(item_size(t) * 8);
  if (t == ScalarType::Bool) return {dlpack::kBool, 8, 1};
  if (t == ScalarType::BFloat16) return {dlpack::kBFloat, 16, 1};
  if (is_complex(t)) return {dlpack::kComplex, bits, 1};
  if (t == ScalarType::Half || t == ScalarType::Float || t == ScalarType::Double) return {dlpack::kFloat, bits, 1};
  if (is_integral(t, false)) return {is_signed(t) ? dlpack::kInt : dlpack::kUInt, bits, 1};
  // BufferError is what the protocol wants here.
  raise(PyExc_BufferError, "%s types are not supported by dlpack", scalar_type_name(t).data());
}
ScalarType type_in(dlpack::DataType t) {
  TN_CHECK(t.lanes == 1, "ATen does not support lanes != 1");
  for (int i = 0; i < kNumScalarTypes; ++i) {
    const auto s = static_cast<ScalarType>(i);
    if (!is_integral(s, true) && !is_complex(s) && !is_reduced_float(s) && s != ScalarType::Float &&
        s != ScalarType::Double)
      continue;
    const dlpack::DataType d = type_out(s);
    if (d.code == t.code && d.bits == t.bits) return s;
  }
  fail(ErrorKind::Runtime, "Unsupported DLPack type: code ", static_cast<int>(t.code), ", bits ",
       static_cast<int>(t.bits));
}

// The exported struct, what it points to, and the tensor that it keeps.
template <class M>
struct Export {
  M managed{};
  DimVector sizes, strides;
  tn::Tensor tensor;
};

void describe(const tn::Tensor& t, int64_t* sizes, int64_t* strides, dlpack::Tensor& out) {
  out.data = t->raw_data();
  out.device = {dlpack::kCpu, 0};
  out.ndim = static_cast<int32_t>(t.dim());
  out.dtype = type_out(t.dtype());
  out.shape = sizes;
  out.strides = strides;
  out.byte_offset = 0;
}

template <class M>
M* export_tensor(const tn::Tensor& t, bool copied) {
  TN_CHECK(t.is_cpu() && t.layout() == Layout::Strided, "Cannot pack tensors on ", t.device().str());
  auto e = std::make_unique<Export<M>>();
  e->tensor = t;
  e->sizes = DimVector(t.sizes());
  e->strides = DimVector(t.strides());
  // A dimension of size one may have any stride; consumers expect a plain one.
  for (size_t d = 0; d < e->sizes.size(); ++d)
    if (e->sizes[d] < 2) e->strides[d] = 1;
  describe(t, e->sizes.data(), e->strides.data(), e->managed.tensor);
  e->managed.context = e.get();
  e->managed.deleter = [](M* m) { delete static_cast<Export<M>*>(m->context); };
  if constexpr (std::is_same_v<M, dlpack::ManagedVersioned>) {
    e->managed.version = {1, 1};
    e->managed.flags = copied ? M::kCopied : 0;
  }
  return &e.release()->managed;
}

template <class M>
void drop_capsule(PyObject* capsule) {
  // A used one belongs to its consumer.
  if (!PyCapsule_IsValid(capsule, kCapsule<M>)) return;
  auto* m = static_cast<M*>(PyCapsule_GetPointer(capsule, kCapsule<M>));
  if (m && m->deleter) m->deleter(m);
}

template <class M>
PyObject* to_capsule(const char* function, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static constexpr Formal kFormals[] = {{"data", Kind::Tensor},
                                          {"dl_device", Kind::Any, true, true, true, "None"},
                                          {"copy", Kind::Bool, true, true, true, "None"}};
    static constexpr Form kForms[] = {{kFormals}};
    const Actuals given = parse(function, kForms, args, kwargs);
    tn::Tensor t = tensor_of(given[0]);
    if (given[1]) {
      int type, id;
      if (!PyTuple_Check(given[1]) || !PyArg_ParseTuple(given[1], "ii", &type, &id)) throw PythonError();
      TN_CHECK(type == dlpack::kCpu, "Unsupported DLPack device: ", type);
    }
    const bool copy = given.flag(2);
    if (copy) t = clone(t);
    M* m = export_tensor<M>(t, copy);
    PyObject* capsule = PyCapsule_New(m, kCapsule<M>, drop_capsule<M>);
    if (capsule == nullptr) m->deleter(m);
    return capsule;
  });
}
PyObject* to_dlpack(PyObject*, PyObject* args, PyObject* kwargs) {
  return to_capsule<dlpack::Managed>("_to_dlpack", args, kwargs);
}
PyObject* to_dlpack_versioned(PyObject*, PyObject* args, PyObject* kwargs) {
  return to_capsule<dlpack::ManagedVersioned>("_to_dlpack_versioned", args, kwargs);
}

// Takes over the struct: its deleter runs when the storage goes.
template <class M>
tn::Tensor import_tensor(M* m) {
  const dlpack::Tensor& d = m->tensor;
  TN_CHECK(d.device.type == dlpack::kCpu, "Unsupported device_type: ", d.device.type);
  const ScalarType dtype = type_in(d.dtype);
  DimVector sizes(IntView(d.shape, static_cast<size_t>(d.ndim)));
  DimVector strides(sizes.size());
  if (d.strides) strides = DimVector(IntView(d.strides, sizes.size()));
  else contiguous_strides(sizes, strides.data());
  const auto release = [](void* context) {
    const GilAcquire gil;
    auto* owned = static_cast<M*>(context);
    if (owned->deleter) owned->deleter(owned);
  };
  char* data = static_cast<char*>(d.data) + (d.data ? d.byte_offset : 0);
  return tensor_over(Storage::borrow(data, storage_bytes(sizes, strides, 0, item_size(dtype)), release, m), dtype,
                     sizes, strides);
}
template <class M>
tn::Tensor take_capsule(PyObject* capsule) {
  auto* m = static_cast<M*>(PyCapsule_GetPointer(capsule, kCapsule<M>));
  if (m == nullptr) throw PythonError();
  if constexpr (std::is_same_v<M, dlpack::ManagedVersioned>)
    TN_CHECK(m->version.major <= 1, "Unsupported DLPack version: ", m->version.major, '.', m->version.minor);
  tn::Tensor t = import_tensor(m);
  if (PyCapsule_SetName(capsule, kUsed<M>) < 0) throw PythonError();
  return t;
}
PyObject* from_dlpack(PyObject*, PyObject* capsule) {
  return guarded([&] {
    if (PyCapsule_IsValid(capsule, kCapsule<dlpack::ManagedVersioned>))
      return wrap(take_capsule<dlpack::ManagedVersioned>(capsule));
    if (PyCapsule_IsValid(capsule, kCapsule<dlpack::Managed>)) return wrap(take_capsule<dlpack::Managed>(capsule));
    fail(ErrorKind::Runtime,
         "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might "
         "have already "
         "constructed a tensor from it once.");
  });
}

PyObject* device_to_dlpack(PyObject*, PyObject* o) {
  return guarded([&] {
    const tn::Device d = device_argument(o);
    TN_CHECK(d.is_cpu(), "Cannot pack tensors on ", d.str());
    return Py_BuildValue("(ii)", dlpack::kCpu, 0);
  });
}

// ---- the exchange table
// -----------------------------------------------------------------------------------------------------
int api_from_object(void* object, dlpack::ManagedVersioned** out) {
  return guarded([&] {
    auto* o = static_cast<PyObject*>(object);
    if (!is_tensor(o)) raise(PyExc_TypeError, "expected a Tensor, got %s", type_name(o));
    *out = export_tensor<dlpack::ManagedVersioned>(tensor_of(o), false);
    return 0;
  });
}
int api_to_object(dlpack::ManagedVersioned* m, void** out) {
  return guarded([&] {
    PyObject* o = wrap(import_tensor(m));
    *out = o;
    return o ? 0 : -1;
  });
}
int api_view_object(void* object, dlpack::Tensor* out) {
  return guarded([&] {
    const tn::Tensor& t = tensor_of(static_cast<PyObject*>(object));
    TN_CHECK(t.is_cpu() && t.layout() == Layout::Strided, "Cannot pack tensors on ", t.device().str());
    // Borrowed: valid while the caller holds the object and nobody changes its shape.
    describe(t, const_cast<int64_t*>(t.sizes().data()), const_cast<int64_t*>(t.strides().data()), *out);
    return 0;
  });
}
int api_allocate(dlpack::Tensor* prototype, dlpack::ManagedVersioned** out, void* context,
                 void (*set_error)(void*, const char*, const char*)) {
  try {
    TN_CHECK(prototype->device.type == dlpack::kCpu, "Unsupported device_type: ", prototype->device.type);
    const tn::Tensor t =
        empty(IntView(prototype->shape, static_cast<size_t>(prototype->ndim)), type_in(prototype->dtype));
    *out = export_tensor<dlpack::ManagedVersioned>(t, false);
    return 0;
  } catch (const std::exception& e) {
    set_error(context, "MemoryError", e.what());
    return -1;
  }
}
int api_current_stream(int32_t, int32_t, void** out) {
  *out = nullptr;
  return 0;
}
constinit dlpack::ExchangeApi exchange_api = {{1, 3},        nullptr,         api_allocate,      api_from_object,
                                              api_to_object, api_view_object, api_current_stream};
PyObject* get_exchange_api(PyObject*, PyObject*) {
  return PyCapsule_New(&exchange_api, "dlpack_exchange_api", nullptr);
}

PyMethodDef functions[] = {
    {"_to_dlpack", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(to_dlpack)), METH_VARARGS | METH_KEYWORDS,
     nullptr},
    {"_to_dlpack_versioned", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(to_dlpack_versioned)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_from_dlpack", from_dlpack, METH_O, nullptr},
    {"_torchDeviceToDLDevice", device_to_dlpack, METH_O, nullptr},
    {"_dlpack_exchange_api", get_exchange_api, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool bind_dlpack(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace tn::py
