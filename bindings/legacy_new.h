// torch.Tensor(...), torch.FloatTensor(...) and Tensor.new(...) are one constructor with three tempers.
#pragma once
#include "bindings/objects.h"

namespace tn::py {

enum class LegacyForm : uint8_t {
  Base,   // torch.Tensor: takes a tensor of any dtype
  Typed,  // torch.FloatTensor
  New,    // Tensor.new
};
Tensor legacy_tensor(LegacyForm form, ScalarType dtype, Device device, PyObject* args, PyObject* kwargs);

}  // namespace tn::py
