// New tensors: uninitialised, or filled with one number.
#include <algorithm>

#include "generated/slots/copy.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/refuse.h"
#include "runtime/shape.h"

namespace tn::native {
namespace {

using Dtype = std::optional<ScalarType>;
using LayoutArg = std::optional<Layout>;
using DeviceArg = std::optional<Device>;
using Pinned = std::optional<bool>;
using Format = std::optional<MemoryFormat>;

void check_options(std::string_view op, LayoutArg layout, DeviceArg device, Pinned pin_memory) {
  if (layout && *layout != Layout::Strided) refuse(op, str("layout ", layout_name(*layout)), "new tensors are strided");
  if (device && !device->is_cpu() && !device->is_meta())
    refuse(op, str("device ", device->str()), "there is no such backend");
  if (pin_memory.value_or(false)) refuse(op, "pin_memory", "there is no accelerator to pin memory for");
}

Tensor fresh(std::string_view op, IntView size, Dtype dtype, LayoutArg layout, DeviceArg device, Pinned pin_memory) {
  check_options(op, layout, device, pin_memory);
  return tn::empty(size, dtype.value_or(default_dtype()), device.value_or(Device()));
}

Tensor like(std::string_view op, const Tensor& self, Dtype dtype, LayoutArg layout, DeviceArg device, Pinned pin_memory,
            Format format) {
  check_options(op, layout.value_or(self.layout()), device, pin_memory);
  const ScalarType t = dtype.value_or(self.dtype());
  const Device where = device.value_or(self.device());
  const MemoryFormat f = format.value_or(MemoryFormat::Preserve);
  if (f != MemoryFormat::Preserve || self.is_contiguous())
    return tn::empty(self.sizes(), t, where, f == MemoryFormat::Preserve ? MemoryFormat::Contiguous : f);
  if (self->is_non_overlapping_and_dense()) return tn::empty_strided(self.sizes(), self.strides(), t, where);
  return tn::empty_strided(self.sizes(), preserved_strides(self.sizes(), self.strides()), t, where);
}

Tensor filled(Tensor t, const Scalar& value) {
  fill(t, value);
  return t;
}
Tensor zeroed(Tensor t) {
  zero(t);
  return t;
}

// torch.full without a dtype: the number's kind decides.
ScalarType dtype_of_number(const Scalar& s) {
  if (s.is_complex()) return complex_of(default_dtype());
  return s.is_floating() ? default_dtype() : s.is_bool() ? ScalarType::Bool : ScalarType::Long;
}

// An out= tensor of a factory changes its size without upstream's warning, and keeps its dtype.
const Tensor& sized(const Tensor& out, IntView size) {
  if (!(out.sizes() == size)) resize_impl(*out.impl(), size);
  return out;
}

}  // namespace

const Tensor& empty_out(IntArrayRef size, Format format, const Tensor& out) {
  TN_CHECK(!format, "'memory_format' argument is incompatible with 'out' tensor argument");
  return sized(out, size);
}
Tensor empty_permuted(IntArrayRef size, IntArrayRef physical_layout, Dtype dtype, LayoutArg layout, DeviceArg device,
                      Pinned pin_memory) {
  check_options("aten::empty_permuted", layout, device, pin_memory);
  TN_CHECK(physical_layout.size() == size.size(),
           "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = ",
           size.size(), " is not equal to len(physical_layout) = ", physical_layout.size());
  DimVector strides(size.size());
  uint64_t seen = 0;
  int64_t next = 1;
  for (size_t i = size.size(); i-- > 0;) {
    const int64_t d = physical_layout[i];
    TN_CHECK(d >= 0 && d < size.ssize(), "Dimension out of range (expected to be between 0 and ", size.ssize() - 1,
             ", but got ", d, " at index ", i,
             ").  NB: negative dims not currently supported; file an issue if you want it.");
    TN_CHECK(!(seen >> d & 1), "Duplicate dim not allowed");
    seen |= uint64_t{1} << d;
    strides[static_cast<size_t>(d)] = next;
    next *= std::max<int64_t>(size[static_cast<size_t>(d)], 1);
  }
  return tn::empty_strided(size, strides, dtype.value_or(default_dtype()), device.value_or(Device()));
}
const Tensor& full_out(IntArrayRef size, const Scalar& value, const Tensor& out) {
  fill(sized(out, size), value);
  return out;
}
const Tensor& zeros_out(IntArrayRef size, const Tensor& out) {
  zero(sized(out, size));
  return out;
}
const Tensor& ones_out(IntArrayRef size, const Tensor& out) {
  fill(sized(out, size), 1);
  return out;
}

Tensor empty_memory_format(IntArrayRef size, Dtype dtype, LayoutArg layout, DeviceArg device, Pinned pin_memory,
                           Format format) {
  check_options("aten::empty.memory_format", layout, device, pin_memory);
  return tn::empty(size, dtype.value_or(default_dtype()), device.value_or(Device()),
                   format.value_or(MemoryFormat::Contiguous));
}
Tensor empty_strided(IntArrayRef size, IntArrayRef stride, Dtype dtype, LayoutArg layout, DeviceArg device,
                     Pinned pin_memory) {
  check_options("aten::empty_strided", layout, device, pin_memory);
  return tn::empty_strided(size, stride, dtype.value_or(default_dtype()), device.value_or(Device()));
}
Tensor empty_like(const Tensor& self, Dtype dtype, LayoutArg layout, DeviceArg device, Pinned pin_memory,
                  Format format) {
  return like("aten::empty_like", self, dtype, layout, device, pin_memory, format);
}
Tensor new_empty(const Tensor& self, IntArrayRef size, Dtype dtype, LayoutArg layout, DeviceArg device,
                 Pinned pin_memory) {
  return fresh("aten::new_empty", size, dtype.value_or(self.dtype()), layout, device.value_or(self.device()),
               pin_memory);
}
Tensor new_empty_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride, Dtype dtype, LayoutArg layout,
                         DeviceArg device, Pinned pin_memory) {
  check_options("aten::new_empty_strided", layout, device, pin_memory);
  return tn::empty_strided(size, stride, dtype.value_or(self.dtype()), device.value_or(self.device()));
}

Tensor full(IntArrayRef size, const Scalar& value, Dtype dtype, LayoutArg layout, DeviceArg device, Pinned pin_memory) {
  return filled(fresh("aten::full", size, dtype.value_or(dtype_of_number(value)), layout, device, pin_memory), value);
}
Tensor full_like(const Tensor& self, const Scalar& value, Dtype dtype, LayoutArg layout, DeviceArg device,
                 Pinned pin_memory, Format format) {
  return filled(like("aten::full_like", self, dtype, layout, device, pin_memory, format), value);
}
Tensor new_full(const Tensor& self, IntArrayRef size, const Scalar& value, Dtype dtype, LayoutArg layout,
                DeviceArg device, Pinned pin_memory) {
  return filled(new_empty(self, size, dtype, layout, device, pin_memory), value);
}
Tensor scalar_tensor(const Scalar& s, Dtype dtype, LayoutArg layout, DeviceArg device, Pinned pin_memory) {
  return filled(fresh("aten::scalar_tensor", {}, dtype, layout, device, pin_memory), s);
}

Tensor zeros(IntArrayRef size, Dtype dtype, LayoutArg layout, DeviceArg device, Pinned pin_memory) {
  return zeroed(fresh("aten::zeros", size, dtype, layout, device, pin_memory));
}
Tensor zeros_like(const Tensor& self, Dtype dtype, LayoutArg layout, DeviceArg device, Pinned pin_memory,
                  Format format) {
  return zeroed(like("aten::zeros_like", self, dtype, layout, device, pin_memory, format));
}
Tensor new_zeros(const Tensor& self, IntArrayRef size, Dtype dtype, LayoutArg layout, DeviceArg device,
                 Pinned pin_memory) {
  return zeroed(new_empty(self, size, dtype, layout, device, pin_memory));
}
Tensor ones(IntArrayRef size, Dtype dtype, LayoutArg layout, DeviceArg device, Pinned pin_memory) {
  return filled(fresh("aten::ones", size, dtype, layout, device, pin_memory), 1);
}
Tensor ones_like(const Tensor& self, Dtype dtype, LayoutArg layout, DeviceArg device, Pinned pin_memory,
                 Format format) {
  return filled(like("aten::ones_like", self, dtype, layout, device, pin_memory, format), 1);
}
Tensor new_ones(const Tensor& self, IntArrayRef size, Dtype dtype, LayoutArg layout, DeviceArg device,
                Pinned pin_memory) {
  return filled(new_empty(self, size, dtype, layout, device, pin_memory), 1);
}

}  // namespace tn::native
