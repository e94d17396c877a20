// Passes of batch norm over the elements of channels. Elements are float, double, Half or BFloat16; sums are double.
#pragma once
#include <cstdint>

#include "runtime/dtype.h"

namespace tn::norm {

// What the gradient of a channel needs: out = grad * scale - shared - (x - mean) * slope.
struct Slope {
  double mean = 0, shared = 0, slope = 0, scale = 0;
};

// One kernel for each element type, best instruction set of this machine.
struct ChannelKernels {
  // Runs: n elements of one channel.
  double (*run_sum)(const void* x, int64_t n);
  double (*run_squares)(const void* x, int64_t n, double mean);  // sum of (x - mean)^2
  void (*run_dots)(const void* x, const void* grad, int64_t n, double mean,
                   double sums[2]);  // grad, (x - mean) * grad; adds
  void (*run_affine)(const void* x, int64_t n, double scale, double shift, void* out);
  void (*run_gradient)(const void* x, const void* grad, int64_t n, const Slope& s, void* out);
  // Columns: rows of `channels` elements, the channels being neighbours. The sums are added to.
  void (*column_sums)(const void* x, int64_t rows, int64_t channels, double* sums);
  void (*column_squares)(const void* x, int64_t rows, int64_t channels, const double* mean, double* sums);
  void (*column_dots)(const void* x, const void* grad, int64_t rows, int64_t channels, const double* mean, double* sums,
                      double* dots);
  void (*column_affine)(const void* x, int64_t rows, int64_t channels, const double* scale, const double* shift,
                        void* out);
  // The four numbers of each channel one array after the other, as in Slope.
  void (*column_gradient)(const void* x, const void* grad, int64_t rows, int64_t channels, const double* slopes,
                          void* out);
};
const ChannelKernels& channel_kernels(ScalarType dtype);

}  // namespace tn::norm
