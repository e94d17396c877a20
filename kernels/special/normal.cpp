// The error function's inverse and the normal distribution.
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/special/functions.h"

namespace tn::special {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

// Winitzki's approximation, then Halley's steps on erfc, which keeps its digits in the tail.
double erfc_inverse(double q) {
  if (!(q >= 0 && q <= 2)) return kNaN;
  if (q == 0) return kInf;
  if (q == 2) return -kInf;
  if (q > 1) return -erfc_inverse(2 - q);
  constexpr double kA = 0.147;
  const double l = std::log(q * (2 - q)), m = 2 / (std::numbers::pi * kA) + l / 2;
  double y = std::sqrt(std::sqrt(m * m - l / kA) - m);
  for (int i = 0; i < 3; ++i) {
    const double slope = 2 * std::numbers::inv_sqrtpi * std::exp(-y * y);
    if (slope == 0) break;
    const double step = (std::erfc(y) - q) / slope;
    y += step / (1 - y * step);
  }
  return y;
}

double erf_inverse(double x) {
  if (!(x >= -1 && x <= 1)) return kNaN;
  if (std::abs(x) > 0.5) return std::copysign(erfc_inverse(1 - std::abs(x)), x);
  double y = x * std::sqrt(std::numbers::pi) / 2;
  if (std::abs(x) < 1e-8) return y;
  for (int i = 0; i < 4; ++i) {
    const double step = (std::erf(y) - x) / (2 * std::numbers::inv_sqrtpi * std::exp(-y * y));
    y -= step / (1 + y * step);
  }
  return y;
}

double erfc_scaled(double x) {
  if (x != x) return x;
  if (x < -26.7) return kInf;
  if (x > 10) {  // continued fraction, from the back
    double f = x;
    for (int k = 60; k > 0; --k) f = x + 0.5 * k / f;
    return std::numbers::inv_sqrtpi / f;
  }
  const double square = x * x, rest = std::fma(x, x, -square);
  return std::exp(square) * (1 + rest) * std::erfc(x);
}

double normal_quantile(double p) {
  if (!(p >= 0 && p <= 1)) return kNaN;
  return p < 0.5 ? -std::numbers::sqrt2 * erfc_inverse(2 * p) : std::numbers::sqrt2 * erfc_inverse(2 * (1 - p));
}

double log_normal(double x) {
  const double t = x * (std::numbers::sqrt2 / 2);
  if (x < -1) return std::log(erfc_scaled(-t) / 2) - t * t;
  return std::log1p(-std::erfc(t) / 2);
}

double entropy(double x) {
  if (x != x) return x;
  return x > 0 ? -x * std::log(x) : x == 0 ? 0 : -kInf;
}

}  // namespace tn::special
