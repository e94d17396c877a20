// __torch_dispatch__: the stack of modes, and the kernel behind the Python key that calls modes and tensor subclasses.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "bindings/boxed_call.h"
#include "bindings/custom_geometry.h"
#include "bindings/dispatch.h"
#include "bindings/names/names.h"
#include "bindings/py.h"
#include "bindings/tensor.h"
#include "bindings/torch_dispatch.h"
#include "bindings/torch_function.h"
#include "runtime/door.h"

namespace tn::py {
namespace {

constexpr int kNumModeKeys = 3;  // torch._C._TorchDispatchModeKey: fake, proxy, functional

// Modes that users push, and one place for each infrastructure mode; those are entered first, so they lie above.
struct Modes {
  std::vector<PyRef> stack;
  std::array<PyRef, kNumModeKeys> infra;

  bool empty() const {
    return stack.empty() && std::none_of(infra.begin(), infra.end(), [](const PyRef& m) { return bool(m); });
  }
  size_t size() const {
    return stack.size() +
           static_cast<size_t>(std::count_if(infra.begin(), infra.end(), [](const PyRef& m) { return bool(m); }));
  }
};
// A pointer, so that a thread without modes has nothing to tear down.
constinit thread_local Modes* thread_modes = nullptr;

Modes& modes() {
  if (!thread_modes) thread_modes = new Modes();
  return *thread_modes;
}
constexpr uint64_t kPythonBits = KeySet(DispatchKey::Python).raw() | KeySet(DispatchKey::PythonTLSSnapshot).raw();

void refresh_keys() {
  uint64_t& included = thread_state.included;
  included = modes().empty() ? included & ~kPythonBits : included | kPythonBits;
}

int mode_key(PyObject* key) {
  static const EnumType found = find_enum("_TorchDispatchModeKey");
  long value = 0;
  if (!enum_value(found, key, &value) || value < 0 || value >= kNumModeKeys)
    raise(PyExc_TypeError, "expected a torch._C._TorchDispatchModeKey, got %R", key);
  return static_cast<int>(value);
}
// The key of a mode that is infrastructure (`_mode_key`), or -1.
int infra_key(PyObject* mode) {
  const PyRef key = PyRef::adopt(PyObject_GetAttrString(mode, "_mode_key"));
  if (!key) {
    PyErr_Clear();
    return -1;
  }
  return key.get() == Py_None ? -1 : mode_key(key.get());
}

PyRef pop_top(int* infra) {
  Modes& m = modes();
  *infra = -1;
  if (!m.stack.empty()) {
    PyRef top = std::move(m.stack.back());
    m.stack.pop_back();
    refresh_keys();
    return top;
  }
  for (int i = kNumModeKeys - 1; i >= 0; --i) {
    if (!m.infra[static_cast<size_t>(i)]) continue;
    *infra = i;
    PyRef top = std::exchange(m.infra[static_cast<size_t>(i)], PyRef());
    refresh_keys();
    return top;
  }
  fail(ErrorKind::Runtime, "Trying to pop from empty mode stack");
}
void push(PyRef mode, int infra) {
  if (infra < 0) modes().stack.push_back(std::move(mode));
  else modes().infra[static_cast<size_t>(infra)] = std::move(mode);
  refresh_keys();
}

// While a mode handles a call, it is off the stack.
class StashedMode {
 public:
  StashedMode() : mode_(pop_top(&infra_)) {}
  ~StashedMode() { push(std::move(mode_), infra_); }
  PyObject* get() const { return mode_.get(); }
  StashedMode(const StashedMode&) = delete;
  StashedMode& operator=(const StashedMode&) = delete;

 private:
  int infra_ = -1;
  PyRef mode_;
};

// Distinct classes among the arguments that override, subclasses before their bases.
void collect(std::span<const Arg> args, std::vector<PyRef>& found) {
  const auto add = [&](const Tensor& t) {
    if (!t.defined() || !t->keys().has(DispatchKey::Python)) return;
    PyRef object = PyRef::check(wrap(t));
    PyTypeObject* const type = Py_TYPE(object.get());
    for (const PyRef& have : found)
      if (Py_TYPE(have.get()) == type) return;
    auto at = std::find_if(found.begin(), found.end(),
                           [&](const PyRef& have) { return PyType_IsSubtype(type, Py_TYPE(have.get())); });
    found.insert(at, std::move(object));
  };
  for (const Arg& a : args) {
    if (a.tag == Tag::Tensor) add(a.tensor());
    else if (a.tag == Tag::TensorList)
      for (const Tensor& t : a.tensors()) add(t);
  }
}

std::string text_of(PyObject* o) {
  const PyRef repr = PyRef::adopt(PyObject_Repr(o));
  const char* const text = repr ? PyUnicode_AsUTF8(repr.get()) : nullptr;
  if (!text) PyErr_Clear();
  return text ? text : "?";
}

PyRef handler_of(PyObject* owner) {
  static PyObject* const name = PyUnicode_InternFromString("__torch_dispatch__");
  return PyRef::check(PyObject_GetAttr(owner, name));
}

PyRef call_handler(PyObject* handler, PyObject* func, PyObject* types, PyObject* args, PyObject* kwargs) {
  return PyRef::check(PyObject_CallFunctionObjArgs(handler, func, types, args, kwargs, nullptr));
}

std::string dotted(std::string name) { return name.replace(name.find("::"), 2, "."); }

// Questions that upstream's bindings ask the header without a call, so that no mode or class is ever told of them.
bool asks_header(const OpRow& op) {
  static const std::array<const OpRow*, 7> rows = [] {
    return std::array<const OpRow*, 7>{&required_op("aten::is_complex", ""),
                                       &required_op("aten::is_conj", ""),
                                       &required_op("aten::is_floating_point", ""),
                                       &required_op("aten::is_inference", ""),
                                       &required_op("aten::is_neg", ""),
                                       &required_op("aten::is_signed", ""),
                                       &required_op("aten::_is_zerotensor", "")};
  }();
  return std::find(rows.begin(), rows.end(), &op) != rows.end();
}

class PythonKey final : public BoxedKernel {
 public:
  void call(OpRow& op, KeySet keys, std::span<const Arg> args, Value* out) override {
    if (asks_header(op)) return door::redispatch_boxed(op, keys & KeySet::below(DispatchKey::Python), args, out);
    const GilAcquire gil;
    std::vector<PyRef> overloaded;
    collect(args, overloaded);
    const FunctionSchema& schema = schema_of(op);
    const PyRef func = python_overload(op);
    PythonArguments given;
    append_arguments(schema, args, given);
    const PyRef positional = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(given.num_positional)));
    for (size_t i = 0; i < given.num_positional; ++i)
      PyTuple_SET_ITEM(positional.get(), static_cast<Py_ssize_t>(i), Py_NewRef(given.values[i].get()));
    const PyRef keywords = PyRef::check(PyDict_New());
    for (size_t i = given.num_positional; i < given.values.size(); ++i) {
      PyObject* const name = PyTuple_GET_ITEM(given.names.get(), static_cast<Py_ssize_t>(i - given.num_positional));
      if (PyDict_SetItem(keywords.get(), name, given.values[i].get()) < 0) throw PythonError();
    }
    const bool in_mode = in_dispatch_mode() && (thread_state.included & KeySet(DispatchKey::Python).raw());
    const std::string name =
        str("torch.ops.", dotted(op.info->name), ".", *op.info->overload ? op.info->overload : "default");
    const PyRef result = call_torch_dispatch(overloaded, in_mode, func.get(), positional.get(), keywords.get(), name);
    take_results(schema, result.get(), out);
  }
};

// ---- the stack's functions ---------------------------------------------------------------------------------------

PyObject* push_mode(PyObject*, PyObject* mode) {
  return guarded([&]() -> PyObject* {
    if (mode == Py_None) Py_RETURN_NONE;
    push(PyRef::share(mode), infra_key(mode));
    Py_RETURN_NONE;
  });
}
PyObject* pop_mode(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* key = Py_None;
    if (!PyArg_ParseTuple(args, "|O:_pop_torch_dispatch_stack", &key)) return nullptr;
    if (key == Py_None) {
      int infra;
      return pop_top(&infra).release();
    }
    PyRef mode = std::exchange(modes().infra[static_cast<size_t>(mode_key(key))], PyRef());
    refresh_keys();
    return mode ? mode.release() : Py_NewRef(Py_None);
  });
}
PyObject* stack_at(PyObject*, PyObject* index) {
  return guarded([&]() -> PyObject* {
    const long wanted = PyLong_AsLong(index);
    if (wanted == -1 && PyErr_Occurred()) return nullptr;
    const Modes& m = modes();
    TN_CHECK(wanted >= 0 && static_cast<size_t>(wanted) < m.size(), "Tried to get stack at idx that's too big");
    // Infrastructure modes lie at the bottom, in the order of their keys.
    long at = wanted;
    for (const PyRef& mode : m.infra)
      if (mode && at-- == 0) return Py_NewRef(mode.get());
    return Py_NewRef(m.stack[static_cast<size_t>(at)].get());
  });
}
PyObject* stack_length(PyObject*, PyObject*) { return PyLong_FromSize_t(thread_modes ? thread_modes->size() : 0); }
PyObject* get_mode(PyObject*, PyObject* key) {
  return guarded([&]() -> PyObject* {
    const PyRef& mode = modes().infra[static_cast<size_t>(mode_key(key))];
    return Py_NewRef(mode ? mode.get() : Py_None);
  });
}
PyObject* set_mode(PyObject*, PyObject* mode) {
  return guarded([&]() -> PyObject* {
    const int key = infra_key(mode);
    if (key < 0) raise(PyExc_TypeError, "_set_dispatch_mode: expected a mode with a _mode_key, got %R", mode);
    push(PyRef::share(mode), key);
    Py_RETURN_NONE;
  });
}
PyObject* unset_mode(PyObject*, PyObject* key) {
  return guarded([&]() -> PyObject* {
    PyRef mode = std::exchange(modes().infra[static_cast<size_t>(mode_key(key))], PyRef());
    refresh_keys();
    return mode ? mode.release() : Py_NewRef(Py_None);
  });
}

// Used by FakeTensorMode: whether factories may lift CPU tensors only. A flag of the process.
bool only_lift_cpu = false;
PyObject* only_lift_cpu_tensors(PyObject*, PyObject*) { return new_bool(only_lift_cpu); }
PyObject* set_only_lift_cpu_tensors(PyObject*, PyObject* on) {
  only_lift_cpu = PyObject_IsTrue(on) == 1;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"_push_on_torch_dispatch_stack", push_mode, METH_O, nullptr},
    {"_pop_torch_dispatch_stack", pop_mode, METH_VARARGS, nullptr},
    {"_get_dispatch_stack_at", stack_at, METH_O, nullptr},
    {"_len_torch_dispatch_stack", stack_length, METH_NOARGS, nullptr},
    {"_get_dispatch_mode", get_mode, METH_O, nullptr},
    {"_set_dispatch_mode", set_mode, METH_O, nullptr},
    {"_unset_dispatch_mode", unset_mode, METH_O, nullptr},
    {"_only_lift_cpu_tensors", only_lift_cpu_tensors, METH_NOARGS, nullptr},
    {"_set_only_lift_cpu_tensors", set_only_lift_cpu_tensors, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

StashedDispatchModes::StashedDispatchModes() : modes_(std::exchange(thread_modes, nullptr)) {
  if (modes_) refresh_keys();
}
StashedDispatchModes::~StashedDispatchModes() {
  if (!modes_) return;
  delete std::exchange(thread_modes, static_cast<Modes*>(modes_));
  refresh_keys();
}

bool in_dispatch_mode() { return thread_modes && !thread_modes->empty(); }

PyRef call_torch_dispatch(std::span<const PyRef> overloaded, bool in_mode, PyObject* func, PyObject* args,
                          PyObject* kwargs, const std::string& name) {
  const PyRef types = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(overloaded.size())));
  for (size_t i = 0; i < overloaded.size(); ++i)
    PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i),
                     Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(overloaded[i].get()))));
  PyRef result, asked;
  if (in_mode) {
    const StashedMode mode;
    asked = PyRef::share(mode.get());
    const PyRef handler = handler_of(mode.get());
    const PyRef bound = PyRef::adopt(PyObject_GetAttrString(handler.get(), "__self__"));
    if (!bound) PyErr_Clear();
    if (bound.get() != mode.get())
      raise(
          PyExc_RuntimeError,
          "Defining your mode's `__torch_dispatch__` as a classmethod is not supported, please make it a plain method");
    result = call_handler(handler.get(), func, types.get(), args, kwargs);
  }
  for (size_t i = 0; i < overloaded.size() && (!result || result.get() == Py_NotImplemented); ++i)
    result = call_handler(handler_of(overloaded[i].get()).get(), func, types.get(), args, kwargs);
  if (result && result.get() != Py_NotImplemented) return result;
  std::string text =
      str("Multiple dispatch failed for '", name, "'; all __torch_dispatch__ handlers returned NotImplemented:\n\n");
  if (asked) text += str("  - mode object ", text_of(asked.get()), "\n");
  for (const PyRef& o : overloaded)
    text += str("  - tensor subclass ", text_of(reinterpret_cast<PyObject*>(Py_TYPE(o.get()))), "\n");
  text += "\nFor more information, try re-running with TORCH_LOGS=not_implemented";
  raise(PyExc_TypeError, "%s", text.c_str());
}

bool bind_torch_dispatch(PyObject* module) {
  install_custom_geometry();
  register_fallback(DispatchKey::Python, Ref<BoxedKernel>::adopt(new PythonKey()), false);
  return PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace tn::py
