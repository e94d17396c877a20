#include "bindings/boxed_call.h"

#include <algorithm>
#include <string_view>

#include "bindings/objects.h"
#include "bindings/parse.h"
#include "bindings/tensor.h"
#include "runtime/schema_default.h"

namespace tn::py {
namespace {

// Operators whose tensor arguments take numbers too, whatever the overload, as upstream lists them.
// Shorter than the list of the parser of public functions: comparisons are not here.
constexpr std::string_view kNumbersAsTensors[] = {"_conj",      "_to_copy",     "add",           "add_",
                                                  "add_out",    "copy",         "copy_",         "div",
                                                  "div_",       "div_out",      "divide",        "divide_",
                                                  "divide_out", "floor_divide", "floor_divide_", "floor_divide_out",
                                                  "mul",        "mul_",         "mul_out",       "multiply",
                                                  "multiply_",  "multiply_out", "sub",           "sub_",
                                                  "sub_out",    "subtract",     "subtract_",     "subtract_out",
                                                  "to",         "true_divide",  "true_divide_",  "true_divide_out"};

}  // namespace

bool takes_numbers_as_tensors(std::string_view qualified) {
  if (qualified.starts_with("prims::")) return true;
  if (!qualified.starts_with("aten::")) return false;
  qualified.remove_prefix(6);
  return std::binary_search(std::begin(kNumbersAsTensors), std::end(kNumbersAsTensors), qualified);
}

namespace {

// What __index__ gives; false for floats and the like, without an exception.
bool read_int(PyObject* object, int64_t* out) {
  if (PyFloat_Check(object) || !PyIndex_Check(object)) return false;
  *out = PyLong_Check(object) ? PyLong_AsLongLong(object) : PyNumber_AsSsize_t(object, PyExc_OverflowError);
  if (*out != -1 || !PyErr_Occurred()) return true;
  PyErr_Clear();
  return false;
}

bool read_double(PyObject* object, double* out) {
  if (PyUnicode_Check(object) || PyComplex_Check(object)) return false;
  *out = PyFloat_AsDouble(object);
  if (*out != -1.0 || !PyErr_Occurred()) return true;
  PyErr_Clear();
  return false;
}

bool read_bool(PyObject* object, bool* out) {
  if (PyBool_Check(object)) {
    *out = object == Py_True;
    return true;
  }
  if (!is_numpy_bool(object) && !PyLong_Check(object)) return false;
  const int truth = PyObject_IsTrue(object);
  if (truth < 0) PyErr_Clear();
  *out = truth == 1;
  return truth >= 0;
}

// dtypes, layouts and memory formats stand for ints in schemas.
bool read_enum(PyObject* object, int64_t* out) {
  ScalarType dtype{};
  if (is_dtype(object, &dtype)) {
    *out = static_cast<int64_t>(dtype);
    return true;
  }
  if (!is_layout(object) && !is_memory_format(object)) return false;
  *out = enum_value(object);
  return true;
}

}  // namespace

std::string value_text(PyObject* object) {
  PyRef text = PyRef::adopt(PyObject_Repr(object));
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!utf8) PyErr_Clear();
  return utf8 ? utf8 : "<unprintable>";
}

BoundArgs::BoundArgs(const FunctionSchema& schema)
    : schema_(schema), numbers_as_tensors_(takes_numbers_as_tensors(schema.name())), args_(inline_.data()) {
  if (schema.arguments().size() > inline_.size()) {
    more_.resize(schema.arguments().size());
    args_ = more_.data();
  }
}

Arg BoundArgs::keep_object(PyObject* object) {
  objects_.push_back(Ref<Object>::adopt(new PyHolder(object)));
  Arg arg;
  arg.tag = Tag::Object;
  arg.p = objects_.back().get();
  return arg;
}

bool BoundArgs::convert_tensor(PyObject* object, Arg* out) {
  if (is_tensor(object)) {
    *out = Arg::of(tensor_of(object));
    return true;
  }
  if (object == Py_None) {
    *out = Arg();
    return true;
  }
  Arg number;
  if (!numbers_as_tensors_ || !number_argument(object, &number)) return false;
  tensors_.push_back(wrapped_scalar(number.scalar()));
  *out = Arg::of(tensors_.back());
  return true;
}

template <class T, class F>
bool BoundArgs::fill(PyObject* items, Tag tag, Arg* out, F&& read) {
  const auto size = static_cast<size_t>(PySequence_Fast_GET_SIZE(items));
  std::shared_ptr<T[]> list(new T[size]());
  for (size_t i = 0; i < size; ++i) {
    if (!read(PySequence_Fast_GET_ITEM(items, static_cast<Py_ssize_t>(i)), &list[i])) return false;
  }
  *out = Arg::list(tag, list.get(), size);
  lists_.push_back(std::move(list));
  return true;
}

bool BoundArgs::convert_list(PyObject* object, TypePtr element, std::optional<int32_t> size, Arg* out) {
  const TypeKind kind = value_type(element)->kind();
  if (!PyList_Check(object) && !PyTuple_Check(object)) {
    // One number stands for the whole list where the schema gives its length.
    if (!size || (kind != TypeKind::kInt && kind != TypeKind::kFloat)) return false;
    PyRef repeated = PyRef::check(PyList_New(*size));
    for (int32_t i = 0; i < *size; ++i) PyList_SET_ITEM(repeated.get(), i, Py_NewRef(object));
    return convert_list(repeated.get(), element, std::nullopt, out);
  }
  switch (kind) {
    case TypeKind::kInt:
      return fill<int64_t>(object, Tag::IntList, out,
                           [](PyObject* item, int64_t* v) { return read_int(item, v) || read_enum(item, v); });
    case TypeKind::kFloat: return fill<double>(object, Tag::DoubleList, out, read_double);
    case TypeKind::kBool: return fill<bool>(object, Tag::BoolList, out, read_bool);
    case TypeKind::kTensor:
    case TypeKind::kOptional:
      if (kind == TypeKind::kOptional && element->element()->kind() != TypeKind::kTensor) break;
      return fill<Tensor>(object, Tag::TensorList, out, [&](PyObject* item, Tensor* v) {
        if (item == Py_None) return kind == TypeKind::kOptional;
        if (!is_tensor(item)) return false;
        *v = tensor_of(item);
        return true;
      });
    case TypeKind::kNumber:
      return fill<Scalar>(object, Tag::ScalarList, out, [](PyObject* item, Scalar* v) {
        Arg number;
        if (!number_argument(item, &number)) return false;
        *v = number.scalar();
        return true;
      });
    case TypeKind::kString:
      return fill<std::string_view>(object, Tag::StringList, out, [](PyObject* item, std::string_view* v) {
        Py_ssize_t length = 0;
        const char* data = PyUnicode_Check(item) ? PyUnicode_AsUTF8AndSize(item, &length) : nullptr;
        if (!data) PyErr_Clear();
        *v = {data, static_cast<size_t>(length)};
        return data != nullptr;
      });
    default: break;
  }
  // Lists of what the core has no list of travel as Python's object.
  *out = keep_object(object);
  return true;
}

bool BoundArgs::convert(PyObject* object, TypePtr type, std::optional<int32_t> size, Arg* out) {
  switch (type->kind()) {
    case TypeKind::kOptional:
      if (object == Py_None) {
        *out = Arg();
        return true;
      }
      return convert(object, type->element(), size, out);
    case TypeKind::kTensor: return convert_tensor(object, out);
    case TypeKind::kInt:
    case TypeKind::kSymInt:
    case TypeKind::kScalarType:
    case TypeKind::kLayout:
    case TypeKind::kMemoryFormat:
    case TypeKind::kQScheme: {
      int64_t value = 0;
      if (type->kind() == TypeKind::kQScheme && is_qscheme(object)) value = enum_value(object);
      else if (!read_int(object, &value) && !read_enum(object, &value)) return false;
      *out = Arg::of(value);
      return true;
    }
    case TypeKind::kFloat: {
      double value = 0;
      if (!read_double(object, &value)) return false;
      *out = Arg::of(value);
      return true;
    }
    case TypeKind::kBool:
    case TypeKind::kSymBool: {
      bool value = false;
      if (!read_bool(object, &value)) return false;
      *out = Arg::of(value);
      return true;
    }
    case TypeKind::kComplex: {
      const Py_complex value = PyComplex_AsCComplex(object);
      if (PyErr_Occurred()) {
        PyErr_Clear();
        return false;
      }
      *out = Arg::of(std::complex<double>(value.real, value.imag));
      return true;
    }
    case TypeKind::kNumber: {
      int64_t value = 0;
      if (number_argument(object, out)) return true;
      if (!read_enum(object, &value)) return false;
      *out = Arg::of(value);
      return true;
    }
    case TypeKind::kString: {
      if (!PyUnicode_Check(object)) return false;
      Py_ssize_t length = 0;
      const char* data = PyUnicode_AsUTF8AndSize(object, &length);
      if (!data) throw PythonError();
      *out = Arg::of(std::string_view(data, static_cast<size_t>(length)));
      return true;
    }
    case TypeKind::kDeviceObj:
      if (!is_device(object) && !PyUnicode_Check(object)) return false;
      *out = Arg::of(device_argument(object));
      return true;
    case TypeKind::kGenerator:
      if (object != Py_None && !is_generator(object)) return false;
      *out = object == Py_None ? Arg() : Arg::of(generator_of(object));
      return true;
    case TypeKind::kStorage: {
      Storage storage;
      if (!storage_argument(object, &storage)) return false;
      storages_.push_back(std::move(storage));
      *out = Arg::of(storages_.back());
      return true;
    }
    case TypeKind::kStreamObj: {
      if (!is_stream(object)) return false;
      streams_.push_back(stream_of(object));
      *out = Arg::of(streams_.back());
      return true;
    }
    case TypeKind::kList: return convert_list(object, type->element(), size, out);
    case TypeKind::kNone: *out = Arg(); return object == Py_None;
    default:
      // Any, classes, tuples, dicts: the core passes them on.
      *out = object == Py_None ? Arg() : keep_object(object);
      return true;
  }
}

void BoundArgs::bind_one(size_t index, PyObject* object) {
  const Argument& argument = schema_.arguments()[index];
  if (convert(object, argument.real_type, argument.size, &args_[index])) return;
  const std::string value = value_text(object);
  const std::string type = argument.type->annotation();
  fail(ErrorKind::Runtime, schema_.name(), "() Expected a value of type '", type, "' for argument '", argument.name,
       "' but instead found type '", Py_TYPE(object)->tp_name, "'.\nPosition: ", index, "\nValue: ", value,
       "\nDeclaration: ", schema_.str(), "\nCast error details: Unable to cast ", value, " to ", type);
}

void BoundArgs::bind(const VectorCall& call) {
  const std::vector<Argument>& arguments = schema_.arguments();
  const auto positional = static_cast<size_t>(call.num_positional);
  const auto keywords = static_cast<size_t>(call.num_keywords());
  TN_CHECK(positional + keywords <= arguments.size(), schema_.name(), "() expected at most ", arguments.size(),
           " argument(s) but received ", positional + keywords, " argument(s). Declaration: ", schema_.str());
  for (size_t i = 0; i < positional; ++i) bind_one(i, call.args[i]);
  size_t used = 0;
  for (size_t i = positional; i < arguments.size(); ++i) {
    PyObject* given = nullptr;
    for (size_t k = 0; k < keywords && !given; ++k) {
      PyObject* name = PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(k));
      if (PyUnicode_CompareWithASCIIString(name, arguments[i].name.c_str()) == 0) given = call.args[positional + k];
    }
    if (given) {
      bind_one(i, given);
      ++used;
    } else {
      TN_CHECK(arguments[i].default_value, schema_.name(), "() is missing value for argument '", arguments[i].name,
               "'. Declaration: ", schema_.str());
      args_[i] = default_arg(*arguments[i].default_value);
    }
  }
  if (used == keywords) return;
  for (size_t k = 0; k < keywords; ++k) {
    const std::string name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(k)));
    const std::optional<size_t> index = schema_.argument_index(name);
    TN_CHECK(index, "Unknown keyword argument '", name, "' for operator '", schema_.name(),
             "'. Schema: ", schema_.str());
    TN_CHECK(*index >= positional, "Argument '", name,
             "' specified both as positional and keyword argument. Schema: ", schema_.str());
  }
}

namespace {

// torch.ops answers lists as lists; the functions of torch answer them as tuples.
PyObject* result_of(OpRow& op, size_t i, Value& v) {
  if (v.tag() == Tag::TensorList) return arg_to_python(v.arg(), {});
  return value_to_python(op, static_cast<int>(i), v);
}

}  // namespace

PyObject* results_to_python(OpRow& op, std::span<Value> results) {
  if (results.empty()) return Py_NewRef(Py_None);
  if (results.size() == 1) return result_of(op, 0, results[0]);
  PyRef tuple = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
  for (size_t i = 0; i < results.size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), PyRef::check(result_of(op, i, results[i])).release());
  }
  return tuple.release();
}

namespace {

// Room for the results of a call; few operators have more than four.
class Results {
 public:
  explicit Results(size_t size) : size_(size), more_(size > 4 ? size : 0) {}
  Value* data() { return size_ > 4 ? more_.data() : few_; }
  std::span<Value> view() { return {data(), size_}; }

 private:
  size_t size_;
  Value few_[4];
  std::vector<Value> more_;
};

PyObject* finish(OpRow& op, const BoundArgs& bound) {
  Results results(op.info->num_returns);
  {
    const GilRelease release;
    door::call_boxed(op, bound.args(), results.data());
  }
  return results_to_python(op, results.view());
}

}  // namespace

PyObject* call_op(OpRow& op, const VectorCall& call) {
  BoundArgs bound(schema_of(op));
  bound.bind(call);
  return finish(op, bound);
}

PyObject* redispatch_op(OpRow& op, KeySet keys, const VectorCall& call) {
  BoundArgs bound(schema_of(op));
  bound.bind(call);
  Results results(op.info->num_returns);
  {
    const GilRelease release;
    door::redispatch_boxed(op, keys, bound.args(), results.data());
  }
  return results_to_python(op, results.view());
}

namespace {

// Gives the first overload that the arguments fit to `take`.
template <class Take>
auto first_fit(std::span<OpRow* const> overloads, const VectorCall& call, Take&& take) {
  std::string reasons;
  for (OpRow* op : overloads) {
    BoundArgs bound(schema_of(*op));
    try {
      bound.bind(call);
    } catch (const Refusal&) {
      throw;
    } catch (const Error& error) {
      (reasons += error.message()) += "\n\n";
      continue;
    }
    return take(*op, bound);
  }
  fail(ErrorKind::Runtime, "Overloaded torch operator invoked from Python failed to match any schema:\n", reasons);
}

}  // namespace

OpRow& resolve_packet(std::span<OpRow* const> overloads, const VectorCall& call) {
  return *first_fit(overloads, call, [](OpRow& op, const BoundArgs&) { return &op; });
}

PyObject* call_packet(std::span<OpRow* const> overloads, const VectorCall& call) {
  if (overloads.size() == 1) return call_op(*overloads[0], call);
  return first_fit(overloads, call, finish);
}

}  // namespace tn::py
