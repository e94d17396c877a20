// torch.asarray and torch.frombuffer.
#include "bindings/arguments.h"
#include "bindings/calls.h"
#include "bindings/numpy.h"
#include "bindings/object_type.h"
#include "bindings/python_data.h"
#include "bindings/tensor.h"
#include "bindings/tensor_new.h"
#include "runtime/autograd_meta.h"

namespace tn::py {

namespace {

// A buffer that a storage keeps open.
void release_buffer(void* context) {
  const GilAcquire gil;
  auto* view = static_cast<Py_buffer*>(context);
  PyBuffer_Release(view);
  delete view;
}

void warn_readonly_buffer() {
  static bool warned = false;
  if (warned) return;
  warned = true;
  if (PyErr_WarnEx(PyExc_UserWarning,
                   "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means "
                   "you can write to the "
                   "underlying (supposedly non-writable) buffer using the tensor. You may want to copy the buffer to "
                   "protect its data or "
                   "make it writable before converting it to a tensor. This type of warning will be suppressed for the "
                   "rest of this program.",
                   1) < 0)
    throw PythonError();
}

Tensor over_buffer(PyObject* source, ScalarType dtype, int64_t count, int64_t offset, bool requires_grad) {
  const auto size = static_cast<int64_t>(item_size(dtype));
  auto* view = new Py_buffer{};
  if (PyObject_GetBuffer(source, view, PyBUF_WRITABLE) < 0) {
    PyErr_Clear();
    if (PyObject_GetBuffer(source, view, PyBUF_SIMPLE) < 0) {
      PyErr_Clear();
      delete view;
      fail(ErrorKind::Value, "object does not implement Python buffer protocol.");
    }
  }
  const int64_t length = view->len;
  Storage owner = Storage::borrow(view->buf, static_cast<size_t>(length), release_buffer, view);
  if (view->readonly) warn_readonly_buffer();
  if (length <= 0 || count == 0)
    fail(ErrorKind::Value, "both buffer length (", length, ") and count (", count, ") must not be 0");
  if (offset < 0 || offset >= length)
    fail(ErrorKind::Value, "offset (", offset, " bytes) must be non-negative and no greater than buffer length (",
         length, " bytes) minus 1");
  if (count <= 0 && (length - offset) % size != 0)
    fail(ErrorKind::Value, "buffer length (", length - offset, " bytes) after offset (", offset,
         " bytes) must be a multiple of element size (", size, ")");
  if (count > 0 && offset + count * size > length)
    fail(ErrorKind::Value, "requested buffer length (", count, " * ", size, " bytes) after offset (", offset,
         " bytes) must not be greater than actual buffer length (", length, " bytes)");
  if (count < 0) count = (length - offset) / size;
  // The tensor starts at the offset, which need not be a multiple of the element size: a second storage keeps the
  // first.
  const auto let_go = [](void* s) { Ref<StorageImpl>::adopt(static_cast<StorageImpl*>(s)); };
  void* data = static_cast<char*>(view->buf) + offset;
  const Tensor t = tensor_over(Storage::borrow(data, static_cast<size_t>(count * size), let_go, owner.release()), dtype,
                               {count}, {int64_t{1}});
  if (requires_grad) set_requires_grad(t, true);
  return t;
}

bool has_buffer(PyObject* o) { return PyObject_CheckBuffer(o) && !PyUnicode_Check(o); }

struct Wish {
  std::optional<ScalarType> dtype;
  std::optional<Device> device;
  std::optional<bool> copy;
  std::optional<bool> requires_grad;
};

// What an existing tensor becomes: itself where it can, a copy where it must and may.
Tensor adapt(Tensor t, const Wish& wish, bool own) {
  const ScalarType dtype = wish.dtype.value_or(t.dtype());
  const Device device = wish.device.value_or(t.device());
  const bool copies = device != t.device() || dtype != t.dtype();
  if (wish.copy && !*wish.copy) {
    if (device != t.device())
      fail(ErrorKind::Value, "can't alias tensor from device '", t.device().str(), "' to '", device.str(), "'.");
    if (dtype != t.dtype())
      fail(ErrorKind::Value, "can't alias tensor with dtype '", scalar_type_name(t.dtype()), "' into dtype '",
           scalar_type_name(dtype), "'.");
  }
  if (copies || (wish.copy.value_or(false) && !own)) {
    initialize_device(device);
    t = call_to(t, device, dtype, true);
  }
  return t;
}

Tensor finish(Tensor t, const Wish& wish) {
  const bool wanted = wish.requires_grad.value_or(t.requires_grad());
  if (t.requires_grad() && !wanted) return call_detach(t);
  if (!t.requires_grad() && wanted) set_requires_grad(t, true);
  return t;
}

Tensor as_array(PyObject* o, const Wish& wish) {
  if (is_tensor(o)) return finish(adapt(tensor_of(o), wish, false), wish);
  if (is_numpy_array(o)) return finish(adapt(lifted(tensor_from_numpy(o, true)), wish, false), wish);
  if (is_numpy_scalar(o)) {
    TN_CHECK(!(wish.copy && !*wish.copy),
             "can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. ");
  } else if (PyObject_HasAttrString(o, "__dlpack__")) {
    const PyRef utilities = PyRef::check(PyImport_ImportModule("torch.utils.dlpack"));
    const PyRef imported = PyRef::check(PyObject_CallMethod(utilities.get(), "from_dlpack", "O", o));
    return finish(adapt(tensor_of(imported.get()), wish, false), wish);
  } else if (has_buffer(o) && !PyBytes_Check(o)) {
    return finish(adapt(over_buffer(o, wish.dtype.value_or(default_dtype()), -1, 0, false), wish, false), wish);
  } else if (wish.copy && !*wish.copy) {
    fail(ErrorKind::Value, "can't alias arbitrary sequence into a tensor.");
  }
  Tensor t = tensor_from_data(
      o,
      {.dtype = wish.dtype.value_or(default_dtype()), .device = wish.device.value_or(Device()), .infer = !wish.dtype});
  return finish(std::move(t), wish);
}

}  // namespace

PyObject* torch_asarray(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&] {
    PyObject* taken = nullptr;
    if (mode_takes("asarray", args, nargs, kwnames, &taken)) return taken;
    static constexpr Formal kFormals[] = {{"obj", Kind::Any},
                                          {"dtype", Kind::DType, true, true, true, "None"},
                                          {"device", Kind::Device, true, true, true, "None"},
                                          {"copy", Kind::Bool, true, true, true, "None"},
                                          {"requires_grad", Kind::Bool, true, true, true, "None"}};
    static constexpr Form kForms[] = {{kFormals}};
    const Actuals given = parse("asarray", kForms, Given{args, nargs, kwnames});
    const auto flag = [&](size_t i) { return given[i] ? std::optional(given.flag(i)) : std::nullopt; };
    return wrap(as_array(given[0], {given.dtype(1), given.device(2), flag(3), flag(4)}));
  });
}

PyObject* torch_frombuffer(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&] {
    PyObject* taken = nullptr;
    if (mode_takes("frombuffer", args, nargs, kwnames, &taken)) return taken;
    static constexpr Formal kFormals[] = {{"buffer", Kind::Any},
                                          {"dtype", Kind::DType, false, true},
                                          {"count", Kind::Int, true, true, false, "-1"},
                                          {"offset", Kind::Int, true, true, false, "0"},
                                          {"requires_grad", Kind::Bool, true, true, false, "False"}};
    static constexpr Form kForms[] = {{kFormals}};
    const Actuals given = parse("frombuffer", kForms, Given{args, nargs, kwnames});
    return wrap(over_buffer(given[0], *given.dtype(1), given.integer(2, -1), given.integer(3, 0), given.flag(4)));
  });
}

}  // namespace tn::py
