// Python's numbers and nested sequences as tensor data: shape, dtype, elements.
#pragma once
#include "bindings/objects.h"
#include "runtime/shape.h"

namespace tn::py {

// The lengths along first elements; tensors count as numbers.
void data_sizes(PyObject* data, ScalarType dtype, DimVector& sizes);
// The dtype that all numbers promote to.
ScalarType infer_dtype(PyObject* data);
// Writes the numbers into contiguous memory; ValueError for ragged sequences.
void store_data(PyObject* data, const Tensor& into);
void store_number(PyObject* number, ScalarType dtype, void* at);
// One element as a Python number.
PyObject* load_number(ScalarType dtype, const void* at);

}  // namespace tn::py
