// torch._C._DispatchModule: what torch.library.Library talks to.
#include "bindings/refused_method.h"
#include "bindings/library.h"

#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "bindings/boxed_call.h"
#include "bindings/library_internal.h"
#include "bindings/py.h"
#include "runtime/schema_parser.h"

namespace tn::py {
namespace {

struct Kernel {
  std::string op;  // "ns::name.overload"
  DispatchKey key;
  Ref<BoxedKernel> boxed;
  bool fallthrough;
};

// Kernels for operators that nobody has defined yet, in order of registration.
std::unordered_map<std::string, std::vector<Kernel>>& pending() {
  static auto* kernels = new std::unordered_map<std::string, std::vector<Kernel>>;
  return *kernels;
}

struct Library {
  enum Kind : uint8_t { kDef, kImpl, kFragment };
  Kind kind;
  std::string ns, where;
  DispatchKey key = DispatchKey::Undefined;  // of the whole block
  std::vector<OpRow*> defined;
  std::vector<Kernel> kernels;
  std::vector<DispatchKey> fallbacks;

  const char* block() const {
    return kind == kDef ? "TORCH_LIBRARY" : kind == kImpl ? "TORCH_LIBRARY_IMPL" : "TORCH_LIBRARY_FRAGMENT";
  }
  std::string context() const { return str("  (Error occurred while processing ", block(), " block at ", where, ")"); }
};

struct LibraryObject {
  PyObject_HEAD Library* library;
};

Library& library_of(PyObject* self) { return *reinterpret_cast<LibraryObject*>(self)->library; }

std::string qualified(const OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

// Where each operator was defined, for the message on duplicates.
std::unordered_map<const OpRow*, std::string>& origins() {
  static auto* table = new std::unordered_map<const OpRow*, std::string>;
  return *table;
}

void attach(OpRow& op, const Kernel& kernel) {
  register_kernel(op, {.key = kernel.key, .boxed = kernel.boxed, .typed = nullptr, .fallthrough = kernel.fallthrough});
}

uint64_t read_tags(PyObject* tags) {
  PyRef items = PyRef::check(PySequence_Fast(tags, "define(): expected a sequence of torch.Tag (tags)"));
  uint64_t bits = 0;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyRef number = PyRef::check(PyNumber_Long(PySequence_Fast_GET_ITEM(items.get(), i)));
    bits |= uint64_t{1} << PyLong_AsLong(number.get());
  }
  return bits;
}

PyObject* library_define(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"schema", "alias_analysis", "tags", nullptr};
    const char *text = nullptr, *alias = "";
    PyObject* tags = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|sO:define", const_cast<char**>(names), &text, &alias, &tags))
      return nullptr;
    Library& library = library_of(self);
    const std::string_view kind = alias;
    TN_CHECK(kind.empty() || kind == "FROM_SCHEMA" || kind == "CONSERVATIVE" || kind == "PURE_FUNCTION",
             "could not parse ", kind);
    const SchemaRef schema = parse_schema(text, false);
    TN_CHECK(library.kind != Library::kImpl, "def(\"", schema->name(),
             "\"): Cannot define an operator inside of a TORCH_LIBRARY_IMPL block.  All def()s should be placed in the "
             "(unique) "
             "TORCH_LIBRARY block for their namespace.",
             library.context());
    TN_CHECK(
        schema->ns().empty() || schema->ns() == library.ns, "Explicitly provided namespace (", schema->ns(),
        ") in schema string does not match namespace of enclosing ", library.block(), " block (", library.ns,
        ").  Move this definition to the (unique) TORCH_LIBRARY block corresponding to this namespace (and consider "
        "deleting the namespace from your schema string.)",
        library.context());
    const std::string name = schema->ns().empty() ? library.ns + "::" + schema->name() : schema->name();
    std::string full = schema->str();
    if (schema->ns().empty()) full = library.ns + "::" + full;
    // The text as it was written: what a schema prints can't always be read again, a default device for one.
    const std::string written = schema->ns().empty() ? library.ns + "::" + text : text;
    if (OpRow* earlier = find_op(name, schema->overload_name())) {
      auto origin = origins().find(earlier);
      fail(ErrorKind::Runtime, "Tried to register an operator (", full,
           ") with the same name and overload name multiple times. Each overload's schema should only be registered "
           "with a "
           "single call to def(). Duplicate registration: registered at ",
           library.where, ". Original registration: registered at ",
           origin == origins().end() ? "torchnative" : origin->second);
    }
    OpRow& op = define_op(name, schema->overload_name(), written, tags ? read_tags(tags) : 0);
    library.defined.push_back(&op);
    origins()[&op] = library.where;
    auto waiting = pending().find(qualified({name, schema->overload_name()}));
    if (waiting != pending().end()) {
      for (const Kernel& kernel : waiting->second) attach(op, kernel);
      pending().erase(waiting);
    }
    return PyUnicode_FromString(schema->name().c_str());
  });
}

bool is_fallthrough(PyObject* function) {
  PyRef module = PyRef::check(PyImport_ImportModule("torch.library"));
  PyRef marker = PyRef::adopt(PyObject_GetAttrString(module.get(), "fallthrough_kernel"));
  if (!marker) PyErr_Clear();
  return marker.get() == function;
}

PyObject* library_impl(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"name", "dispatch", "func", "with_keyset", nullptr};
    const char* name = nullptr;
    PyObject *key = nullptr, *function = nullptr;
    int with_keyset = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sOO|p:impl", const_cast<char**>(names), &name, &key, &function,
                                     &with_keyset)) {
      return nullptr;
    }
    Library& library = library_of(self);
    OperatorName parsed = parse_operator_name(name);
    const size_t colons = parsed.name.find("::");
    if (colons == std::string::npos) {
      parsed.name = library.ns + "::" + parsed.name;
    } else {
      const std::string_view ns = std::string_view(parsed.name).substr(0, colons);
      TN_CHECK(ns == library.ns || library.ns == "_", "impl(\"", name, "\", ...): Explicitly provided namespace (", ns,
               ") in operator name does not match namespace of enclosing ", library.block(), " block (", library.ns,
               ").  Move this definition to the ", library.block(),
               " block corresponding to this namespace (and consider "
               "deleting the namespace from your schema string.)",
               library.context());
    }
    const DispatchKey at = key_argument(key);
    TN_CHECK(
        library.key == DispatchKey::Undefined || at == library.key, "impl(\"", name,
        "\", ...): Explicitly provided dispatch key (", key_name(at),
        ") is inconsistent with the dispatch key of the enclosing ", library.block(), " block (", key_name(library.key),
        ").  Please declare a separate TORCH_LIBRARY_IMPL for each dispatch key, or leave the key of the block out.",
        library.context());
    Kernel kernel{qualified(parsed), at, nullptr, is_fallthrough(function)};
    if (!kernel.fallthrough) kernel.boxed = Ref<BoxedKernel>::adopt(new PythonKernel(function, with_keyset != 0));
    if (OpRow* op = find_op(parsed.name, parsed.overload_name)) {
      attach(*op, kernel);
    } else {
      pending()[kernel.op].push_back(kernel);
    }
    library.kernels.push_back(std::move(kernel));
    return Py_NewRef(Py_None);
  });
}

// Below autograd: does the work, then counts up the versions of what the operator changes.
class BumpVersions final : public BoxedKernel {
 public:
  void call(OpRow& op, KeySet keys, std::span<const Arg> args, Value* out) override {
    door::redispatch_boxed(op, keys & KeySet::below(DispatchKey::ADInplaceOrView), args, out);
    const std::vector<Argument>& arguments = schema_of(op).arguments();
    for (size_t i = 0; i < args.size(); ++i) {
      if (!arguments[i].alias || !arguments[i].alias->is_write) continue;
      if (args[i].tag == Tag::Tensor && args[i].tensor().defined()) args[i].tensor()->bump_version();
      else if (args[i].tag == Tag::TensorList)
        for (const Tensor& t : args[i].tensors())
          if (t.defined()) t->bump_version();
    }
  }
};

PyObject* library_versions(PyObject* self, PyObject* name) {
  return guarded([&]() -> PyObject* {
    if (!PyUnicode_Check(name))
      raise(PyExc_TypeError, "register_ad_inplace_or_view_fallback(): expected a name, got %R", name);
    Library& library = library_of(self);
    OperatorName parsed = parse_operator_name(PyUnicode_AsUTF8(name));
    if (parsed.name.find("::") == std::string::npos) parsed.name = library.ns + "::" + parsed.name;
    Kernel kernel{qualified(parsed), DispatchKey::ADInplaceOrView, Ref<BoxedKernel>::adopt(new BumpVersions()), false};
    if (OpRow* op = find_op(parsed.name, parsed.overload_name)) attach(*op, kernel);
    else pending()[kernel.op].push_back(kernel);
    library.kernels.push_back(std::move(kernel));
    Py_RETURN_NONE;
  });
}

PyObject* library_fallback(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"dispatch", "func", "with_keyset", nullptr};
    PyObject *key = nullptr, *function = nullptr;
    int with_keyset = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|p:fallback", const_cast<char**>(names), &key, &function,
                                     &with_keyset)) {
      return nullptr;
    }
    Library& library = library_of(self);
    const DispatchKey functionality = key_parts(key_argument(key)).functionality;
    const bool fallthrough = is_fallthrough(function);
    Ref<BoxedKernel> kernel;
    if (!fallthrough) kernel = Ref<BoxedKernel>::adopt(new PythonFallback(function, with_keyset != 0));
    register_fallback(functionality, std::move(kernel), fallthrough);
    library.fallbacks.push_back(functionality);
    return Py_NewRef(Py_None);
  });
}

// Takes back all that came through this library, latest first.
void reset(Library& library) {
  for (auto kernel = library.kernels.rbegin(); kernel != library.kernels.rend(); ++kernel) {
    const OperatorName name = parse_operator_name(kernel->op);
    if (OpRow* op = find_op(name.name, name.overload_name)) deregister_kernel(*op, kernel->key, kernel->boxed.get());
    auto waiting = pending().find(kernel->op);
    if (waiting == pending().end()) continue;
    std::erase_if(waiting->second,
                  [&](const Kernel& other) { return other.key == kernel->key && other.boxed == kernel->boxed; });
    if (waiting->second.empty()) pending().erase(waiting);
  }
  for (OpRow* op : library.defined) {
    origins().erase(op);
    undefine_op(*op);
  }
  for (DispatchKey key : library.fallbacks) register_fallback(key, nullptr, false);
  library.kernels.clear();
  library.defined.clear();
  library.fallbacks.clear();
}

PyObject* library_reset(PyObject* self, PyObject*) {
  return guarded([&] {
    reset(library_of(self));
    return Py_NewRef(Py_None);
  });
}

// torch.library calls reset; without it, what was registered stays, as upstream's static libraries do.
void library_dealloc(PyObject* self) {
  PyTypeObject* cls = Py_TYPE(self);
  delete reinterpret_cast<LibraryObject*>(self)->library;
  cls->tp_free(self);
  Py_DECREF(cls);
}

PyCFunction with_keywords(PyObject* (*function)(PyObject*, PyObject*, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyTypeObject* library_class = nullptr;

PyObject* dispatch_library(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"kind", "name", "dispatch", "file", "linenum", nullptr};
    const char *kind = nullptr, *ns = nullptr, *dispatch = nullptr, *file = "/dev/null";
    int line = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sss|si:_dispatch_library", const_cast<char**>(names), &kind, &ns,
                                     &dispatch, &file, &line)) {
      return nullptr;
    }
    auto library = std::make_unique<Library>();
    const std::string_view text = kind;
    if (text == "DEF") library->kind = Library::kDef;
    else if (text == "IMPL") library->kind = Library::kImpl;
    else if (text == "FRAGMENT") library->kind = Library::kFragment;
    else fail(ErrorKind::Runtime, "could not parse ", text);
    DispatchKey key = DispatchKey::Undefined;
    TN_CHECK(*dispatch == '\0' || parse_key(dispatch, &key), "could not parse dispatch key: ", dispatch);
    library->ns = ns;
    library->key = key;
    library->where = str(file, ":", line);
    PyObject* object = library_class->tp_alloc(library_class, 0);
    if (object) reinterpret_cast<LibraryObject*>(object)->library = library.release();
    return object;
  });
}

// Upstream's own tests of its dispatcher call these; AOTInductor the last.
constexpr char kDispatcherTests[] = "only upstream's C++ dispatcher tests use it";
constexpr char kNoInductor[] = "torch.compile is not part of torchnative";
constexpr char kDefName[] = "torch._C._DispatchModule.def_";
constexpr char kDefLegacyName[] = "torch._C._DispatchModule.def_legacy";
constexpr char kDefNameTTName[] = "torch._C._DispatchModule.def_name_t_t";
constexpr char kDefSchemaTTName[] = "torch._C._DispatchModule.def_schema_t_t";
constexpr char kImplTTName[] = "torch._C._DispatchModule.impl_t_t";
constexpr char kFallbackFallthroughName[] = "torch._C._DispatchModule.fallback_fallthrough";
constexpr char kImplWithAotiCompileName[] = "torch._C._DispatchModule.impl_with_aoti_compile";

PyMethodDef library_methods[] = {
    {"define", with_keywords(library_define), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"impl", with_keywords(library_impl), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"fallback", with_keywords(library_fallback), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"register_ad_inplace_or_view_fallback", library_versions, METH_O, nullptr},
    {"reset", library_reset, METH_NOARGS, nullptr},
    refused<kDefName, kDispatcherTests>("def_"),
    refused<kDefLegacyName, kDispatcherTests>("def_legacy"),
    refused<kDefNameTTName, kDispatcherTests>("def_name_t_t"),
    refused<kDefSchemaTTName, kDispatcherTests>("def_schema_t_t"),
    refused<kImplTTName, kDispatcherTests>("impl_t_t"),
    refused<kFallbackFallthroughName, kDispatcherTests>("fallback_fallthrough"),
    refused<kImplWithAotiCompileName, kNoInductor>("impl_with_aoti_compile"),
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot library_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(library_dealloc)},
    {Py_tp_methods, library_methods},
    {0, nullptr},
};
PyType_Spec library_spec = {"torch._C._DispatchModule", sizeof(LibraryObject), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            library_slots};
PyMethodDef functions[] = {
    {"_dispatch_library", with_keywords(dispatch_library), METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool has_pending_kernel(const std::string& op, std::optional<DispatchKey> key) {
  auto found = pending().find(op);
  if (found == pending().end()) return false;
  if (!key) return true;
  for (const Kernel& kernel : found->second) {
    if (kernel.key == *key) return true;
  }
  return false;
}

bool bind_library(PyObject* module) {
  PyObject* created = PyType_FromSpec(&library_spec);
  if (!created || PyModule_AddObjectRef(module, "_DispatchModule", created) < 0) return false;
  library_class = reinterpret_cast<PyTypeObject*>(created);
  return PyModule_AddFunctions(module, functions) == 0 && bind_operators(module);
}

}  // namespace tn::py
