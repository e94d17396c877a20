// Matching calls against signatures, and entering the door.
#include "bindings/parser.h"

#include <cstring>
#include <new>
#include <string>

#include "bindings/convert.h"
#include "bindings/objects.h"
#include "bindings/parse.h"
#include "bindings/tensor.h"
#include "runtime/autograd_meta.h"
#include "runtime/door.h"

namespace tn::py {

void Parsed::defer_error() {
  if (deferred_) {
    PyErr_Clear();
    return;
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  deferred_ = value;
}

void Parsed::finish() {
  if (__builtin_expect(deferred_ != nullptr, 0)) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(deferred_)), deferred_);
    throw PythonError();
  }
}

void Parsed::reset() {
  overloaded.clear();
  num_outs = 0;
  requires_grad = false;
  large = false;
  absent_device = Device();
  used_ = 0;
  while (num_temps_ > 0) temps_[--num_temps_] = nullptr;
  if (deferred_) Py_CLEAR(deferred_);
  if (!more_.empty()) more_.clear();
  if (!heap_.empty()) heap_.clear();
}

namespace {

// Names that numpy uses for the same parameter.
struct Alias {
  const char* name;
  const char* others[3];
};
constexpr Alias kAliases[] = {{"dim", {"axis", nullptr, nullptr}},
                              {"keepdim", {"keepdims", nullptr, nullptr}},
                              {"input", {"x", "a", "x1"}},
                              {"other", {"x2", nullptr, nullptr}}};

bool same_name(PyObject* key, const char* name) {
  return PyUnicode_IS_COMPACT_ASCII(key) && std::strcmp(static_cast<const char*>(PyUnicode_DATA(key)), name) == 0;
}

PyObject* find_exact(const PyCall& call, Py_ssize_t n, const char* name) {
  for (Py_ssize_t i = 0; i < n; ++i)
    if (same_name(PyTuple_GET_ITEM(call.kwnames, i), name)) return call.args[call.nargs + i];
  return nullptr;
}

PyObject* find_keyword(const PyCall& call, Py_ssize_t n, const char* name) {
  if (PyObject* const found = find_exact(call, n, name)) return found;
  for (const Alias& a : kAliases) {
    if (std::strcmp(a.name, name) != 0) continue;
    for (const char* other : a.others)
      if (other)
        if (PyObject* const found = find_exact(call, n, other)) return found;
  }
  return nullptr;
}

[[noreturn]] void raise_extra(const Function& f, const Signature& s, Py_ssize_t nargs) {
  int required = 0;
  for (int i = 0; i < s.num_params; ++i) required += (s.params[i].flags & Param::kHasDefault) == 0;
  if (f.method && s.num_params == 0 && f.num_signatures == 1)  // upstream's METH_NOARGS
    raise(PyExc_TypeError, "TensorBase.%s() takes no arguments (%zd given)", f.name, nargs);
  if (required != s.num_positional)
    raise(PyExc_TypeError, "%s() takes from %d to %d positional arguments but %zd were given", f.name, required,
          static_cast<int>(s.num_positional), nargs);
  raise(PyExc_TypeError, "%s() takes %d positional argument%s but %zd %s given", f.name,
        static_cast<int>(s.num_positional), s.num_positional == 1 ? "" : "s", nargs, nargs == 1 ? "was" : "were");
}

[[noreturn]] void raise_missing(const Function& f, const Signature& s, int from) {
  int missing = 0;
  std::string names;
  for (int i = from; i < s.num_params; ++i) {
    if (s.params[i].flags & Param::kHasDefault) continue;
    names += (missing++ ? ", \"" : "\"") + std::string(s.params[i].name) + "\"";
  }
  // Upstream's plural is the wrong way round.
  raise(PyExc_TypeError, "%s() missing %d required positional argument%s: %s", f.name, missing, missing == 1 ? "s" : "",
        names.c_str());
}

[[noreturn]] void raise_keywords(const Function& f, const Signature& s, const PyCall& call) {
  if (f.method && s.num_params == 0 && f.num_signatures == 1)
    raise(PyExc_TypeError, "TensorBase.%s() takes no keyword arguments", f.name);
  for (Py_ssize_t k = 0; k < call.num_keywords(); ++k) {
    PyObject* const key = PyTuple_GET_ITEM(call.kwnames, k);
    int index = -1;
    for (int i = 0; i < s.num_params && index < 0; ++i)
      if (same_name(key, s.params[i].name)) index = i;
    if (index < 0) raise(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", f.name, key);
    if (index < call.nargs) raise(PyExc_TypeError, "%s() got multiple values for argument '%U'", f.name, key);
  }
  raise(PyExc_TypeError, "invalid keyword arguments");
}

[[noreturn]] void raise_type(const Function& f, const Param& param, PyObject* obj, bool keyword, Py_ssize_t position,
                             Py_ssize_t failed) {
  const char* const want = param_type_name(param.type);
  if (keyword)
    raise(PyExc_TypeError, "%s(): argument '%s' must be %s, not %s", f.name, param.name, want, Py_TYPE(obj)->tp_name);
  if (failed >= 0 && PySequence_Check(obj)) {
    const PyRef item = PyRef::check(PySequence_GetItem(obj, failed));
    raise(PyExc_TypeError, "%s(): argument '%s' (position %zd) must be %s, but found element of type %s at pos %zd",
          f.name, param.name, position, want, Py_TYPE(item.get())->tp_name, failed);
  }
  raise(PyExc_TypeError, "%s(): argument '%s' (position %zd) must be %s, not %s", f.name, param.name, position, want,
        Py_TYPE(obj)->tp_name);
}

// Self is the schema's first argument but for `where`, whose condition comes first.
inline int self_index(const Signature& s) {
  if (__builtin_expect(s.num_params == 0 || s.params[0].arg != 0, 1)) return 0;
  int index = 0;
  for (int i = 0; i < s.num_params; ++i)
    if (s.params[i].arg == index) ++index, i = -1;
  return index;
}

// Puts a parsed value where the signature says it goes.
inline void place(Parsed& p, const Signature& s, const Param& param, const Arg& value) {
  if (param.arg >= 0) {
    p.arg(param.arg) = value;
  } else if (param.arg == Param::kRequiresGrad) {
    p.requires_grad = value.i != 0;
  } else if (param.arg == Param::kOutParam && !value.is_none()) {
    if (value.tag == Tag::TensorList && !(s.flags & Signature::kListOut)) {
      const TensorList list = value.tensors();
      if (list.size() != s.num_outs)
        raise(PyExc_TypeError, "expected tuple of %d elements but got %zu", static_cast<int>(s.num_outs), list.size());
      for (const Tensor& t : list) p.outs()[p.num_outs++] = Arg::of(t);
    } else {
      p.outs()[p.num_outs++] = value;
    }
  }
}

}  // namespace

bool try_signature(const Function& f, const Signature& s, const PyCall& call, Parsed& p, bool raise_errors) {
  const Py_ssize_t num_keywords = call.num_keywords();
  const bool spread = s.num_positional == 1 && s.params[0].type == ParamType::IntList;
  if (call.nargs > s.num_positional && !spread) {
    if (raise_errors) raise_extra(f, s, call.nargs);
    return false;
  }
  p.reset();
  if (s.num_args > 0) std::memcpy(static_cast<void*>(p.args()), s.defaults, sizeof(Arg) * s.num_args);
  if (f.method) {
    if (__builtin_expect(overrides(call.self), 0)) p.overloaded.add(call.self);
    p.arg(self_index(s)) = Arg::of_impl(impl_of(call.self));
    p.large = impl_of(call.self)->numel() >= kLargeNumel;
  }
  Py_ssize_t position = 0, used_keywords = 0;
  for (int i = 0; i < s.num_params; ++i) {
    const Param& param = s.params[i];
    PyObject* obj = nullptr;
    bool keyword = false;
    if (position < call.nargs) {
      if (param.flags & Param::kKeywordOnly) {
        if (raise_errors) raise_extra(f, s, call.nargs);
        return false;
      }
      obj = call.args[position];
    } else if (num_keywords > used_keywords) {
      obj = find_keyword(call, num_keywords, param.name);
      keyword = true;
    }
    if (!obj) {
      if (param.flags & Param::kHasDefault) continue;
      if (raise_errors) raise_missing(f, s, i);
      return false;
    }
    Arg value;
    Py_ssize_t failed = -1;
    if (obj == Py_None && (param.flags & Param::kAllowNone)) {
      if (param.arg >= 0) p.arg(param.arg) = Arg();
    } else if (accept(param, obj, i, p, &value, &failed) != 0) {
      place(p, s, param, value);
    } else if (spread && !keyword && position == 0 && accept_varargs(param, call, p, &value) != 0) {
      place(p, s, param, value);
      position = call.nargs;
      continue;
    } else {
      if (raise_errors) raise_type(f, param, obj, keyword, position + 1, failed);
      return false;
    }
    if (keyword) ++used_keywords;
    else ++position;
  }
  if (used_keywords < num_keywords) {
    if (raise_errors) raise_keywords(f, s, call);
    return false;
  }
  return true;
}

namespace {

// The Python-visible callable that __torch_function__ is told.
PyRef public_callable(const Function& f) {
  static constexpr const char* kApis[][2] = {
      {"torch.nn", "_nn"},           {"torch._C._nn", "_nn"},     {"torch.linalg", "_linalg"}, {"torch.fft", "_fft"},
      {"torch.special", "_special"}, {"torch.sparse", "_sparse"}, {"torch.nested", "_nested"}};
  if (f.method) return PyRef::check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_class), f.name));
  const PyRef core = PyRef::check(PyImport_ImportModule("torch._C"));
  const char* api = "_VariableFunctions";
  for (const auto& a : kApis)
    if (std::strcmp(a[0], f.module) == 0) api = a[1];
  const PyRef owner = PyRef::check(PyObject_GetAttrString(core.get(), api));
  return PyRef::check(PyObject_GetAttrString(owner.get(), f.name));
}

[[gnu::noinline]] PyObject* override_call(const Function& f, const PyCall& call, const Overloaded& who) {
  const PyRef func = public_callable(f);
  return call_torch_function(who, func.get(), f.method ? call.self : nullptr, call.args, call.nargs, call.kwnames,
                             f.method ? "torch.Tensor" : f.module, f.name);
}

// While one hop is to be skipped, nothing in this call overrides.
class SkipHop {
 public:
  SkipHop() : active_(torch_function_state.skip_next), previous_(torch_function_state.disabled) {
    if (__builtin_expect(active_, 0)) {
      torch_function_state.skip_next = false;
      torch_function_state.disabled = TorchFunctionState::kAll;
    }
  }
  ~SkipHop() { restore(); }
  SkipHop(const SkipHop&) = delete;
  SkipHop& operator=(const SkipHop&) = delete;
  void restore() {
    if (__builtin_expect(active_, 0)) torch_function_state.disabled = previous_;
    active_ = false;
  }

 private:
  bool active_;
  TorchFunctionState::Disabled previous_;
};

}  // namespace

const Signature* parse(const Function& f, const PyCall& call, Parsed& p, PyObject** override_result) {
  SkipHop skip;
  p.function_name = f.name;
  const Signature* found = nullptr;
  const int n = f.num_signatures;
  if (n == 1) {
    try_signature(f, f.signatures[0], call, p, true);
    found = &f.signatures[0];
  } else {
    bool any_deprecated = false;
    for (int i = 0; i < n && !found; ++i) {
      if (f.signatures[i].flags & Signature::kDeprecated) any_deprecated = true;
      else if (try_signature(f, f.signatures[i], call, p, false)) found = &f.signatures[i];
    }
    if (any_deprecated)
      for (int i = 0; i < n && !found; ++i)
        if ((f.signatures[i].flags & Signature::kDeprecated) && try_signature(f, f.signatures[i], call, p, false))
          found = &f.signatures[i];
    if (!found) raise_no_match(f, call, p);
  }
  if (__builtin_expect((found->flags & Signature::kDeprecated) != 0, 0)) warn_deprecated(f, *found);
  if (__builtin_expect(!p.overloaded.empty() || torch_function_mode_active(), 0)) {
    skip.restore();
    *override_result = override_call(f, call, p.overloaded);
    return nullptr;
  }
  p.finish();
  // Modes may have fakes of that device's tensors, and the makers of subclasses only note it.
  if (__builtin_expect(!p.absent_device.is_cpu(), 0) &&
      (thread_state.included & KeySet(DispatchKey::Python).raw()) == 0 &&
      torch_function_state.disabled != TorchFunctionState::kAll)
    initialize_device(p.absent_device);
  p.signature = found;
  return found;
}

namespace {

// What the operator left, as Python sees it.
PyObject* results_to_python(const Function& f, const OpRow& row, Value* out) {
  const int n = row.info->num_returns;
  if (n == 1) return value_to_python(row, 0, out[0]);
  if (n == 0) Py_RETURN_NONE;
  PyObject* const tuple = new_result_tuple(f.return_type, n, row.info->is(OpInfo::kOut));
  if (!tuple) throw PythonError();
  const PyRef owned = PyRef::adopt(tuple);
  for (int i = 0; i < n; ++i) set_result_item(tuple, i, PyRef::check(value_to_python(row, i, out[i])).release());
  return PyRef(owned).release();
}

// Results, made and destroyed only as many as the operator has.
class Results {
 public:
  explicit Results(int n) : n_(n > 0 ? n : 1) {
    for (int i = 0; i < n_; ++i) new (data() + i) Value();
  }
  ~Results() {
    for (int i = 0; i < n_; ++i) data()[i].~Value();
  }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;
  Value* data() { return reinterpret_cast<Value*>(bytes_); }

 private:
  int n_;
  alignas(Value) unsigned char bytes_[sizeof(Value) * kMaxResults];
};

// Python's code under the door takes the GIL back by itself; small work is not worth two switches.
inline void enter(OpRow& op, std::span<const Arg> args, Value* out, bool release_gil) {
  const GilRelease release(release_gil);
  door::call_boxed(op, args, out);
}

// A factory called from Python names its device and memory; modes and observers see them, as upstream's do.
void name_options(const Function& f, const Signature& s, Parsed& p) {
  int device = -1;
  bool takes_tensor = false;
  for (int i = 0; i < s.num_params; ++i) {
    const Param& param = s.params[i];
    if (param.type == ParamType::Tensor && param.arg >= 0 && param.arg < s.num_args) takes_tensor = true;
    if (param.arg < 0 || param.arg >= s.num_args || !p.arg(param.arg).is_none()) continue;
    if (param.type == ParamType::Device) device = param.arg;
    else if (param.type == ParamType::Bool && std::strcmp(param.name, "pin_memory") == 0)
      p.arg(param.arg) = Arg::of(false);
  }
  if (device >= 0 && !takes_tensor && !f.method) p.arg(device) = Arg::of(Device());
}

PyObject* run(const Function& f, const Signature& s, const PyCall& call, Parsed& p) {
  OpRow& op = row(p.num_outs > 0 ? s.out_op : s.op);
  Results out(op.info->num_returns);
  if (__builtin_expect(p.num_outs > 0, 0)) {
    Arg args[kMaxArgs];
    for (int i = 0; i < s.num_out_args; ++i) {
      const int from = s.out_args[i];
      args[i] = from >= 0 ? p.arg(from) : p.outs()[-1 - from];
    }
    enter(op, {args, s.num_out_args}, out.data(), p.large);
  } else {
    if (s.flags & Signature::kOptions) name_options(f, s, p);
    enter(op, {p.args(), s.num_args}, out.data(), p.large);
  }
  if (s.flags & Signature::kInplaceSelf) {
    if (f.method) return Py_NewRef(call.self);
    if (op.info->num_returns == 0)
      return Py_NewRef(call.nargs > 0 ? call.args[0] : find_keyword(call, call.num_keywords(), s.params[0].name));
  }
  PyObject* const result = results_to_python(f, op, out.data());
  if (p.requires_grad && result && is_tensor(result)) set_requires_grad(tensor_of(result), true);
  return result;
}

}  // namespace

PyObject* call_function(const Function& f, PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    const PyCall call{f.method ? self : nullptr, args, nargs, kwnames};
    Parsed p;
    PyObject* overridden = nullptr;
    const Signature* const s = parse(f, call, p, &overridden);
    return s ? run(f, *s, call, p) : overridden;
  });
}

}  // namespace tn::py
