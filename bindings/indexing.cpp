// Reads an index: ints, slices, None, Ellipsis and bools become views; tensors and sequences are collected for
// aten::index.
#include "bindings/indexing.h"

#include "bindings/calls.h"
#include "bindings/object_type.h"
#include "bindings/python_data.h"
#include "bindings/tensor.h"
#include "runtime/shape.h"

namespace tn::py {

namespace {

bool is_mask(ScalarType t) { return t == ScalarType::Bool || t == ScalarType::Byte; }

[[noreturn]] void invalid_index(PyObject* o) {
  raise(PyExc_IndexError,
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got %s)",
        type_name(o));
}

// numpy's rule for lists: short ones that hold anything but numbers are a tuple of indices.
bool is_tuple_like(PyObject* index) {
  if (PyTuple_Check(index)) return true;
  if (is_tensor(index) || !PySequence_Check(index)) return false;
  const Py_ssize_t n = PySequence_Size(index);
  if (n < 0) {
    PyErr_Clear();
    return false;
  }
  if (n >= 32) return false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    const PyRef item = PyRef::adopt(PySequence_GetItem(index, i));
    if (!item) {
      PyErr_Clear();
      return false;
    }
    PyObject* o = item.get();
    if (is_tensor(o) || PySequence_Check(o) || PySlice_Check(o) || o == Py_Ellipsis || o == Py_None) return true;
  }
  return false;
}

int64_t dims_of(PyObject* o) {
  if (is_tensor(o)) return is_mask(tensor_of(o).dtype()) ? tensor_of(o).dim() : 1;
  return o == Py_None || o == Py_Ellipsis || o == Py_True || o == Py_False ? 0 : 1;
}

// An index that selects a new dimension of size one wholly or not at all.
Tensor bool_index(const Tensor& like, bool on) {
  const Tensor t = call_empty({on ? int64_t{1} : int64_t{0}}, ScalarType::Long, like.device());
  if (on) call_fill(t, Scalar(0.0));
  return t;
}

Tensor sequence_index(const Tensor& self, PyObject* sequence) {
  const ScalarType found = infer_dtype(sequence);
  return tensor_from_data(sequence, {.dtype = is_mask(found) ? found : ScalarType::Long,
                                     .device = self.device(),
                                     .copy_variables = false,
                                     .copy_numpy = false,
                                     .infer = false});
}

bool is_batched(const Tensor& t) {
  return t->keys().has(DispatchKey::FuncTorchBatched) || t->keys().has(DispatchKey::BatchedNestedTensor);
}

int64_t tensor_as_int(const Tensor& t) {
  const PyRef number = PyRef::check(tensor_item(t));
  const long long v = PyLong_AsLongLong(number.get());
  if (v == -1 && PyErr_Occurred()) throw PythonError();
  return v;
}

class Walk {
 public:
  Walk(const Tensor& self, PyObject* tuple) : self_(self), tuple_(tuple), result_{self, {}} {}

  Indexed run() {
    const Py_ssize_t n = PyTuple_GET_SIZE(tuple_);
    int64_t named = 0;
    for (Py_ssize_t i = 0; i < n; ++i) named += dims_of(PyTuple_GET_ITEM(tuple_, i));
    if (named > self_.dim()) fail(ErrorKind::Index, "too many indices for tensor of dimension ", self_.dim());
    skipped_ = self_.dim() - named;
    for (Py_ssize_t i = 0; i < n; ++i) step(PyTuple_GET_ITEM(tuple_, i), i);
    return std::move(result_);
  }

 private:
  void step(PyObject* o, int64_t position) {
    Tensor& view = result_.view;
    if (is_integer_index(o)) {
      view = apply_select(view, dim_, integer_index(o), position);
    } else if (PySlice_Check(o)) {
      view = apply_slice(view, dim_, o, false);
      pass(1);
    } else if (o == Py_Ellipsis) {
      pass(skipped_);
    } else if (o == Py_None) {
      view = call_unsqueeze(view, dim_);
      pass(1);
    } else if (PyBool_Check(o)) {
      add_bool(o == Py_True);
    } else if (is_tensor(o)) {
      add_tensor(tensor_of(o), position);
    } else if (PySequence_Check(o)) {
      // One number in it is no dimension less: a list stays an index tensor.
      add_tensor(sequence_index(self_, o), position);
    } else {
      const PyRef number = PyRef::adopt(PyNumber_Index(o));
      if (!number) {
        PyErr_Clear();
        invalid_index(o);
      }
      view = apply_select(view, dim_, integer_index(number.get()), position);
    }
  }

  // Dimensions that stay whole; they count as indices only after the first tensor.
  void pass(int64_t dims) {
    dim_ += dims;
    if (!result_.tensors.empty()) result_.tensors.resize(result_.tensors.size() + static_cast<size_t>(dims));
  }
  void record(Tensor t) {
    if (result_.tensors.empty()) result_.tensors.resize(static_cast<size_t>(dim_));
    dim_ += is_mask(t.dtype()) ? t.dim() : 1;
    result_.tensors.push_back(std::move(t));
  }
  void add_bool(bool on) {
    result_.view = call_unsqueeze(result_.view, dim_);
    record(bool_index(result_.view, on));
  }
  void add_tensor(const Tensor& t, int64_t position) {
    if (t.dim() == 0 && is_integral(t.dtype(), true) && !is_batched(t)) {
      if (is_mask(t.dtype())) add_bool(tensor_as_int(t) != 0);
      else result_.view = apply_select(result_.view, dim_, tensor_as_int(t), position);
      return;
    }
    record(t);
  }

  const Tensor& self_;
  PyObject* tuple_;
  Indexed result_;
  int64_t dim_ = 0;
  int64_t skipped_ = 0;  // the dimensions that an Ellipsis stands for
};

}  // namespace

bool is_integer_index(PyObject* o) {
  return PyLong_CheckExact(o) || (PyLong_Check(o) && !PyBool_Check(o)) || is_numpy_integer(o);
}

int64_t integer_index(PyObject* o) {
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow) fail(ErrorKind::Value, "Overflow when unpacking long long");
  if (v == -1 && PyErr_Occurred()) throw PythonError();
  return v;
}

Tensor apply_select(const Tensor& self, int64_t dim, int64_t index, int64_t position) {
  const int64_t size = dim < self.dim() ? self->size(dim) : 0;
  if (index == 0 && dim == 0 && self.dim() == 0)
    fail(ErrorKind::Index,
         "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
         "0-dim tensor to a number");
  if (size <= -1 - index || size <= index)
    fail(ErrorKind::Index, "index ", index, " is out of bounds for dimension ", position, " with size ", size);
  return call_select(self, dim, index);
}

Tensor apply_slice(const Tensor& self, int64_t dim, PyObject* slice, bool always) {
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(slice, &start, &stop, &step) < 0) throw PythonError();
  if (step <= 0) fail(ErrorKind::Value, "step must be greater than zero");
  // Upstream leaves out slices that keep everything, except where the slice is the whole index or the tensor's class
  // sees calls.
  if (!always && !self->python_dispatch && start == 0 && step == 1 && dim < self.dim() && stop >= self->size(dim))
    return self;
  return call_slice(self, dim, start, stop, step);
}

Indexed apply_index(const Tensor& self, PyObject* index) {
  if (PyTuple_Check(index)) return Walk(self, index).run();
  const bool spread = is_tuple_like(index);
  if (spread &&
      PyErr_WarnEx(PyExc_UserWarning,
                   "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in "
                   "pytorch 2.9; use "
                   "x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, "
                   "x[torch.tensor(seq)], which will result either in an error or a different result",
                   1) < 0)
    throw PythonError();
  const PyRef tuple = PyRef::check(spread ? PySequence_Tuple(index) : PyTuple_Pack(1, index));
  return Walk(self, tuple.get()).run();
}

}  // namespace tn::py
