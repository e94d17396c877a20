// Bessel functions: power series near zero, Hankel's asymptotic series from 20 on, where its error is below exp(-40).
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/special/functions.h"

namespace tn::special {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLarge = 20;

// sum of (x^2/4)^k / (k! (k + order)!)
double i_series(double x, int order) {
  const double q = x * x / 4;
  double term = 1, sum = 1;
  for (int k = 1; k < 200; ++k) {
    term *= q / (static_cast<double>(k) * (k + order));
    sum += term;
    if (term < sum * 1e-18) break;
  }
  return sum;
}

// sum of sign^k a_k(order) / x^k
double hankel(double x, int order, double sign) {
  const double mu = 4.0 * order * order;
  double term = 1, sum = 1;
  for (int k = 1; k < 60; ++k) {
    const double odd = 2.0 * k - 1, next = term * sign * (mu - odd * odd) / (8.0 * k * x);
    if (std::abs(next) >= std::abs(term)) break;
    term = next;
    sum += term;
    if (std::abs(term) < 1e-18) break;
  }
  return sum;
}

double i_scaled(double x, int order) {
  if (x != x) return x;
  const double a = std::abs(x);
  if (std::isinf(a)) return order ? std::copysign(0.0, x) : 0;
  double value = 0;
  if (a < kLarge) value = i_series(a, order) * (order ? a / 2 : 1) * std::exp(-a);
  else value = hankel(a, order, -1) / std::sqrt(2 * std::numbers::pi * a);
  return order && x < 0 ? -value : value;
}
double i_plain(double x, int order) {
  if (x != x) return x;
  const double a = std::abs(x);
  double value = 0;
  if (a < kLarge) value = i_series(a, order) * (order ? a / 2 : 1);
  else if (std::isinf(a)) return kNaN;  // as upstream's
  // In two factors: the exponential alone would overflow before the product does.
  else value = std::exp(a / 2) * (hankel(a, order, -1) / std::sqrt(2 * std::numbers::pi * a)) * std::exp(a / 2);
  return order && x < 0 ? -value : value;
}

double k_plain(double x, int order, bool scaled) {
  if (x == 0) return kInf;
  if (!(x > 0)) return kNaN;
  if (x < kLarge) return std::cyl_bessel_k(static_cast<double>(order), x) * (scaled ? std::exp(x) : 1);
  if (std::isinf(x)) return 0;
  return std::sqrt(std::numbers::pi / (2 * x)) * hankel(x, order, 1) * (scaled ? 1 : std::exp(-x));
}

}  // namespace

double bessel_i0(double x) { return i_plain(x, 0); }
double bessel_i1(double x) { return i_plain(x, 1); }
double bessel_i0_scaled(double x) { return i_scaled(x, 0); }
double bessel_i1_scaled(double x) { return i_scaled(x, 1); }
double bessel_k0(double x) { return k_plain(x, 0, false); }
double bessel_k1(double x) { return k_plain(x, 1, false); }
double bessel_k0_scaled(double x) { return k_plain(x, 0, true); }
double bessel_k1_scaled(double x) { return k_plain(x, 1, true); }

double spherical_j0(double x) { return std::isinf(x) ? 0 : x == 0 ? 1 : std::sin(x) / x; }

// Through Bessel functions of order 1/3.
double airy(double x) {
  if (!std::isfinite(x)) return kNaN;
  const double a = std::abs(x), z = 2.0 / 3 * a * std::sqrt(a);
  if (x == 0) return 0.35502805388781723926;
  if (x > 0) return x > 104 ? 0 : std::sqrt(x / 3) / std::numbers::pi * std::cyl_bessel_k(1.0 / 3, z);
  return std::sqrt(a) / 2 * (std::cyl_bessel_j(1.0 / 3, z) - std::cyl_neumann(1.0 / 3, z) / std::numbers::sqrt3);
}

}  // namespace tn::special
