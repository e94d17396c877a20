#include "kernels/distance/composites.h"

#include <algorithm>

#include "generated/ops/_cdist_forward.h"
#include "generated/ops/_euclidean_dist.h"
#include "generated/ops/_pdist_forward.h"
#include "generated/ops/add.h"
#include "generated/ops/cat.h"
#include "generated/ops/clamp_min.h"
#include "generated/ops/clone.h"
#include "generated/ops/conj.h"
#include "generated/ops/contiguous.h"
#include "generated/ops/div.h"
#include "generated/ops/expand.h"
#include "generated/ops/linalg_vector_norm.h"
#include "generated/ops/matmul.h"
#include "generated/ops/mul.h"
#include "generated/ops/norm.h"
#include "generated/ops/ones_like.h"
#include "generated/ops/pow.h"
#include "generated/ops/result_type.h"
#include "generated/ops/sqrt.h"
#include "generated/ops/sub.h"
#include "generated/ops/sum.h"
#include "generated/ops/to.h"
#include "generated/ops/transpose.h"
#include "generated/ops/vdot.h"
#include "runtime/keyset.h"
#include "runtime/shape.h"
#include "runtime/warn.h"

namespace tn::composite {

Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode) {
  TN_CHECK(x1.dim() >= 2, "cdist only supports at least 2D tensors, X1 got: ", x1.dim(), "D");
  TN_CHECK(x2.dim() >= 2, "cdist only supports at least 2D tensors, X2 got: ", x2.dim(), "D");
  TN_CHECK(x1.size(-1) == x2.size(-1), "X1 and X2 must have the same number of columns. X1: ", x1.size(-1),
           " X2: ", x2.size(-1));
  const int64_t how = mode.value_or(0), rows = std::max(x1.size(-2), x2.size(-2));
  TN_CHECK(how >= 0 && how <= 2, "possible modes: 0, 1, 2, but was: ", how);
  // Where upstream takes the matrix product: its rounding is another, and its gradient goes through the product.
  const bool product = p == 2 && x1.numel() != 0 && x2.numel() != 0 && (how == 1 || (how == 0 && rows > 25));
  if (!product || x1.dtype() != x2.dtype()) return at::_cdist_forward(x1, x2, p, mode);
  const IntView all1 = x1.sizes(), all2 = x2.sizes();
  DimVector batch = infer_size(all1.slice(0, all1.size() - 2), all2.slice(0, all2.size() - 2));
  DimVector s1(batch), s2(batch);
  for (const int64_t d : {-2, -1}) {
    s1.push_back(x1.size(d));
    s2.push_back(x2.size(d));
  }
  return at::_euclidean_dist(at::expand(x1, s1), at::expand(x2, s2));
}

Tensor euclidean_dist(const Tensor& x1, const Tensor& x2) {
  // |a - b|^2 = |a|^2 - 2ab + |b|^2 as one product of widened matrices.
  const auto squares = [](const Tensor& x) { return at::sum(at::pow(x, Scalar(2)), IntView{-1}, true); };
  const Tensor n1 = squares(x1), n2 = squares(x2);
  const Tensor left = at::cat(std::vector<Tensor>{at::mul(x1, Scalar(-2)), n1, at::ones_like(n1)}, -1);
  const Tensor right = at::cat(std::vector<Tensor>{x2, at::ones_like(n2), n2}, -1);
  const Tensor squared = at::matmul(left, at::transpose(right, -2, -1));
  return at::sqrt_(at::clamp_min_(squared, Scalar(0)));
}

Tensor pdist(const Tensor& self, double p) {
  TN_CHECK(self.dim() == 2, "pdist only supports 2D tensors, got: ", self.dim(), "D");
  TN_CHECK(is_floating(self.dtype()), "pdist only supports floating-point dtypes");
  TN_CHECK(p >= 0, "pdist only supports non-negative p values");
  return at::_pdist_forward(at::contiguous(self), p);
}

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  const ScalarType dtype = at::result_type(x1, x2);
  TN_CHECK(is_floating(dtype), "expected common dtype to be floating point, yet common dtype is ",
           scalar_type_name(dtype));
  const DimVector shape = infer_size(x1.sizes(), x2.sizes());
  const Tensor a = at::to(at::expand(x1, shape), dtype), b = at::to(at::expand(x2, shape), dtype);
  // Clamped below autograd's eyes: a norm under eps still passes its gradient.
  const auto length = [&](const Tensor& x) {
    const Tensor norm = at::clone(at::linalg_vector_norm(x, Scalar(2), IntView{dim}, true));
    const GradModeGuard no_grad(false);
    at::clamp_min_(norm, Scalar(eps));
    return norm;
  };
  return at::sum(at::mul(at::div(a, length(a)), at::div(b, length(b))), IntView{dim});
}

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  const int64_t last = std::max(x1.dim(), x2.dim()) - 1;
  return at::norm(at::add(at::sub(x1, x2), Scalar(eps)), Scalar(p), IntView{last}, keepdim);
}

int64_t cross_dim(const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
  if (dim) return *dim;
  warn(
      "Using torch.cross without specifying the dim arg is deprecated.\n"
      "Please either pass the dim explicitly or use torch.linalg.cross.\n"
      "The default value of dim will change to agree with that of linalg.cross in a future release.",
      WarnKind::User);
  const DimVector shape = infer_size(self.sizes(), other.sizes());
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] == 3) return static_cast<int64_t>(d);
  fail(ErrorKind::Runtime, "no dimension of size 3 in input");
}

Tensor vecdot(const Tensor& x, const Tensor& y, int64_t dim) {
  TN_CHECK(is_floating(x.dtype()) || is_complex(x.dtype()),
           "linalg.vecdot: Expected a floating point or complex tensor as input. Got ", scalar_type_name(x.dtype()));
  TN_CHECK(x.dtype() == y.dtype(), "linalg.vecdot: Expected x and y to have the same dtype, but found x of type ",
           scalar_type_name(x.dtype()), " and y of type ", scalar_type_name(y.dtype()), " instead");
  if (x.dim() == 1 && y.dim() == 1 && x.numel() == y.numel()) return at::vdot(x, y);
  return at::sum(at::mul(at::conj(x), y), IntView{dim});
}

}  // namespace tn::composite
