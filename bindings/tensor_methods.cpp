// Hand-written methods that read the tensor, turn it into a number, or call Python for each element.
#include "bindings/custom_geometry.h"
#include "bindings/functorch.h"
#include "bindings/hand_method.h"
#include "bindings/objects.h"
#include "bindings/tensor_parts.h"
#include "runtime/autograd_meta.h"
#include "runtime/copy.h"
#include "runtime/refuse.h"

namespace tn::py {

namespace {

using T = ParamType;
constexpr uint8_t kNone = Param::kAllowNone | Param::kHasDefault;

// ---- numbers
// -----------------------------------------------------------------------------------------------------------
Value only_number(const Tensor& t) {
  if (t.numel() != 1) fail(ErrorKind::Value, "only one element tensors can be converted to Python scalars");
  static OpRow& op = required_op("aten::_local_scalar_dense", "");
  const Arg arg = Arg::of(t);
  Value v;
  door::call_boxed(op, {&arg, 1}, &v);
  return v;
}
double as_double(const Arg& a) {
  if (a.tag == Tag::Complex && a.im != 0)
    fail(ErrorKind::Runtime, "value cannot be converted to type double without overflow");
  return a.scalar().to_double();
}
PyObject* to_bool(PyObject*, const Tensor& t) {
  if (t.numel() == 0) fail(ErrorKind::Runtime, "Boolean value of Tensor with no values is ambiguous");
  if (t.numel() > 1) fail(ErrorKind::Runtime, "Boolean value of Tensor with more than one value is ambiguous");
  const Value v = only_number(t);
  const Arg a = v.arg();
  return new_bool(a.tag == Tag::Double || a.tag == Tag::Complex ? a.d != 0 || a.im != 0 : a.i != 0);
}
PyObject* to_int(PyObject*, const Tensor& t) {
  const Value v = only_number(t);
  const Arg a = v.arg();
  if (a.tag == Tag::Double || a.tag == Tag::Complex) return PyLong_FromDouble(as_double(a));
  const PyRef number = PyRef::check(number_object(a.scalar()));
  return PyNumber_Long(number.get());
}
PyObject* to_index(PyObject*, const Tensor& t) {
  if (t.numel() != 1 || !is_integral(t.dtype(), true))
    raise(PyExc_TypeError, "only integer tensors of a single element can be converted to an index");
  return to_int(nullptr, t);
}
PyObject* to_float(PyObject*, const Tensor& t) { return PyFloat_FromDouble(as_double(only_number(t).arg())); }
PyObject* to_complex(PyObject*, const Tensor& t) {
  const std::complex<double> c = only_number(t).arg().scalar().to_complex();
  return PyComplex_FromDoubles(c.real(), c.imag());
}

constexpr const char *kBoolName = "__bool__", *kNonzeroName = "__nonzero__", *kIntName = "__int__",
                     *kLongName = "__long__", *kIndexName = "__index__", *kFloatName = "__float__",
                     *kComplexName = "__complex__";

// ---- geometry
// -----------------------------------------------------------------------------------------------------------
PyObject* dim(PyObject*, const Tensor& t) { return asked_dim(t); }
PyObject* numel(PyObject*, const Tensor& t) { return asked_numel(t); }
PyObject* storage_offset(PyObject*, const Tensor& t) { return asked_storage_offset(t); }
PyObject* element_size(PyObject*, const Tensor& t) { return PyLong_FromSize_t(t.itemsize()); }
PyObject* data_ptr(PyObject*, const Tensor& t) {
  if (asked_plain_numel(t) == 0) return PyLong_FromLong(0);
  // A wrapper subclass has no memory, and answers zero rather than an error.
  if (t->python_dispatch && t.storage()->no_data_reason) return PyLong_FromLong(0);
  return PyLong_FromVoidPtr(t.data_ptr());
}
PyObject* get_device(PyObject*, const Tensor& t) {
  return PyLong_FromLong(t.device().index < 0 ? -1 : t.device().is_cpu() ? -1 : t.device().index);
}
constexpr const char *kDimName = "dim", *kNdimensionName = "ndimension", *kNumelName = "numel",
                     *kNelementName = "nelement", *kStorageOffsetName = "storage_offset",
                     *kElementSizeName = "element_size", *kDataPtrName = "data_ptr",
                     *kConstDataPtrName = "const_data_ptr", *kGetDeviceName = "get_device";

constexpr Arg kDimDefaults[] = {Arg(), Arg()};
constexpr Param kDimParams[] = {{"dim", T::Int, kNone, 1, 0}};
constexpr Signature kDimSignature[] = {form("(int dim = None)", kDimParams, 1, 1, kDimDefaults, 2)};
constexpr Function kSize{"size", kDimSignature, 1, true, -1, "torch.Tensor"};
constexpr Function kStride{"stride", kDimSignature, 1, true, -1, "torch.Tensor"};
// The whole tuple, or the number of one dimension.
PyObject* one_of(const Tensor& t, PyObject* tuple, const Arg& dim) {
  PyRef all = PyRef::check(tuple);
  if (dim.is_none()) return all.release();
  const PyRef count = PyRef::check(asked_dim(t));
  const int64_t d = wrap_dim(dim.i, PyLong_AsLongLong(count.get()));
  TN_CHECK_AS(Index, d < PyTuple_GET_SIZE(all.get()), "expected a dimension below ", PyTuple_GET_SIZE(all.get()),
              ", got ", d);
  return Py_NewRef(PyTuple_GET_ITEM(all.get(), d));
}
PyObject* size(PyObject* self, Parsed& p, int) {
  const Tensor& t = tensor_of(self);
  if (__builtin_expect(custom_sizes(t), 0)) return one_of(t, asked_sizes(t), p.arg(1));
  return p.arg(1).is_none() ? size_object(t.sizes()) : PyLong_FromLongLong(t.size(p.arg(1).i));
}
PyObject* stride(PyObject* self, Parsed& p, int) {
  const Tensor& t = tensor_of(self);
  if (p.arg(1).is_none()) return asked_strides(t);
  if (__builtin_expect(custom_strides(t), 0)) return one_of(t, asked_strides(t), p.arg(1));
  return PyLong_FromLongLong(t.stride(p.arg(1).i));
}

// ---- requires_grad_
// -------------------------------------------------------------------------------------------------------
constexpr Arg kNeedsDefaults[] = {Arg(), Arg::of(true)};
constexpr Param kNeedsParams[] = {{"requires_grad", T::Bool, Param::kHasDefault, 1, 0}};
constexpr Signature kNeedsSignature[] = {form("(bool requires_grad = True)", kNeedsParams, 1, 1, kNeedsDefaults, 2)};
constexpr Function kRequiresGrad{"requires_grad_", kNeedsSignature, 1, true, -1, "torch.Tensor"};
PyObject* requires_grad(PyObject* self, Parsed& p, int) {
  const Tensor& t = tensor_of(self);
  const bool on = p.arg(1).i != 0;
  check_requires_grad_allowed();
  if (!is_leaf(t) && !on)
    fail(ErrorKind::Runtime,
         "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
         "subgraph that doesn't "
         "require differentiation use var_no_grad = var.detach().");
  if (on && !is_floating(t.dtype()) && !t.is_complex())
    fail(ErrorKind::Runtime, "only Tensors of floating point dtype can require gradients");
  if (is_leaf(t)) set_requires_grad(t, on);
  return Py_NewRef(self);
}

// ---- nonzero
// ----------------------------------------------------------------------------------------------------------------
constexpr Arg kNonzeroDefaults[] = {Arg(), Arg::of(false)};
constexpr Param kNonzeroParams[] = {{"as_tuple", T::Bool, Param::kKeywordOnly, 1, 0}};
constexpr Signature kNonzeroSignatures[] = {form("()", nullptr, 0, 0, kNonzeroDefaults, 1),
                                            form("(*, bool as_tuple)", kNonzeroParams, 1, 0, kNonzeroDefaults, 2)};
constexpr Function kNonzero{"nonzero", kNonzeroSignatures, 2, true, -1, "torch.Tensor"};
PyObject* nonzero(PyObject* self, Parsed& p, int which) {
  const Arg arg = Arg::of(tensor_of(self));
  if (which == 0 || p.arg(1).i == 0) return wrap(call_tensor(required_op("aten::nonzero", ""), {&arg, 1}, p.large));
  OpRow& op = required_op("aten::nonzero_numpy", "");
  Value out;
  door::call_boxed(op, {&arg, 1}, &out);
  return wrap_list(out.arg().tensors());
}

// ---- apply_, map_, map2_
// ------------------------------------------------------------------------------------------------------ Calls f with
// one Python number of each operand, element by element, and stores what it answers in the first.
void for_each(PyObject* f, std::span<const Tensor> operands, int64_t d, std::span<int64_t> offsets) {
  const Tensor& self = operands[0];
  const auto element = [&](size_t k) { return alias_with_geometry(operands[k], {}, {}, offsets[k]); };
  if (d == self.dim()) {
    PyRef args[3];
    PyObject* call[3];
    for (size_t k = 0; k < operands.size(); ++k) {
      args[k] = PyRef::check(number_object(item(element(k))));
      call[k] = args[k].get();
    }
    const PyRef answer = PyRef::check(PyObject_Vectorcall(f, call, operands.size(), nullptr));
    Arg number;
    if (!number_argument(answer.get(), &number))
      raise(PyExc_TypeError, "must be real number, not %s", Py_TYPE(answer.get())->tp_name);
    fill(element(0), number.scalar());
    return;
  }
  int64_t kept[3];
  for (size_t k = 0; k < operands.size(); ++k) kept[k] = offsets[k];
  for (int64_t i = 0; i < self.size(d); ++i) {
    for_each(f, operands, d + 1, offsets);
    for (size_t k = 0; k < operands.size(); ++k) offsets[k] += operands[k].stride(d);
  }
  for (size_t k = 0; k < operands.size(); ++k) offsets[k] = kept[k];
}
PyObject* run_each(const char* name, PyObject* self, std::span<const Tensor> operands, PyObject* f) {
  const Tensor& t = operands[0];
  if (t.requires_grad())
    fail(ErrorKind::Runtime, "Can't call ", name, "() on Variable that requires grad. Use var.detach().", name,
         "() instead.");
  if (!t.is_cpu()) raise(PyExc_TypeError, "%s is only implemented on CPU tensors", name);
  int64_t offsets[3] = {};
  for (size_t k = 0; k < operands.size(); ++k) offsets[k] = operands[k].storage_offset();
  if (t.numel() > 0) for_each(f, operands, 0, {offsets, operands.size()});
  t->bump_version();
  tell_written_around(name);
  return Py_NewRef(self);
}
Tensor expanded(const char* name, const Tensor& other, const Tensor& self) {
  if (other.dtype() != self.dtype())
    fail(ErrorKind::Type, name, "(): expected a tensor of dtype ", dtype_name(self.dtype()), ", got ",
         dtype_name(other.dtype()));
  const Arg args[] = {Arg::of(other), Arg::of(self.sizes()), Arg::of(false)};
  return call_tensor(required_op("aten::expand", ""), args);
}
PyObject* apply(PyObject* self, PyObject* f) {
  return guarded([&]() -> PyObject* {
    PyObject* told;
    if (needs_override(self) && method_override(self, "apply_", &f, 1, nullptr, &told)) return told;
    const Tensor operands[] = {tensor_of(self)};
    return run_each("apply_", self, operands, f);
  });
}
constexpr Arg kMapDefaults[] = {Arg(), Arg(), Arg(), Arg()};
constexpr Param kMapParams[] = {{"other", T::Tensor, 0, 1, 0}, {"callable", T::Object, 0, 3, 0}};
constexpr Param kMap2Params[] = {
    {"x", T::Tensor, 0, 1, 0}, {"y", T::Tensor, 0, 2, 0}, {"callable", T::Object, 0, 3, 0}};
constexpr Signature kMapSignature[] = {form("(Tensor other, object callable)", kMapParams, 2, 2, kMapDefaults, 4)};
constexpr Signature kMap2Signature[] = {
    form("(Tensor x, Tensor y, object callable)", kMap2Params, 3, 3, kMapDefaults, 4)};
constexpr Function kMap{"map_", kMapSignature, 1, true, -1, "torch.Tensor"};
constexpr Function kMap2{"map2_", kMap2Signature, 1, true, -1, "torch.Tensor"};
PyObject* callable_of(Parsed& p) { return static_cast<PyObject*>(const_cast<void*>(p.arg(3).p)); }
PyObject* map(PyObject* self, Parsed& p, int) {
  const Tensor& t = tensor_of(self);
  const Tensor operands[] = {t, expanded("map_", p.arg(1).tensor(), t)};
  return run_each("map_", self, operands, callable_of(p));
}
PyObject* map2(PyObject* self, Parsed& p, int) {
  const Tensor& t = tensor_of(self);
  const Tensor operands[] = {t, expanded("map2_", p.arg(1).tensor(), t), expanded("map2_", p.arg(2).tensor(), t)};
  return run_each("map2_", self, operands, callable_of(p));
}

// ---- identity
// ---------------------------------------------------------------------------------------------------------------
// An object that came out of a weak reference owns its header again, instead of the header it.
PyObject* fix_weakref(PyObject* self, PyObject*) {
  TensorImpl* const impl = impl_of(self);
  if (impl && impl->owns_pyobj) {
    impl->owns_pyobj = false;
    impl->retain();
    Py_DECREF(self);  // the header's; the caller has one too
  }
  Py_RETURN_NONE;
}
PyObject* is_view_method(PyObject*, const Tensor& t) { return new_bool(is_view(t)); }
PyObject* use_count(PyObject*, const Tensor& t) { return PyLong_FromUnsignedLong(t->use_count()); }
constexpr const char *kIsViewName = "_is_view", *kUseCountName = "_use_count";

}  // namespace

PyMethodDef tensor_hand_methods[] = {TN_PLAIN_METHOD(kBoolName, to_bool),
                                     TN_PLAIN_METHOD(kNonzeroName, to_bool),
                                     TN_PLAIN_METHOD(kIntName, to_int),
                                     TN_PLAIN_METHOD(kLongName, to_int),
                                     TN_PLAIN_METHOD(kIndexName, to_index),
                                     TN_PLAIN_METHOD(kFloatName, to_float),
                                     TN_PLAIN_METHOD(kComplexName, to_complex),
                                     TN_PLAIN_METHOD(kDimName, dim),
                                     TN_PLAIN_METHOD(kNdimensionName, dim),
                                     TN_PLAIN_METHOD(kNumelName, numel),
                                     TN_PLAIN_METHOD(kNelementName, numel),
                                     TN_PLAIN_METHOD(kStorageOffsetName, storage_offset),
                                     TN_PLAIN_METHOD(kElementSizeName, element_size),
                                     TN_PLAIN_METHOD(kDataPtrName, data_ptr),
                                     TN_PLAIN_METHOD(kConstDataPtrName, data_ptr),
                                     TN_PLAIN_METHOD(kGetDeviceName, get_device),
                                     TN_PLAIN_METHOD(kIsViewName, is_view_method),
                                     TN_PLAIN_METHOD(kUseCountName, use_count),
                                     TN_HAND_METHOD(kSize, size),
                                     TN_HAND_METHOD(kStride, stride),
                                     TN_HAND_METHOD(kRequiresGrad, requires_grad),
                                     TN_HAND_METHOD(kNonzero, nonzero),
                                     TN_HAND_METHOD(kMap, map),
                                     TN_HAND_METHOD(kMap2, map2),
                                     {"apply_", apply, METH_O, nullptr},
                                     {"_fix_weakref", fix_weakref, METH_NOARGS, nullptr},
                                     {nullptr, nullptr, 0, nullptr}};

}  // namespace tn::py
