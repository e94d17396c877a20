// torch.Size: a tuple of integers that stays one under slicing, concatenation and repetition.
#include "bindings/object_type.h"
#include "bindings/objects.h"
#include "bindings/tensor.h"

namespace tn::py {

PyTypeObject size_type{};

namespace {

bool is_index_tensor(PyObject* o) {
  return is_tensor(o) && tensor_of(o).numel() == 1 && is_integral(tensor_of(o).dtype(), false);
}
bool is_plain_int(PyObject* o) { return PyLong_Check(o) && !PyBool_Check(o); }

// Elements become ints in place; numpy's integers and symbolic ones stay as they are, as upstream leaves them.
PyObject* checked(PyObject* tuple) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    if (is_plain_int(item)) continue;
    if (is_index_tensor(item) || PyBool_Check(item)) {
      PyObject* number = is_tensor(item) ? tensor_item(tensor_of(item)) : PyNumber_Long(item);
      if (number == nullptr) return nullptr;
      PyTuple_SET_ITEM(tuple, i, number);
      Py_DECREF(item);
      continue;
    }
    const PyRef index = PyRef::adopt(is_tensor(item) ? nullptr : PyNumber_Index(item));
    if (!index) {
      PyErr_Clear();
      PyErr_Format(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item %zd is '%s')", i, type_name(item));
      return nullptr;
    }
  }
  return tuple;
}

PyObject* create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyRef self = PyRef::adopt(PyTuple_Type.tp_new(type, args, kwargs));
  if (!self || !checked(self.get())) return nullptr;
  return self.release();
}

// A Size of a tuple that a tuple slot made.
PyObject* as_size(PyObject* result) {
  if (result == nullptr || result == Py_NotImplemented || !PyTuple_Check(result) || is_size(result)) return result;
  const PyRef plain = PyRef::adopt(result);
  return PyObject_CallOneArg(reinterpret_cast<PyObject*>(&size_type), plain.get());
}

PyObject* repr(PyObject* self) {
  return guarded([&] {
    std::string text = "torch.Size([";
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      const PyRef item = PyRef::check(PyObject_Repr(PyTuple_GET_ITEM(self, i)));
      text += str(i ? ", " : "", PyUnicode_AsUTF8(item.get()));
    }
    return text_object(text + "])");
  });
}

PyObject* add(PyObject* a, PyObject* b) {
  // Unlike tuple's own slot this takes a tuple on either side.
  if (!PyTuple_Check(a)) Py_RETURN_NOTIMPLEMENTED;
  if (!PyTuple_Check(b)) {
    // Sequences with an own __radd__ come later in Python's protocol; tuple's wording, with our name.
    if (Py_TYPE(b)->tp_as_number && Py_TYPE(b)->tp_as_number->nb_add && !is_size(b)) Py_RETURN_NOTIMPLEMENTED;
    PyErr_Format(PyExc_TypeError, "can only concatenate tuple (not %s) to torch.Size", type_name(b));
    return nullptr;
  }
  return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}
PyObject* concat(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(b)) {
    PyErr_Format(PyExc_TypeError, "can only concatenate tuple (not %s) to torch.Size", type_name(b));
    return nullptr;
  }
  return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}
PyObject* repeat(PyObject* self, Py_ssize_t n) { return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(self, n)); }
PyObject* item_or_slice(PyObject* self, PyObject* index) {
  if (PyTuple_Type.tp_as_mapping->mp_subscript == nullptr) return nullptr;
  PyObject* result = PyTuple_Type.tp_as_mapping->mp_subscript(self, index);
  return PySlice_Check(index) ? as_size(result) : result;
}

PyObject* numel(PyObject* self, PyObject*) {
  PyRef product = PyRef::adopt(PyLong_FromLong(1));
  for (Py_ssize_t i = 0; product && i < PyTuple_GET_SIZE(self); ++i)
    product = PyRef::adopt(PyNumber_Multiply(product.get(), PyTuple_GET_ITEM(self, i)));
  return product.release();
}
PyObject* reduce(PyObject* self, PyObject*) {
  PyRef copy = PyRef::adopt(PyTuple_New(PyTuple_GET_SIZE(self)));
  if (!copy) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i)
    PyTuple_SET_ITEM(copy.get(), i, Py_NewRef(PyTuple_GET_ITEM(self, i)));
  return Py_BuildValue("(O(N))", reinterpret_cast<PyObject*>(&size_type), copy.release());
}

PyMethodDef methods[] = {
    {"numel", numel, METH_NOARGS, nullptr},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyNumberMethods as_number{};
PySequenceMethods as_sequence{};
PyMappingMethods as_mapping{};

}  // namespace

PyObject* size_object(IntView sizes) {
  PyObject* self = size_type.tp_alloc(&size_type, sizes.ssize());
  if (self == nullptr) return nullptr;
  for (size_t i = 0; i < sizes.size(); ++i) {
    PyObject* v = PyLong_FromLongLong(sizes[i]);
    if (v == nullptr) {
      Py_DECREF(self);
      return nullptr;
    }
    PyTuple_SET_ITEM(self, static_cast<Py_ssize_t>(i), v);
  }
  return self;
}

bool bind_size(PyObject* module) {
  as_number.nb_add = add;
  as_sequence.sq_concat = concat;
  as_sequence.sq_repeat = repeat;
  as_mapping.mp_subscript = item_or_slice;
  size_type.tp_base = &PyTuple_Type;
  size_type.tp_new = create;
  size_type.tp_repr = repr;
  size_type.tp_methods = methods;
  size_type.tp_as_number = &as_number;
  size_type.tp_as_sequence = &as_sequence;
  size_type.tp_as_mapping = &as_mapping;
  size_type.tp_itemsize = sizeof(PyObject*);
  return ready_type(size_type, "torch.Size", sizeof(PyTupleObject) - sizeof(PyObject*)) &&
         add_to_module(module, "Size", reinterpret_cast<PyObject*>(&size_type));
}

}  // namespace tn::py
