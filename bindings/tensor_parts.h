// What the files that make up TensorBase give each other.
#pragma once
#include <Python.h>

namespace tn::py {

int tensor_base_traverse(PyObject* self, visitproc visit, void* arg);
// Gives a new Python class of tensors our dealloc, traverse and clear.
void adopt_class(PyTypeObject* cls);

extern PyGetSetDef tensor_properties[];  // tensor_properties.cpp
void fill_properties();
extern PyMethodDef tensor_hand_methods[];    // tensor_methods.cpp
extern PyMethodDef tensor_view_methods[];    // view_functions.cpp
extern PyMethodDef tensor_number_methods[];  // tensor_numbers.cpp
void fill_number_methods();
extern PyMethodDef tensor_convert_methods[];
extern PyMethodDef nn_hand_functions[];  // tensor_convert_methods.cpp
extern PyMethodDef tensor_construct_methods[];
bool bind_view_functions(PyObject* torch);          // view_functions.cpp
bool add_functionalize_functions(PyObject* torch);  // functionalize.cpp
extern PyMethodDef variable_hand_functions[];       // variable_functions.cpp

template <class F>
constexpr PyCFunction as_method(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

}  // namespace tn::py
