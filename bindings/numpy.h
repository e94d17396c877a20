// What the files that make tensors from Python's data share.
#pragma once
#include "bindings/objects.h"

namespace tn::py {

// The dtype of an array or a numpy scalar; throws upstream's TypeError for kinds that tensors don't have.
ScalarType numpy_dtype(PyObject* array_or_scalar);
// A plain tensor over memory that the storage owns or borrows.
Tensor tensor_over(Storage storage, ScalarType dtype, IntView sizes, IntView strides);

}  // namespace tn::py
