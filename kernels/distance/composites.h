// Distances that are made of other operators.
#pragma once
#include <optional>

#include "runtime/tensor.h"

namespace tn::composite {

Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode);
Tensor euclidean_dist(const Tensor& x1, const Tensor& x2);
Tensor pdist(const Tensor& self, double p);
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps);
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim);
// The dimension of torch.cross: the given one, or the first of length three.
int64_t cross_dim(const Tensor& self, const Tensor& other, std::optional<int64_t> dim);
Tensor vecdot(const Tensor& x, const Tensor& y, int64_t dim);

}  // namespace tn::composite
