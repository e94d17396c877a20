#include "kernels/convolution/composites.h"

#include <vector>

#include "generated/ops/_convolution_mode.h"
#include "generated/ops/add.h"
#include "generated/ops/complex.h"
#include "generated/ops/constant_pad_nd.h"
#include "generated/ops/convolution.h"
#include "generated/ops/convolution_backward.h"
#include "generated/ops/imag.h"
#include "generated/ops/permute.h"
#include "generated/ops/real.h"
#include "generated/ops/squeeze.h"
#include "generated/ops/sub.h"
#include "generated/ops/unsqueeze.h"
#include "generated/ops/view.h"
#include "generated/ops/zeros_like.h"
#include "runtime/error.h"
#include "runtime/shape.h"

namespace tn::composite {
namespace {

// f(input, weight, bias) on the parts of complex numbers.
template <class F>
Tensor by_parts(const Tensor& input, const Tensor& weight, OptionalTensor bias, F&& f) {
  if (!input.is_complex() || !weight.is_complex()) return f(input, weight, bias);
  const Tensor x = at::real(input), y = at::imag(input), a = at::real(weight), b = at::imag(weight);
  const Tensor first = bias ? at::real(*bias) : Tensor(), second = bias ? at::imag(*bias) : Tensor();
  return at::complex(at::sub(f(x, a, OptionalTensor(first)), f(y, b, OptionalTensor())),
                     at::add(f(x, b, OptionalTensor(second)), f(y, a, OptionalTensor())));
}

// Inputs without a batch get one for the call.
template <class F>
Tensor batched(const char* name, int64_t dims, const Tensor& input, const Tensor& weight, F&& f) {
  const bool is_batched = input.dim() == dims + 2;
  TN_CHECK(is_batched || input.dim() == dims + 1, "Expected ", dims + 1, "D (unbatched) or ", dims + 2,
           "D (batched) input to ", name, ", but got input of size: ", input.sizes());
  (void)weight;
  if (is_batched) return f(input);
  return at::squeeze(f(at::unsqueeze(input, 0)), 0);
}

const char* name_of(int64_t dims, bool transposed) {
  static constexpr const char* kNames[][2] = {
      {"conv1d", "conv_transpose1d"}, {"conv2d", "conv_transpose2d"}, {"conv3d", "conv_transpose3d"}};
  return kNames[dims - 1][transposed ? 1 : 0];
}

void check_bias(const Tensor& input, const Tensor& weight, OptionalTensor bias) {
  TN_CHECK(!bias || (input.dtype() == bias->dtype()) || input.dtype() != weight.dtype(), "Input type (",
           element_type_name(input.dtype()), ") and bias type (", bias ? element_type_name(bias->dtype()) : "",
           ") should be the same");
}

constexpr int64_t kNone[] = {0};

}  // namespace

Tensor conv(int64_t dims, const Tensor& input, const Tensor& weight, OptionalTensor bias, IntView stride,
            IntView padding, IntView dilation, int64_t groups) {
  check_bias(input, weight, bias);
  return batched(name_of(dims, false), dims, input, weight, [&](const Tensor& x) {
    return by_parts(x, weight, bias, [&](const Tensor& i, const Tensor& w, OptionalTensor b) {
      return at::convolution(i, w, b, stride, padding, dilation, false, DimVector(static_cast<size_t>(dims), 0),
                             groups);
    });
  });
}

Tensor conv(int64_t dims, const Tensor& input, const Tensor& weight, OptionalTensor bias, IntView stride,
            std::string_view padding, IntView dilation, int64_t groups) {
  return batched(name_of(dims, false), dims, input, weight, [&](const Tensor& x) {
    return by_parts(x, weight, bias, [&](const Tensor& i, const Tensor& w, OptionalTensor b) {
      return at::_convolution_mode(i, w, b, stride, padding, dilation, groups);
    });
  });
}

Tensor conv_mode(const Tensor& input, const Tensor& weight, OptionalTensor bias, IntView stride,
                 std::string_view padding, IntView dilation, int64_t groups) {
  const int64_t dims = weight.dim() - 2;
  TN_CHECK(dims > 0, "weight should have at least three dimensions");
  const DimVector none(static_cast<size_t>(dims), 0);
  if (padding == "valid") return at::convolution(input, weight, bias, stride, none, dilation, false, none, groups);
  TN_CHECK(padding == "same", "Invalid padding string: '", padding, "'");
  TN_CHECK(stride.ssize() == dims || stride.size() == 1, "stride cannot broadcast to ", dims, " dimensions");
  TN_CHECK(dilation.ssize() == dims || dilation.size() == 1, "dilation cannot broadcast to ", dims, " dimensions");
  for (const int64_t s : stride) TN_CHECK(s == 1, "padding='same' is not supported for strided convolutions");
  TN_CHECK(input.dim() == weight.dim(), "Expected ", weight.dim(), "-dimensional input for ", weight.dim(),
           "-dimensional weight ", weight.sizes(), ", but got ", input.dim(), "-dimensional input of size ",
           input.sizes(), " instead");
  DimVector left(static_cast<size_t>(dims)), right(static_cast<size_t>(dims));
  bool symmetric = true;
  for (int64_t i = 0; i < dims; ++i) {
    const auto k = static_cast<size_t>(i);
    const int64_t total = (dilation.size() == 1 ? dilation[0] : dilation[k]) * (weight->size(i + 2) - 1);
    left[k] = total / 2, right[k] = total - left[k];
    symmetric &= left[k] == right[k];
  }
  if (symmetric) return at::convolution(input, weight, bias, stride, left, dilation, false, none, groups);
  // What the right side has more is padded for real.
  DimVector pad(static_cast<size_t>(2 * dims), 0);
  for (int64_t i = 0; i < dims; ++i) {
    const auto k = static_cast<size_t>(i);
    const size_t at = 2 * static_cast<size_t>(dims - 1 - i);
    if (right[k] > left[k]) pad[at + 1] = right[k] - left[k];
  }
  return at::convolution(at::constant_pad_nd(input, pad, 0), weight, bias, stride, left, dilation, false, none, groups);
}

Tensor conv_transpose(int64_t dims, const Tensor& input, const Tensor& weight, OptionalTensor bias, IntView stride,
                      IntView padding, IntView output_padding, int64_t groups, IntView dilation) {
  return batched(name_of(dims, true), dims, input, weight, [&](const Tensor& x) {
    return by_parts(x, weight, bias, [&](const Tensor& i, const Tensor& w, OptionalTensor b) {
      return at::convolution(i, w, b, stride, padding, dilation, true, output_padding, groups);
    });
  });
}

Tensor conv_of_kernel(const Tensor& self, const Tensor& weight, IntView kernel, OptionalTensor bias, IntView stride,
                      IntView padding, IntView dilation, bool transposed, IntView output_padding, int64_t groups) {
  for (size_t d = 0; d < kernel.size(); ++d)
    TN_CHECK(weight.dim() == kernel.ssize() + 2 && weight->size(static_cast<int64_t>(d) + 2) == kernel[d],
             "convolution: expected a weight with kernels of size ", kernel, ", got weight of size ", weight.sizes());
  return at::convolution(self, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
}

// Convolution is linear in each of its two operands, so every second derivative is one of the three functions again.
std::tuple<Tensor, Tensor, Tensor> conv_double_backward(OptionalTensor gg_input, OptionalTensor gg_weight,
                                                        OptionalTensor gg_bias, const Tensor& grad,
                                                        const Tensor& weight, const Tensor& input, IntView stride,
                                                        IntView padding, IntView dilation, bool transposed,
                                                        IntView output_padding, int64_t groups,
                                                        std::array<bool, 3> mask) {
  const auto apply = [&](const Tensor& x, const Tensor& w) {
    return at::convolution(x, w, {}, stride, padding, dilation, transposed, output_padding, groups);
  };
  const auto gradients = [&](const Tensor& x, const Tensor& w, std::array<bool, 3> wanted) {
    return at::convolution_backward(grad, x, w, std::nullopt, stride, padding, dilation, transposed, output_padding,
                                    groups, wanted);
  };
  Tensor gg_output, g_input, g_weight;
  if (mask[0]) {
    if (gg_input) gg_output = apply(*gg_input, weight);
    if (gg_weight) {
      const Tensor more = apply(input, *gg_weight);
      gg_output = gg_output.defined() ? at::add(gg_output, more) : more;
    }
    if (gg_bias) {
      DimVector sizes(static_cast<size_t>(grad.dim()), 1);
      sizes[1] = gg_bias->numel();
      const Tensor wide = at::view(*gg_bias, sizes);
      gg_output = at::add(gg_output.defined() ? gg_output : at::zeros_like(grad), wide);
    }
    if (!gg_output.defined()) gg_output = at::zeros_like(grad);
  }
  if (mask[1])
    g_input = gg_weight ? std::get<0>(gradients(input, *gg_weight, {true, false, false})) : at::zeros_like(input);
  if (mask[2])
    g_weight = gg_input ? std::get<1>(gradients(*gg_input, weight, {false, true, false})) : at::zeros_like(weight);
  return {gg_output, g_input, g_weight};
}

Tensor conv_tbc(const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad) {
  TN_CHECK(self.dim() == 3, "Input must have 3 dims: time, batch, in_channel");
  TN_CHECK(weight.dim() == 3, "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.");
  TN_CHECK(bias.dim() == 1, "Bias must be 1-D");
  TN_CHECK(self->size(2) == weight->size(1),
           "Input dim 2 (input channels) must be equal to weight dim 1 (input channels)");
  TN_CHECK(weight->size(2) == bias->size(0), "Bias size must equal dim 2 in the weight tensor (output channels).");
  const int64_t padding[] = {pad}, one[] = {1};
  const int64_t to_planes[] = {1, 2, 0}, to_kernel[] = {2, 1, 0}, back[] = {2, 0, 1};
  const Tensor y = at::convolution(at::permute(self, to_planes), at::permute(weight, to_kernel), bias, one, padding,
                                   one, false, kNone, 1);
  return at::permute(y, back);
}

}  // namespace tn::composite
