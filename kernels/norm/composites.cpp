#include "kernels/norm/composites.h"

#include "generated/ops/native_batch_norm.h"
#include "generated/ops/native_group_norm.h"
#include "generated/ops/native_layer_norm.h"
#include "runtime/copy.h"
#include "runtime/error.h"

namespace tn::composite {

void check_normalized_shape(const Tensor& input, IntView shape, OptionalTensor weight, OptionalTensor bias) {
  TN_CHECK(!shape.empty(), "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
           "normalized_shape = ", shape);
  TN_CHECK(!weight || weight->sizes() == shape, "Expected weight to be of same shape as normalized_shape, but got weight of shape ",
           weight->sizes(), " and normalized_shape = ", shape);
  TN_CHECK(!bias || bias->sizes() == shape, "Expected bias to be of same shape as normalized_shape, but got bias of shape ", bias->sizes(),
           " and normalized_shape = ", shape);
  if (input.dim() >= shape.ssize() && input.sizes().slice(static_cast<size_t>(input.dim() - shape.ssize()), shape.size()) == shape) return;
  std::string wanted = "[*";
  for (int64_t s : shape) wanted += ", " + std::to_string(s);
  fail(ErrorKind::Runtime, "Given normalized_shape=", shape, ", expected input with shape ", wanted, "], but got input of size", input.sizes());
}

Tensor layer_norm(const Tensor& input, IntView shape, OptionalTensor weight, OptionalTensor bias, double eps, bool) {
  return std::get<0>(at::native_layer_norm(input, shape, weight, bias, eps));
}

Tensor group_norm(const Tensor& input, int64_t groups, OptionalTensor weight, OptionalTensor bias, double eps, bool) {
  TN_CHECK(input.dim() >= 2, "Expected at least 2 dimensions for input tensor but received ", input.dim());
  const int64_t n = input->size(0), c = input->size(1), inner = product(input.sizes().slice(2, static_cast<size_t>(input.dim() - 2)));
  TN_CHECK(groups > 0, "Expected num groups to be greater than 0, got ", groups);
  TN_CHECK(c % groups == 0, "Expected number of channels in input to be divisible by num_groups, but got input of shape ", input.sizes(),
           " and num_groups=", groups);
  TN_CHECK(!weight || (weight->dim() == 1 && weight->numel() == c), "Expected weight to be a vector of size equal to the number of channels in input, "
           "but got weight of shape ", weight->sizes(), " and input of shape ", input.sizes());
  TN_CHECK(!bias || (bias->dim() == 1 && bias->numel() == c), "Expected bias to be a vector of size equal to the number of channels in input, but got "
           "bias of shape ", bias->sizes(), " and input of shape ", input.sizes());
  return std::get<0>(at::native_group_norm(input, weight, bias, n, c, inner, groups, eps));
}

Tensor batch_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias, OptionalTensor running_mean, OptionalTensor running_var,
                  bool training, double momentum, double eps, bool) {
  TN_CHECK(input.dim() >= 2, "batch_norm: expected at least 2 dimensions, got ", input.dim());
  TN_CHECK(training || (running_mean && running_var), running_mean ? "running_var" : "running_mean", " must be defined in evaluation mode");
  const auto check = [&](OptionalTensor t, const char* name) {
    TN_CHECK(!t || t->numel() == input->size(1), name, " should contain ", input->size(1), " elements not ", t->numel());
  };
  check(running_mean, "running_mean");
  check(running_var, "running_var");
  check(weight, "weight");
  check(bias, "bias");
  return std::get<0>(at::native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps));
}

}  // namespace tn::composite
