#include "bindings/convert.h"

#include <string_view>

#include "bindings/objects.h"
#include "bindings/tensor.h"
#include "runtime/refuse.h"

namespace tn::py {

namespace {

// The text of a result's type: what stands behind "->" in the schema, the index-th where there are several.
std::string_view result_type(const OpRow& op, int index) {
  std::string_view s = op.info->schema ? op.info->schema : "";
  const size_t arrow = s.rfind("-> ");
  if (arrow == std::string_view::npos) return {};
  s.remove_prefix(arrow + 3);
  if (!s.empty() && s.front() == '(') s.remove_prefix(1);
  for (; index > 0; --index) {
    const size_t comma = s.find(", ");
    if (comma == std::string_view::npos) return {};
    s.remove_prefix(comma + 2);
  }
  return s.substr(0, s.find_first_of(" ,)"));
}

template <class T, class F>
PyObject* list_of(ArrayRef<T> items, F make) {
  const PyRef list = PyRef::check(PyList_New(items.ssize()));
  for (size_t i = 0; i < items.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), PyRef::check(make(items[i])).release());
  return PyRef(list).release();
}

}  // namespace

PyObject* arg_to_python(const Arg& a, std::string_view type) {
  switch (a.tag) {
    case Tag::None: Py_RETURN_NONE;
    case Tag::Tensor: return wrap(Tensor::share(a.t));
    case Tag::Int:
      if (type.starts_with("ScalarType")) return Py_XNewRef(dtype_object(static_cast<ScalarType>(a.i)));
      if (type.starts_with("Layout")) return Py_XNewRef(layout_object(static_cast<Layout>(a.i)));
      if (type.starts_with("MemoryFormat")) return Py_XNewRef(memory_format_object(static_cast<MemoryFormat>(a.i)));
      if (type.starts_with("QScheme")) return Py_XNewRef(qscheme_object(static_cast<QScheme>(a.i)));
      return PyLong_FromLongLong(a.i);
    case Tag::Double: return PyFloat_FromDouble(a.d);
    case Tag::Bool: return new_bool(a.i != 0);
    case Tag::Complex: return PyComplex_FromDoubles(a.d, a.im);
    case Tag::String: return PyUnicode_FromStringAndSize(a.string().data(), static_cast<Py_ssize_t>(a.string().size()));
    case Tag::Device: return device_object(a.device());
    case Tag::Generator: return generator_object(a.generator());
    case Tag::Storage: return storage_object(Storage(Ref<StorageImpl>::share(a.storage())));
    case Tag::Stream: return stream_object(*static_cast<const Stream*>(a.p));
    case Tag::IntList: return list_of(a.ints(), [](int64_t v) { return PyLong_FromLongLong(v); });
    case Tag::DoubleList: return list_of(a.doubles(), [](double v) { return PyFloat_FromDouble(v); });
    case Tag::BoolList: return list_of(a.bools(), [](bool v) { return new_bool(v); });
    case Tag::ScalarList: return list_of(a.scalars(), [](const Scalar& v) { return number_object(v); });
    case Tag::TensorList: return list_of(a.tensors(), [](const Tensor& v) { return wrap(v); });
    case Tag::Object: {
      auto* const holder = dynamic_cast<const PyHolder*>(static_cast<const Object*>(a.p));
      if (holder) return Py_NewRef(holder->get());
      break;
    }
    default: break;
  }
  refuse("conversion to Python", str("a value with tag ", static_cast<int>(a.tag)), "no Python object stands for it");
}

PyObject* value_to_python(const OpRow& op, int index, Value& v) {
  if (__builtin_expect(v.tag() == Tag::Tensor, 1)) return wrap(v.take_tensor());
  if (v.tag() == Tag::TensorList) return wrap_list(v.arg().tensors());
  return arg_to_python(v.arg(), v.tag() == Tag::Int ? result_type(op, index) : std::string_view());
}

OpRow& required_op(const char* name, const char* overload) {
  OpRow* const op = find_op(name, overload);
  TN_CHECK(op != nullptr, name, ".", overload, ": expected an operator of this name, got none");
  return *op;
}

Tensor call_tensor(OpRow& op, std::span<const Arg> args, bool release_gil) {
  Value out;
  const GilRelease release(release_gil);
  door::call_boxed(op, args, &out);
  return out.take_tensor();
}

}  // namespace tn::py
