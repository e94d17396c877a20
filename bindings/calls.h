// The few operators that hand-written bindings call, each through the door.
#pragma once
#include "bindings/convert.h"
#include "runtime/tensor.h"

namespace tn::py {

// Whether some mode or transform of this thread wants to see even the making of a tensor.
inline bool thread_has_modes() { return (thread_state.included & ~ThreadState().included) != 0; }

template <class... A>
Tensor call_op(OpRow& op, const A&... arguments) {
  const Arg args[] = {door::pack<A>(arguments)...};
  return call_tensor(op, args);
}

inline Tensor call_select(const Tensor& self, int64_t dim, int64_t index) {
  static OpRow& op = required_op("aten::select", "int");
  return call_op(op, self, dim, index);
}
inline Tensor call_slice(const Tensor& self, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> stop,
                         int64_t step) {
  static OpRow& op = required_op("aten::slice", "Tensor");
  return call_op(op, self, dim, start, stop, step);
}
inline Tensor call_unsqueeze(const Tensor& self, int64_t dim) {
  static OpRow& op = required_op("aten::unsqueeze", "");
  return call_op(op, self, dim);
}
inline Tensor call_alias(const Tensor& self) {
  static OpRow& op = required_op("aten::alias", "");
  return call_op(op, self);
}
inline Tensor call_detach(const Tensor& self) {
  static OpRow& op = required_op("aten::detach", "");
  return call_op(op, self);
}
inline Tensor call_view(const Tensor& self, IntView sizes) {
  static OpRow& op = required_op("aten::view", "");
  return call_op(op, self, sizes);
}
inline void call_copy(const Tensor& self, const Tensor& source) {
  static OpRow& op = required_op("aten::copy_", "");
  call_op(op, self, source, false);
}
inline void call_fill(const Tensor& self, const Scalar& value) {
  static OpRow& op = required_op("aten::fill_", "Scalar");
  call_op(op, self, value);
}
inline Tensor call_index(const Tensor& self, TensorList indices) {
  static OpRow& op = required_op("aten::index", "Tensor");
  return call_op(op, self, indices);
}
inline void call_index_put(const Tensor& self, TensorList indices, const Tensor& values) {
  static OpRow& op = required_op("aten::index_put_", "");
  call_op(op, self, indices, values, false);
}
inline Tensor call_lift_fresh(const Tensor& self) {
  static OpRow& op = required_op("aten::lift_fresh", "");
  return call_op(op, self);
}
// to(device, dtype, copy): self itself if nothing changes and !copy.
inline Tensor call_to(const Tensor& self, Device device, ScalarType dtype, bool copy) {
  static OpRow& op = required_op("aten::to", "device");
  return call_op(op, self, device, dtype, false, copy, std::optional<MemoryFormat>());
}
inline Tensor call_empty(IntView sizes, ScalarType dtype, Device device) {
  static OpRow& op = required_op("aten::empty", "memory_format");
  return call_op(op, sizes, std::optional(dtype), std::optional<Layout>(), std::optional(device), std::optional<bool>(),
                 std::optional<MemoryFormat>());
}
}  // namespace tn::py
