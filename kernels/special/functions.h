// Special functions of double. float goes through them too; errors are a few ULP of double unless said otherwise.
#pragma once
#include <cstdint>

namespace tn::special {

double log_gamma(double x);
double digamma(double x);
double zeta(double x, double q);         // Hurwitz's
double polygamma(double n, double x);    // n >= 0
double gamma_lower(double a, double x);  // regularised P(a, x)
double gamma_upper(double a, double x);  // regularised Q(a, x)

double erf_inverse(double x);
double erfc_inverse(double q);
double erfc_scaled(double x);  // exp(x^2) erfc(x)
double normal_quantile(double p);
double log_normal(double x);
double entropy(double x);

double bessel_i0(double x);
double bessel_i1(double x);
double bessel_i0_scaled(double x);  // times exp(-|x|)
double bessel_i1_scaled(double x);
double bessel_k0(double x);
double bessel_k1(double x);
double bessel_k0_scaled(double x);  // times exp(x)
double bessel_k1_scaled(double x);
double spherical_j0(double x);
double airy(double x);

}  // namespace tn::special
