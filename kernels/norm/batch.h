// What both directions of batch norm share: the layouts that their passes know, checks and running statistics.
#pragma once
#include <memory>
#include <vector>

#include "kernels/norm/channels.h"
#include "runtime/tensor.h"

namespace tn::norm {

// Elements as [outer, channels, inner]; with inner 1 the channels are neighbours (columns), as in channels_last.
struct Planes {
  int64_t outer = 0, channels = 0, inner = 0;
  ScalarType dtype = ScalarType::Float;
  bool columns() const { return inner == 1; }
  int64_t each() const { return outer * inner; }
};
Planes planes_of(const Tensor& x);  // contiguous in its suggested format

// Each takes operands of the planes' layout. Sums and means have one double for each channel.
std::vector<double> channel_means(const Planes& p, const void* x);
std::vector<double> channel_squares(const Planes& p, const void* x, const double* mean);
// Sums of grad, then of (x - mean) * grad.
std::vector<double> channel_dots(const Planes& p, const void* x, const void* grad, const double* mean);
void channel_affine(const Planes& p, const void* x, const double* scale, const double* shift, void* out);
// Four arrays, one after the other: see Slope.
void channel_gradient(const Planes& p, const void* x, const void* grad, const double* slopes, void* out);

// 16-bit input may come with float parameters; nothing else may differ. Upstream's rule: the first parameter tells.
bool is_mixed(const Tensor& input, std::initializer_list<OptionalTensor> parameters);
// A parameter's values for each channel, or the default.
std::vector<double> channel_values(OptionalTensor t, int64_t channels, double otherwise);

}  // namespace tn::norm
