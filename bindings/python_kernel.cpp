// Kernels and fallbacks that are Python functions.
#include <algorithm>

#include "bindings/boxed_call.h"
#include "bindings/objects.h"
#include "runtime/copy.h"
#include "runtime/schema_default.h"

namespace tn::py {
namespace {

bool same(const Arg& a, const Arg& b) {
  if (a.tag != b.tag || a.size != b.size) return false;
  switch (a.tag) {
    case Tag::None: return true;
    case Tag::Int:
    case Tag::Bool:
    case Tag::Device: return a.i == b.i;
    case Tag::Double: return a.d == b.d;
    case Tag::Complex: return a.d == b.d && a.im == b.im;
    case Tag::String: return a.string() == b.string();
    case Tag::IntList: return std::equal(a.ints().begin(), a.ints().end(), b.ints().begin());
    case Tag::DoubleList: return std::equal(a.doubles().begin(), a.doubles().end(), b.doubles().begin());
    case Tag::BoolList: return std::equal(a.bools().begin(), a.bools().end(), b.bools().begin());
    default: return false;
  }
}

bool is_default(const Argument& argument, const Arg& value) {
  return argument.default_value && same(default_arg(*argument.default_value), value);
}

}  // namespace

// Upstream leaves out trailing positional arguments and keywords that equal their defaults.
void append_arguments(const FunctionSchema& schema, std::span<const Arg> args, PythonArguments& out) {
  const std::vector<Argument>& arguments = schema.arguments();
  size_t end = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!arguments[i].kwarg_only && !is_default(arguments[i], args[i])) end = i + 1;
  }
  std::vector<PyRef> names;
  auto push = [&](size_t i) {
    // Python sees the number that was written, as upstream's.
    if (args[i].tag == Tag::Tensor && args[i].tensor().defined() && args[i].tensor()->is_wrapped_number()) {
      out.values.push_back(PyRef::check(number_object(item(args[i].tensor()))));
      return;
    }
    out.values.push_back(PyRef::check(arg_to_python(args[i], arguments[i].real_type->str())));
  };
  for (size_t i = 0; i < end; ++i) {
    if (!arguments[i].kwarg_only) push(i);
  }
  out.num_positional = out.values.size();
  for (size_t i = 0; i < args.size(); ++i) {
    if (!arguments[i].kwarg_only || is_default(arguments[i], args[i])) continue;
    push(i);
    names.push_back(PyRef::check(PyUnicode_FromString(arguments[i].name.c_str())));
  }
  if (names.empty()) return;
  out.names = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(names.size())));
  for (size_t i = 0; i < names.size(); ++i)
    PyTuple_SET_ITEM(out.names.get(), static_cast<Py_ssize_t>(i), names[i].release());
}

namespace {

void take_result(const FunctionSchema& schema, const Argument& result, PyObject* object, Value* out) {
  BoundArgs converter(schema);
  Arg arg;
  if (!converter.convert(object, result.real_type, result.size, &arg)) {
    fail(ErrorKind::Runtime, "Unable to cast ", value_text(object), " to ", result.type->annotation());
  }
  *out = Value::copy_of(arg);
}

}  // namespace

void take_results(const FunctionSchema& schema, PyObject* result, Value* out) {
  const std::vector<Argument>& returns = schema.returns();
  if (returns.empty()) {
    TN_CHECK(result == Py_None, "Expected PythonKernelHolder for ", schema.name(),
             schema.overload_name().empty() ? "" : "." + schema.overload_name(),
             " to return None but it returned something else instead.");
    return;
  }
  if (returns.size() == 1) return take_result(schema, returns[0], result, out);
  if (!PyTuple_Check(result) && !PyList_Check(result)) {
    raise(PyExc_TypeError, "Object of type '%s' is not an instance of 'sequence'", Py_TYPE(result)->tp_name);
  }
  TN_CHECK(static_cast<size_t>(PySequence_Fast_GET_SIZE(result)) == returns.size(), schema.name(), ": expected ",
           returns.size(), " results of the Python kernel, got ", PySequence_Fast_GET_SIZE(result));
  for (size_t i = 0; i < returns.size(); ++i) {
    take_result(schema, returns[i], PySequence_Fast_GET_ITEM(result, static_cast<Py_ssize_t>(i)), &out[i]);
  }
}

namespace {

void run(PyObject* function, const FunctionSchema& schema, std::span<const Arg> args, PythonArguments& given,
         Value* out) {
  append_arguments(schema, args, given);
  std::vector<PyObject*> values;
  values.reserve(given.values.size());
  for (const PyRef& value : given.values) values.push_back(value.get());
  PyRef result = PyRef::check(PyObject_Vectorcall(function, values.data(), given.num_positional, given.names.get()));
  take_results(schema, result.get(), out);
}

}  // namespace

PyRef python_keyset(KeySet keys) {
  PyRef module = PyRef::check(PyImport_ImportModule("torch._C"));
  PyRef cls = PyRef::check(PyObject_GetAttrString(module.get(), "DispatchKeySet"));
  return PyRef::check(PyObject_CallMethod(cls.get(), "from_raw_repr", "K",
                                          static_cast<unsigned long long>(keys.raw() & ~KeySet::kOurs)));
}

PyRef python_overload(OpRow& op) {
  if (op.python) return PyRef::share(static_cast<PyObject*>(op.python));
  const std::string_view name = op.info->name;
  const size_t colons = name.find("::");
  const std::string ns(name.substr(0, colons)), base(name.substr(colons + 2));
  PyRef torch = PyRef::check(PyImport_ImportModule("torch"));
  PyRef found = PyRef::check(PyObject_GetAttrString(torch.get(), "ops"));
  for (const std::string& part : {ns, base, std::string(*op.info->overload ? op.info->overload : "default")}) {
    found = PyRef::check(PyObject_GetAttrString(found.get(), part.c_str()));
  }
  op.python = PyRef(found).release();  // the row keeps it
  return found;
}

namespace {

// Kernels may outlive the interpreter, whose objects must not be touched then.
void let_go(PyRef& function) {
  if (!Py_IsInitialized()) {
    static_cast<void>(function.release());
    return;
  }
  const GilAcquire gil;
  function = PyRef();
}

}  // namespace

void DecompositionKernel::call(OpRow& op, KeySet /*keys*/, std::span<const Arg> args, Value* out) {
  const GilAcquire gil;
  const PyRef module = PyRef::check(PyImport_ImportModule("torch._decomp"));
  const PyRef table = PyRef::check(PyObject_GetAttrString(module.get(), "decomposition_table"));
  const PyRef overload = python_overload(op);
  const PyRef function = PyRef::check(PyObject_GetItem(table.get(), overload.get()));
  PythonArguments given;
  run(function.get(), schema_of(op), args, given, out);
}

PythonKernel::~PythonKernel() { let_go(function_); }
PythonFallback::~PythonFallback() { let_go(function_); }

void PythonKernel::call(OpRow& op, KeySet keys, std::span<const Arg> args, Value* out) {
  const GilAcquire gil;
  PythonArguments given;
  if (with_keyset_) given.values.push_back(python_keyset(keys));
  run(function_.get(), schema_of(op), args, given, out);
}

void PythonFallback::call(OpRow& op, KeySet keys, std::span<const Arg> args, Value* out) {
  const GilAcquire gil;
  PythonArguments given;
  if (with_keyset_) given.values.push_back(python_keyset(keys));
  given.values.push_back(python_overload(op));
  run(function_.get(), schema_of(op), args, given, out);
}

}  // namespace tn::py
