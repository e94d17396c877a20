// Softmax of rows of float and double.
#pragma once
#include <cstdint>

namespace tn::softmax {

// out may be x. The row is read three times, so it should fit a cache.
template <class T>
void row(const T* x, int64_t n, bool log, T* out);
template <>
void row<float>(const float* x, int64_t n, bool log, float* out);
template <>
void row<double>(const double* x, int64_t n, bool log, double* out);

// The same over rows: cols <= kColumns neighbouring softmaxes of n elements, stride apart. out may be x.
inline constexpr int64_t kColumns = 64;
template <class T>
void columns(const T* x, int64_t stride, int64_t n, int64_t cols, bool log, T* out, int64_t out_stride);
template <>
void columns<float>(const float* x, int64_t stride, int64_t n, int64_t cols, bool log, float* out, int64_t out_stride);
template <>
void columns<double>(const double* x, int64_t stride, int64_t n, int64_t cols, bool log, double* out,
                     int64_t out_stride);

// log(sum(e^x)) of a row, and of neighbouring columns; infinities as limits.
template <class T>
T log_sum(const T* x, int64_t n);
template <>
float log_sum<float>(const float* x, int64_t n);
template <>
double log_sum<double>(const double* x, int64_t n);
template <class T>
void log_sum_columns(const T* x, int64_t stride, int64_t n, int64_t cols, T* out);
template <>
void log_sum_columns<float>(const float* x, int64_t stride, int64_t n, int64_t cols, float* out);
template <>
void log_sum_columns<double>(const double* x, int64_t stride, int64_t n, int64_t cols, double* out);

}  // namespace tn::softmax
