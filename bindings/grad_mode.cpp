// Grad mode, inference mode, autocast settings and the guards of the thread's key sets.
#include "bindings/grad_mode.h"

#include <cstring>
#include <iterator>
#include <string>

#include "bindings/objects.h"
#include "bindings/py.h"
#include "bindings/torch_function.h"
#include "runtime/autocast.h"
#include "runtime/autograd/engine.h"
#include "runtime/keyset.h"
#include "runtime/refuse.h"

namespace tn::py {

namespace {

constexpr KeySet kAutograd = KeySet(DispatchKey::AutogradFunctionality) | KeySet(DispatchKey::AutogradOther) |
                             KeySet(DispatchKey::AutogradNestedTensor);

// Functions here take one bool; a mode is told of those that upstream routes through its parser.
bool to_flag(PyObject* value, const char* name, bool* out) {
  if (!PyBool_Check(value)) {
    PyErr_Format(PyExc_TypeError, "%s(): argument 'enabled' (position 1) must be bool, not %s", name,
                 Py_TYPE(value)->tp_name);
    return false;
  }
  *out = value == Py_True;
  return true;
}

// Modes are told of the setter only, as upstream's.
PyObject* is_grad_enabled(PyObject*, PyObject*) { return new_bool(grad_mode()); }
PyObject* set_grad_enabled(PyObject*, PyObject* value) {
  return guarded([&]() -> PyObject* {
    if (torch_function_mode_active()) {
      const PyRef core = PyRef::check(PyImport_ImportModule("torch._C"));
      const PyRef func = PyRef::check(PyObject_GetAttrString(core.get(), "_set_grad_enabled"));
      return call_torch_function(Overloaded(), func.get(), nullptr, &value, 1, nullptr, "torch._C",
                                 "_set_grad_enabled");
    }
    bool on;
    if (!to_flag(value, "set_grad_enabled", &on)) return nullptr;
    set_grad_mode(on);
    Py_RETURN_NONE;
  });
}

template <bool ThreadState::* kField>
PyObject* get_flag(PyObject*, PyObject*) {
  return new_bool(thread_state.*kField);
}
template <bool ThreadState::* kField>
PyObject* set_flag(PyObject*, PyObject* value) {
  bool on;
  if (!to_flag(value, "set_enabled", &on)) return nullptr;
  thread_state.*kField = on;
  Py_RETURN_NONE;
}

PyObject* set_fwd_grad_enabled(PyObject*, PyObject* value) {
  bool on;
  if (!to_flag(value, "set_enabled", &on)) return nullptr;
  set_fw_grad_mode(on);
  Py_RETURN_NONE;
}

// ---- anomaly mode: the engine looks at it -------------------------------------------------------------------
PyObject* set_anomaly(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"enabled", "check_nan", nullptr};
  int on, check = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "p|p", const_cast<char**>(names), &on, &check)) return nullptr;
  engine::anomaly.enabled = on != 0;
  engine::anomaly.check_nan = check != 0;
  Py_RETURN_NONE;
}
PyObject* is_anomaly(PyObject*, PyObject*) { return new_bool(engine::anomaly.enabled); }
PyObject* is_anomaly_nan(PyObject*, PyObject*) { return new_bool(engine::anomaly.check_nan); }

// ---- autocast
// ----------------------------------------------------------------------------------------------------------- In the
// order of AutocastState's dtypes.
struct AutocastDevice {
  const char* name;
  DispatchKey key;
};
constexpr AutocastDevice kDevices[] = {
    {"cpu", DispatchKey::AutocastCPU},   {"cuda", DispatchKey::AutocastCUDA},
    {"mtia", DispatchKey::AutocastMTIA}, {"maia", DispatchKey::AutocastMAIA},
    {"xpu", DispatchKey::AutocastXPU},   {"ipu", DispatchKey::AutocastIPU},
    {"hpu", DispatchKey::AutocastHPU},   {"xla", DispatchKey::AutocastXLA},
    {"mps", DispatchKey::AutocastMPS},   {"privateuseone", DispatchKey::AutocastPrivateUse1}};
constexpr int kNumDevices = static_cast<int>(std::size(kDevices));
static_assert(kNumDevices == kAutocastDevices);
constexpr int kCpu = kAutocastCpu, kCuda = 1, kXla = 7, kIpu = 5;

bool autocast_enabled(int i) { return (thread_state.excluded & KeySet(kDevices[i].key).raw()) == 0; }
void enable_autocast(int i, bool on) {
  const uint64_t bit = KeySet(kDevices[i].key).raw();
  thread_state.excluded = on ? thread_state.excluded & ~bit : thread_state.excluded | bit;
}

int device_index(PyObject* text) {
  if (!PyUnicode_Check(text)) {
    PyErr_Format(PyExc_TypeError, "argument 'device_type' (position 1) must be str, not %s", Py_TYPE(text)->tp_name);
    return -1;
  }
  for (int i = 0; i < kNumDevices; ++i)
    if (PyUnicode_CompareWithASCIIString(text, kDevices[i].name) == 0) return i;
  PyErr_Format(PyExc_RuntimeError, "unknown device type for autocast in get_autocast_dispatch_key_from_device_type: %U",
               text);
  return -1;
}

PyObject* is_autocast_enabled(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"device_type", nullptr};
  PyObject* device = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:is_autocast_enabled", const_cast<char**>(names), &device))
    return nullptr;
  const int i = device ? device_index(device) : kCuda;  // without an argument, the deprecated form: it means CUDA
  return i < 0 ? nullptr : new_bool(autocast_enabled(i));
}
PyObject* set_autocast_enabled(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"device_type", "enabled", nullptr};
  static const char* old_names[] = {"enabled", nullptr};
  PyObject *device = nullptr, *enabled;
  const bool old = PyTuple_GET_SIZE(args) + (kwargs ? PyDict_GET_SIZE(kwargs) : 0) == 1;
  if (old ? !PyArg_ParseTupleAndKeywords(args, kwargs, "O:set_autocast_enabled", const_cast<char**>(old_names),
                                         &enabled)
          : !PyArg_ParseTupleAndKeywords(args, kwargs, "OO:set_autocast_enabled", const_cast<char**>(names), &device,
                                         &enabled))
    return nullptr;
  const int i = device ? device_index(device) : kCuda;
  bool on;
  if (i < 0 || !to_flag(enabled, "set_autocast_enabled", &on)) return nullptr;
  enable_autocast(i, on);
  Py_RETURN_NONE;
}
PyObject* get_autocast_dtype(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"device_type", nullptr};
  PyObject* device;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:get_autocast_dtype", const_cast<char**>(names), &device))
    return nullptr;
  const int i = device_index(device);
  return i < 0 ? nullptr : Py_XNewRef(dtype_object(autocast_state.dtypes[i]));
}
bool store_dtype(int i, PyObject* dtype) {
  if (i < 0) return false;
  if (!is_dtype(dtype, &autocast_state.dtypes[i])) {
    PyErr_Format(PyExc_TypeError, "dtype must be a torch.dtype (got %s)", Py_TYPE(dtype)->tp_name);
    return false;
  }
  return true;
}
PyObject* set_autocast_dtype(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"device_type", "dtype", nullptr};
  PyObject *device, *dtype;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:set_autocast_dtype", const_cast<char**>(names), &device, &dtype))
    return nullptr;
  if (!store_dtype(device_index(device), dtype)) return nullptr;
  Py_RETURN_NONE;
}
template <int kDevice>
PyObject* device_enabled(PyObject*, PyObject*) {
  return new_bool(autocast_enabled(kDevice));
}
template <int kDevice>
PyObject* set_device_enabled(PyObject*, PyObject* value) {
  bool on;
  if (!to_flag(value, "set_autocast_enabled", &on)) return nullptr;
  enable_autocast(kDevice, on);
  Py_RETURN_NONE;
}
template <int kDevice>
PyObject* device_dtype(PyObject*, PyObject*) {
  return Py_XNewRef(dtype_object(autocast_state.dtypes[kDevice]));
}
template <int kDevice>
PyObject* set_device_dtype(PyObject*, PyObject* dtype) {
  if (!store_dtype(kDevice, dtype)) return nullptr;
  Py_RETURN_NONE;
}
PyObject* is_any_autocast(PyObject*, PyObject*) {
  for (int i = 0; i < kNumDevices; ++i)
    if (autocast_enabled(i)) Py_RETURN_TRUE;
  Py_RETURN_FALSE;
}
PyObject* is_autocast_available(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"device_type", nullptr};
  PyObject* device;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:_is_autocast_available", const_cast<char**>(names), &device))
    return nullptr;
  if (!PyUnicode_Check(device))
    return PyErr_Format(PyExc_TypeError,
                        "_is_autocast_available(): argument 'device_type' (position 1) must be str, not %s",
                        Py_TYPE(device)->tp_name);
  for (const AutocastDevice& d : kDevices)
    if (PyUnicode_CompareWithASCIIString(device, d.name) == 0) Py_RETURN_TRUE;
  Py_RETURN_FALSE;
}
PyObject* is_cache_enabled(PyObject*, PyObject*) { return new_bool(!autocast_state.cache_off); }
PyObject* set_cache_enabled(PyObject*, PyObject* value) {
  bool on;
  if (!to_flag(value, "set_autocast_cache_enabled", &on)) return nullptr;
  autocast_state.cache_off = !on;
  Py_RETURN_NONE;
}
PyObject* increment_nesting(PyObject*, PyObject*) { return PyLong_FromLong(++autocast_state.nesting); }
PyObject* decrement_nesting(PyObject*, PyObject*) { return PyLong_FromLong(--autocast_state.nesting); }
PyObject* clear_cache(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    clear_autocast_cache();
    Py_RETURN_NONE;
  });
}

// ---- guards
// --------------------------------------------------------------------------------------------------------------
// Upstream's old style of guard: it acts from construction on, until __exit__ or until the object dies.
struct GuardObject {
  PyObject_HEAD ThreadState before, after;
  bool active;
};

// Undoes what this guard changed and nothing else: one that dies with its frame outlives the `with` around it.
void guard_end(PyObject* self) {
  auto* const g = reinterpret_cast<GuardObject*>(self);
  if (!g->active) return;
  g->active = false;
  const ThreadState &was = g->before, &set = g->after;
  const auto bits = [](uint64_t& now, uint64_t old, uint64_t made) {
    now = (now & ~(old ^ made)) | (old & (old ^ made));
  };
  bits(thread_state.included, was.included, set.included);
  bits(thread_state.excluded, was.excluded, set.excluded);
  for (bool ThreadState::* flag : {&ThreadState::grad_mode, &ThreadState::inference_mode, &ThreadState::fw_grad_mode,
                                   &ThreadState::view_replay, &ThreadState::multithreading})
    if (was.*flag != set.*flag) thread_state.*flag = was.*flag;
}
PyObject* guard_enter(PyObject* self, PyObject*) { return Py_NewRef(self); }
PyObject* guard_exit(PyObject* self, PyObject*) {
  guard_end(self);
  Py_RETURN_NONE;
}
void guard_dealloc(PyObject* self) {
  guard_end(self);
  Py_TYPE(self)->tp_free(self);
}

using Change = void (*)(bool on);
void set_inference(bool on) {
  const uint64_t views = KeySet(DispatchKey::ADInplaceOrView).raw();
  thread_state.inference_mode = on;
  set_fw_grad_mode(!on);
  set_grad_mode(!on);
  thread_state.included = on ? thread_state.included & ~views : thread_state.included | views;
  thread_state.excluded = on ? thread_state.excluded | kAutograd.raw() : thread_state.excluded & ~kAutograd.raw();
}
void disable_functorch(bool) {
  thread_state.excluded |= KeySet(DispatchKey::FuncTorchDynamicLayerFrontMode).raw() |
                           KeySet(DispatchKey::FuncTorchDynamicLayerBackMode).raw();
}
void disable_autocast(bool) { thread_state.excluded |= ThreadState::kAutocastKeys; }
void set_multithreading(bool on) { thread_state.multithreading = on; }
void set_view_replay(bool on) { thread_state.view_replay = on; }

template <Change kChange, bool kTakesFlag>
int guard_init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"mode", nullptr};
  static const char* none[] = {nullptr};
  int on = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, kTakesFlag ? "|p" : "", const_cast<char**>(kTakesFlag ? names : none),
                                   &on))
    return -1;
  auto* const g = reinterpret_cast<GuardObject*>(self);
  guard_end(self);
  g->before = thread_state;
  kChange(on != 0);
  g->after = thread_state;
  g->active = true;
  return 0;
}

PyMethodDef guard_methods[] = {{"__enter__", guard_enter, METH_NOARGS, nullptr},
                               {"__exit__", guard_exit, METH_VARARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};
PyTypeObject inference_type, functorch_type, autocast_type, multithreading_type, replay_type;

bool add_type(PyObject* module, PyTypeObject& type, const char* name, size_t size, PyMethodDef* methods,
              initproc init = nullptr) {
  type.ob_base.ob_base.ob_refcnt = 1;
  type.tp_name = name;
  type.tp_basicsize = static_cast<Py_ssize_t>(size);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  type.tp_methods = methods;
  type.tp_init = init;
  if (methods == guard_methods) type.tp_dealloc = guard_dealloc;
  type.tp_new = PyType_GenericNew;
  return PyModule_AddType(module, &type) == 0;
}
template <Change kChange, bool kTakesFlag>
bool add_guard(PyObject* module, PyTypeObject& type, const char* name) {
  return add_type(module, type, name, sizeof(GuardObject), guard_methods, guard_init<kChange, kTakesFlag>);
}

template <class F>
constexpr PyCFunction as_cfunction(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef functions[] = {
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS, nullptr},
    {"_set_grad_enabled", set_grad_enabled, METH_O, nullptr},
    {"is_inference_mode_enabled", get_flag<&ThreadState::inference_mode>, METH_NOARGS, nullptr},
    {"_is_fwd_grad_enabled", get_flag<&ThreadState::fw_grad_mode>, METH_NOARGS, nullptr},
    {"_set_fwd_grad_enabled", set_fwd_grad_enabled, METH_O, nullptr},
    {"_is_multithreading_enabled", get_flag<&ThreadState::multithreading>, METH_NOARGS, nullptr},
    {"_set_multithreading_enabled", set_flag<&ThreadState::multithreading>, METH_O, nullptr},
    {"_is_view_replay_enabled", get_flag<&ThreadState::view_replay>, METH_NOARGS, nullptr},
    {"_set_view_replay_enabled", set_flag<&ThreadState::view_replay>, METH_O, nullptr},
    {"set_anomaly_enabled", as_cfunction(set_anomaly), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"is_anomaly_enabled", is_anomaly, METH_NOARGS, nullptr},
    {"is_anomaly_check_nan_enabled", is_anomaly_nan, METH_NOARGS, nullptr},
    {"is_autocast_enabled", as_cfunction(is_autocast_enabled), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"set_autocast_enabled", as_cfunction(set_autocast_enabled), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"get_autocast_dtype", as_cfunction(get_autocast_dtype), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"set_autocast_dtype", as_cfunction(set_autocast_dtype), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"is_autocast_cpu_enabled", device_enabled<kCpu>, METH_NOARGS, nullptr},
    {"set_autocast_cpu_enabled", set_device_enabled<kCpu>, METH_O, nullptr},
    {"get_autocast_cpu_dtype", device_dtype<kCpu>, METH_NOARGS, nullptr},
    {"set_autocast_cpu_dtype", set_device_dtype<kCpu>, METH_O, nullptr},
    {"get_autocast_gpu_dtype", device_dtype<kCuda>, METH_NOARGS, nullptr},
    {"set_autocast_gpu_dtype", set_device_dtype<kCuda>, METH_O, nullptr},
    {"is_autocast_xla_enabled", device_enabled<kXla>, METH_NOARGS, nullptr},
    {"set_autocast_xla_enabled", set_device_enabled<kXla>, METH_O, nullptr},
    {"get_autocast_xla_dtype", device_dtype<kXla>, METH_NOARGS, nullptr},
    {"set_autocast_xla_dtype", set_device_dtype<kXla>, METH_O, nullptr},
    {"is_autocast_ipu_enabled", device_enabled<kIpu>, METH_NOARGS, nullptr},
    {"set_autocast_ipu_enabled", set_device_enabled<kIpu>, METH_O, nullptr},
    {"get_autocast_ipu_dtype", device_dtype<kIpu>, METH_NOARGS, nullptr},
    {"set_autocast_ipu_dtype", set_device_dtype<kIpu>, METH_O, nullptr},
    {"_is_any_autocast_enabled", is_any_autocast, METH_NOARGS, nullptr},
    {"_is_autocast_available", as_cfunction(is_autocast_available), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"is_autocast_cache_enabled", is_cache_enabled, METH_NOARGS, nullptr},
    {"set_autocast_cache_enabled", set_cache_enabled, METH_O, nullptr},
    {"autocast_increment_nesting", increment_nesting, METH_NOARGS, nullptr},
    {"autocast_decrement_nesting", decrement_nesting, METH_NOARGS, nullptr},
    {"clear_autocast_cache", clear_cache, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool bind_grad_mode(PyObject* module) {
  return PyModule_AddFunctions(module, functions) == 0 &&
         add_guard<set_inference, true>(module, inference_type, "torch._C._InferenceMode") &&
         add_guard<disable_functorch, false>(module, functorch_type, "torch._C._DisableFuncTorch") &&
         add_guard<disable_autocast, false>(module, autocast_type, "torch._C._DisableAutocast") &&
         add_guard<set_multithreading, true>(module, multithreading_type, "torch._C._MultithreadingEnabled") &&
         add_guard<set_view_replay, true>(module, replay_type, "torch._C._ViewReplayEnabled");
}

}  // namespace tn::py
