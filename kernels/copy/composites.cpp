#include "kernels/copy/composites.h"

#include <limits>

#include "generated/ops/_local_scalar_dense.h"
#include "generated/ops/_to_copy.h"
#include "generated/ops/_unsafe_view.h"
#include "generated/ops/clone.h"
#include "generated/ops/copy.h"
#include "generated/ops/empty_strided.h"
#include "generated/ops/expand.h"
#include "generated/ops/fill.h"
#include "generated/ops/set.h"
#include "runtime/copy.h"
#include "runtime/custom_geometry.h"
#include "runtime/promote.h"
#include "runtime/shape.h"

namespace tn::composite {

Tensor contiguous(const Tensor& self, MemoryFormat format) {
  if (asked_contiguous(self, format)) return self;
  TN_CHECK(format != MemoryFormat::Preserve, "preserve memory format is unsupported by the contiguous operator");
  return at::clone(self, format);
}

Tensor to(const Tensor& self, const ToOptions& o, bool non_blocking, bool copy, std::optional<MemoryFormat> format) {
  const MemoryFormat f = format.value_or(MemoryFormat::Preserve);
  const bool same = !copy && o.dtype.value_or(self.dtype()) == self.dtype() &&
                    o.layout.value_or(self.layout()) == self.layout() &&
                    o.device.value_or(self.device()).type == self.device().type &&  // the CPU has no numbers
                    (f == MemoryFormat::Preserve || suggest_memory_format(self) == f);
  if (same) return self;
  return at::_to_copy(self, o.dtype, o.layout, o.device, o.pin_memory, non_blocking, format);
}

Scalar item(const Tensor& self) {
  TN_CHECK(self.numel() == 1, "a Tensor with ", self.numel(), " elements cannot be converted to Scalar");
  return at::_local_scalar_dense(self);
}

bool is_nonzero(const Tensor& self) {
  TN_CHECK(self.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  TN_CHECK(self.numel() < 2, "Boolean value of Tensor with more than one value is ambiguous");
  return composite::item(self).to_bool();
}

ScalarType result_type(const Scalar& a, const Scalar& b) {
  ResultType r;
  r.add(a);
  r.add(b);
  return r.get();
}
ScalarType result_type(const Tensor& a, const Scalar& b) {
  ResultType r;
  r.add(a);
  r.add(b);
  return r.get();
}

std::vector<Tensor> to_cpu(TensorList tensors) {
  std::vector<Tensor> out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors)
    out.push_back(to(t, {.dtype = {}, .layout = {}, .device = Device(), .pin_memory = {}}, false, false, {}));
  return out;
}

Tensor reshape_copy(const Tensor& self, IntView size) {
  const DimVector wanted = infer_view_size(size, self.numel());
  return at::_unsafe_view(at::clone(self, MemoryFormat::Contiguous), wanted);
}

Tensor copy(const Tensor& self, const Tensor& src, bool non_blocking) {
  const Tensor out = at::empty_strided(self.sizes(), self.strides(), self.dtype(), self.layout(), self.device());
  at::copy_(out, src, non_blocking);
  return out;
}

const Tensor& set_from(const Tensor& self, const Tensor& source, int64_t offset, IntView size, IntView stride) {
  return at::set_(self, source.storage(), offset, size, stride);
}

Tensor fill(const Tensor& self, const Scalar& value) { return at::fill_(at::clone(self), value); }
Tensor fill(const Tensor& self, const Tensor& value) { return at::fill_(at::clone(self), value); }

Tensor pin_memory(const Tensor& self, std::optional<Device>) {
  TN_CHECK(self.is_cpu(), "pin_memory: only dense CPU tensors can be pinned, got a tensor on ", self.device().str());
  fail(ErrorKind::Runtime, "Cannot access accelerator device when none is available.");
}

void constrain_range(const Scalar& size, std::optional<int64_t> min, std::optional<int64_t> max) {
  const int64_t low = min.value_or(std::numeric_limits<int64_t>::min()),
                high = max.value_or(std::numeric_limits<int64_t>::max());
  const int64_t v = size.to_int64();
  TN_CHECK(high >= low, "Max must be greater than or equal to min. Got min=", low, " max=", high);
  TN_CHECK(low <= v && v <= high, "Invalid value range for ", v, " between [", low, ", ", high, "].");
}
void constrain_range_for_size(const Scalar& size, std::optional<int64_t> min, std::optional<int64_t> max) {
  TN_CHECK(!max || *max > 2, "Max value to constrain_range_for_size must be greater than 2. got: ", max.value_or(0));
  constrain_range(size, min.value_or(0), max);
}

}  // namespace tn::composite
