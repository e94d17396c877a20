// Gradients of batch norm.
#include <cmath>

#include "generated/slots/norm.h"
#include "kernels/norm/batch.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/shape.h"

namespace tn {
namespace {

using namespace norm;
using Three = std::tuple<Tensor, Tensor, Tensor>;

Tensor channel_tensor(const double* values, int64_t channels, ScalarType dtype) {
  const Tensor t = empty(IntView(&channels, 1), dtype);
  convert_row(ScalarType::Double, reinterpret_cast<const char*>(values), sizeof(double), dtype,
              static_cast<char*>(t->raw_data()), static_cast<int64_t>(t.itemsize()), channels);
  return t;
}

Three gradient(const Tensor& grad_out, const Tensor& input, OptionalTensor weight, OptionalTensor running_mean,
               OptionalTensor running_var, OptionalTensor save_mean, OptionalTensor save_rstd, bool train, double eps,
               std::array<bool, 3> mask) {
  TN_CHECK_AS(NotImplemented, is_floating(input.dtype()), "\"batch_norm_backward_cpu\" not implemented for '",
              scalar_type_name(input.dtype()), "'");
  TN_CHECK(input.dim() >= 2 && grad_out.sizes() == input.sizes(),
           "native_batch_norm_backward: expected a gradient like the input, got ", grad_out.sizes(), " and ",
           input.sizes());
  TN_CHECK(grad_out.dtype() == input.dtype(), "expected scalar type ", scalar_type_name(input.dtype()), " but found ",
           scalar_type_name(grad_out.dtype()));
  const OptionalTensor mean_of = train ? save_mean : running_mean, spread_of = train ? save_rstd : running_var;
  TN_CHECK(mean_of && spread_of, "native_batch_norm_backward: expected ",
           train ? "the saved statistics" : "running statistics", ", got none");
  const ScalarType parameter =
      is_mixed(input, {weight, running_mean, running_var, save_mean, save_rstd}) ? ScalarType::Float : input.dtype();
  const MemoryFormat format = suggest_memory_format(input);
  const Tensor x = contiguous(input, format), g = contiguous(grad_out, format);
  const Planes p = planes_of(x);
  const auto n = static_cast<size_t>(p.channels);
  const std::vector<double> mean = channel_values(mean_of, p.channels, 0),
                            factor = channel_values(weight, p.channels, 1);
  std::vector<double> rstd = channel_values(spread_of, p.channels, 0);
  if (!train)
    for (double& v : rstd) v = 1 / std::sqrt(v + eps);
  std::vector<double> sums(2 * n);
  if (x.numel() > 0 && (train || mask[1] || mask[2])) sums = channel_dots(p, x->raw_data(), g->raw_data(), mean.data());
  Tensor grad_input, grad_weight, grad_bias;
  if (mask[0]) {
    grad_input = empty(input.sizes(), input.dtype(), {}, format);
    std::vector<double> slopes(4 * n);
    const auto count = static_cast<double>(p.each());
    for (size_t c = 0; c < n; ++c) {
      const double scale = rstd[c] * factor[c];
      slopes[c] = mean[c];
      slopes[n + c] = train ? sums[c] / count * scale : 0;
      slopes[2 * n + c] = train ? sums[n + c] * rstd[c] * rstd[c] / count * scale : 0;
      slopes[3 * n + c] = scale;
    }
    if (x.numel() > 0) channel_gradient(p, x->raw_data(), g->raw_data(), slopes.data(), grad_input->raw_data());
  }
  if (mask[2]) grad_bias = channel_tensor(sums.data(), p.channels, parameter);
  if (mask[1]) {
    for (size_t c = 0; c < n; ++c) sums[n + c] *= rstd[c];
    grad_weight = channel_tensor(sums.data() + n, p.channels, parameter);
  }
  return {grad_input, grad_weight, grad_bias};
}

}  // namespace

namespace native {

Three native_batch_norm_backward(const Tensor& grad_out, const Tensor& input, OptionalTensor weight,
                                 OptionalTensor running_mean, OptionalTensor running_var, OptionalTensor save_mean,
                                 OptionalTensor save_invstd, bool train, double eps, std::array<bool, 3> output_mask) {
  return gradient(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask);
}
Three batch_norm_backward(const Tensor& grad_out, const Tensor& input, const Tensor& weight,
                          OptionalTensor running_mean, OptionalTensor running_var, OptionalTensor save_mean,
                          OptionalTensor save_var, bool update, double eps, std::array<bool, 3> output_mask,
                          const Tensor&) {
  return gradient(grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps, output_mask);
}

}  // namespace native
}  // namespace tn
