// A convolution as the kernels see it: three spatial dimensions (absent ones have size 1), always in the direction of
// the plain convolution. A transposed convolution has its input as y and its result as x.
#pragma once
#include <array>
#include <cstdint>

#include "runtime/tensor.h"

namespace tn::convolution {

using Three = std::array<int64_t, 3>;

struct Problem {
  int64_t batch = 0, groups = 1;
  int64_t x_channels = 0, y_channels = 0;
  Three x{1, 1, 1}, y{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, pad{0, 0, 0}, dilation{1, 1, 1};

  int64_t x_each() const { return x_channels / groups; }  // channels of a group
  int64_t y_each() const { return y_channels / groups; }
  int64_t x_pixels() const { return x[0] * x[1] * x[2]; }
  int64_t y_pixels() const { return y[0] * y[1] * y[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t depth() const { return x_each() * taps(); }  // summands of one element of y
  bool is_strided() const { return stride[0] != 1 || stride[1] != 1 || stride[2] != 1; }
  bool is_pointwise() const { return taps() == 1 && !is_strided() && pad == Three{0, 0, 0}; }
  bool is_depthwise() const { return x_each() == 1 && groups > 1; }
};

// Values, contiguous, of one dtype: x [batch, x_channels, ...], w [y_channels, x_each, taps], y [batch, y_channels,
// ...]; `last`: x and y have their channels innermost instead. bias [y_channels] or undefined.
void forward(const Problem& p, bool last, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y);
// The gradient of x; bias [x_channels] or undefined is added (a transposed convolution's). Float, double, integers,
// complex.
void backward_data(const Problem& p, const Tensor& y, const Tensor& w, const Tensor& bias, const Tensor& x);
// The gradient of w.
void backward_weight(const Problem& p, const Tensor& y, const Tensor& x, const Tensor& w);

// One input channel per group, float or double (depthwise.cpp); false where the general way has to do.
bool depthwise_forward(const Problem& p, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y);
bool depthwise_backward_data(const Problem& p, const Tensor& y, const Tensor& w, const Tensor& bias, const Tensor& x);
bool depthwise_backward_weight(const Problem& p, const Tensor& y, const Tensor& x, const Tensor& w);

// Memory of the calling thread, 64-byte aligned, valid until its next call.
void* scratch(size_t bytes);

}  // namespace tn::convolution
