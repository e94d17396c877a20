#include "bindings/custom_geometry.h"

#include <string>

#include "bindings/boxed_call.h"
#include "bindings/torch_dispatch.h"
#include "runtime/shape.h"

namespace tn::py {
namespace {

PyRef overload(const char* ns, const char* name, const char* which) {
  PyRef found = PyRef::check(PyImport_ImportModule("torch"));
  for (const char* part : {"ops", ns, name, which}) found = PyRef::check(PyObject_GetAttrString(found.get(), part));
  return found;
}

// What the class (or a mode) answers to the operator; None stands for the header's own value.
PyRef ask(const Tensor& t, const char* ns, const char* name, const char* which, PyObject* extra = nullptr) {
  const PyRef self = PyRef::check(wrap(t));
  const PyRef func = overload(ns, name, which);
  const PyRef args = PyRef::check(extra ? PyTuple_Pack(2, self.get(), extra) : PyTuple_Pack(1, self.get()));
  const PyRef kwargs = PyRef::check(PyDict_New());
  return call_torch_dispatch({&self, 1}, in_dispatch_mode(), func.get(), args.get(), kwargs.get(),
                             std::string("torch.ops.") + ns + "." + name);
}

[[noreturn]] void wrong_type(const char* what, PyObject* answer, const char* expected) {
  raise(PyExc_TypeError, "%s returned invalid type %s, expected %s", what, Py_TYPE(answer)->tp_name, expected);
}

bool yes_or_no(const char* what, PyObject* answer) {
  if (!PyBool_Check(answer)) wrong_type(what, answer, "bool");
  return answer == Py_True;
}

bool is_contiguous(const Tensor& t, MemoryFormat format) {
  const GilAcquire gil;
  const bool plain = format == MemoryFormat::Contiguous;
  const PyRef answer = plain ? ask(t, "aten", "is_contiguous", "default")
                             : ask(t, "aten", "is_contiguous", "memory_format", memory_format_object(format));
  return answer.get() == Py_None ? t.is_contiguous(format) : yes_or_no("is_contiguous", answer.get());
}

Device device(const Tensor& t) {
  const GilAcquire gil;
  const PyRef answer = ask(t, "prim", "device", "default");
  if (!is_device(answer.get())) wrong_type("device", answer.get(), "Device");
  return device_argument(answer.get());
}

constexpr CustomGeometry kGeometry{is_contiguous, device};

// A sequence of numbers, which may be symbolic.
PyRef numbers(const char* what, PyObject* answer) {
  if (!PyTuple_Check(answer) && !PyList_Check(answer)) wrong_type(what, answer, "tuple of ints");
  return PyRef::check(PySequence_Tuple(answer));
}

PyObject* strides_tuple(IntView strides) {
  const PyRef tuple = PyRef::check(PyTuple_New(strides.ssize()));
  for (size_t i = 0; i < strides.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), PyRef::check(PyLong_FromLongLong(strides[i])).release());
  return PyRef(tuple).release();
}

}  // namespace

PyObject* asked_sizes(const Tensor& t) {
  if (!custom_sizes(t)) return size_object(t.sizes());
  const PyRef answer = ask(t, "aten", "sym_size", "default");
  if (answer.get() == Py_None) return size_object(t.sizes());
  return PyObject_CallOneArg(reinterpret_cast<PyObject*>(&size_type), numbers("sym_size", answer.get()).get());
}

PyObject* asked_strides(const Tensor& t) {
  if (!custom_strides(t)) return strides_tuple(t.strides());
  const PyRef answer = ask(t, "aten", "sym_stride", "default");
  return answer.get() == Py_None ? strides_tuple(t.strides()) : numbers("sym_stride", answer.get()).release();
}

PyObject* asked_dim(const Tensor& t) {
  if (!custom_sizes(t)) return PyLong_FromLongLong(t.dim());
  const PyRef answer = ask(t, "aten", "dim", "default");
  if (!PyLong_Check(answer.get())) wrong_type("dim", answer.get(), "int");
  return PyRef(answer).release();
}

PyObject* asked_numel(const Tensor& t) {
  if (!custom_sizes(t)) return PyLong_FromLongLong(t.numel());
  const PyRef answer = ask(t, "aten", "sym_numel", "default");
  return answer.get() == Py_None ? PyLong_FromLongLong(t.numel()) : PyRef(answer).release();
}

PyObject* asked_storage_offset(const Tensor& t) {
  if (!custom_sizes(t)) return PyLong_FromLongLong(t.storage_offset());
  const PyRef answer = ask(t, "aten", "sym_storage_offset", "default");
  return answer.get() == Py_None ? PyLong_FromLongLong(t.storage_offset()) : PyRef(answer).release();
}

Layout asked_layout(const Tensor& t) {
  if ((t->python_custom & kCustomLayout) == 0) return t.layout();
  const PyRef answer = ask(t, "prim", "layout", "default");
  if (is_layout(answer.get())) return static_cast<Layout>(enum_value(answer.get()));
  if (!PyLong_Check(answer.get())) wrong_type("layout", answer.get(), "Layout");
  return static_cast<Layout>(PyLong_AsLong(answer.get()));
}

int64_t asked_plain_numel(const Tensor& t) {
  if (!custom_sizes(t)) return t.numel();
  const PyRef answer = ask(t, "aten", "numel", "default");
  if (answer.get() == Py_None) return t.numel();
  const int64_t n = PyLong_AsLongLong(answer.get());
  if (n == -1 && PyErr_Occurred()) throw PythonError();
  return n;
}

namespace {

bool strides_like(const Tensor& t, MemoryFormat format) { return t.dim() >= 4 && suggest_memory_format(t) == format; }

// The answer of each operator about its first argument, as Python's object.
PyRef size_answer(const Tensor& t, const Arg&) { return PyRef::check(asked_sizes(t)); }
PyRef stride_answer(const Tensor& t, const Arg&) { return PyRef::check(asked_strides(t)); }
PyRef device_answer(const Tensor& t, const Arg&) { return PyRef::check(device_object(asked_device(t))); }
PyRef layout_answer(const Tensor& t, const Arg&) { return PyRef::share(layout_object(asked_layout(t))); }
PyRef dense_answer(const Tensor& t, const Arg&) {
  if (custom_strides(t)) {
    PyRef answer = ask(t, "aten", "is_non_overlapping_and_dense", "default");
    if (answer.get() != Py_None) return answer;
  }
  return PyRef::adopt(new_bool(t->is_non_overlapping_and_dense()));
}
PyRef like_answer(const Tensor& t, const Arg& format) {
  if (custom_strides(t)) {
    PyRef answer =
        ask(t, "aten", "is_strides_like_format", "default", memory_format_object(static_cast<MemoryFormat>(format.i)));
    if (answer.get() != Py_None) return answer;
  }
  return PyRef::adopt(new_bool(strides_like(t, static_cast<MemoryFormat>(format.i))));
}

template <PyRef (*kAnswer)(const Tensor&, const Arg&)>
class Question final : public BoxedKernel {
 public:
  void call(OpRow& op, KeySet, std::span<const Arg> args, Value* out) override {
    const GilAcquire gil;
    const PyRef answer = kAnswer(args[0].tensor(), args.back());
    take_results(schema_of(op), answer.get(), out);
  }
};

template <PyRef (*kAnswer)(const Tensor&, const Arg&)>
void serve(const char* name) {
  register_kernel(required_op(name, ""), {.key = DispatchKey::CompositeImplicitAutograd,
                                          .boxed = Ref<BoxedKernel>::adopt(new Question<kAnswer>())});
}

}  // namespace

void install_custom_geometry() {
  custom_geometry = &kGeometry;
  serve<size_answer>("aten::size");
  serve<size_answer>("aten::sym_size");
  serve<stride_answer>("aten::stride");
  serve<stride_answer>("aten::sym_stride");
  serve<device_answer>("prim::device");
  serve<layout_answer>("prim::layout");
  serve<dense_answer>("aten::is_non_overlapping_and_dense");
  serve<like_answer>("aten::is_strides_like_format");
}

}  // namespace tn::py
