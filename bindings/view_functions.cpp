// What Python may ask of views: their replay on another base, how they were made; and versions set by hand.
#include "bindings/objects.h"
#include "bindings/tensor.h"
#include "bindings/tensor_parts.h"
#include "runtime/autograd/layout.h"
#include "runtime/autograd/view_replay.h"
#include "runtime/autograd_meta.h"

namespace tn::py {

namespace {

PyObject* callable_or_null(PyObject* o) { return o && o != Py_None ? o : nullptr; }

// Python's functions on what the operators of a view were given.
class PythonVisitor final : public ViewReplay::Visitor {
 public:
  PythonVisitor(PyObject* on_int, PyObject* on_tensor) : on_int_(on_int), on_tensor_(on_tensor) {}
  int64_t symbolic_int(int64_t value) override {
    if (!on_int_) return value;
    const PyRef answer = PyRef::check(PyObject_CallFunction(on_int_, "L", static_cast<long long>(value)));
    const long long n = PyLong_AsLongLong(answer.get());
    if (n == -1 && PyErr_Occurred()) throw PythonError();
    return n;
  }
  Tensor tensor(const Tensor& value) override {
    if (!on_tensor_) return value;
    const PyRef given = PyRef::check(wrap(value));
    const PyRef answer = PyRef::check(PyObject_CallOneArg(on_tensor_, given.get()));
    if (!is_tensor(answer.get()))
      raise(PyExc_TypeError, "_view_func(): expected tensor_visitor_fn to return a Tensor, got %s",
            Py_TYPE(answer.get())->tp_name);
    return tensor_of(answer.get());
  }

 private:
  PyObject* on_int_;  // borrowed, null: keeps the value
  PyObject* on_tensor_;
};

// None where self is no view, or (unless unsafe) the new base is not like its own.
template <bool kUnsafe>
PyObject* view_func(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"new_base", "symint_visitor_fn", "tensor_visitor_fn", nullptr};
    PyObject *base, *on_int = nullptr, *on_tensor = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, kUnsafe ? "O|OO:_view_func_unsafe" : "O|OO:_view_func",
                                     const_cast<char**>(names), &base, &on_int, &on_tensor))
      return nullptr;
    if (!is_tensor(base))
      raise(PyExc_TypeError, "_view_func(): argument 'new_base' must be Tensor, not %s", Py_TYPE(base)->tp_name);
    const Tensor& view = tensor_of(self);
    const Tensor& new_base = tensor_of(base);
    if (!is_view(view) || (!kUnsafe && !same_layout(new_base, view->autograd->view.base))) Py_RETURN_NONE;
    PythonVisitor visitor(callable_or_null(on_int), callable_or_null(on_tensor));
    return wrap(replay_of(view)->forward(new_base, &visitor));
  });
}

PyObject* rev_view_func(PyObject* self, PyObject* view) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(view))
      raise(PyExc_TypeError, "_rev_view_func_unsafe(): argument 'new_view' must be Tensor, not %s",
            Py_TYPE(view)->tp_name);
    const Tensor& own = tensor_of(self);
    if (!is_view(own)) Py_RETURN_NONE;
    TN_CHECK(own->autograd->view.replay, "No _rev_view_func() found");
    return wrap(own->autograd->view.replay->reverse(tensor_of(view)));
  });
}

// ---- torch._C._autograd ------------------------------------------------------------------------------------------

AutogradMeta& view_meta(PyObject* o, const char* who) {
  if (!is_tensor(o)) raise(PyExc_TypeError, "%s(): expected a Tensor, got %s", who, Py_TYPE(o)->tp_name);
  const Tensor& t = tensor_of(o);
  TN_CHECK(is_view(t), who, "(): expected a view, got a tensor that is none");
  return *t->autograd;
}

PyObject* get_creation(PyObject* module, PyObject* tensor) {
  return guarded([&]() -> PyObject* {
    const auto creation = static_cast<int>(view_meta(tensor, "_get_creation_meta").creation);
    const PyRef type = PyRef::check(PyObject_GetAttrString(module, "CreationMeta"));
    return PyObject_CallFunction(type.get(), "i", creation);
  });
}
PyObject* set_creation(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *tensor, *value;
    if (!PyArg_ParseTuple(args, "OO", &tensor, &value)) return nullptr;
    AutogradMeta& meta = view_meta(tensor, "_set_creation_meta");
    const PyRef number = PyRef::check(PyNumber_Long(value));
    const long n = PyLong_AsLong(number.get());
    if (n < 0 || n > static_cast<long>(Creation::Inference))
      raise(PyExc_ValueError, "_set_creation_meta(): expected a CreationMeta, got %ld", n);
    meta.creation = static_cast<Creation>(n);
    Py_RETURN_NONE;
  });
}

void set_version(PyObject* tensor, PyObject* version) {
  if (!is_tensor(tensor))
    raise(PyExc_TypeError, "_unsafe_set_version_counter(): expected a Tensor, got %s", Py_TYPE(tensor)->tp_name);
  const Tensor& t = tensor_of(tensor);
  const long long v = PyLong_AsLongLong(version);
  if (v == -1 && PyErr_Occurred()) throw PythonError();
  TN_CHECK(v >= 0, "Cannot set a version_counter to a value below 0: ", v);
  if (!t->is_inference()) t->set_version(static_cast<uint32_t>(v));
}
// One tensor and its version, or as many of the one as of the other.
PyObject* set_versions(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *tensors, *versions;
    if (!PyArg_ParseTuple(args, "OO", &tensors, &versions)) return nullptr;
    if (is_tensor(tensors)) {
      set_version(tensors, versions);
      Py_RETURN_NONE;
    }
    const PyRef ts = PyRef::check(PySequence_Tuple(tensors)), vs = PyRef::check(PySequence_Tuple(versions));
    const Py_ssize_t n = PyTuple_GET_SIZE(ts.get());
    TN_CHECK(n == PyTuple_GET_SIZE(vs.get()), "tensors_len=", n, ", versions_len=", PyTuple_GET_SIZE(vs.get()));
    for (Py_ssize_t i = 0; i < n; ++i) set_version(PyTuple_GET_ITEM(ts.get(), i), PyTuple_GET_ITEM(vs.get(), i));
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {{"_get_creation_meta", get_creation, METH_O, nullptr},
                           {"_set_creation_meta", set_creation, METH_VARARGS, nullptr},
                           {"_unsafe_set_version_counter", set_versions, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyMethodDef tensor_view_methods[] = {
    {"_view_func", as_method(view_func<false>), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_view_func_unsafe", as_method(view_func<true>), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_rev_view_func_unsafe", rev_view_func, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

bool bind_view_functions(PyObject* module) {
  const PyRef autograd = PyRef::adopt(PyObject_GetAttrString(module, "_autograd"));
  return autograd && PyModule_AddFunctions(autograd.get(), functions) == 0;
}

}  // namespace tn::py
