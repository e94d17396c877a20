// Tensor.__getitem__ and __setitem__.
#include "bindings/calls.h"
#include "bindings/indexing.h"
#include "bindings/object_type.h"
#include "bindings/tensor.h"
#include "bindings/tensor_new.h"
#include "runtime/shape.h"

namespace tn::py {

namespace {

Tensor get(const Tensor& self, PyObject* index) {
  if (is_integer_index(index)) return apply_select(self, 0, integer_index(index), 0);
  if (PySlice_Check(index)) {
    if (self.dim() == 0) fail(ErrorKind::Index, "slice() cannot be applied to a 0-dim tensor.");
    return apply_slice(self, 0, index, true);
  }
  if (index == Py_None) return call_unsqueeze(self, 0);
  if (index == Py_Ellipsis) return call_alias(self);
  Indexed parts = apply_index(self, index);
  if (!parts.tensors.empty()) return call_index(parts.view, parts.tensors);
  // x[:, ...] is a view of x, not x.
  return parts.view.is_same(self) ? call_alias(self) : std::move(parts.view);
}

// ---- assignment
// ---------------------------------------------------------------------------------------------------------------
// "torch.FloatTensor", for the message.
std::string legacy_name(const Tensor& self) {
  const PyRef name = PyRef::check(tensor_type_name(self));
  return PyUnicode_AsUTF8(name.get());
}

std::optional<Scalar> as_number(PyObject* value) {
  if (PyBool_Check(value)) return Scalar(value == Py_True);
  if (is_integer_index(value)) return Scalar(integer_index(value));
  if (PyFloat_Check(value)) return Scalar(PyFloat_AS_DOUBLE(value));
  if (PyComplex_Check(value)) {
    const Py_complex c = PyComplex_AsCComplex(value);
    return Scalar(std::complex<double>(c.real, c.imag));
  }
  return std::nullopt;
}

IntView without_leading_ones(IntView sizes) {
  size_t i = 0;
  while (i < sizes.size() && sizes[i] == 1) ++i;
  return sizes.slice(i, sizes.size() - i);
}

void assign(const Tensor& target, const Tensor& value) {
  static OpRow& fill = required_op("aten::fill_", "Tensor");
  static OpRow& expand = required_op("aten::expand", "");
  if (target.sizes() == value.sizes()) {
    call_copy(target, value);
  } else if (value.dim() == 0 && value.is_cpu()) {
    call_op(fill, target, value);
  } else {
    const Tensor view = call_view(value, without_leading_ones(value.sizes()));
    call_copy(target, view.sizes() == target.sizes() ? view : call_op(expand, view, target.sizes(), false));
  }
}

// A number needs no tensor where nobody would see the difference: same values, but fill_.Scalar instead of copy_ or
// fill_.Tensor.
bool can_fill(const Tensor& self) { return !self.requires_grad() && !thread_has_modes() && !self->python_dispatch; }

// The part of self that a basic index selects; false if tensors are left in `tensors`.
bool select_target(const Tensor& self, PyObject* index, Tensor* target, std::vector<Tensor>* tensors) {
  if (is_integer_index(index)) {
    *target = apply_select(self, 0, integer_index(index), 0);
  } else if (PySlice_Check(index)) {
    if (self.dim() == 0) fail(ErrorKind::Index, "slice() cannot be applied to a 0-dim tensor.");
    *target = apply_slice(self, 0, index, false);
  } else if (index == Py_Ellipsis) {
    *target = self;
  } else if (index == Py_None || index == Py_True) {
    *target = call_unsqueeze(self, 0);
  } else {
    Indexed parts = apply_index(self, index);
    *target = std::move(parts.view);
    *tensors = std::move(parts.tensors);
  }
  return tensors->empty();
}

Tensor value_tensor(const Tensor& self, PyObject* value, const std::optional<Scalar>& number) {
  if (is_tensor(value)) return tensor_of(value);
  return lifted(scalar_tensor(*number, is_quantized(self.dtype()) ? ScalarType::Float : self.dtype(), self.device()));
}

void set(const Tensor& self, PyObject* index, PyObject* value) {
  if (self.layout() == Layout::Sparse) fail(ErrorKind::Type, "Cannot assign to a sparse tensor");
  std::optional<Scalar> number;
  if (!is_tensor(value)) {
    number = as_number(value);
    if (!number) fail(ErrorKind::Type, "can't assign a ", type_name(value), " to a ", legacy_name(self));
  }
  if (index == Py_False) return;
  Tensor target;
  std::vector<Tensor> tensors;
  // With modes the value's tensor is made before the views, as upstream orders them.
  const bool fill = number && can_fill(self);
  Tensor given;
  if (!fill) given = value_tensor(self, value, number);
  if (select_target(self, index, &target, &tensors)) {
    if (fill) call_fill(target, *number);
    else assign(target, given);
    return;
  }
  if (fill) given = value_tensor(self, value, number);
  const IntView sizes = without_leading_ones(given.sizes());
  if (sizes.size() != given.sizes().size()) given = call_view(given, sizes);
  if (given.dim() == 0 && given.device() != target.device())
    given = call_to(given, target.device(), given.dtype(), false);
  call_index_put(target, tensors, given);
}

}  // namespace

PyObject* tensor_getitem(PyObject* self, PyObject* index) {
  return guarded([&] { return wrap(get(tensor_of(self), index)); });
}

int tensor_setitem(PyObject* self, PyObject* index, PyObject* value) {
  return guarded([&] {
    if (value == nullptr) fail(ErrorKind::Type, "Tensor does not support deleting items");
    set(tensor_of(self), index, value);
    return 0;
  });
}

}  // namespace tn::py
