// Devices, layouts and memory formats, with upstream's values.
#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace tn {

enum class DeviceType : int8_t {
  CPU = 0,
  CUDA,
  MKLDNN,
  OPENGL,
  OPENCL,
  IDEEP,
  HIP,
  FPGA,
  MAIA,
  XLA,
  Vulkan,
  Metal,
  XPU,
  MPS,
  Meta,
  HPU,
  VE,
  Lazy,
  IPU,
  MTIA,
  PrivateUse1,
};
inline constexpr int kNumDeviceTypes = 21;

struct Device {
  DeviceType type = DeviceType::CPU;
  int8_t index = -1;  // -1: the current one

  constexpr Device() = default;
  constexpr Device(DeviceType t, int i = -1)
      : type(t), index(static_cast<int8_t>(i)) {}  // NOLINT: converts as upstream's
  // Parses "cpu", "cuda:1"; RuntimeError with upstream's list of types for anything else.
  static Device parse(std::string_view text);

  constexpr bool is_cpu() const { return type == DeviceType::CPU; }
  constexpr bool is_meta() const { return type == DeviceType::Meta; }
  friend constexpr bool operator==(Device a, Device b) = default;
  std::string str() const;
};
std::string_view device_type_name(DeviceType t);

enum class Layout : int8_t { Strided = 0, Sparse, SparseCsr, Mkldnn, SparseCsc, SparseBsr, SparseBsc, Jagged };
enum class MemoryFormat : int8_t { Contiguous = 0, Preserve, ChannelsLast, ChannelsLast3d };
enum class QScheme : int8_t {
  PerTensorAffine = 0,
  PerChannelAffine,
  PerTensorSymmetric,
  PerChannelSymmetric,
  PerChannelAffineFloatQParams
};

std::string_view layout_name(Layout l);
std::string_view memory_format_name(MemoryFormat f);

}  // namespace tn
