// Conversion and copying between any two dtypes and geometries.
#pragma once
#include "runtime/tensor.h"

namespace tn {

// dst[...] = src[...], broadcast and converted; handles overlap-free operands of any strides, conj and neg bits. No
// version bump.
void copy_into(const Tensor& dst, const Tensor& src);
// A new contiguous (or preserved-format) tensor of the dtype with self's values; self itself if nothing changes and
// !force.
Tensor cast(const Tensor& self, ScalarType dtype, bool force = false);
Tensor contiguous(const Tensor& self, MemoryFormat format = MemoryFormat::Contiguous);
Tensor clone(const Tensor& self, MemoryFormat format = MemoryFormat::Preserve);
// Applies pending conj and neg bits.
Tensor resolve(const Tensor& self);
void fill(const Tensor& self, const Scalar& value);
void zero(const Tensor& self);
// The scalar as one element of the dtype (16 bytes at most). Checked: upstream's RuntimeError "value cannot be
// converted to type uint8_t without overflow"; unchecked: as a conversion.
void store_scalar(const Scalar& s, ScalarType dtype, void* out, bool checked = false);
// The only element (or the first one) as a number.
Scalar item(const Tensor& self);

// Converts n elements of any dtype pair, with strides in bytes. The operands don't overlap.
void convert_row(ScalarType from, const char* src, int64_t src_stride, ScalarType to, char* dst, int64_t dst_stride,
                 int64_t n);

}  // namespace tn
