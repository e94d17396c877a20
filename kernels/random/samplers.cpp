// Samplers that draw as often as they need: Poisson, binomial and gamma. The expressions, with their types
// and order, are upstream's, since a rounding decides whether a candidate is taken, and with it all later
// numbers. Nothing is fused here: upstream compiles this part for the baseline.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/random/draw.h"
#include "kernels/random/fill.h"

namespace tn::rng {
namespace {

// Counts arrivals until the product of uniforms falls below exp(-rate); for rates from 10 on Hoermann's
// transformed rejection (1993). The numbers are upstream's expressions, whose roundings decide between
// neighbouring counts.
int64_t poisson_one(double rate, GeneratorImpl& generator) {
  TN_CHECK(rate >= 0, "invalid Poisson rate, expected rate to be non-negative");
  const auto next = [&] { return unit(generator.random64()); };
  if (rate == 0) return 0;
  if (rate < 10) {
    const double floor = std::exp(-rate);
    int64_t count = 0;
    for (double product = next(); product > floor; product *= next()) ++count;
    return count;
  }
  const double root = std::sqrt(rate), log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * root;
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double accept = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = next() - 0.5;
    const double v = next();
    const double edge = 0.5 - std::fabs(u);
    const auto k = static_cast<int64_t>(std::floor((2 * a / edge + b) * u + rate + 0.43));
    if (edge >= 0.07 && v <= accept) return k;
    if (k < 0 || (edge < 0.013 && v > edge)) continue;
    const auto count = static_cast<double>(k);
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (edge * edge) + b) <=
        -rate + count * log_rate - std::lgamma(count + 1))
      return k;
  }
}

// log(k!) less Stirling's formula.
double stirling_rest(double k) {
  static constexpr double small[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
                                     0.0166446911898211,  0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
                                     0.00925546218271273, 0.00833056343336287};
  if (k <= 9) return small[static_cast<size_t>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// Adds up geometric waiting times; good while count * p is small.
template <class T>
T binomial_by_waiting(T count, T p, GeneratorImpl& generator) {
  const double divisor = std::log1p(-p);
  double sum = 0;
  T successes = 0;
  for (;;) {
    sum += std::ceil(std::log(unit(generator.random64())) / divisor);
    if (sum > count) return successes;
    successes = successes + 1;
  }
}

// Hoermann's transformed rejection with squeeze (BTRS, 1993), for p <= 1/2 and count * p >= 10.
template <class T>
T binomial_by_rejection(T count, T p, GeneratorImpl& generator) {
  const double deviation = std::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = count * p + 0.5;
  const double accept = 0.92 - 4.2 / b;
  const double odds = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = std::floor((count + 1) * p);
  for (;;) {
    const double u = unit(generator.random64()) - 0.5;
    double v = unit(generator.random64());
    const double edge = 0.5 - std::fabs(u);
    const T k = static_cast<T>(std::floor((2 * a / edge + b) * u + c));
    if (k < 0 || k > count) continue;
    if (edge >= 0.07 && v <= accept) return k;
    v = std::log(v * alpha / (a / (edge * edge) + b));
    const double bound = (mode + 0.5) * std::log((mode + 1) / (odds * (count - mode + 1))) +
                         (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) + stirling_rest(mode) +
                         stirling_rest(count - mode) - stirling_rest(k) - stirling_rest(count - k);
    if (v <= bound) return k;
  }
}

template <class T>
T binomial_one(T count, T p, GeneratorImpl& generator) {
  const auto few = [&](T q) {
    return count * q >= 10.0 ? binomial_by_rejection(count, q, generator) : binomial_by_waiting(count, q, generator);
  };
  if (count <= 0.0 || p <= 0.0) return 0;
  if (p >= 1.0) return count;
  if (p <= 0.5) return few(p);
  if (p > 0.5) return count - few(static_cast<T>(1.0 - p));
  return std::numeric_limits<T>::quiet_NaN();
}

// Marsaglia and Tsang's method (2000); shapes below one by the power of a uniform. Shapes are in T, the rest
// in double.
template <class T>
T gamma_one(T shape, GeneratorImpl& generator) {
  double scale = 1.0;
  const auto next = [&] { return 1 - unit(generator.random64()); };
  if (shape < 1.0f) {
    if (shape == 0.0f) return 0;
    scale *= std::pow(next(), 1.0f / shape);
    shape += 1.0f;
  }
  const double d = shape - 1.0f / 3.0f;
  const double c = 1.0f / std::sqrt(9.0f * d);
  for (;;) {
    double x, y;
    do {
      x = next_normal(generator, 0.0, 1.0);
      y = 1.0f + c * x;
    } while (y <= 0);
    const double v = y * y * y;
    const double u = next();
    const double square = x * x;
    if (u < 1.0f - 0.0331f * square * square || std::log(u) < 0.5f * square + d * (1.0f - v + std::log(v)))
      return static_cast<T>(scale * d * v);
  }
}

}  // namespace

void poisson(const Target& out, const Source& rate, GeneratorImpl& generator) {
  if (numel(out) == 0) return;
  const bool served = with_type < kFloats | kReduced > (out.dtype, [&]<class T>(T) {
                                              fill_from<T, T>(out, rate, generator, [&](auto r) {
                                                return poisson_one(static_cast<double>(r), generator);
                                              });
                                            });
  if (!served) not_implemented("poisson_cpu", out.dtype);
}

void binomial(const Target& out, const Source& count, const Source& p, GeneratorImpl& generator) {
  if (numel(out) == 0) return;
  const bool served = with_type<kFloats>(out.dtype, [&]<class T>(T) {
    const Walk walk(out.sizes, out.strides, count.strides, p.strides);
    const std::lock_guard lock(generator.mutex());
    Cursor cursor(walk);
    for (int64_t left = walk.numel(); left > 0; --left, cursor.step())
      static_cast<T*>(out.data)[cursor.offset(0)] =
          binomial_one(static_cast<const T*>(count.data)[cursor.offset(1)],
                       static_cast<const T*>(p.data)[cursor.offset(2)], generator);
  });
  if (!served) not_implemented("binomial_cpu", out.dtype);
}

void standard_gamma(const Target& out, const Source& shape, GeneratorImpl& generator) {
  if (numel(out) == 0) return;
  const bool served = with_type<kFloats>(out.dtype, [&]<class T>(T) {
    const bool shaped = with_type<kFloats>(shape.dtype, [&]<class P>(P) {
      fill_from<T, P>(out, shape, generator, [&](P a) {
        return std::max(std::numeric_limits<T>::min(), gamma_one<T>(static_cast<T>(a), generator));
      });
    });
    if (!shaped) not_implemented("gamma_cpu", shape.dtype);
  });
  if (!served) not_implemented("gamma_cpu", out.dtype);
}

}  // namespace tn::rng
