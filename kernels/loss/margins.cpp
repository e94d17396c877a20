// Losses of distances and margins.
#include <cmath>

#include "generated/ops/abs.h"
#include "generated/ops/add.h"
#include "generated/ops/clamp_min.h"
#include "generated/ops/clone.h"
#include "generated/ops/div.h"
#include "generated/ops/empty_like.h"
#include "generated/ops/eq.h"
#include "generated/ops/exp.h"
#include "generated/ops/fill.h"
#include "generated/ops/le.h"
#include "generated/ops/log.h"
#include "generated/ops/masked_fill.h"
#include "generated/ops/mean.h"
#include "generated/ops/minimum.h"
#include "generated/ops/mul.h"
#include "generated/ops/ne.h"
#include "generated/ops/neg.h"
#include "generated/ops/pairwise_distance.h"
#include "generated/ops/sqrt.h"
#include "generated/ops/sub.h"
#include "generated/ops/sum.h"
#include "generated/ops/where.h"
#include "generated/ops/xlogy.h"
#include "generated/ops/zeros_like.h"
#include "kernels/loss/composites.h"
#include "kernels/loss/reduction.h"
#include "runtime/error.h"

namespace tn::composite {
namespace {

Tensor reduce(const Tensor& loss, int64_t reduction) {
  if (reduction == loss::kMean) return at::mean(loss);
  if (reduction == loss::kSum) return at::sum(loss);
  return loss;
}
// The positive part, written into a copy.
Tensor positive(const Tensor& t) {
  Tensor part = at::clone(t);
  at::clamp_min_(part, Scalar(0));
  return part;
}
Tensor number_minus(double value, const Tensor& t) {
  Tensor out = at::empty_like(t);
  at::fill_(out, Scalar(value));
  at::sub_(out, t);
  return out;
}
Tensor sum_over(const Tensor& t, int64_t dim) { return at::sum(t, OptionalIntArrayRef(IntView(&dim, 1)), false); }

}  // namespace

Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return reduce(at::abs(at::sub(self, target)), reduction);
}

Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
  TN_CHECK(!self.is_complex() && !target.is_complex(), "kl_div: Complex inputs not supported.");
  TN_CHECK(!is_integral(self.dtype(), true) && !is_integral(target.dtype(), true),
           "kl_div: Integral inputs not supported.");
  if (log_target) return reduce(at::mul(at::exp(target), at::sub(target, self)), reduction);
  return reduce(at::sub(at::xlogy(target, target), at::mul(target, self)), reduction);
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                        int64_t reduction) {
  Tensor loss = log_input ? at::sub(at::exp(input), at::mul(target, input))
                          : at::sub(input, at::mul(target, at::log(at::add(input, Scalar(eps)))));
  if (full) {
    // Stirling's formula, for targets above 1.
    const Tensor half = at::mul(at::log(at::mul(target, Scalar(2 * M_PI))), Scalar(0.5));
    const Tensor term = at::add(at::sub(at::mul(target, at::log(target)), target), half);
    at::add_(loss, at::masked_fill(term, at::le(target, Scalar(1)), Scalar(0)));
  }
  return reduce(loss, reduction);
}

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                           int64_t reduction) {
  TN_CHECK(input1.dim() == input2.dim() && input1.dim() == target.dim(),
           "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: ", input1.sizes(),
           ", input2: ", input2.sizes(), ", target: ", target.sizes(), " ");
  const Tensor raw = at::mul(at::neg(target), at::sub(input1, input2));
  return reduce(positive(at::add(raw, Scalar(margin))), reduction);
}

Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                             int64_t reduction) {
  const int64_t dim = target.dim();
  TN_CHECK(dim == 1 || dim == 0, "0D or 1D target tensor expected, multi-target not supported");
  TN_CHECK(input1.dim() == dim + 1 && input2.dim() == dim + 1, dim, "D target tensor expects ", dim + 1,
           "D input tensors, but found inputs with sizes ", input1.sizes(), " and ", input2.sizes(), ".");
  constexpr double kEps = 1e-12;
  const Tensor along = sum_over(at::mul(input1, input2), dim);
  const Tensor square1 = at::add(sum_over(at::mul(input1, input1), dim), Scalar(kEps));
  const Tensor square2 = at::add(sum_over(at::mul(input2, input2), dim), Scalar(kEps));
  const Tensor length = at::mul(square1, square2);
  at::sqrt_(length);
  const Tensor cosine = at::div(along, length), zeros = at::zeros_like(cosine);
  const Tensor apart = number_minus(1, cosine), together = positive(at::sub(cosine, Scalar(margin)));
  const Tensor of_same = at::where(at::eq(target, Scalar(1)), apart, zeros),
               of_other = at::where(at::eq(target, Scalar(-1)), together, zeros);
  return reduce(at::add(of_same, of_other), reduction);
}

Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin, int64_t reduction) {
  const Tensor zeros = at::zeros_like(self), clamped = positive(number_minus(margin, self));
  const Tensor of_margin = at::where(at::ne(target, Scalar(1)), clamped, zeros),
               of_self = at::where(at::ne(target, Scalar(-1)), self, zeros);
  return reduce(at::add(of_margin, of_self), reduction);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin,
                           double p, double eps, bool swap, int64_t reduction) {
  TN_CHECK(
      anchor.dim() == positive.dim() && positive.dim() == negative.dim(),
      "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor ",
      anchor.dim(), "D, positive ", positive.dim(), "D, and negative ", negative.dim(), "D inputs");
  TN_CHECK(margin > 0, "triplet_margin_loss: margin must be greater than 0, got ", margin);
  const Tensor near = at::pairwise_distance(anchor, positive, p, eps);
  Tensor far = at::pairwise_distance(anchor, negative, p, eps);
  if (swap) far = at::minimum(far, at::pairwise_distance(positive, negative, p, eps));
  return reduce(at::clamp_min(at::sub(at::add(near, Scalar(margin)), far), Scalar(0)), reduction);
}

}  // namespace tn::composite
