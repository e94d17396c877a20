#include "kernels/norm/composites.h"

#include "generated/ops/_batch_norm_impl_index.h"
#include "generated/ops/add.h"
#include "generated/ops/alias.h"
#include "generated/ops/batch_norm.h"
#include "generated/ops/clone.h"
#include "generated/ops/contiguous.h"
#include "generated/ops/copy.h"
#include "generated/ops/empty.h"
#include "generated/ops/mean.h"
#include "generated/ops/mul.h"
#include "generated/ops/native_batch_norm.h"
#include "generated/ops/native_batch_norm_backward.h"
#include "generated/ops/native_group_norm.h"
#include "generated/ops/native_layer_norm.h"
#include "generated/ops/repeat.h"
#include "generated/ops/select.h"
#include "generated/ops/view.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/shape.h"

namespace tn::composite {

void check_normalized_shape(const Tensor& input, IntView shape, OptionalTensor weight, OptionalTensor bias) {
  TN_CHECK(!shape.empty(),
           "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
           "normalized_shape = ",
           shape);
  TN_CHECK(!weight || weight->sizes() == shape,
           "Expected weight to be of same shape as normalized_shape, but got weight of shape ", weight->sizes(),
           " and normalized_shape = ", shape);
  TN_CHECK(!bias || bias->sizes() == shape,
           "Expected bias to be of same shape as normalized_shape, but got bias of shape ", bias->sizes(),
           " and normalized_shape = ", shape);
  if (input.dim() >= shape.ssize() &&
      input.sizes().slice(static_cast<size_t>(input.dim() - shape.ssize()), shape.size()) == shape)
    return;
  std::string wanted = "[*";
  for (int64_t s : shape) wanted += ", " + std::to_string(s);
  fail(ErrorKind::Runtime, "Given normalized_shape=", shape, ", expected input with shape ", wanted,
       "], but got input of size", input.sizes());
}

Tensor layer_norm(const Tensor& input, IntView shape, OptionalTensor weight, OptionalTensor bias, double eps, bool) {
  return std::get<0>(at::native_layer_norm(input, shape, weight, bias, eps));
}

Tensor group_norm(const Tensor& input, int64_t groups, OptionalTensor weight, OptionalTensor bias, double eps, bool) {
  TN_CHECK(input.dim() >= 2, "Expected at least 2 dimensions for input tensor but received ", input.dim());
  const int64_t n = input->size(0), c = input->size(1),
                inner = product(input.sizes().slice(2, static_cast<size_t>(input.dim() - 2)));
  TN_CHECK(groups > 0, "Expected num groups to be greater than 0, got ", groups);
  TN_CHECK(c % groups == 0,
           "Expected number of channels in input to be divisible by num_groups, but got input of shape ", input.sizes(),
           " and num_groups=", groups);
  TN_CHECK(!weight || (weight->dim() == 1 && weight->numel() == c),
           "Expected weight to be a vector of size equal to the number of channels in input, "
           "but got weight of shape ",
           weight->sizes(), " and input of shape ", input.sizes());
  TN_CHECK(!bias || (bias->dim() == 1 && bias->numel() == c),
           "Expected bias to be a vector of size equal to the number of channels in input, but got "
           "bias of shape ",
           bias->sizes(), " and input of shape ", input.sizes());
  return std::get<0>(at::native_group_norm(input, weight, bias, n, c, inner, groups, eps));
}

std::tuple<Tensor, Tensor, Tensor, Tensor, int64_t> batch_norm_impl_index(const Tensor& input, OptionalTensor weight,
                                                                          OptionalTensor bias,
                                                                          OptionalTensor running_mean,
                                                                          OptionalTensor running_var, bool training,
                                                                          double momentum, double eps, bool) {
  // Upstream's own answer for one dimension, where there are no channels.
  const int64_t channels = input.dim() > 1 ? input->size(1) : 0;
  const auto check = [&](OptionalTensor t, const char* name) {
    TN_CHECK(!t || t->numel() == channels, name, " should contain ", channels, " elements not ", t->numel());
  };
  TN_CHECK(running_mean || training, "running_mean must be defined in evaluation mode");
  check(running_mean, "running_mean");
  TN_CHECK(running_var || training, "running_var must be defined in evaluation mode");
  check(running_var, "running_var");
  check(weight, "weight");
  check(bias, "bias");
  const Tensor reserve = at::empty(IntView({0}), ScalarType::Byte, input.layout(), input.device());
  if (input.numel() == 0) {
    const ScalarType wide = input.dtype() == ScalarType::Float ? ScalarType::Double
                            : is_reduced_float(input.dtype())  ? ScalarType::Float
                                                               : input.dtype();
    const Tensor mean = at::empty(IntView(&channels, 1), wide, input.layout(), input.device());
    const Tensor rstd = at::empty(IntView(&channels, 1), wide, input.layout(), input.device());
    Tensor out = at::clone(input);  // no view, and part of the graph
    if (weight) out = at::mul(out, at::select(*weight, 0, 0));
    if (bias) out = at::add(out, at::select(*bias, 0, 0));
    return {out, mean, rstd, reserve, 0};
  }
  auto [out, mean, rstd] =
      at::native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
  return {out, mean, rstd, reserve, 0};
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_impl_index_backward(int64_t impl, const Tensor& input, const Tensor& grad,
                                                                  OptionalTensor weight, OptionalTensor running_mean,
                                                                  OptionalTensor running_var, OptionalTensor save_mean,
                                                                  OptionalTensor save_var, bool train, double eps,
                                                                  std::array<bool, 3> mask, const Tensor& /*reserve*/) {
  // Indices 1 and 2 are libraries of other backends, which upstream leaves in evaluation too.
  TN_CHECK(impl == 0 || !train, "Unsupported impl_index in _batch_norm_impl_index_backward: ", impl);
  return at::native_batch_norm_backward(grad, input, weight, running_mean, running_var, save_mean, save_var, train, eps,
                                        mask);
}

Tensor batch_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias, OptionalTensor running_mean,
                  OptionalTensor running_var, bool training, double momentum, double eps, bool cudnn) {
  return std::get<0>(
      at::_batch_norm_impl_index(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn));
}

Tensor instance_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias, OptionalTensor running_mean,
                     OptionalTensor running_var, bool use_input_stats, double momentum, double eps, bool cudnn) {
  TN_CHECK(use_input_stats || (running_mean && running_var),
           "Expected running_mean and running_var to be defined when use_input_stats is false");
  const int64_t b = input.size(0), c = input.size(1), times[] = {b}, pair[] = {b, c};
  DimVector shape(input.sizes());
  shape[0] = 1;
  shape[1] = b * c;
  const auto repeated = [&](OptionalTensor t) { return t ? at::repeat(*t, IntView(times, 1)) : Tensor(); };
  const Tensor w = repeated(weight), bi = repeated(bias), mean = repeated(running_mean), var = repeated(running_var);
  const Tensor out =
      at::batch_norm(at::view(at::contiguous(input), shape), w, bi, mean, var, use_input_stats, momentum, eps, cudnn);
  // The statistics are the samples' average; written through an alias, as the schema does not say so.
  const auto write = [&](OptionalTensor running, const Tensor& moved) {
    const int64_t first[] = {0};
    if (running)
      at::copy_(at::alias(*running),
                at::mean(at::view(moved, IntView(pair, 2)), std::optional<IntArrayRef>(IntView(first, 1)), false));
  };
  write(running_mean, mean);
  write(running_var, var);
  return at::view(out, input.sizes());
}

}  // namespace tn::composite
