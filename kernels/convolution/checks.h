// Arguments of a convolution, as given and checked, and the problem that they make.
#pragma once
#include "kernels/convolution/problem.h"
#include "runtime/shape.h"

namespace tn::convolution {

struct Params {
  DimVector stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;
};

// Lists of one value stand for all spatial dimensions. Upstream's errors.
Params expand(const Tensor& weight, IntView stride, IntView padding, IntView dilation, bool transposed,
              IntView output_padding, int64_t groups);
void check_forward(const Params& params, const Tensor& input, IntView weight_sizes, OptionalTensor bias);
void check_dtypes(const Params& params, const Tensor& input, const Tensor& weight, OptionalTensor bias);

DimVector output_sizes(const Params& params, const Tensor& input, IntView weight_sizes);
// `input` and `output` as the operator has them: for a transposed one they change places in the problem.
Problem problem_of(const Params& params, IntView input, IntView weight, IntView output);
// Channels innermost if upstream's result has them so.
MemoryFormat result_format(const Tensor& input, const Tensor& weight);
// One spatial dimension as two, the first of size 1: how upstream computes conv1d, which shows in the strides of
// results.
Tensor as_planes(const Tensor& t);
Tensor from_planes(const Tensor& t);

}  // namespace tn::convolution
