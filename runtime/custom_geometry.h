// Tensors whose Python class answers for their sizes, strides, device or layout (TensorImpl::python_custom).
//
// The header's own values stay what kernels see. Operators whose result upstream makes depend on the class's answer ask
// through here; for every other tensor that is one test of a byte.
#pragma once
#include "runtime/tensor.h"

namespace tn {

// Bits of TensorImpl::python_custom.
inline constexpr uint8_t kCustomStrides = 1;
inline constexpr uint8_t kCustomSizes = 2;
inline constexpr uint8_t kCustomDevice = 4;
inline constexpr uint8_t kCustomLayout = 8;

// Set by the bindings.
struct CustomGeometry {
  bool (*is_contiguous)(const Tensor& t, MemoryFormat format);
  Device (*device)(const Tensor& t);
};
extern constinit const CustomGeometry* custom_geometry;

inline bool asked_contiguous(const Tensor& t, MemoryFormat format) {
  if (__builtin_expect((t->python_custom & kCustomStrides) != 0, 0)) return custom_geometry->is_contiguous(t, format);
  return t.is_contiguous(format);
}
inline Device asked_device(const Tensor& t) {
  if (__builtin_expect((t->python_custom & kCustomDevice) != 0, 0)) return custom_geometry->device(t);
  return t.device();
}

}  // namespace tn
