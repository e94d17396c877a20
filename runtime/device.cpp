#include "runtime/device.h"

#include "runtime/error.h"

namespace tn {
namespace {

constexpr std::string_view kTypes[kNumDeviceTypes] = {
    "cpu",   "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",  "fpga", "maia", "xla",           "vulkan",
    "metal", "xpu",  "mps",    "meta",   "hpu",    "ve",    "lazy", "ipu",  "mtia", "privateuseone",
};

// Upstream's list of what a string may start with: "metal" is a device type that no string names.
constexpr std::string_view kParsable =
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, mtia, "
    "privateuseone";

constexpr std::string_view kLayouts[] = {
    "Strided", "Sparse", "SparseCsr", "Mkldnn", "SparseCsc", "SparseBsr", "SparseBsc", "Jagged",
};
constexpr std::string_view kFormats[] = {"Contiguous", "Preserve", "ChannelsLast", "ChannelsLast3d"};

}  // namespace

Device Device::parse(std::string_view text) {
  TN_CHECK(!text.empty(), "Device string must not be empty");
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  TN_CHECK(!name.empty(), "Invalid device string: '", text, "'");
  int type = -1;
  for (int i = 0; i < kNumDeviceTypes; ++i)
    if (kTypes[i] == name && name != "metal") type = i;
  int index = -1;
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    bool valid = !digits.empty() && digits.size() <= 9 && (digits.size() == 1 || digits[0] != '0');
    index = 0;
    for (const char c : digits) {
      valid = valid && c >= '0' && c <= '9';
      if (valid) index = index * 10 + (c - '0');
    }
    TN_CHECK(valid, "Invalid device string: '", text, "'");
  }
  TN_CHECK(type >= 0, "Expected one of ", kParsable, " device type at start of device string: ", name);
  // The index wraps to eight bits, as upstream's.
  return Device(static_cast<DeviceType>(type), index);
}

std::string Device::str() const {
  std::string s(device_type_name(type));
  if (index >= 0) s += ':' + std::to_string(static_cast<int>(index));
  return s;
}

std::string_view device_type_name(DeviceType t) { return kTypes[static_cast<size_t>(t)]; }
std::string_view layout_name(Layout l) { return kLayouts[static_cast<size_t>(l)]; }
std::string_view memory_format_name(MemoryFormat f) { return kFormats[static_cast<size_t>(f)]; }

}  // namespace tn
