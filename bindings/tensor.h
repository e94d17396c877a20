// The Python object of a tensor, and who keeps whom alive.
//
// Usually the object owns one reference to the header, and the header's `pyobj` borrows the object. When Python drops
// the object while C++ still holds the header, the roles flip: the header owns the object (`owns_pyobj`), the object
// borrows the header. The next `wrap` flips back, so `id(t)`, `t.__dict__` and weak references survive a stay in C++.
#pragma once
#include <Python.h>

#include "bindings/py.h"
#include "runtime/tensor.h"

namespace tn::py {

struct TensorObject {
  PyObject_HEAD TensorImpl* impl;  // null after the header died
  PyObject* backward_hooks;
  PyObject* post_accumulate_grad_hooks;
};
static_assert(sizeof(TensorObject) == 40, "the size that Python code checks");

extern PyTypeObject tensor_meta_type;  // torch._C._TensorMeta
extern PyTypeObject tensor_base_type;  // torch._C.TensorBase
// torch.Tensor and torch.nn.Parameter, known from the moment that Python defines them; null before.
extern PyTypeObject* tensor_class;
extern PyTypeObject* parameter_class;

// Exactly torch.Tensor or Parameter: never overrides anything.
inline bool is_exact_tensor(PyObject* o) {
  PyTypeObject* const t = Py_TYPE(o);
  return t == tensor_class || t == parameter_class;
}
inline bool is_tensor(PyObject* o) { return is_exact_tensor(o) || PyType_IsSubtype(Py_TYPE(o), &tensor_base_type); }
inline TensorImpl* impl_of(PyObject* o) { return reinterpret_cast<TensorObject*>(o)->impl; }
// The object's tensor, borrowed: valid while the object is.
inline const Tensor& tensor_of(PyObject* o) {
  return *reinterpret_cast<const Tensor*>(&reinterpret_cast<TensorObject*>(o)->impl);
}

// New reference to the tensor's object: torch.Tensor if it has none yet; None for an undefined tensor.
PyObject* wrap(Tensor t);
// The same with a given class; the tensor must not have an object yet.
PyObject* wrap_as(PyTypeObject* cls, Tensor t);
// The same for a tensor that may have one, which then gets another header first. Honours __torch_dispatch__.
PyObject* wrap_fresh(PyTypeObject* cls, Tensor t);
// A tuple, as operators answer lists.
PyObject* wrap_list(TensorList list);

// The slots of number protocol that torch.Tensor gets besides its methods; see tensor_numbers.cpp.
void install_number_slots(PyTypeObject* cls);
bool bind_tensor(PyObject* module);

}  // namespace tn::py
