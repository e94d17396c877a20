// Objects of given classes: as_subclass, _make_subclass, _make_wrapper_subclass.
#include <cstring>
#include <utility>

#include "bindings/hand_method.h"
#include "bindings/objects.h"
#include "bindings/library_internal.h"
#include "bindings/tensor_parts.h"
#include "bindings/torch_dispatch.h"
#include "bindings/torch_function.h"
#include "runtime/autograd_meta.h"
#include "runtime/refuse.h"

namespace tn::py {

// A class that overrides __torch_dispatch__ makes its tensors stop at the Python key.
void mark_dispatch(PyTypeObject* cls, TensorImpl& impl) {
  static PyObject* const name = PyUnicode_InternFromString("__torch_dispatch__");
  PyObject* const attribute = _PyType_Lookup(cls, name);
  if (!attribute || attribute == disabled_torch_dispatch_impl) return;
  impl.python_dispatch = true;
  impl.set_key(DispatchKey::Python, true);
  impl.set_key(DispatchKey::PythonTLSSnapshot, true);
}

PyObject* wrap_fresh(PyTypeObject* cls, Tensor t) {
  if (auto* const made = static_cast<PyObject*>(t->pyobj); made && !is_exact_tensor(made)) {
    // A handler of __torch_dispatch__ made the object already.
    if (PyType_IsSubtype(Py_TYPE(made), cls)) return wrap(std::move(t));
    fail(ErrorKind::Runtime, "Creating a new Tensor subclass ", cls->tp_name,
         " but the raw Tensor object is already associated to a python object of type ", Py_TYPE(made)->tp_name,
         " which is not a subclass of the requested type");
  }
  if (t->pyobj) t = alias_with_geometry(t, t.sizes(), t.strides(), t.storage_offset());
  mark_dispatch(cls, *t.impl());
  return wrap_as(cls, std::move(t));
}

namespace {

using T = ParamType;
constexpr uint8_t kNone = Param::kAllowNone | Param::kHasDefault;
constexpr uint8_t kKeyword = Param::kKeywordOnly;

PyObject* object_of(const Arg& a) { return static_cast<PyObject*>(const_cast<void*>(a.p)); }

PyTypeObject* class_argument(PyObject* cls) {
  if (!PyType_Check(cls)) raise(PyExc_TypeError, "cls must be a type (got %s)", Py_TYPE(cls)->tp_name);
  auto* const type = reinterpret_cast<PyTypeObject*>(cls);
  if (!PyType_IsSubtype(type, &tensor_base_type))
    raise(PyExc_TypeError,
          "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your "
          "class inherits from "
          "Tensor.");
  return type;
}

Tensor alias_of(const Tensor& t) {
  static OpRow& op = required_op("aten::alias", "");
  const Arg arg = Arg::of(t);
  return call_tensor(op, {&arg, 1});
}

constexpr Arg kSubclassDefaults[] = {Arg(), Arg(), Arg::of(false), Arg(), Arg::of(false), Arg::of(false), Arg()};
constexpr Param kAsParams[] = {{"cls", T::Object, 0, 1, 0}};
constexpr Signature kAsSignature[] = {form("(object cls)", kAsParams, 1, 1, kSubclassDefaults, 2)};
constexpr Function kAs{"as_subclass", kAsSignature, 1, true, -1, "torch.Tensor"};
PyObject* as_subclass(PyObject* self, Parsed& p, int) {
  PyTypeObject* const cls = class_argument(object_of(p.arg(1)));
  return wrap_fresh(cls, alias_of(tensor_of(self)));
}

constexpr Param kMakeParams[] = {{"cls", T::Object, 0, 0, 0},
                                 {"data", T::Tensor, 0, 1, 0},
                                 {"require_grad", T::Bool, Param::kHasDefault, 2, 0},
                                 {"dispatch_sizes_strides_policy", T::String, kNone | kKeyword, 3, 0},
                                 {"dispatch_device", T::Bool, Param::kHasDefault | kKeyword, 4, 0},
                                 {"dispatch_layout", T::Bool, Param::kHasDefault | kKeyword, 5, 0},
                                 {"device_for_backend_keys", T::Device, kNone | kKeyword, 6, 0}};
constexpr Signature kMakeSignature[] = {
    form("(object cls, Tensor data, bool require_grad = False, *, str dispatch_sizes_strides_policy = None, bool "
         "dispatch_device = False, "
         "bool dispatch_layout = False, torch.device device_for_backend_keys = None)",
         kMakeParams, 7, 3, kSubclassDefaults, 7)};
constexpr Function kMake{"_make_subclass", kMakeSignature, 1, false, -1, "torch"};

void set_custom(TensorImpl& impl, const Arg& policy, bool device, bool layout) {
  uint8_t custom = 0;
  if (!policy.is_none()) {
    if (policy.string() == "strides") custom |= 1;
    else if (policy.string() == "sizes") custom |= 3;
    else fail(ErrorKind::Runtime, "Unknown sizes_strides_policy: ", policy.string());
  }
  impl.python_custom = static_cast<uint8_t>(custom | (device ? 4 : 0) | (layout ? 8 : 0));
}

Tensor detach_without_modes(const Tensor& t) {
  static OpRow& op = required_op("aten::detach", "");
  const StashedDispatchModes stashed;
  const Arg arg = Arg::of(t);
  return call_tensor(op, {&arg, 1});
}

PyObject* make_subclass(PyObject*, Parsed& p, int) {
  PyTypeObject* const cls = class_argument(object_of(p.arg(0)));
  const Tensor& data = p.arg(1).tensor();
  // Detached: shares memory and the version's count, but no history. A class that sees calls is told of it, modes
  // are not.
  Tensor t = data->python_dispatch ? detach_without_modes(data)
                                   : alias_with_geometry(data, data.sizes(), data.strides(), data.storage_offset());
  t->set_requires_grad_bit(false);
  set_custom(*t.impl(), p.arg(3), p.arg(4).i != 0, p.arg(5).i != 0);
  const PyRef made = PyRef::adopt(wrap_fresh(cls, std::move(t)));
  if (p.arg(2).i) set_requires_grad(tensor_of(made.get()), true);
  return PyRef(made).release();
}

enum WrapperArg {
  kCls,
  kSizes,
  kStrides,
  kOffset,
  kFormat,
  kDtype,
  kLayout,
  kDevice,
  kPin,
  kNeedsGrad,
  kPolicy,
  kDispatchDevice,
  kDispatchLayout,
  kExtraKeys,
  kStorageSize,
  kNumWrapperArgs
};
constexpr Arg kWrapperDefaults[] = {Arg(),
                                    Arg(),
                                    Arg(),
                                    Arg(),
                                    Arg(),
                                    Arg(),
                                    Arg::of(static_cast<int64_t>(Layout::Strided)),
                                    Arg(),
                                    Arg::of(false),
                                    Arg::of(false),
                                    Arg(),
                                    Arg::of(false),
                                    Arg::of(false),
                                    Arg(),
                                    Arg()};
constexpr Param kWrapperParams[] = {{"cls", T::Object, 0, kCls, 0},
                                    {"size", T::IntList, 0, kSizes, 0},
                                    {"strides", T::IntList, kNone, kStrides, 0},
                                    {"storage_offset", T::Int, kNone, kOffset, 0},
                                    {"memory_format", T::MemoryFormat, kNone, kFormat, 0},
                                    {"dtype", T::ScalarType, kNone, kDtype, 0},
                                    {"layout", T::Layout, Param::kHasDefault, kLayout, 0},
                                    {"device", T::Device, kNone, kDevice, 0},
                                    {"pin_memory", T::Bool, Param::kHasDefault, kPin, 0},
                                    {"requires_grad", T::Bool, Param::kHasDefault, kNeedsGrad, 0},
                                    {"dispatch_sizes_strides_policy", T::String, kNone, kPolicy, 0},
                                    {"dispatch_device", T::Bool, Param::kHasDefault, kDispatchDevice, 0},
                                    {"dispatch_layout", T::Bool, Param::kHasDefault, kDispatchLayout, 0},
                                    {"_extra_dispatch_keys", T::Object, kNone, kExtraKeys, 0},
                                    {"storage_size", T::Int, kNone, kStorageSize, 0}};
constexpr Signature kWrapperSignature[] = {
    form("(object cls, tuple of ints size, *, tuple of ints strides = None, int storage_offset = None, "
         "torch.memory_format memory_format = "
         "None, torch.dtype dtype = None, torch.layout layout = torch.strided, torch.device device = None, bool "
         "pin_memory = False, bool "
         "requires_grad = False, str dispatch_sizes_strides_policy = None, bool dispatch_device = False, bool "
         "dispatch_layout = False, "
         "DispatchKeySet _extra_dispatch_keys = None, int storage_size = None)",
         kWrapperParams, kNumWrapperArgs, kNumWrapperArgs, kWrapperDefaults, kNumWrapperArgs)};
constexpr Function kWrapper{"_make_wrapper_subclass", kWrapperSignature, 1, false, -1, "torch"};

PyObject* make_wrapper(PyObject*, Parsed& p, int) {
  PyObject* const cls = object_of(p.arg(kCls));
  if (!PyType_Check(cls)) raise(PyExc_TypeError, "cls must be a type (got %s)", Py_TYPE(cls)->tp_name);
  auto* const type = reinterpret_cast<PyTypeObject*>(cls);
  const PyRef dispatch = PyRef::check(PyUnicode_InternFromString("__torch_dispatch__"));
  PyObject* const handler = _PyType_Lookup(type, dispatch.get());
  if (!handler || handler == disabled_torch_dispatch_impl) {
    const PyRef name = PyRef::check(PyObject_GetAttrString(cls, "__name__"));
    raise(PyExc_TypeError, "%U must define __torch_dispatch__", name.get());
  }
  class_argument(cls);
  if (static_cast<Layout>(p.arg(kLayout).i) != Layout::Strided)
    refuse("_make_wrapper_subclass", "a layout other than strided", "only strided headers");
  const ScalarType dtype = p.arg(kDtype).is_none() ? default_dtype() : static_cast<ScalarType>(p.arg(kDtype).i);
  const Device device = p.arg(kDevice).is_none() ? Device() : p.arg(kDevice).device();
  const IntView sizes = p.arg(kSizes).ints();
  const int64_t offset = p.arg(kOffset).is_none() ? 0 : p.arg(kOffset).i;
  Tensor t = Tensor::adopt(TensorImpl::create());
  TensorImpl& impl = *t.impl();
  impl.set_dtype(dtype);
  impl.set_device(device);
  impl.set_keys(p.arg(kExtraKeys).is_none() ? keys_of_new(device)
                                            : keys_of_new(device) | keyset_argument(object_of(p.arg(kExtraKeys))));
  if (p.arg(kStrides).is_none()) {
    impl.set_sizes_contiguous(
        sizes, p.arg(kFormat).is_none() ? MemoryFormat::Contiguous : static_cast<MemoryFormat>(p.arg(kFormat).i));
    impl.set_storage_offset(offset);
  } else {
    impl.set_geometry(sizes, p.arg(kStrides).ints(), offset);
  }
  const size_t bytes = p.arg(kStorageSize).is_none()
                           ? storage_bytes(impl.sizes(), impl.strides(), offset, item_size(dtype))
                           : static_cast<size_t>(p.arg(kStorageSize).i);
  // Size without memory, whatever device is claimed.
  Storage storage = Storage::allocate(bytes, Device(DeviceType::Meta));
  storage->no_data_reason = "Cannot access data pointer of Storage that is invalid.";
  impl.set_storage(std::move(storage));
  set_custom(impl, p.arg(kPolicy), p.arg(kDispatchDevice).i != 0, p.arg(kDispatchLayout).i != 0);
  const PyRef made = PyRef::adopt(wrap_fresh(type, std::move(t)));
  if (p.arg(kNeedsGrad).i) set_requires_grad(tensor_of(made.get()), true);
  return PyRef(made).release();
}

// Neither modes nor overrides are told of these.
template <const Function& F, Body kBody>
PyObject* untold(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  struct Silence {
    TorchFunctionState::Disabled before = std::exchange(torch_function_state.disabled, TorchFunctionState::kAll);
    ~Silence() { torch_function_state.disabled = before; }
  } silence;
  return hand_method<F, kBody>(self, args, nargs, kwnames);
}

PyObject* dtensor_new(PyObject*, PyObject*) {
  return guarded(
      []() -> PyObject* { refuse("TensorBase._dtensor__new__", "a DTensor", "process groups are not there"); });
}

}  // namespace

PyMethodDef tensor_construct_methods[] = {
    {"as_subclass", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&untold<kAs, as_subclass>)),
     METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"_make_subclass", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&untold<kMake, make_subclass>)),
     METH_FASTCALL | METH_KEYWORDS | METH_STATIC, nullptr},
    {"_make_wrapper_subclass",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&untold<kWrapper, make_wrapper>)),
     METH_FASTCALL | METH_KEYWORDS | METH_STATIC, nullptr},
    {"_dtensor__new__", dtensor_new, METH_VARARGS | METH_STATIC, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace tn::py
