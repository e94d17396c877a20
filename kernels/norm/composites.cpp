#include "kernels/norm/composites.h"

#include "generated/ops/native_layer_norm.h"
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

}  // namespace tn::composite
