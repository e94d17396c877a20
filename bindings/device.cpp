// torch.device, and what a device argument may be.
#include "bindings/arguments.h"
#include "bindings/object_type.h"
#include "bindings/objects.h"
#include "bindings/tensor.h"
#include "bindings/torch_function.h"

namespace tn::py {

PyTypeObject device_type{};

namespace {

Device device_of(PyObject* self) { return reinterpret_cast<DeviceObject*>(self)->device; }
bool has_index(Device d) { return d.index != -1; }
// Upstream prints the byte of an index as an unsigned 16-bit number.
int shown_index(Device d) { return static_cast<uint16_t>(static_cast<int16_t>(d.index)); }

constexpr Formal kFromDevice[] = {{"device", Kind::Device}};
constexpr Formal kFromType[] = {{"type", Kind::String}, {"index", Kind::Int, true, false, true, "-1"}};
constexpr Form kForms[] = {{kFromDevice}, {kFromType}};

PyObject* create(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    PyObject* told;
    if (torch_function_mode_active() &&
        function_override(reinterpret_cast<PyObject*>(&device_type), args, kwargs, "torch", "device", &told))
      return told;
    const Actuals given = parse("device", kForms, args, kwargs);
    if (given.form == 0) return device_object(device_argument(given[0]));
    const char* text = PyUnicode_AsUTF8(given[0]);
    if (text == nullptr) throw PythonError();
    Device d = Device::parse(text);
    TN_CHECK(!has_index(d), "type (string) must not include an index because index was passed explicitly: ", text);
    if (given[1]) {
      const int64_t index = given.integer(1, -1);
      TN_CHECK(index >= 0, "Device index must not be negative");
      d.index = static_cast<int8_t>(index);
    }
    return device_object(d);
  });
}

PyObject* repr(PyObject* self) {
  const Device d = device_of(self);
  const std::string name(device_type_name(d.type));
  return has_index(d) ? PyUnicode_FromFormat("device(type='%s', index=%d)", name.c_str(), shown_index(d))
                      : PyUnicode_FromFormat("device(type='%s')", name.c_str());
}
PyObject* as_text(PyObject* self) {
  return guarded([&] { return text_object(device_of(self).str()); });
}
Py_hash_t hash(PyObject* self) {
  const Device d = device_of(self);
  return (static_cast<Py_hash_t>(d.type) << 16) | static_cast<uint8_t>(d.index);
}
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (!is_device(a) || !is_device(b)) Py_RETURN_NOTIMPLEMENTED;
  if (op == Py_EQ) return PyBool_FromLong(device_of(a) == device_of(b));
  if (op == Py_NE) return PyBool_FromLong(!(device_of(a) == device_of(b)));
  PyErr_SetString(PyExc_TypeError, "comparison not implemented");
  return nullptr;
}

PyObject* reduce(PyObject* self, PyObject*) {
  const Device d = device_of(self);
  const std::string name(device_type_name(d.type));
  PyObject* type = reinterpret_cast<PyObject*>(&device_type);
  return has_index(d) ? Py_BuildValue("(O(si))", type, name.c_str(), static_cast<int>(d.index))
                      : Py_BuildValue("(O(s))", type, name.c_str());
}

// As a context, a device pushes the function mode of torch.utils._device, without entering it.
PyObject* enter(PyObject* self, PyObject*) {
  return guarded([&] {
    const PyRef module = PyRef::check(PyImport_ImportModule("torch.utils._device"));
    const PyRef mode = PyRef::check(PyObject_CallMethod(module.get(), "DeviceContext", "O", self));
    const PyRef c = PyRef::check(PyImport_ImportModule("torch._C"));
    PyRef::check(PyObject_CallMethod(c.get(), "_push_on_torch_function_stack", "O", mode.get()));
    return Py_NewRef(self);
  });
}
PyObject* leave(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    const PyRef c = PyRef::check(PyImport_ImportModule("torch._C"));
    PyRef::check(PyObject_CallMethod(c.get(), "_pop_torch_function_stack", nullptr));
    Py_RETURN_NONE;
  });
}

PyObject* get_type(PyObject* self, void*) { return text_object(device_type_name(device_of(self).type)); }
PyObject* get_index(PyObject* self, void*) {
  const Device d = device_of(self);
  if (!has_index(d)) Py_RETURN_NONE;
  return PyLong_FromLong(d.index);
}

PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__enter__", enter, METH_NOARGS, nullptr},
    {"__exit__", leave, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"type", get_type, nullptr, nullptr, nullptr},
    {"index", get_index, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace

PyObject* device_object(Device d) {
  PyObject* o = device_type.tp_alloc(&device_type, 0);
  if (o) reinterpret_cast<DeviceObject*>(o)->device = d;
  return o;
}

Device device_argument(PyObject* o) {
  if (is_device(o)) return device_of(o);
  if (PyLong_Check(o)) {
    const long index = PyLong_AsLong(o);
    if (index == -1 && PyErr_Occurred()) throw PythonError();
    TN_CHECK(index >= 0, "Device index must not be negative");
    // A number means the accelerator, and there is none.
    fail(ErrorKind::Runtime, "Cannot access accelerator device when none is available.");
  }
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(o, &size);
  if (text == nullptr) throw PythonError();
  return Device::parse({text, static_cast<size_t>(size)});
}

void initialize_device(Device d) {
  const char* module = d.type == DeviceType::CUDA   ? "torch.cuda"
                       : d.type == DeviceType::XPU  ? "torch.xpu"
                       : d.type == DeviceType::MTIA ? "torch.mtia"
                                                    : nullptr;
  if (d.type == DeviceType::MPS) raise(PyExc_RuntimeError, "PyTorch is not linked with support for mps devices");
  if (module == nullptr) return;
  const PyRef owner = PyRef::check(PyImport_ImportModule(module));
  PyRef::check(PyObject_CallMethod(owner.get(), "_lazy_init", nullptr));
}

bool bind_devices(PyObject* module) {
  device_type.tp_new = create;
  device_type.tp_repr = repr;
  device_type.tp_str = as_text;
  device_type.tp_hash = hash;
  device_type.tp_richcompare = compare;
  device_type.tp_methods = methods;
  device_type.tp_getset = properties;
  return ready_type(device_type, "torch.device", sizeof(DeviceObject)) &&
         add_to_module(module, "device", reinterpret_cast<PyObject*>(&device_type));
}

}  // namespace tn::py
