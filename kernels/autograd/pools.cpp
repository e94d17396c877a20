#include "kernels/autograd/pools.h"

namespace tn::autograd {

// The windows' chosen elements, by index within each plane.
Tensor max_pool_double_backward(const Tensor& grad, const Tensor& indices, int dim) {
  std::vector<int64_t> flat = indices.sizes().slice(0, static_cast<size_t>(indices.dim() - dim)).vec();
  flat.push_back(-1);
  return at::reshape(at::gather(at::reshape(grad, flat), -1, at::reshape(indices, flat)), indices.sizes());
}

}  // namespace tn::autograd
