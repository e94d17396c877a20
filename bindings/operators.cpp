// Operators by name: the callables behind torch.ops and the queries on the table of operators.
#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "bindings/refused_method.h"
#include "bindings/boxed_call.h"
#include "bindings/library_internal.h"
#include "bindings/py.h"
#include "bindings/schema.h"
#include "bindings/torch_function.h"
#include "runtime/missing_kernel.h"
#include "runtime/refuse.h"
#include "runtime/registry.h"
#include "runtime/schema_parser.h"

namespace tn::py {
namespace {

// The `self` of a callable: one overload, or all of a name.
struct HandleObject {
  PyObject_HEAD std::vector<OpRow*>* overloads;
  bool packet;
};
PyTypeObject* handle_class = nullptr;

HandleObject* handle_of(PyObject* self) { return reinterpret_cast<HandleObject*>(self); }

PyRef make_handle(std::vector<OpRow*> overloads, bool packet) {
  PyRef object = PyRef::check(handle_class->tp_alloc(handle_class, 0));
  handle_of(object.get())->overloads = new std::vector<OpRow*>(std::move(overloads));
  handle_of(object.get())->packet = packet;
  return object;
}
void handle_dealloc(PyObject* self) {
  PyTypeObject* cls = Py_TYPE(self);
  delete handle_of(self)->overloads;
  cls->tp_free(self);
  Py_DECREF(cls);
}
OpRow& only_op(PyObject* self) {
  TN_CHECK(handle_of(self)->overloads->size() == 1, "operator: expected one overload, got a packet of several");
  return *handle_of(self)->overloads->front();
}

// ---- calls ----------------------------------------------------------------------------------------------------------

void add_overriding(Overloaded& who, PyObject* object) {
  if (overrides(object)) {
    who.add(object);
  } else if (PyList_Check(object) || PyTuple_Check(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(object, i);
      if (overrides(item)) who.add(item);
    }
  }
}

// What __torch_function__ is told was called: the OpOverload, or the packet.
PyRef called_object(HandleObject* handle) {
  OpRow& op = *handle->overloads->front();
  PyRef overload = python_overload(op);
  return handle->packet ? PyRef::check(PyObject_GetAttrString(overload.get(), "_overloadpacket")) : overload;
}

// True when an argument or a mode takes the call.
bool take_override(HandleObject* handle, const VectorCall& call, PyObject** result) {
  Overloaded who;
  for (Py_ssize_t i = 0; i < call.num_positional + call.num_keywords(); ++i) add_overriding(who, call.args[i]);
  if (who.empty() && !torch_function_mode_active()) return false;
  PyRef callee = called_object(handle);
  const std::string_view name = handle->overloads->front()->info->name;
  const size_t colons = name.find("::");
  const std::string where = "torch.ops." + std::string(name.substr(0, colons));
  *result = call_torch_function(who, callee.get(), nullptr, call.args, call.num_positional, call.names, where.c_str(),
                                std::string(name.substr(colons + 2)).c_str());
  return true;
}

PyObject* op_call(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const VectorCall call{args, count, names};
    PyObject* result = nullptr;
    if (take_override(handle_of(self), call, &result)) return result;
    const std::vector<OpRow*>& overloads = *handle_of(self)->overloads;
    return handle_of(self)->packet ? call_packet(overloads, call) : call_op(*overloads.front(), call);
  });
}

// op_dk(key, *args, **kwargs): the kernel for that key alone.
PyObject* op_call_at(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    TN_CHECK_AS(Type, count >= 1, "operator: expected a DispatchKey first, got no arguments");
    return redispatch_op(only_op(self), KeySet(key_argument(args[0])), {args + 1, count - 1, names});
  });
}

PyObject* handle_redispatch(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    TN_CHECK_AS(Type, count >= 1, "redispatch_boxed(): expected a DispatchKeySet first, got no arguments");
    return redispatch_op(only_op(self), keyset_argument(args[0]), {args + 1, count - 1, names});
  });
}
PyObject* schema_object(OpRow& op) {
  schema_of(op);
  return wrap_schema(SchemaRef::share(op.parsed));
}
PyObject* handle_schema(PyObject* self, PyObject*) {
  return guarded([&] { return schema_object(only_op(self)); });
}

PyCFunction fast(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;
PyMethodDef overload_def = {"", fast(op_call), kFast, nullptr};
PyMethodDef overload_at_def = {"", fast(op_call_at), kFast, nullptr};

constexpr char kDebugName[] = "torch._C._DispatchOperatorHandle.debug";
constexpr char kDebugReason[] = "operators keep no registration text";

PyMethodDef handle_methods[] = {
    {"redispatch_boxed", fast(handle_redispatch), kFast, nullptr},
    {"schema", handle_schema, METH_NOARGS, nullptr},
    refused<kDebugName, kDebugReason>("debug"),
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot handle_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(handle_dealloc)},
    {Py_tp_methods, handle_methods},
    {0, nullptr},
};
PyType_Spec handle_spec = {"torch._C._DispatchOperatorHandle", sizeof(HandleObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, handle_slots};

// ---- lookup ---------------------------------------------------------------------------------------------------------

const char* utf8(PyObject* object) {
  const char* text = PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : nullptr;
  if (!text && !PyErr_Occurred())
    raise(PyExc_TypeError, "expected an operator's name as str, got %s", Py_TYPE(object)->tp_name);
  if (!text) throw PythonError();
  return text;
}

void check_namespace(std::string_view name) {
  TN_CHECK(name.find("::") != std::string_view::npos,
           "all symbols must have a namespace, <namespace>::<string>, but found: ", name);
}

int scalar_arguments(OpRow& op) {
  const std::vector<Argument>& arguments = schema_of(op).arguments();
  return static_cast<int>(std::count_if(arguments.begin(), arguments.end(),
                                        [](const Argument& a) { return a.type->kind() == TypeKind::kNumber; }));
}

// In the order in which a packet tries them: that of definition for Python's operators. For upstream's, out= forms come
// last and tensors before numbers, since add(t, 1) is add.Tensor there.
std::vector<OpRow*> ordered_overloads(std::string_view name) {
  std::vector<OpRow*> found = find_overloads(name);
  std::reverse(found.begin(), found.end());
  if (found.size() > 1) {
    std::stable_sort(found.begin(), found.end(), [](OpRow* a, OpRow* b) {
      if (a->info->way == Way::Python || b->info->way == Way::Python) return false;
      const bool a_out = a->info->is(OpInfo::kOut), b_out = b->info->is(OpInfo::kOut);
      return a_out != b_out ? b_out : scalar_arguments(*a) < scalar_arguments(*b);
    });
  }
  return found;
}

PyObject* jit_get_operation(PyObject*, PyObject* argument) {
  return guarded([&]() -> PyObject* {
    const std::string_view name = utf8(argument);
    check_namespace(name);
    std::vector<OpRow*> overloads = ordered_overloads(name);
    if (overloads.empty()) return PyTuple_Pack(2, Py_None, Py_None);
    PyRef names = PyRef::check(PyList_New(0));
    for (OpRow* op : overloads) {
      PyRef text = PyRef::check(PyUnicode_FromString(op->info->overload));
      if (PyList_Append(names.get(), text.get()) < 0) return nullptr;
    }
    // A callable's __name__ is its definition's, which CPython keeps by address.
    static auto* names_kept = new std::deque<std::string>;
    static auto* defs = new std::deque<PyMethodDef>;
    const std::string& base = names_kept->emplace_back(name.substr(name.find("::") + 2));
    PyMethodDef& def = defs->emplace_back(PyMethodDef{base.c_str(), fast(op_call), kFast, nullptr});
    PyRef handle = make_handle(std::move(overloads), true);
    PyRef callable = PyRef::check(PyCFunction_NewEx(&def, handle.get(), nullptr));
    return PyTuple_Pack(2, callable.get(), names.get());
  });
}

// _jit_resolve_packet(name, *args, **kwargs): the name of the overload that takes these arguments.
PyObject* jit_resolve_packet(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    TN_CHECK_AS(Type, count >= 1, "_jit_resolve_packet(): expected an operator's name first, got no arguments");
    const std::vector<OpRow*> overloads = ordered_overloads(utf8(args[0]));
    TN_CHECK(!overloads.empty(), "_jit_resolve_packet(): no operator is called ", utf8(args[0]));
    const OpRow& op = resolve_packet(overloads, {args + 1, count - 1, names});
    return PyUnicode_FromString(*op.info->overload ? op.info->overload : "default");
  });
}

struct NameAndOverload {
  const char* name;
  const char* overload;
};
bool read_names(PyObject* const* args, Py_ssize_t count, const char* what, NameAndOverload* out) {
  if (count != 2) {
    PyErr_Format(PyExc_TypeError, "%s(): expected a name and an overload name, got %zd arguments", what, count);
    return false;
  }
  *out = {utf8(args[0]), utf8(args[1])};
  return true;
}

PyObject* get_schema(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    NameAndOverload given{};
    if (!read_names(args, count, "_get_schema", &given)) return nullptr;
    check_namespace(given.name);
    OpRow* op = find_op(given.name, given.overload);
    TN_CHECK(op, "Found no matching schema");
    return schema_object(*op);
  });
}

// torch.Tag of a value, kept: `import torch` asks 1,996 times.
PyObject* tag_object(int value) {
  static PyObject* kept[64] = {};
  if (!kept[value]) {
    PyRef module = PyRef::check(PyImport_ImportModule("torch._C"));
    PyRef cls = PyRef::check(PyObject_GetAttrString(module.get(), "Tag"));
    kept[value] = PyRef::check(PyObject_CallFunction(cls.get(), "i", value)).release();
  }
  return kept[value];
}

PyRef tag_list(uint64_t tags) {
  PyRef list = PyRef::check(PyList_New(0));
  for (; tags; tags &= tags - 1) {
    if (PyList_Append(list.get(), tag_object(std::countr_zero(tags))) < 0) throw PythonError();
  }
  return list;
}

PyObject* get_operation_overload(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    NameAndOverload given{};
    if (!read_names(args, count, "_get_operation_overload", &given)) return nullptr;
    check_namespace(given.name);
    OpRow* op = find_op(given.name, given.overload);
    if (!op) return Py_NewRef(Py_None);
    PyRef handle = make_handle({op}, false);
    PyRef call = PyRef::check(PyCFunction_NewEx(&overload_def, handle.get(), nullptr));
    PyRef call_at = PyRef::check(PyCFunction_NewEx(&overload_at_def, handle.get(), nullptr));
    PyRef tags = tag_list(op->info->tags);
    return PyTuple_Pack(3, call.get(), call_at.get(), tags.get());
  });
}

PyObject* find_schema_or_throw(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    NameAndOverload given{};
    if (!read_names(args, count, "_dispatch_find_schema_or_throw", &given)) return nullptr;
    OpRow* op = find_op(given.name, given.overload);
    TN_CHECK(op, "Could not find schema for ", given.name, ".", given.overload);
    return make_handle({op}, false).release();
  });
}

// _dispatch_call_boxed(handle, *args, **kwargs)
PyObject* call_boxed(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    TN_CHECK_AS(Type, count >= 1 && Py_IS_TYPE(args[0], handle_class),
                "_dispatch_call_boxed(): expected an operator's handle first");
    return call_op(only_op(args[0]), {args + 1, count - 1, names});
  });
}

// Told the key's name when an operator has no kernel for it; may raise an error that says more.
std::unordered_map<const OpRow*, PyRef>& error_callbacks() {
  static auto* callbacks = new std::unordered_map<const OpRow*, PyRef>;
  return *callbacks;
}
void report_missing(const OpRow& op, DispatchKey key) {
  const GilAcquire gil;
  const auto found = error_callbacks().find(&op);
  if (found == error_callbacks().end()) return;
  const std::string name(key_name(key));
  PyRef::check(PyObject_CallFunction(found->second.get(), "s", name.c_str()));
}
PyObject* set_report_error(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    TN_CHECK_AS(Type, count == 2 && Py_IS_TYPE(args[0], handle_class),
                "_dispatch_set_report_error_callback(): expected an operator's handle and a callable");
    error_callbacks()[&only_op(args[0])] = PyRef::share(args[1]);
    missing_kernel = report_missing;
    Py_RETURN_NONE;
  });
}

PyObject* schemas_for_operator(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    PyRef list = PyRef::check(PyList_New(0));
    for (OpRow* op : ordered_overloads(utf8(name))) {
      PyRef schema = PyRef::check(schema_object(*op));
      if (PyList_Append(list.get(), schema.get()) < 0) return nullptr;
    }
    return list.release();
  });
}

// ---- queries --------------------------------------------------------------------------------------------------------

OpRow* find_qualified(std::string_view text) {
  const size_t dot = text.rfind('.');
  return dot == std::string_view::npos ? find_op(text, "") : find_op(text.substr(0, dot), text.substr(dot + 1));
}

PyObject* has_kernel(PyObject*, PyObject* name) {
  return guarded([&] {
    const char* text = utf8(name);
    return new_bool(find_qualified(text) != nullptr || has_pending_kernel(text, std::nullopt));
  });
}

// Asks about an operator that must exist, or have kernels that wait for it.
template <class Ask>
PyObject* ask(PyObject* const* args, Py_ssize_t count, Ask&& about) {
  return guarded([&]() -> PyObject* {
    TN_CHECK_AS(Type, count == 2, "expected an operator's name and a key, got ", count, " arguments");
    const std::string text = utf8(args[0]);
    OpRow* op = find_qualified(text);
    TN_CHECK(op || has_pending_kernel(text, std::nullopt), "operator ", text, " does not exist");
    return new_bool(about(op, text));
  });
}

PyObject* has_kernel_for_key(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return ask(args, count, [&](OpRow* op, const std::string& text) {
    const DispatchKey key = key_argument(args[1]);
    return op ? tn::has_kernel_for_key(*op, key) : has_pending_kernel(text, key);
  });
}
PyObject* has_computed_kernel_for_key(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return ask(args, count, [&](OpRow* op, const std::string& text) {
    const DispatchKey key = key_argument(args[1]);
    return op ? tn::has_computed_kernel_for_key(*op, key) : has_pending_kernel(text, key);
  });
}
PyObject* has_kernel_for_any_key(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return ask(args, count, [&](OpRow* op, const std::string&) {
    const KeySet keys = keyset_argument(args[1]);
    for (int f = 1; op && f < kNumFunctionalities; ++f) {
      const auto functionality = static_cast<DispatchKey>(f);
      if ((keys.raw() & KeySet(functionality).raw()) == 0) continue;
      if (!is_per_backend(functionality)) {
        if (tn::has_kernel_for_key(*op, functionality)) return true;
        continue;
      }
      for (int backend = 1; backend <= kNumBackends; ++backend) {
        if ((keys.raw() >> (backend - 1) & 1) && tn::has_kernel_for_key(*op, runtime_key(functionality, backend)))
          return true;
      }
    }
    return false;
  });
}
PyObject* kernel_is_fallthrough(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return ask(args, count, [&](OpRow* op, const std::string& text) {
    const DispatchKey key = key_argument(args[1]);
    TN_CHECK(op && tn::has_kernel_for_key(*op, key), "no kernel for ", key_name(key), " on ", text);
    return find_kernel_for(*op, key).fallthrough;
  });
}

PyObject* all_op_names(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyRef list = PyRef::check(PyList_New(0));
    for (size_t id = 0; id < num_rows(); ++id) {
      const OpInfo& info = *row(id).info;
      if (find_op(info.name, info.overload) != &row(id)) continue;  // undefined again
      PyRef name = PyRef::check(PyUnicode_FromFormat(*info.overload ? "%s.%s" : "%s", info.name, info.overload));
      if (PyList_Append(list.get(), name.get()) < 0) return nullptr;
    }
    return list.release();
  });
}

// (handled, result) for a packet whose arguments override; see torch/_ops.py.
PyObject* maybe_call_torch_function(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    TN_CHECK_AS(Type, count >= 1, "expected an OpOverloadPacket first, got no arguments");
    PyRef callable = PyRef::check(PyObject_GetAttrString(args[0], "_op"));
    PyObject* self = PyCFunction_Check(callable.get()) ? PyCFunction_GET_SELF(callable.get()) : nullptr;
    TN_CHECK_AS(Type, self && Py_IS_TYPE(self, handle_class), "expected an OpOverloadPacket first, got another object");
    PyObject* result = nullptr;
    const bool handled = take_override(handle_of(self), {args + 1, count - 1, names}, &result);
    if (handled && !result) return nullptr;
    PyRef owned = PyRef::adopt(handled ? result : Py_NewRef(Py_None));
    return PyTuple_Pack(2, handled ? Py_True : Py_False, owned.get());
  });
}

PyCFunction plain(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef functions[] = {
    {"_jit_resolve_packet", fast(jit_resolve_packet), kFast, nullptr},
    {"_jit_get_operation", jit_get_operation, METH_O, nullptr},
    {"_get_schema", plain(get_schema), METH_FASTCALL, nullptr},
    {"_get_operation_overload", plain(get_operation_overload), METH_FASTCALL, nullptr},
    {"_dispatch_call_boxed", fast(call_boxed), kFast, nullptr},
    {"_dispatch_set_report_error_callback", plain(set_report_error), METH_FASTCALL, nullptr},
    {"_dispatch_find_schema_or_throw", plain(find_schema_or_throw), METH_FASTCALL, nullptr},
    {"_jit_get_schemas_for_operator", schemas_for_operator, METH_O, nullptr},
    {"_dispatch_has_kernel", has_kernel, METH_O, nullptr},
    {"_dispatch_has_kernel_for_dispatch_key", plain(has_kernel_for_key), METH_FASTCALL, nullptr},
    {"_dispatch_has_kernel_for_any_dispatch_key", plain(has_kernel_for_any_key), METH_FASTCALL, nullptr},
    {"_dispatch_has_computed_kernel_for_dispatch_key", plain(has_computed_kernel_for_key), METH_FASTCALL, nullptr},
    {"_dispatch_kernel_for_dispatch_key_is_fallthrough", plain(kernel_is_fallthrough), METH_FASTCALL, nullptr},
    {"_dispatch_get_all_op_names", all_op_names, METH_NOARGS, nullptr},
    {"_maybe_call_torch_function_for_op_packet", fast(maybe_call_torch_function), kFast, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

DispatchKey key_argument(PyObject* object) {
  DispatchKey key{};
  if (PyUnicode_Check(object)) {
    const char* text = utf8(object);
    TN_CHECK(parse_key(text, &key), "could not parse dispatch key: ", text);
    return key;
  }
  PyRef number = PyRef::check(PyNumber_Long(object));
  return static_cast<DispatchKey>(PyLong_AsLong(number.get()));
}

KeySet keyset_argument(PyObject* object) {
  PyRef raw = PyRef::check(PyObject_CallMethod(object, "raw_repr", nullptr));
  return KeySet(PyLong_AsUnsignedLongLongMask(raw.get()));
}

bool bind_operators(PyObject* module) {
  PyObject* created = PyType_FromSpec(&handle_spec);
  if (!created || PyModule_AddObjectRef(module, "_DispatchOperatorHandle", created) < 0) return false;
  handle_class = reinterpret_cast<PyTypeObject*>(created);
  return PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace tn::py
