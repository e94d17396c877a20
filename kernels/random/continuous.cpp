// Fills with numbers of continuous distributions (and the geometric one, which is made from one).
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "kernels/random/draw.h"
#include "kernels/random/fill.h"
#include "kernels/random/vector.h"

namespace tn::rng {
namespace {

// Upstream's compiler fuses this multiplication with the addition.
inline double scale(double x, double factor, double offset) {
  // The plain sum has the same rounding, without the price of a fused step in software.
  return factor == 1.0 ? x + offset : std::fma(x, factor, offset);
}

bool is_contiguous(const Target& t) {
  int64_t expected = 1;
  for (size_t d = t.sizes.size(); d-- > 0;) {
    if (t.sizes[d] == 1) continue;
    if (t.strides[d] != expected) return false;
    expected *= t.sizes[d];
  }
  return true;
}

void normal_group(double* data, double mean, double std) {
  for (int j = 0; j < 8; ++j) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - data[j]));
    const double theta = 2.0 * std::numbers::pi * data[j + 8];
    data[j] = scale(radius * std::cos(theta), std, mean);
    data[j + 8] = scale(radius * std::sin(theta), std, mean);
  }
}

// n is a multiple of 16 and at most kBlock.
void normal_block(double* out, int64_t n, double mean, double std, GeneratorImpl& generator) {
  uint32_t bits[2 * kBlock];
  generator.random_block(bits, 2 * n);
  uniform_f64(bits, out, static_cast<size_t>(n), 0.0, 1.0);
  for (int64_t i = 0; i < n; i += 16) normal_group(out + i, mean, std);
}
void normal_block(float* out, int64_t n, float mean, float std, GeneratorImpl& generator) {
  uint32_t bits[kBlock];
  generator.random_block(bits, n);
  uniform_f32(bits, out, static_cast<size_t>(n), 0.0f, 1.0f);
  normal_groups_f32(out, static_cast<size_t>(n / 16), mean, std);
}

// The path from 16 elements on. A rest of fewer than 16 makes the last 16 elements new from 16 further draws.
template <class T>
void normal_contiguous(T* data, int64_t n, double mean, double std, GeneratorImpl& generator) {
  using Op = Opmath<T>;
  const auto block = [&](T* out, int64_t count) {
    if constexpr (is_reduced<T>) {
      Op wide[kBlock];
      normal_block(wide, count, static_cast<Op>(mean), static_cast<Op>(std), generator);
      for (int64_t i = 0; i < count; ++i) out[i] = element<T>(wide[i]);
    } else {
      normal_block(out, count, static_cast<Op>(mean), static_cast<Op>(std), generator);
    }
  };
  const int64_t rest = n % 16, whole = n - rest;
  for (int64_t i = 0; i < whole; i += kBlock) block(data + i, std::min(kBlock, whole - i));
  if (rest == 0) return;
  // Full-precision types have drawn for the rest before it is made new; reduced ones have not.
  if constexpr (!is_reduced<T>) {
    uint32_t unused[32];
    generator.random_block(unused, std::is_same_v<T, double> ? 2 * rest : rest);
  }
  block(data + n - 16, 16);
}

// A fill whose numbers are f(a double in [0, 1)).
template <unsigned groups, class F>
void fill_from_unit(const Target& out, GeneratorImpl& generator, const char* kernel, F f) {
  const bool served = with_type<groups>(out.dtype, [&]<class T>(T) {
    fill<T>(out, generator, [&](T* to, int64_t n) {
      draw64(generator, to, n, [&](uint64_t bits) { return element<T>(f(unit(bits))); });
    });
  });
  if (!served) not_implemented(kernel, out.dtype);
}

void check_bounds(double from, double to, ScalarType dtype, double largest) {
  const std::string type = element_type_name(dtype);
  TN_CHECK(from >= -largest && from <= largest, "from is out of bounds for ", type);
  TN_CHECK(to >= -largest && to <= largest, "to is out of bounds for ", type);
  TN_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  TN_CHECK(to - from <= largest, "uniform_ expects to-from <= std::numeric_limits<", scalar_type_name(dtype),
           ">::max(), but found to=", to, " and from=", from, " which result in to-from to exceed the limit");
}

}  // namespace

double next_normal(GeneratorImpl& generator, double mean, double std) {
  if (const auto kept = generator.take_double_normal()) return scale(*kept, std, mean);
  const double u1 = unit(generator.random64());
  const double u2 = unit(generator.random64());
  const double radius = std::sqrt(-2.0 * std::log1p(-u2));
  const double theta = 2.0 * std::numbers::pi * u1;
  generator.keep_double_normal(radius * std::sin(theta));
  return scale(radius * std::cos(theta), std, mean);
}

void uniform(const Target& out, double from, double to, GeneratorImpl& generator) {
  const bool served =
      with_type < kFloats | kReduced > (out.dtype, [&]<class T>(T) { check_bounds(from, to, out.dtype, kLargest<T>); });
  if (!served) not_implemented("check_uniform_bounds", out.dtype);
  if (numel(out) == 0) return;
  with_type<kFloats | kReduced>(out.dtype, [&]<class T>(T) {
    fill<T>(out, generator, [&](T* data, int64_t n) {
      if constexpr (std::is_same_v<T, double>) {
        uint32_t bits[2 * kBlock];
        for (int64_t i = 0; i < n; i += kBlock) {
          const int64_t count = std::min(kBlock, n - i);
          generator.random_block(bits, 2 * count);
          uniform_f64(bits, data + i, static_cast<size_t>(count), from, to);
        }
      } else {
        const auto low = static_cast<float>(from), high = static_cast<float>(to);
        const T low_element = element<T>(from);
        const float high_rounded = to_float(element<T>(to));
        uint32_t bits[kBlock];
        [[maybe_unused]] float wide[kBlock];
        for (int64_t i = 0; i < n; i += kBlock) {
          const int64_t count = std::min(kBlock, n - i);
          generator.random_block(bits, count);
          if constexpr (std::is_same_v<T, float>) {
            uniform_f32(bits, data + i, static_cast<size_t>(count), low, high);
          } else {
            // A wide sample that reached `high` is `low` by now, which is what its rounded value would become
            // too.
            uniform_f32(bits, wide, static_cast<size_t>(count), low, high);
            for (int64_t j = 0; j < count; ++j) {
              const T v = element<T>(wide[j]);
              data[i + j] = to_float(v) == high_rounded ? low_element : v;
            }
          }
        }
      }
    });
  });
}

void normal(const Target& out, double mean, double std, GeneratorImpl& generator) {
  TN_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std);
  const int64_t n = numel(out);
  if (n == 0) return;
  const bool served = with_type < kFloats | kReduced > (out.dtype, [&]<class T>(T) {
                                              if (n >= 16 && is_contiguous(out)) {
                                                const std::lock_guard lock(generator.mutex());
                                                normal_contiguous(static_cast<T*>(out.data), n, mean, std, generator);
                                              } else {
                                                fill<T>(out, generator, [&](T* data, int64_t count) {
                                                  for (int64_t i = 0; i < count; ++i)
                                                    data[i] = element<T>(next_normal(generator, mean, std));
                                                });
                                              }
                                            });
  if (!served) not_implemented("normal_kernel_cpu", out.dtype);
}

void log_normal(const Target& out, double mean, double std, GeneratorImpl& generator) {
  TN_CHECK(std > 0.0, "log_normal_ expects std > 0.0, but found std=", std);
  if (numel(out) == 0) return;
  const bool served = with_type < kFloats | kReduced > (out.dtype, [&]<class T>(T) {
                                              fill<T>(out, generator, [&](T* data, int64_t count) {
                                                for (int64_t i = 0; i < count; ++i)
                                                  data[i] = element<T>(std::exp(next_normal(generator, mean, std)));
                                              });
                                            });
  if (!served) not_implemented("log_normal_cpu", out.dtype);
}

void exponential(const Target& out, double lambda, GeneratorImpl& generator) {
  TN_CHECK(lambda > 0.0, "exponential_ expects lambda > 0.0, but found lambda=", lambda);
  if (numel(out) == 0) return;
  TN_CHECK(is_floating(out.dtype),
           "Exponential distribution is a continuous probability distribution. dtype must be a floating "
           "point but you specified ",
           scalar_type_name(out.dtype));
  const double factor = -1.0 / lambda;
  fill_from_unit<kFloats | kReduced>(out, generator, "exponential_cpu",
                                     [=](double u) { return factor * std::log1p(-u); });
}

void geometric(const Target& out, double p, GeneratorImpl& generator) {
  TN_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  if (numel(out) == 0) return;
  const double divisor = std::log1p(-p);
  fill_from_unit<kFloats | kReduced | kInts>(out, generator, "geometric_cpu",
                                             [=](double u) { return std::ceil(std::log(u) / divisor); });
}

void cauchy(const Target& out, double median, double sigma, GeneratorImpl& generator) {
  TN_CHECK(sigma > 0.0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  TN_CHECK(is_floating(out.dtype),
           "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but "
           "you specified ",
           element_type_name(out.dtype));
  if (numel(out) == 0) return;
  fill_from_unit<kFloats | kReduced>(out, generator, "cauchy_cpu", [=](double u) {
    return std::fma(sigma, std::tan(std::numbers::pi * (u - 0.5)), median);
  });
}

}  // namespace tn::rng
