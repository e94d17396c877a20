#include "kernels/autograd/pools.h"

namespace tn::autograd {

// The windows' chosen elements, by index within each plane.
Tensor max_pool_double_backward(const Tensor& grad, const Tensor& indices, int dim) {
  // Sizes are counted, since -1 can't be deduced where the batch is empty.
  const auto flat = [&](const Tensor& t) {
    const size_t outer = static_cast<size_t>(t.dim() - dim);
    std::vector<int64_t> sizes = t.sizes().slice(0, outer).vec();
    int64_t inner = 1;
    for (size_t k = outer; k < static_cast<size_t>(t.dim()); ++k) inner *= t.sizes()[k];
    sizes.push_back(inner);
    return at::reshape(t, sizes);
  };
  return at::reshape(at::gather(flat(grad), -1, flat(indices)), indices.sizes());
}

}  // namespace tn::autograd
