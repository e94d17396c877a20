// Copy operators that upstream composes of others: they only call the door.
#pragma once
#include <optional>

#include "runtime/tensor.h"

namespace tn::composite {

// What `to` asks for; an absent part stays as it is.
struct ToOptions {
  std::optional<ScalarType> dtype;
  std::optional<Layout> layout;
  std::optional<Device> device;
  std::optional<bool> pin_memory;
};

Tensor contiguous(const Tensor& self, MemoryFormat format);
// self itself if nothing changes and no copy is asked for.
Tensor to(const Tensor& self, const ToOptions& options, bool non_blocking, bool copy,
          std::optional<MemoryFormat> format);
Scalar item(const Tensor& self);
bool is_nonzero(const Tensor& self);
ScalarType result_type(const Scalar& a, const Scalar& b);
ScalarType result_type(const Tensor& a, const Scalar& b);
std::vector<Tensor> to_cpu(TensorList tensors);
Tensor reshape_copy(const Tensor& self, IntView size);
// The value of `src` in self's shape, dtype and device.
Tensor copy(const Tensor& self, const Tensor& src, bool non_blocking);
const Tensor& set_from(const Tensor& self, const Tensor& source, int64_t offset, IntView size, IntView stride);
Tensor fill(const Tensor& self, const Scalar& value);
Tensor fill(const Tensor& self, const Tensor& value);
// Fails as upstream does where there is no accelerator: nothing could read the pinned memory.
Tensor pin_memory(const Tensor& self, std::optional<Device> device);
// torch._constrain_as_size and its relatives.
void constrain_range(const Scalar& size, std::optional<int64_t> min, std::optional<int64_t> max);
void constrain_range_for_size(const Scalar& size, std::optional<int64_t> min, std::optional<int64_t> max);

}  // namespace tn::composite
