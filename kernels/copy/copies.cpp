// Writes into existing tensors, and copies of them.
#include <atomic>

#include "generated/slots/copy.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/overlap.h"
#include "runtime/refuse.h"
#include "runtime/shape.h"
#include "runtime/warn.h"

namespace tn::native {
namespace {

// Once a process, as upstream.
void warn_discarded_imaginary(ScalarType from, ScalarType to) {
  static constinit std::atomic<bool> warned{false};
  if (is_complex(from) && !is_complex(to) && to != ScalarType::Bool && !warned.exchange(true))
    warn("Casting complex values to real discards the imaginary part");
}

}  // namespace

const Tensor& fill__Scalar(const Tensor& self, const Scalar& value) {
  fill(self, value);  // upstream lets expanded tensors be filled
  return self;
}
const Tensor& fill__Tensor(const Tensor& self, const Tensor& value) {
  TN_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
           " dimensions.");
  copy_into(self, value);  // converts without the range check of numbers
  return self;
}
const Tensor& zero_(const Tensor& self) {
  zero(self);
  return self;
}

const Tensor& copy_(const Tensor& self, const Tensor& src, bool) {
  if (self.is_same(src)) return self;
  assert_no_internal_overlap(self);
  assert_no_partial_overlap(self, src);
  warn_discarded_imaginary(src.dtype(), self.dtype());
  copy_into(self, src);
  return self;
}

Tensor clone(const Tensor& self, std::optional<MemoryFormat> format) {
  return tn::clone(self, format.value_or(MemoryFormat::Preserve));
}

Tensor _to_copy(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                std::optional<Device> device, std::optional<bool> pin_memory, bool,
                std::optional<MemoryFormat> memory_format) {
  constexpr const char* kName = "aten::_to_copy";
  if (layout && *layout != Layout::Strided)
    refuse(kName, str("layout ", layout_name(*layout)), "new tensors are strided");
  if (pin_memory.value_or(false)) refuse(kName, "pin_memory", "there is no accelerator to pin memory for");
  const Device where = device.value_or(self.device());
  if (!where.is_cpu() && !where.is_meta()) refuse(kName, str("device ", where.str()), "there is no such backend");
  const ScalarType t = dtype.value_or(self.dtype());
  const MemoryFormat format = memory_format.value_or(MemoryFormat::Preserve);
  Tensor out;
  if (format != MemoryFormat::Preserve) out = tn::empty(self.sizes(), t, where, format);
  else if (self->is_non_overlapping_and_dense()) out = tn::empty_strided(self.sizes(), self.strides(), t, where);
  else out = tn::empty_strided(self.sizes(), preserved_strides(self.sizes(), self.strides()), t, where);
  warn_discarded_imaginary(self.dtype(), t);
  copy_into(out, self);
  return out;
}

Scalar _local_scalar_dense(const Tensor& self) { return item(self); }

}  // namespace tn::native
