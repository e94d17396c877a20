// Orthogonal polynomials of degree n at x, by their recurrences.
#include <cmath>
#include <numbers>

#include "generated/slots/special.h"
#include "kernels/common/blocks.h"

namespace tn {
namespace {

// p_0 = 1, p_1 = first, p_{k+1} = next(p_k, p_{k-1}, k). Negative degrees give 0, NaN stays one.
template <class Next>
double recur(double n, double first, Next next) {
  if (n != n) return n;
  const auto degree = static_cast<int64_t>(n);
  if (degree < 0) return 0;
  if (degree == 0) return 1;
  double before = 1, now = first;
  for (int64_t k = 1; k < degree && now == now; ++k) {
    const double after = next(now, before, static_cast<double>(k));
    before = now;
    now = after;
  }
  return now;
}
// The four kinds of Chebyshev's share the recurrence. Inside (-1, 1) the closed form, whose cost doesn't grow with n.
enum class Kind { T, U, V, W };
template <Kind kKind>
double chebyshev(double x, double n) {
  if (n > 64 && std::abs(x) < 1) {
    const double t = std::acos(x), k = std::trunc(n);
    switch (kKind) {
      case Kind::T: return std::cos(k * t);
      case Kind::U: return std::sin((k + 1) * t) / std::sin(t);
      case Kind::V: return std::cos((k + 0.5) * t) / std::cos(t / 2);
      default: return std::sin((k + 0.5) * t) / std::sin(t / 2);
    }
  }
  const double first = kKind == Kind::T ? x : kKind == Kind::U ? 2 * x : kKind == Kind::V ? 2 * x - 1 : 2 * x + 1;
  return recur(n, first, [x](double now, double before, double) { return 2 * x * now - before; });
}
template <Kind kKind>
double shifted(double x, double n) {
  return chebyshev<kKind>(2 * x - 1, n);
}
double hermite_h(double x, double n) {
  return recur(n, 2 * x, [x](double now, double before, double k) { return 2 * x * now - 2 * k * before; });
}
double hermite_he(double x, double n) {
  return recur(n, x, [x](double now, double before, double k) { return x * now - k * before; });
}
double laguerre(double x, double n) {
  return recur(n, 1 - x,
               [x](double now, double before, double k) { return ((2 * k + 1 - x) * now - k * before) / (k + 1); });
}
double legendre(double x, double n) {
  return recur(n, x,
               [x](double now, double before, double k) { return ((2 * k + 1) * x * now - k * before) / (k + 1); });
}

template <double (*kF)(double, double)>
constexpr PointwiseSlot slot() {
  return {.row =
              [](const Row& row) {
                static constexpr FloatBodies kBodies = plain_bodies<2>([](auto x, auto n) {
                  return static_cast<decltype(x)>(kF(static_cast<double>(x), static_cast<double>(n)));
                });
                map_floats<2>(row, kBodies);
              },
          .promotion = Promotion::ToFloat,
          .cost = 32};
}

}  // namespace

const PointwiseSlot slots::special_chebyshev_polynomial_t = slot<chebyshev<Kind::T>>();
const PointwiseSlot slots::special_chebyshev_polynomial_u = slot<chebyshev<Kind::U>>();
const PointwiseSlot slots::special_chebyshev_polynomial_v = slot<chebyshev<Kind::V>>();
const PointwiseSlot slots::special_chebyshev_polynomial_w = slot<chebyshev<Kind::W>>();
const PointwiseSlot slots::special_shifted_chebyshev_polynomial_t = slot<shifted<Kind::T>>();
const PointwiseSlot slots::special_shifted_chebyshev_polynomial_u = slot<shifted<Kind::U>>();
const PointwiseSlot slots::special_shifted_chebyshev_polynomial_v = slot<shifted<Kind::V>>();
const PointwiseSlot slots::special_shifted_chebyshev_polynomial_w = slot<shifted<Kind::W>>();
const PointwiseSlot slots::special_hermite_polynomial_h = slot<hermite_h>();
const PointwiseSlot slots::special_hermite_polynomial_he = slot<hermite_he>();
const PointwiseSlot slots::special_laguerre_polynomial_l = slot<laguerre>();
const PointwiseSlot slots::special_legendre_polynomial_p = slot<legendre>();

}  // namespace tn
