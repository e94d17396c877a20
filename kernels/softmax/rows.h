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
void columns<double>(const double* x, int64_t stride, int64_t n, int64_t cols, bool log, double* out, int64_t out_stride);

}  // namespace tn::softmax
