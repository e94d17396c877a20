// New tensors of random numbers, and their out= forms.
#include "generated/slots/random.h"
#include "kernels/random/target.h"
#include "runtime/error.h"
#include "runtime/refuse.h"

namespace tn {
namespace rng {
namespace {

using Dtype = std::optional<ScalarType>;
using LayoutArg = std::optional<Layout>;
using DeviceArg = std::optional<Device>;
using Pinned = std::optional<bool>;

void check_options(std::string_view op, LayoutArg layout, Pinned pin_memory) {
  if (layout && *layout != Layout::Strided)
    refuse(str("aten::", op), str("layout ", layout_name(*layout)), "random tensors are strided");
  if (pin_memory.value_or(false)) refuse(str("aten::", op), "pin_memory", "there is no accelerator to pin memory for");
}

Tensor make(std::string_view op, IntView size, ScalarType dtype, LayoutArg layout, DeviceArg device,
            Pinned pin_memory) {
  check_options(op, layout, pin_memory);
  for (const int64_t s : size) TN_CHECK(s >= 0, "Trying to create tensor with negative dimension ", s, ": ", size);
  return empty(size, dtype, device.value_or(Device()));
}

Tensor make_like(std::string_view op, const Tensor& self, Dtype dtype, LayoutArg layout, DeviceArg device,
                 Pinned pin_memory, std::optional<MemoryFormat> format) {
  check_options(op, layout, pin_memory);
  const ScalarType t = dtype.value_or(self.dtype());
  const Device where = device.value_or(self.device());
  if (format.value_or(MemoryFormat::Preserve) == MemoryFormat::Preserve)
    return empty_strided(self.sizes(), preserved_strides(self.sizes(), self.strides()), t, where);
  return empty(self.sizes(), t, where, *format);
}

// out= forms resize without upstream's usual warning.
const Tensor& sized(const Tensor& out, IntView size) {
  resize_impl(*out.impl(), size);
  return out;
}

}  // namespace
}  // namespace rng

namespace native {
using namespace rng;  // NOLINT: the option types above

// ---- rand, randn

Tensor rand_generator(IntView size, GeneratorImpl* generator, Dtype dtype, LayoutArg layout, DeviceArg device,
                      Pinned pin_memory) {
  Tensor result = make("rand", size, dtype.value_or(default_dtype()), layout, device, pin_memory);
  uniform_(result, 0, 1, generator);
  return result;
}
Tensor rand(IntView size, Dtype dtype, LayoutArg layout, DeviceArg device, Pinned pin_memory) {
  return rand_generator(size, nullptr, dtype, layout, device, pin_memory);
}
const Tensor& rand_out(IntView size, const Tensor& out) { return uniform_(sized(out, size), 0, 1, nullptr); }
Tensor rand_like_generator(const Tensor& self, GeneratorImpl* generator, Dtype dtype, LayoutArg layout,
                           DeviceArg device, Pinned pin_memory, std::optional<MemoryFormat> memory_format) {
  Tensor result = make_like("rand_like", self, dtype, layout, device, pin_memory, memory_format);
  uniform_(result, 0, 1, generator);
  return result;
}
Tensor rand_like(const Tensor& self, Dtype dtype, LayoutArg layout, DeviceArg device, Pinned pin_memory,
                 std::optional<MemoryFormat> memory_format) {
  return rand_like_generator(self, nullptr, dtype, layout, device, pin_memory, memory_format);
}

Tensor normal_float_float(double mean, double std, IntView size, GeneratorImpl* generator, Dtype dtype,
                          LayoutArg layout, DeviceArg device, Pinned pin_memory) {
  Tensor result = make("normal", size, dtype.value_or(default_dtype()), layout, device, pin_memory);
  normal_(result, mean, std, generator);
  return result;
}
const Tensor& normal_float_float_out(double mean, double std, IntView size, GeneratorImpl* generator,
                                     const Tensor& out) {
  return normal_(sized(out, size), mean, std, generator);
}
Tensor randn_generator(IntView size, GeneratorImpl* generator, Dtype dtype, LayoutArg layout, DeviceArg device,
                       Pinned pin_memory) {
  return normal_float_float(0, 1, size, generator, dtype, layout, device, pin_memory);
}
Tensor randn(IntView size, Dtype dtype, LayoutArg layout, DeviceArg device, Pinned pin_memory) {
  return randn_generator(size, nullptr, dtype, layout, device, pin_memory);
}
Tensor randn_like_generator(const Tensor& self, GeneratorImpl* generator, Dtype dtype, LayoutArg layout,
                            DeviceArg device, Pinned pin_memory, std::optional<MemoryFormat> memory_format) {
  Tensor result = make_like("randn_like", self, dtype, layout, device, pin_memory, memory_format);
  normal_(result, 0, 1, generator);
  return result;
}
Tensor randn_like(const Tensor& self, Dtype dtype, LayoutArg layout, DeviceArg device, Pinned pin_memory,
                  std::optional<MemoryFormat> memory_format) {
  return randn_like_generator(self, nullptr, dtype, layout, device, pin_memory, memory_format);
}

// ---- randint

Tensor randint_low_generator(int64_t low, int64_t high, IntView size, GeneratorImpl* generator, Dtype dtype,
                             LayoutArg layout, DeviceArg device, Pinned pin_memory) {
  Tensor result = make("randint", size, dtype.value_or(ScalarType::Long), layout, device, pin_memory);
  random__from(result, low, high, generator);
  return result;
}
Tensor randint_low(int64_t low, int64_t high, IntView size, Dtype dtype, LayoutArg layout, DeviceArg device,
                   Pinned pin_memory) {
  return randint_low_generator(low, high, size, nullptr, dtype, layout, device, pin_memory);
}
Tensor randint_generator(int64_t high, IntView size, GeneratorImpl* generator, Dtype dtype, LayoutArg layout,
                         DeviceArg device, Pinned pin_memory) {
  return randint_low_generator(0, high, size, generator, dtype, layout, device, pin_memory);
}
Tensor randint(int64_t high, IntView size, Dtype dtype, LayoutArg layout, DeviceArg device, Pinned pin_memory) {
  return randint_low_generator(0, high, size, nullptr, dtype, layout, device, pin_memory);
}
const Tensor& randint_low_generator_out(int64_t low, int64_t high, IntView size, GeneratorImpl* generator,
                                        const Tensor& out) {
  return random__from(sized(out, size), low, high, generator);
}
const Tensor& randint_low_out(int64_t low, int64_t high, IntView size, const Tensor& out) {
  return randint_low_generator_out(low, high, size, nullptr, out);
}
const Tensor& randint_generator_out(int64_t high, IntView size, GeneratorImpl* generator, const Tensor& out) {
  return randint_low_generator_out(0, high, size, generator, out);
}
const Tensor& randint_out(int64_t high, IntView size, const Tensor& out) {
  return randint_low_generator_out(0, high, size, nullptr, out);
}
Tensor randint_like_low_generator_dtype(const Tensor& self, int64_t low, int64_t high, GeneratorImpl* generator,
                                        Dtype dtype, LayoutArg layout, DeviceArg device, Pinned pin_memory,
                                        std::optional<MemoryFormat> memory_format) {
  Tensor result = make_like("randint_like", self, dtype, layout, device, pin_memory, memory_format);
  random__from(result, low, high, generator);
  return result;
}
Tensor randint_like_low_dtype(const Tensor& self, int64_t low, int64_t high, Dtype dtype, LayoutArg layout,
                              DeviceArg device, Pinned pin_memory, std::optional<MemoryFormat> memory_format) {
  return randint_like_low_generator_dtype(self, low, high, nullptr, dtype, layout, device, pin_memory, memory_format);
}
Tensor randint_like_generator(const Tensor& self, int64_t high, GeneratorImpl* generator, Dtype dtype, LayoutArg layout,
                              DeviceArg device, Pinned pin_memory, std::optional<MemoryFormat> memory_format) {
  return randint_like_low_generator_dtype(self, 0, high, generator, dtype, layout, device, pin_memory, memory_format);
}
Tensor randint_like(const Tensor& self, int64_t high, Dtype dtype, LayoutArg layout, DeviceArg device,
                    Pinned pin_memory, std::optional<MemoryFormat> memory_format) {
  return randint_like_low_generator_dtype(self, 0, high, nullptr, dtype, layout, device, pin_memory, memory_format);
}

// ---- randperm

const Tensor& randperm_generator_out(int64_t n, GeneratorImpl* generator, const Tensor& out) {
  TN_CHECK(n >= 0, "n must be non-negative, got", n);
  rng::check_permutation_fits(n, out.dtype());
  const int64_t size[] = {n};
  sized(out, IntView(size, 1));
  if (!out.is_meta() && n != 0)
    rng::randperm(out.dtype(), out.data_ptr(), n, out.stride(0), generator_or_default(generator));
  return out;
}
const Tensor& randperm_out(int64_t n, const Tensor& out) { return randperm_generator_out(n, nullptr, out); }
Tensor randperm_generator(int64_t n, GeneratorImpl* generator, Dtype dtype, LayoutArg layout, DeviceArg device,
                          Pinned pin_memory) {
  const int64_t size[] = {n};
  Tensor result = make("randperm", IntView(size, 1), dtype.value_or(ScalarType::Long), layout, device, pin_memory);
  randperm_generator_out(n, generator, result);
  return result;
}
Tensor randperm(int64_t n, Dtype dtype, LayoutArg layout, DeviceArg device, Pinned pin_memory) {
  return randperm_generator(n, nullptr, dtype, layout, device, pin_memory);
}

}  // namespace native
}  // namespace tn
