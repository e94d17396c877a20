// Mean and spread of rows, and their normalisation.
#pragma once
#include <cstdint>

namespace tn::norm {

// Mean and the sum of squared distances from it, in two passes.
template <class T>
void moments(const T* x, int64_t n, T* mean, T* squares);
template <>
void moments<float>(const float* x, int64_t n, float* mean, float* squares);
template <>
void moments<double>(const double* x, int64_t n, double* mean, double* squares);

// out[i] = (x[i] - mean) * scale * weight[i] + bias[i]; weight and bias may be null. out may be x.
template <class T>
void affine(const T* x, int64_t n, T mean, T scale, const T* weight, const T* bias, T* out);
template <>
void affine<float>(const float* x, int64_t n, float mean, float scale, const float* weight, const float* bias,
                   float* out);
template <>
void affine<double>(const double* x, int64_t n, double mean, double scale, const double* weight, const double* bias,
                    double* out);

float squares(const float* x, int64_t n);
double squares(const double* x, int64_t n);

// The gradient of one row, with x' = (x - mean) * rstd and up = grad * weight:
//   out = rstd * (up - average of up - x' * average of up * x')
// weight, out and the parameters' gradients (both or none, which are added to) may be null.
template <class T>
struct GradientRow {
  const T *grad, *x, *weight;
  T mean, rstd;
  int64_t n;
  T *out, *weight_grad, *bias_grad;
};
void gradient(const GradientRow<float>& row);
void gradient(const GradientRow<double>& row);

}  // namespace tn::norm
