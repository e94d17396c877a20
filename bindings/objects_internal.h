// What the files of these objects tell each other, and nobody else.
#pragma once
#include "bindings/objects.h"

namespace tn::py {

// The second name of a dtype under `torch` ("float" for float32), or null.
const char* dtype_alias(ScalarType t);
// Sets strided, channels_last, per_tensor_affine and the like on the torch package.
bool add_layout_names(PyObject* torch);
// Makes torch.FloatTensor and the others, sets them on their modules and fills torch._tensor_classes. Throws.
void add_tensor_types(PyObject* torch);

}  // namespace tn::py
