// Sizes, strides, device and layout as the tensor's class answers them, where it took them upon itself.
#pragma once
#include <Python.h>

#include "bindings/objects.h"
#include "bindings/tensor.h"
#include "runtime/custom_geometry.h"

namespace tn::py {

// Each answers a new reference, of the class's making or of the header's; throws what __torch_dispatch__ threw.
PyObject* asked_sizes(const Tensor& t);    // torch.Size
PyObject* asked_strides(const Tensor& t);  // tuple
PyObject* asked_dim(const Tensor& t);
PyObject* asked_numel(const Tensor& t);
int64_t asked_plain_numel(const Tensor& t);  // as C++ asks: of the operator without symbolic numbers
PyObject* asked_storage_offset(const Tensor& t);
Layout asked_layout(const Tensor& t);

inline bool custom_strides(const Tensor& t) { return (t->python_custom & kCustomStrides) != 0; }
inline bool custom_sizes(const Tensor& t) { return (t->python_custom & kCustomSizes) != 0; }

// Lets kernels ask, and serves the operators that upstream has for these questions: aten::sym_size, prim::device...
void install_custom_geometry();

}  // namespace tn::py
