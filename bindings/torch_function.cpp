#include "bindings/torch_function.h"

#include <string>
#include <utility>

namespace tn::py {

constinit thread_local TorchFunctionState torch_function_state [[gnu::tls_model("initial-exec")]]{};
PyObject* disabled_torch_function_impl = nullptr;
PyObject* disabled_torch_dispatch_impl = nullptr;

namespace {

PyObject* protocol_name() {
  static PyObject* const name = PyUnicode_InternFromString("__torch_function__");
  return name;
}

// Types that the interpreter defines and that can't override; a quick no for nearly every argument that is no tensor.
bool is_plain_type(PyTypeObject* t) {
  return t == &PyLong_Type || t == &PyFloat_Type || t == &PyBool_Type || t == &PyUnicode_Type || t == &PyTuple_Type ||
         t == &PyList_Type || t == &PyDict_Type || t == Py_TYPE(Py_None) || t == &PyComplex_Type ||
         t == &PyBytes_Type || t == &PySlice_Type || t == Py_TYPE(Py_Ellipsis) || t == &PySet_Type ||
         t == &PyFunction_Type;
}

std::vector<PyObject*>& stack() {
  if (!torch_function_state.stack)
    torch_function_state.stack = new std::vector<PyObject*>();  // lives as long as the thread
  return *torch_function_state.stack;
}

// Takes the innermost mode off while it runs.
class StashMode {
 public:
  StashMode() {
    auto& s = stack();
    mode_ = PyRef::adopt(s.back());
    s.pop_back();
    torch_function_state.num_modes = static_cast<uint32_t>(s.size());
  }
  ~StashMode() {
    auto& s = stack();
    s.push_back(mode_.release());
    torch_function_state.num_modes = static_cast<uint32_t>(s.size());
  }
  StashMode(const StashMode&) = delete;
  StashMode& operator=(const StashMode&) = delete;
  PyObject* mode() const { return mode_.get(); }

 private:
  PyRef mode_;
};

class DisableGuard {
 public:
  explicit DisableGuard(TorchFunctionState::Disabled d) : previous_(torch_function_state.disabled) {
    if (previous_ < d) torch_function_state.disabled = d;
  }
  ~DisableGuard() { torch_function_state.disabled = previous_; }
  DisableGuard(const DisableGuard&) = delete;
  DisableGuard& operator=(const DisableGuard&) = delete;

 private:
  TorchFunctionState::Disabled previous_;
};

std::string text_of(PyObject* o) {
  const PyRef s = PyRef::adopt(PyObject_Repr(o));
  const char* t = s ? PyUnicode_AsUTF8(s.get()) : nullptr;
  if (!t) PyErr_Clear();
  return t ? t : "?";
}

bool is_self_of(PyObject* method, PyObject* self) {
  const PyRef bound = PyRef::adopt(PyObject_GetAttrString(method, "__self__"));
  if (!bound) PyErr_Clear();
  return bound.get() == self;
}

}  // namespace

bool overrides_slow(PyObject* o) {
  PyTypeObject* const t = Py_TYPE(o);
  if (is_plain_type(t) || torch_function_state.disabled != TorchFunctionState::kEnabled) return false;
  PyObject* const attribute = _PyType_Lookup(t, protocol_name());
  return attribute && attribute != disabled_torch_function_impl;
}

void Overloaded::add(PyObject* o) {
  PyTypeObject* const t = Py_TYPE(o);
  int at = n_;
  for (int i = 0; i < n_; ++i)
    if (Py_TYPE(items_[i]) == t) return;
  for (int i = 0; i < n_; ++i)
    if (PyType_IsSubtype(t, Py_TYPE(items_[i]))) {
      at = i;
      break;
    }
  if (n_ == kMax) raise(PyExc_RuntimeError, "too many classes override __torch_function__ in one call");
  for (int i = n_; i > at; --i) items_[i] = items_[i - 1];
  items_[at] = o;
  ++n_;
}

PyObject* call_torch_function(const Overloaded& who, PyObject* func, PyObject* args, PyObject* kwargs,
                              const char* where, const char* name) {
  const PyRef types = PyRef::check(PyTuple_New(who.size()));
  for (int i = 0; i < who.size(); ++i)
    PyTuple_SET_ITEM(types.get(), i, Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(who[i]))));
  PyRef result, mode;
  if (torch_function_mode_active()) {
    StashMode stash;
    mode = PyRef::share(stash.mode());
    const PyRef method = PyRef::check(PyObject_GetAttr(mode.get(), protocol_name()));
    if (!is_self_of(method.get(), mode.get()))
      raise(
          PyExc_RuntimeError,
          "Defining your mode's `__torch_function__` as a classmethod is not supported, please make it a plain method");
    PyObject* const call[] = {func, types.get(), args, kwargs};
    result = PyRef::check(PyObject_Vectorcall(method.get(), call, kwargs ? 4 : 3, nullptr));
  }
  for (int i = 0; i < who.size() && (!result || result.get() == Py_NotImplemented); ++i) {
    const PyRef method = PyRef::check(PyObject_GetAttr(who[i], protocol_name()));
    if (method.get() != disabled_torch_function_impl && is_self_of(method.get(), who[i]) &&
        PyErr_WarnEx(
            PyExc_UserWarning,
            "Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, please "
            "define it as a classmethod.",
            1) < 0)
      throw PythonError();
    PyObject* const call[] = {func, types.get(), args, kwargs};
    result = PyRef::check(PyObject_Vectorcall(method.get(), call, kwargs ? 4 : 3, nullptr));
  }
  if (result && result.get() != Py_NotImplemented) return result.release();
  std::string text = std::string("Multiple dispatch failed for '") + where + "." + name +
                     "'; all __torch_function__ handlers returned NotImplemented:\n\n";
  if (mode) text += "  - mode object " + text_of(mode.get()) + "\n";
  for (int i = 0; i < who.size(); ++i)
    text += "  - tensor subclass " + text_of(reinterpret_cast<PyObject*>(Py_TYPE(who[i]))) + "\n";
  text += "\nFor more information, try re-running with TORCH_LOGS=not_implemented";
  PyErr_SetString(PyExc_TypeError, text.c_str());
  throw PythonError();
}

PyObject* call_torch_function(const Overloaded& who, PyObject* func, PyObject* self, PyObject* const* args,
                              Py_ssize_t nargs, PyObject* kwnames, const char* where, const char* name) {
  const Py_ssize_t first = self ? 1 : 0;
  const PyRef tuple = PyRef::check(PyTuple_New(nargs + first));
  if (self) PyTuple_SET_ITEM(tuple.get(), 0, Py_NewRef(self));
  for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(tuple.get(), first + i, Py_NewRef(args[i]));
  PyRef kwargs;
  if (kwnames && PyTuple_GET_SIZE(kwnames) > 0) {
    kwargs = PyRef::check(PyDict_New());
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); ++i)
      if (PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(kwnames, i), args[nargs + i]) < 0) throw PythonError();
  }
  return call_torch_function(who, func, tuple.get(), kwargs.get(), where, name);
}

namespace {

PyObject* tensor_type() { return reinterpret_cast<PyObject*>(tensor_class ? tensor_class : &tensor_base_type); }

// Clears a pending skip; true if this call must not look for overrides.
bool take_skip() {
  if (__builtin_expect(!torch_function_state.skip_next, 1)) return false;
  torch_function_state.skip_next = false;
  return true;
}

PyRef descriptor_part(const char* name, const char* part) {
  const PyRef descriptor = PyRef::check(PyObject_GetAttrString(tensor_type(), name));
  return PyRef::check(PyObject_GetAttrString(descriptor.get(), part));
}

}  // namespace

bool method_override(PyObject* self, const char* name, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
                     PyObject** result) {
  if (take_skip()) return false;
  Overloaded who;
  if (overrides(self)) who.add(self);
  if (who.empty() && !torch_function_mode_active()) return false;
  const PyRef func = PyRef::check(PyObject_GetAttrString(tensor_type(), name));
  *result = call_torch_function(who, func.get(), self, args, nargs, kwnames, "torch.Tensor", name);
  return true;
}

bool getter_override(PyObject* self, const char* name, PyObject** result) {
  if (take_skip()) return false;
  Overloaded who;
  if (overrides(self)) who.add(self);
  if (who.empty() && !torch_function_mode_active()) return false;
  const PyRef func = descriptor_part(name, "__get__");
  *result = call_torch_function(who, func.get(), self, nullptr, 0, nullptr,
                                ("torch.Tensor." + std::string(name)).c_str(), "__get__");
  return true;
}

bool setter_override(PyObject* self, const char* name, PyObject* value, int* result) {
  if (take_skip()) return false;
  Overloaded who;
  if (overrides(self)) who.add(self);
  if (who.empty() && !torch_function_mode_active()) return false;
  const char* const part = value ? "__set__" : "__delete__";
  const PyRef func = descriptor_part(name, part);
  PyRef::adopt(call_torch_function(who, func.get(), self, &value, value ? 1 : 0, nullptr,
                                   ("torch.Tensor." + std::string(name)).c_str(), part));
  *result = 0;
  return true;
}

bool function_override(PyObject* func, PyObject* args, PyObject* kwargs, const char* where, const char* name,
                       PyObject** result) {
  if (take_skip()) return false;
  Overloaded who;
  const auto look = [&](PyObject* o) {
    if (overrides(o)) who.add(o);
  };
  const auto look_in = [&](PyObject* o) {
    look(o);
    if (!PyList_Check(o) && !PyTuple_Check(o)) return;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) look(PySequence_Fast_GET_ITEM(o, i));
  };
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) look_in(PyTuple_GET_ITEM(args, i));
  Py_ssize_t at = 0;
  PyObject *key, *value;
  while (kwargs && PyDict_Next(kwargs, &at, &key, &value)) look_in(value);
  if (who.empty() && !torch_function_mode_active()) return false;
  *result = call_torch_function(who, func, args, kwargs, where, name);
  return true;
}

// ---- torch._C's names
// ------------------------------------------------------------------------------------------------
namespace {

PyObject* push_mode(PyObject*, PyObject* mode) {
  if (mode == Py_None) Py_RETURN_NONE;
  stack().push_back(Py_NewRef(mode));
  torch_function_state.num_modes = static_cast<uint32_t>(stack().size());
  Py_RETURN_NONE;
}
PyObject* pop_mode(PyObject*, PyObject*) {
  auto& s = stack();
  if (s.empty()) {
    PyErr_SetString(PyExc_RuntimeError, "trying to pop from empty mode stack");
    return nullptr;
  }
  PyObject* const mode = s.back();
  s.pop_back();
  torch_function_state.num_modes = static_cast<uint32_t>(s.size());
  return mode;
}
PyObject* stack_length(PyObject*, PyObject*) { return PyLong_FromSize_t(stack().size()); }
PyObject* stack_at(PyObject*, PyObject* index) {
  const Py_ssize_t i = PyNumber_AsSsize_t(index, PyExc_IndexError);
  if (i == -1 && PyErr_Occurred()) return nullptr;
  auto& s = stack();
  if (i < 0 || static_cast<size_t>(i) >= s.size()) {
    PyErr_SetString(PyExc_IndexError, "Tried to get stack at idx that's too big");
    return nullptr;
  }
  return Py_NewRef(s[static_cast<size_t>(i)]);
}
PyObject* is_enabled(PyObject*, PyObject*) {
  return new_bool(torch_function_state.disabled == TorchFunctionState::kEnabled);
}
PyObject* is_all_disabled(PyObject*, PyObject*) {
  return new_bool(torch_function_state.disabled == TorchFunctionState::kAll);
}
PyObject* is_mode_enabled(PyObject*, PyObject*) { return new_bool(torch_function_mode_active()); }

// The last slot of a call `f(func, types, args, kwargs)`, run with overrides of subclasses off or skipped once.
bool split_call(const char* name, PyObject* const* args, Py_ssize_t nargs, PyObject** tuple) {
  if (nargs < 2 || nargs > 4) {
    PyErr_Format(PyExc_TypeError, "%s: expected func, types[, args[, kwargs]], got %zd arguments", name, nargs);
    return false;
  }
  *tuple = nargs > 2 && args[2] != Py_None ? PySequence_Tuple(args[2]) : PyTuple_New(0);
  return *tuple != nullptr;
}
PyObject* disabled_function(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  PyObject* tuple;
  if (!split_call("_disabled_torch_function_impl", args, nargs, &tuple)) return nullptr;
  const PyRef owned = PyRef::adopt(tuple);
  const DisableGuard guard(TorchFunctionState::kSubclasses);
  return PyObject_Call(args[0], tuple, nargs > 3 && args[3] != Py_None ? args[3] : nullptr);
}
PyObject* skip_one_hop(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  PyObject* tuple;
  if (!split_call("_skip_one_hop_torch_function", args, nargs, &tuple)) return nullptr;
  const PyRef owned = PyRef::adopt(tuple);
  torch_function_state.skip_next = true;
  PyObject* const result = PyObject_Call(args[0], tuple, nargs > 3 && args[3] != Py_None ? args[3] : nullptr);
  torch_function_state.skip_next = false;
  return result;
}
PyObject* set_skip_next(PyObject*, PyObject* on) {
  torch_function_state.skip_next = on == Py_True;
  Py_RETURN_NONE;
}
PyObject* peek_skip(PyObject*, PyObject*) { return new_bool(torch_function_state.skip_next); }
// What super().__torch_dispatch__ runs: the operator below the Python key. Keys above are left out as well, since the
// call came from below them. A plain list of arguments is no tuple, and a TypeError as upstream's.
PyObject* disabled_dispatch(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&]() -> PyObject* {
    PyObject* tuple;
    if (!split_call("_disabled_torch_dispatch_impl", args, nargs, &tuple)) return nullptr;
    const PyRef owned = PyRef::adopt(tuple);
    constexpr uint64_t kBelow = KeySet::below(DispatchKey::Python).raw();
    const ExcludeGuard below(KeySet(~kBelow & ~KeySet::kOurs));
    return PyObject_Call(args[0], tuple, nargs > 3 && args[3] != Py_None ? args[3] : nullptr);
  });
}

PyObject* has_in_sequence(PyObject*, PyObject* args) {
  if (take_skip()) Py_RETURN_FALSE;
  if (torch_function_mode_active()) Py_RETURN_TRUE;
  const PyRef items = PyRef::adopt(PySequence_Fast(args, "expected a sequence"));
  if (!items) return nullptr;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
    if (overrides(PySequence_Fast_GET_ITEM(items.get(), i))) Py_RETURN_TRUE;
  Py_RETURN_FALSE;
}
PyObject* has_in_one(PyObject*, PyObject* o) {
  if (take_skip()) Py_RETURN_FALSE;
  return new_bool(torch_function_mode_active() || overrides(o));
}
PyObject* has_in_arguments(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (take_skip()) Py_RETURN_FALSE;
  if (torch_function_mode_active()) Py_RETURN_TRUE;
  for (Py_ssize_t i = 0; i < nargs; ++i)
    if (overrides(args[i])) Py_RETURN_TRUE;
  Py_RETURN_FALSE;
}

// The two context managers. State before entry is kept in the object.
struct DisableObject {
  PyObject_HEAD TorchFunctionState::Disabled previous;
};
template <TorchFunctionState::Disabled kWhat>
PyObject* disable_enter(PyObject* self, PyObject*) {
  reinterpret_cast<DisableObject*>(self)->previous = torch_function_state.disabled;
  if (torch_function_state.disabled < kWhat) torch_function_state.disabled = kWhat;
  Py_RETURN_NONE;
}
PyObject* disable_exit(PyObject* self, PyObject*) {
  torch_function_state.disabled = reinterpret_cast<DisableObject*>(self)->previous;
  Py_RETURN_NONE;
}
template <TorchFunctionState::Disabled kWhat>
PyMethodDef disable_methods[] = {{"__enter__", disable_enter<kWhat>, METH_NOARGS, nullptr},
                                 {"__exit__", disable_exit, METH_VARARGS, nullptr},
                                 {nullptr, nullptr, 0, nullptr}};
PyTypeObject new_type() {
  PyTypeObject t{};
  t.ob_base.ob_base.ob_refcnt = 1;
  return t;
}
template <TorchFunctionState::Disabled kWhat>
PyTypeObject* disable_type(const char* name) {
  static PyTypeObject type;
  type = new_type();
  type.tp_name = name;
  type.tp_basicsize = sizeof(DisableObject);
  type.tp_flags = Py_TPFLAGS_DEFAULT;
  type.tp_methods = disable_methods<kWhat>;
  type.tp_new = PyType_GenericNew;
  return &type;
}

// Overrides are on again while an object of this class lives.
PyObject* enable_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* const self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  reinterpret_cast<DisableObject*>(self)->previous =
      std::exchange(torch_function_state.disabled, TorchFunctionState::kEnabled);
  return self;
}
PyObject* enable_enter(PyObject*, PyObject*) { Py_RETURN_NONE; }
void enable_dealloc(PyObject* self) {
  torch_function_state.disabled = reinterpret_cast<DisableObject*>(self)->previous;
  Py_TYPE(self)->tp_free(self);
}
PyMethodDef enable_methods[] = {{"__enter__", enable_enter, METH_NOARGS, nullptr},
                                {"__exit__", disable_exit, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyTypeObject* enable_type() {
  static PyTypeObject type;
  type = new_type();
  type.tp_name = "torch._C._EnableTorchFunction";
  type.tp_basicsize = sizeof(DisableObject);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  type.tp_methods = enable_methods;
  type.tp_new = enable_new;
  type.tp_dealloc = enable_dealloc;
  return &type;
}

// _TorchFunctionState's members are looked up on the enum that the names table made; ints do for comparison.
PyObject* state_enum = nullptr;
PyObject* get_state(PyObject*, PyObject*) {
  if (!state_enum) return PyLong_FromLong(torch_function_state.disabled);
  return PyObject_CallFunction(state_enum, "i", static_cast<int>(torch_function_state.disabled));
}
PyObject* set_state(PyObject*, PyObject* value) {
  const PyRef number = PyRef::adopt(PyNumber_Long(value));
  if (!number) return nullptr;
  const long v = PyLong_AsLong(number.get());
  if (v < 0 || v > 2) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_ValueError, "_set_torch_function_state: expected a _TorchFunctionState");
    return nullptr;
  }
  torch_function_state.disabled = static_cast<TorchFunctionState::Disabled>(v);
  Py_RETURN_NONE;
}

template <class F>
constexpr PyCFunction as_cfunction(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef functions[] = {{"_push_on_torch_function_stack", push_mode, METH_O, nullptr},
                           {"_pop_torch_function_stack", pop_mode, METH_NOARGS, nullptr},
                           {"_len_torch_function_stack", stack_length, METH_NOARGS, nullptr},
                           {"_get_function_stack_at", stack_at, METH_O, nullptr},
                           {"_is_torch_function_enabled", is_enabled, METH_NOARGS, nullptr},
                           {"_is_torch_function_all_disabled", is_all_disabled, METH_NOARGS, nullptr},
                           {"_is_torch_function_mode_enabled", is_mode_enabled, METH_NOARGS, nullptr},
                           {"_disabled_torch_function_impl", as_cfunction(disabled_function), METH_FASTCALL, nullptr},
                           {"_disabled_torch_dispatch_impl", as_cfunction(disabled_dispatch), METH_FASTCALL, nullptr},
                           {"_skip_one_hop_torch_function", as_cfunction(skip_one_hop), METH_FASTCALL, nullptr},
                           {"_set_skip_next_torch_function", set_skip_next, METH_O, nullptr},
                           {"_peek_should_skip_torch_function", peek_skip, METH_NOARGS, nullptr},
                           {"_has_torch_function", has_in_sequence, METH_O, nullptr},
                           {"_has_torch_function_unary", has_in_one, METH_O, nullptr},
                           {"_has_torch_function_variadic", as_cfunction(has_in_arguments), METH_FASTCALL, nullptr},
                           {"_get_torch_function_state", get_state, METH_NOARGS, nullptr},
                           {"_set_torch_function_state", set_state, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool bind_torch_function(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) return false;
  disabled_torch_function_impl = PyObject_GetAttrString(module, "_disabled_torch_function_impl");
  disabled_torch_dispatch_impl = PyObject_GetAttrString(module, "_disabled_torch_dispatch_impl");
  state_enum = PyObject_GetAttrString(module, "_TorchFunctionState");
  if (!state_enum) PyErr_Clear();
  PyTypeObject* const subclasses =
      disable_type<TorchFunctionState::kSubclasses>("torch._C.DisableTorchFunctionSubclass");
  PyTypeObject* const all = disable_type<TorchFunctionState::kAll>("torch._C.DisableTorchFunction");
  if (PyObject_HasAttrString(module, "_EnableTorchFunction") &&
      PyObject_DelAttrString(module, "_EnableTorchFunction") < 0)
    return false;
  return PyModule_AddType(module, enable_type()) == 0 && PyModule_AddType(module, subclasses) == 0 &&
         PyModule_AddType(module, all) == 0;
}

}  // namespace tn::py
