// Blocks of draws and the way they reach memory; shared by the fills.
#pragma once
#include <cstdint>
#include <mutex>
#include <string_view>

#include "kernels/random/element.h"
#include "kernels/random/fill.h"
#include "kernels/random/order.h"
#include "runtime/error.h"

namespace tn::rng {

inline constexpr int64_t kBlock = 512;

[[noreturn]] inline void not_implemented(std::string_view kernel, ScalarType dtype) {
  fail(ErrorKind::NotImplemented, '"', kernel, "\" not implemented for '", scalar_type_name(dtype), "'");
}

// The fraction in [0, 1) that upstream makes of raw bits: as many low bits as the type's significand has.
inline double unit(uint64_t bits) { return static_cast<double>(bits & ((uint64_t{1} << 53) - 1)) * 0x1p-53; }
inline float unit(uint32_t bits) { return static_cast<float>(static_cast<int32_t>(bits & 0xffffff)) * 0x1p-24f; }

// out[i] = f(32 raw bits), in draw order.
template <class T, class F>
void draw32(GeneratorImpl& generator, T* out, int64_t n, F f) {
  uint32_t bits[kBlock];
  while (n > 0) {
    const int64_t count = n < kBlock ? n : kBlock;
    generator.random_block(bits, count);
    for (int64_t i = 0; i < count; ++i) out[i] = f(bits[i]);
    out += count;
    n -= count;
  }
}
template <class T, class F>
void draw64(GeneratorImpl& generator, T* out, int64_t n, F f) {
  uint32_t bits[2 * kBlock];
  while (n > 0) {
    const int64_t count = n < kBlock ? n : kBlock;
    generator.random_block(bits, 2 * count);
    for (int64_t i = 0; i < count; ++i) out[i] = f(static_cast<uint64_t>(bits[2 * i]) << 32 | bits[2 * i + 1]);
    out += count;
    n -= count;
  }
}

// Hands the numbers that produce(T* out, n) writes to the target's elements, in upstream's order.
template <class T, class Produce>
void fill(const Target& target, GeneratorImpl& generator, Produce produce) {
  const Walk walk(target.sizes, target.strides);
  auto* data = static_cast<T*>(target.data);
  const std::lock_guard lock(generator.mutex());
  if (walk.is_dense()) return produce(data, walk.numel());
  T block[kBlock];
  Cursor cursor(walk);
  for (int64_t left = walk.numel(); left > 0; left -= kBlock) {
    const int64_t count = left < kBlock ? left : kBlock;
    produce(block, count);
    for (int64_t i = 0; i < count; ++i, cursor.step()) data[cursor.offset(0)] = block[i];
  }
}

// Fills with f(a value of the source), one element after the other.
template <class T, class P, class F>
void fill_from(const Target& out, const Source& source, GeneratorImpl& generator, F f) {
  const Walk walk(out.sizes, out.strides, source.strides);
  auto* data = static_cast<T*>(out.data);
  const auto* parameter = static_cast<const P*>(source.data);
  const std::lock_guard lock(generator.mutex());
  Cursor cursor(walk);
  for (int64_t left = walk.numel(); left > 0; --left, cursor.step())
    data[cursor.offset(0)] = element<T>(f(to_float(parameter[cursor.offset(1)])));
}

// One standard normal times std plus mean; every second one comes from the generator's cache.
double next_normal(GeneratorImpl& generator, double mean, double std);

inline int64_t numel(const Target& t) {
  int64_t n = 1;
  for (const int64_t s : t.sizes) n *= s;
  return n;
}

}  // namespace tn::rng
