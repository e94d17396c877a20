// convolution and its gradients: checks, formats, and the way to the kernels.
#include <array>

#include "generated/slots/convolution.h"
#include "kernels/convolution/checks.h"
#include "kernels/convolution/problem.h"
#include "runtime/copy.h"
#include "runtime/error.h"

namespace tn {
namespace {

using namespace convolution;

struct Call {
  Params params;
  Tensor input, weight;  // of at least two spatial dimensions
  MemoryFormat format = MemoryFormat::Contiguous;
  bool was_line = false;
};

Call make_call(Params params, const Tensor& input, const Tensor& weight) {
  Call call{std::move(params), input, weight};
  if (input.dim() == 3) {
    call.was_line = true;
    call.input = as_planes(input), call.weight = as_planes(weight);
    call.params.stride.insert(0, 1);
    call.params.padding.insert(0, 0);
    call.params.dilation.insert(0, 1);
    call.params.output_padding.insert(0, 0);
  }
  if (!call.was_line) call.format = result_format(call.input, call.weight);
  return call;
}

Tensor as_given(const Call& call, Tensor t) { return call.was_line && t.defined() ? from_planes(t) : t; }

ScalarType sum_type(ScalarType t) { return is_reduced_float(t) ? ScalarType::Float : t; }

// What upstream's kernels take.
void check_served(ScalarType t) {
  TN_CHECK_AS(NotImplemented, t != ScalarType::Bool && t != ScalarType::ComplexHalf,
              "\"slow_conv2d_cpu\" not implemented for '", scalar_type_name(t), "'");
}

void run_forward(const Call& call, OptionalTensor bias, const Tensor& out) {
  const Problem p = problem_of(call.params, call.input.sizes(), call.weight.sizes(), out.sizes());
  const ScalarType dtype = out.dtype();
  const Tensor b = bias ? contiguous(*bias) : Tensor();
  if (!call.params.transposed) {
    const bool last = call.format != MemoryFormat::Contiguous && !p.is_depthwise();
    const MemoryFormat format = last ? call.format : MemoryFormat::Contiguous;
    // The depthwise kernels know float and double.
    const ScalarType compute = p.is_depthwise() ? sum_type(dtype) : dtype;
    const bool direct = out.is_contiguous(format) && compute == dtype;
    const Tensor to = direct ? out : empty(out.sizes(), compute, {}, format);
    forward(p, last, contiguous(cast(call.input, compute), format), contiguous(cast(call.weight, compute)),
            b.defined() ? cast(b, compute) : b, to);
    if (!direct) copy_into(out, to);
    return;
  }
  const ScalarType compute = sum_type(dtype);
  const bool direct = out.is_contiguous() && compute == dtype;
  const Tensor to = direct ? out : empty(out.sizes(), compute);
  backward_data(p, contiguous(cast(call.input, compute)), contiguous(cast(call.weight, compute)),
                b.defined() ? cast(b, compute) : b, to);
  if (!direct) copy_into(out, to);
}

// Sums over the batch and the pixels.
Tensor channel_sums(const Tensor& grad, ScalarType dtype) {
  const Tensor out = empty({grad->size(1)}, ScalarType::Double);
  const int64_t batch = grad->size(0), channels = grad->size(1),
                pixels = batch * channels == 0 ? 0 : grad.numel() / (batch * channels);
  const auto sum = [&]<class T>() {
    for (int64_t c = 0; c < channels; ++c) {
      double total = 0;
      for (int64_t n = 0; n < batch; ++n) {
        const T* const from = grad.data<T>() + (n * channels + c) * pixels;
        double part[8] = {};
        int64_t i = 0;
        for (; i + 8 <= pixels; i += 8)
          for (int64_t k = 0; k < 8; ++k) part[k] += static_cast<double>(from[i + k]);
        for (; i < pixels; ++i) part[0] += static_cast<double>(from[i]);
        for (const double v : part) total += v;
      }
      out.data<double>()[c] = total;
    }
  };
  if (grad.dtype() == ScalarType::Double) sum.template operator()<double>();
  else sum.template operator()<float>();
  return cast(out, dtype);
}

}  // namespace

Tensor native::convolution(const Tensor& input, const Tensor& weight, OptionalTensor bias, IntArrayRef stride,
                           IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                           int64_t groups) {
  Params params = expand(weight, stride, padding, dilation, transposed, output_padding, groups);
  check_forward(params, input, weight.sizes(), bias);
  check_dtypes(params, input, weight, bias);
  Call call = make_call(std::move(params), input, weight);
  const DimVector sizes = output_sizes(call.params, call.input, call.weight.sizes());
  const bool meta = input.is_meta() || weight.is_meta() || (bias && bias->is_meta());
  const Tensor out =
      empty(sizes, input.dtype(), meta && !input.is_meta() ? weight.device() : input.device(), call.format);
  if (!meta && out.numel() > 0) {
    check_served(input.dtype());
    call.input = resolve(call.input), call.weight = resolve(call.weight);
    run_forward(call, bias, out);
  }
  return as_given(call, out);
}

Tensor native::_convolution(const Tensor& input, const Tensor& weight, OptionalTensor bias, IntArrayRef stride,
                            IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                            int64_t groups, bool, bool, bool, bool) {
  return native::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
}

std::tuple<Tensor, Tensor, Tensor> native::convolution_backward(
    const Tensor& grad_output, const Tensor& input, const Tensor& weight, std::optional<IntArrayRef> bias_sizes,
    IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
    int64_t groups, std::array<bool, 3> mask) {
  Params params = expand(weight, stride, padding, dilation, transposed, output_padding, groups);
  check_forward(params, input, weight.sizes(), {});
  check_dtypes(params, input, weight, {});
  const DimVector expected = output_sizes(params, input, weight.sizes());
  TN_CHECK(grad_output.sizes() == IntView(expected), "convolution_backward: expected grad_output of size ",
           IntView(expected), ", got ", grad_output.sizes());
  TN_CHECK(grad_output.dtype() == input.dtype(), "expected scalar type ", scalar_type_name(input.dtype()),
           " but found ", scalar_type_name(grad_output.dtype()));
  (void)bias_sizes;
  const Call call = make_call(std::move(params), input, weight);
  const ScalarType dtype = input.dtype(), compute = sum_type(dtype);
  Tensor grad_input, grad_weight, grad_bias;
  if (mask[0]) grad_input = empty(call.input.sizes(), dtype, input.device(), call.format);
  // Where a weight is contiguous either way, upstream's kernels of other dtypes leave it as it is.
  const bool fast = dtype == ScalarType::Float || dtype == ScalarType::BFloat16;
  const bool either = !fast && call.weight.is_contiguous() && call.weight.is_contiguous(call.format);
  if (mask[1])
    grad_weight = empty(call.weight.sizes(), dtype, input.device(), either ? MemoryFormat::Contiguous : call.format);
  if (mask[2]) grad_bias = empty({grad_output->size(1)}, dtype, input.device());
  if (!input.is_meta()) {
    TN_CHECK_AS(NotImplemented, is_floating(dtype), "\"slow_conv2d_cpu_grad_input\" not implemented for '",
                scalar_type_name(dtype), "'");
    const Tensor grad = contiguous(cast(call.was_line ? as_planes(grad_output) : grad_output, compute));
    const Problem p = problem_of(call.params, call.input.sizes(), call.weight.sizes(), grad.sizes());
    const auto target = [&](const Tensor& t) {
      return t.is_contiguous() && compute == dtype ? t : empty(t.sizes(), compute);
    };
    if (mask[0]) {
      const Tensor to = target(grad_input), w = contiguous(cast(call.weight, compute));
      if (grad.numel() == 0) zero(to);
      else if (transposed) forward(p, false, grad, w, {}, to);
      else backward_data(p, grad, w, {}, to);
      if (!to.is_same(grad_input)) copy_into(grad_input, to);
    }
    if (mask[1]) {
      const Tensor to = target(grad_weight), x = contiguous(cast(call.input, compute));
      if (transposed) backward_weight(p, x, grad, to);
      else backward_weight(p, grad, x, to);
      if (!to.is_same(grad_weight)) copy_into(grad_weight, to);
    }
    if (mask[2]) copy_into(grad_bias, channel_sums(grad, dtype));
  }
  return {as_given(call, grad_input), as_given(call, grad_weight), grad_bias};
}

}  // namespace tn
