// What a node keeps for its backward, as Python sees it: grad_fn._saved_self, _raw_saved_self, _saved_dim, ...
#include <string>
#include <vector>

#include "bindings/node.h"
#include "bindings/object_type.h"
#include "bindings/objects.h"
#include "bindings/tensor.h"
#include "runtime/autograd/saved_variable.h"

namespace tn::py {

namespace {

using Kind = SavedField::Kind;

template <class T>
const T& read(const SavedField& field, Node& node) {
  return *static_cast<const T*>(field.get(node));
}

PyObject* tuple_of(const std::vector<int64_t>& values) {
  const PyRef tuple = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(values[i]));
  return PyRef(tuple).release();
}
PyObject* tuple_of(const std::vector<double>& values) {
  const PyRef tuple = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), PyFloat_FromDouble(values[i]));
  return PyRef(tuple).release();
}
PyObject* show(int64_t v) { return PyLong_FromLongLong(v); }
PyObject* show(bool v) { return new_bool(v); }
PyObject* show(double v) { return PyFloat_FromDouble(v); }
PyObject* show(const Scalar& v) { return number_object(v); }
PyObject* show(ScalarType v) { return Py_NewRef(dtype_object(v)); }
PyObject* show(const std::string& v) { return text_object(v); }
PyObject* show(const std::vector<int64_t>& v) { return tuple_of(v); }
template <class T>
PyObject* show(const std::optional<T>& v) {
  if (!v) Py_RETURN_NONE;
  return show(*v);
}

PyObject* value(const SavedField& f, Node& n) {
  switch (f.kind) {
    case Kind::Tensor: return wrap(read<SavedVariable>(f, n).unpack(n));
    case Kind::TensorList: return grads_tuple(unpack_list(read<std::vector<SavedVariable>>(f, n), n));
    case Kind::Int: return show(read<int64_t>(f, n));
    case Kind::Bool: return show(read<bool>(f, n));
    case Kind::Double: return show(read<double>(f, n));
    case Kind::Number: return show(read<Scalar>(f, n));
    case Kind::Dtype: return show(read<ScalarType>(f, n));
    case Kind::Ints: return show(read<std::vector<int64_t>>(f, n));
    case Kind::Doubles: return tuple_of(read<std::vector<double>>(f, n));
    case Kind::OptionalInts: return show(read<std::optional<std::vector<int64_t>>>(f, n));
    case Kind::OptionalInt: return show(read<std::optional<int64_t>>(f, n));
    case Kind::OptionalDouble: return show(read<std::optional<double>>(f, n));
    case Kind::OptionalBool: return show(read<std::optional<bool>>(f, n));
    case Kind::OptionalNumber: return show(read<std::optional<Scalar>>(f, n));
    case Kind::OptionalDtype: return show(read<std::optional<ScalarType>>(f, n));
    case Kind::Text: return show(read<std::string>(f, n));
    case Kind::OptionalText: return show(read<std::optional<std::string>>(f, n));
  }
  return nullptr;
}

PyObject* get_saved(PyObject* self, void* field) {
  return guarded([&]() -> PyObject* {
    const Ref<Node> node = node_of(self);
    return value(*static_cast<const SavedField*>(field), *node);
  });
}
PyObject* get_raw(PyObject* self, void* field) {
  return guarded([&]() -> PyObject* {
    const SavedField& f = *static_cast<const SavedField*>(field);
    const Ref<Node> node = node_of(self);
    if (f.kind == Kind::Tensor) return saved_tensor_object(*static_cast<SavedVariable*>(f.get(*node)), *node);
    auto& list = *static_cast<std::vector<SavedVariable>*>(f.get(*node));
    const PyRef tuple = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(list.size())));
    for (size_t i = 0; i < list.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       PyRef::check(saved_tensor_object(list[i], *node)).release());
    return PyRef(tuple).release();
  });
}

}  // namespace

PyGetSetDef* saved_properties(Node& node) {
  auto& properties = *new std::vector<PyGetSetDef>();
  const auto add = [&](const char* prefix, const SavedField* f, getter get) {
    const auto* const name = new std::string(std::string(prefix) + f->name);
    properties.push_back({name->c_str(), get, nullptr, nullptr, const_cast<SavedField*>(f)});
  };
  for (const SavedField* f = node.saved_fields(); f && f->name; ++f) {
    add("_saved_", f, get_saved);
    if (f->kind == Kind::Tensor || f->kind == Kind::TensorList) add("_raw_saved_", f, get_raw);
  }
  properties.push_back({nullptr, nullptr, nullptr, nullptr, nullptr});
  return properties.data();
}

}  // namespace tn::py
