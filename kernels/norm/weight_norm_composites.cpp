#include "generated/ops/_weight_norm_interface.h"
#include "generated/ops/contiguous.h"
#include "generated/ops/div.h"
#include "generated/ops/mul.h"
#include "generated/ops/norm.h"
#include "generated/ops/norm_except_dim.h"
#include "generated/ops/reshape.h"
#include "generated/ops/sub.h"
#include "generated/ops/sum.h"
#include "generated/ops/transpose.h"
#include "kernels/norm/composites.h"
#include "runtime/error.h"
#include "runtime/shape.h"

namespace tn::composite {

Tensor norm_except_dim(const Tensor& v, int64_t pow, int64_t dim) {
  if (dim == -1) return at::norm(v, pow);
  if (dim != 0 && dim != v.dim() - 1)
    return at::transpose(at::norm_except_dim(at::transpose(v, 0, dim), pow, 0), 0, dim);
  const int64_t groups = v.size(dim);
  DimVector sizes(static_cast<size_t>(v.dim()), 1);
  sizes[static_cast<size_t>(dim)] = groups;
  const bool rows = dim == 0;
  const Tensor flat = at::reshape(at::contiguous(v), rows ? IntView{groups, -1} : IntView{-1, groups});
  const int64_t over[] = {rows ? 1 : 0};
  return at::reshape(at::norm(flat, Scalar(pow), IntView(over, 1)), sizes);
}

Tensor weight_norm(const Tensor& v, const Tensor& g, int64_t dim) {
  TN_CHECK(v.device().type == g.device().type, "weight_norm: expected v and g to be on the same device");
  if (v.is_cpu() && (dim == 0 || dim == v.dim() - 1))
    return std::get<0>(at::_weight_norm_interface(at::contiguous(v), at::contiguous(g), dim));
  return at::mul(v, at::div(g, at::norm_except_dim(v, 2, dim)));
}

// Of operators that have derivatives themselves, unlike the fused backward.
std::tuple<Tensor, Tensor> weight_norm_differentiable_backward(const Tensor& grad, const Tensor& v, const Tensor& g,
                                                               const Tensor& norms, int64_t dim) {
  const int64_t last = v.dim() - 1;
  TN_CHECK(dim == 0 || dim == last, "Expected dim to be the first or last dimension");
  const int64_t groups = v.size(dim);
  DimVector sizes(static_cast<size_t>(v.dim()), 1);
  sizes[static_cast<size_t>(dim)] = groups;
  const Tensor product = at::mul(grad, v);
  const int64_t over[] = {dim == 0 ? 1 : 0};
  const Tensor flat = at::reshape(product, dim == 0 ? IntView{groups, -1} : IntView{-1, groups});
  const Tensor along = at::reshape(at::sum(flat, IntView(over, 1)), sizes), lengths = at::reshape(norms, sizes);
  const Tensor unit = at::div(along, at::mul(lengths, lengths));
  const Tensor scale = at::div(g, lengths);
  return {at::mul(scale, at::sub(grad, at::mul(v, unit))), at::div(along, lengths)};
}

}  // namespace tn::composite
