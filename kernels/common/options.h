// The options of operators that make a tensor: dtype, layout, device and pinned memory.
#pragma once
#include <optional>
#include <string_view>

#include "runtime/refuse.h"
#include "runtime/tensor.h"

namespace tn {

struct NewTensor {
  std::optional<ScalarType> dtype;
  std::optional<Layout> layout;
  std::optional<Device> device;
  std::optional<bool> pin_memory;

  // Refuses what no tensor can be here.
  void check(std::string_view op) const {
    if (layout && *layout != Layout::Strided)
      refuse(op, str("layout ", layout_name(*layout)), "new tensors are strided");
    if (device && !device->is_cpu() && !device->is_meta())
      refuse(op, str("device ", device->str()), "there is no such backend");
    if (pin_memory.value_or(false)) refuse(op, "pin_memory", "there is no accelerator to pin memory for");
  }
  Tensor make(std::string_view op, IntView size, ScalarType fallback) const {
    check(op);
    return empty(size, dtype.value_or(fallback), device.value_or(Device()));
  }
};

// A factory's out= tensor changes its size without upstream's warning, and keeps its dtype.
inline const Tensor& sized(const Tensor& out, IntView size) {
  if (!(out.sizes() == size)) resize_impl(*out.impl(), size);
  return out;
}

// "\"eye\" not implemented for 'UInt16'": upstream's answer to dtypes that an operator doesn't know.
[[noreturn]] inline void not_implemented(std::string_view name, ScalarType dtype) {
  fail(ErrorKind::NotImplemented, "\"", name, "\" not implemented for '", scalar_type_name(dtype), "'");
}

}  // namespace tn
