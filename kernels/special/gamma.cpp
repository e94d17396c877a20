// Gamma and what belongs to it.
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/special/functions.h"

namespace tn::special {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// B_2, B_4, ... of Bernoulli.
constexpr double kBernoulli[] = {1.0 / 6,       -1.0 / 30,       1.0 / 42,       -1.0 / 30,
                                 5.0 / 66,      -691.0 / 2730,   7.0 / 6,        -3617.0 / 510,
                                 43867.0 / 798, -174611.0 / 330, 854513.0 / 138, -236364091.0 / 2730};

// x^a exp(-x) / gamma(a + 1). For a large a around x - a, where the factors alone would lose digits.
double gamma_factor(double a, double x) {
  if (a < 20) return std::exp(a * std::log(x) - x - log_gamma(a + 1));
  const double u = (x - a) / a;
  const double distance = std::abs(u) < 0.5 ? std::log1p(u) - u : std::log(x / a) - u;
  double stirling = 0, power = a;
  for (int k = 0; k < 8; ++k) {
    stirling += kBernoulli[k] / ((2 * k + 1) * (2 * k + 2) * power);
    power *= a * a;
  }
  return std::exp(a * distance - stirling) / std::sqrt(2 * std::numbers::pi * a);
}

// P by its power series, for x < a + 1.
double lower_series(double a, double x) {
  double term = 1, sum = 1;
  for (int k = 1; k < 100000; ++k) {
    term *= x / (a + k);
    sum += term;
    if (term < sum * 1e-17) break;
  }
  return gamma_factor(a, x) * sum;
}

// Q by its continued fraction (Lentz), for x >= a + 1.
double upper_fraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
  for (int k = 1; k < 100000; ++k) {
    const double an = -k * (k - a);
    b += 2;
    d = an * d + b;
    if (std::abs(d) < kTiny) d = kTiny;
    c = b + an / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1 / d;
    const double step = d * c;
    h *= step;
    if (std::abs(step - 1) < 1e-16) break;
  }
  return gamma_factor(a, x) * a * h;
}

// Q from the alternating series of P, whose first term's distance from one is taken exactly: for small a and x.
double upper_series(double a, double x) {
  double factor = 1, sum = 0;
  for (int k = 1; k < 1000; ++k) {
    factor *= -x / k;
    const double term = factor / (a + k);
    sum += term;
    if (std::abs(term) <= std::abs(sum) * 1e-17) break;
  }
  const double l = a * std::log(x);
  return -std::expm1(l - log_gamma(1 + a)) - std::exp(l - log_gamma(a)) * sum;
}

// The cases without a number to compute. True if `result` is the answer; `at_zero` is it for x = 0.
bool gamma_edges(double a, double x, double at_zero, double& result) {
  if (!(x >= 0) || !(a >= 0)) return result = kNaN, true;
  if (a == 0) return result = x > 0 ? 1 - at_zero : kNaN, true;
  if (x == 0) return result = at_zero, true;
  if (std::isinf(a)) return result = std::isinf(x) ? kNaN : at_zero, true;
  if (std::isinf(x)) return result = 1 - at_zero, true;
  return false;
}

}  // namespace

double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

double digamma(double x) {
  if (x == 0) return std::copysign(kInf, -x);
  double reflected = 0;
  if (x < 0) {
    if (x == std::trunc(x)) return kNaN;
    double whole = 0;
    const double part = std::modf(x, &whole);
    reflected = -std::numbers::pi / std::tan(std::numbers::pi * part);
    x = 1 - x;
  }
  double shifted = 0;
  while (x < 10) shifted -= 1 / x++;
  double series = 0;
  if (x < 1e17) {
    const double z = 1 / (x * x);
    double power = z;
    for (int k = 0; k < 8; ++k) {
      series += kBernoulli[k] / (2 * (k + 1)) * power;
      power *= z;
    }
  }
  return reflected + shifted + std::log(x) - 0.5 / x - series;
}

// Terms up to q + 10, then Euler and Maclaurin's correction.
double zeta(double x, double q) {
  if (x == 1) return kInf;
  if (!(x > 1)) return kNaN;
  if (q <= 0) {
    if (q == std::floor(q)) return kInf;
    if (x != std::floor(x)) return kNaN;
  }
  if (q != q) return kNaN;
  double sum = std::pow(q, -x), a = q, b = 0;
  for (int i = 0; i < 9 || a <= 9; ++i) {
    a += 1;
    b = std::pow(a, -x);
    sum += b;
    if (std::abs(b) < std::abs(sum) * 1e-17) return sum;
  }
  sum += b * a / (x - 1) - 0.5 * b;
  double factor = x, scale = b / a, factorial = 2;
  for (int k = 0; k < 12; ++k) {
    const double term = kBernoulli[k] * factor * scale / factorial;
    sum += term;
    if (std::abs(term) < std::abs(sum) * 1e-17) break;
    factor *= (x + 2 * k + 1) * (x + 2 * k + 2);
    scale /= a * a;
    factorial *= (2 * k + 3) * (2 * k + 4);
  }
  return sum;
}

double polygamma(double n, double x) {
  if (n == 0) return digamma(x);
  if (n == 1 && x < 0.5) {                            // reflection: zeta has no value for x < 0 beside the poles
    const double s = std::sin(std::numbers::pi * x);  // at the poles as small as pi's own error, as upstream's
    return std::numbers::pi * std::numbers::pi / (s * s) - zeta(2, 1 - x);
  }
  if (n == 1 && std::isinf(x)) return 0;
  const double sign = std::fmod(n, 2) == 0 ? -1 : 1;
  return sign * std::exp(log_gamma(n + 1)) * zeta(n + 1, x);
}

double gamma_lower(double a, double x) {
  double result = 0;
  if (gamma_edges(a, x, 0, result)) return result;
  return x < a + 1 ? lower_series(a, x) : 1 - upper_fraction(a, x);
}
double gamma_upper(double a, double x) {
  double result = 0;
  if (gamma_edges(a, x, 1, result)) return result;
  if (x <= 1.1 && a < 1) return upper_series(a, x);
  return x < a + 1 ? 1 - lower_series(a, x) : upper_fraction(a, x);
}

}  // namespace tn::special
