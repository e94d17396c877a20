#include "kernels/loss/composites.h"

#include <limits>

#include "generated/ops/add.h"
#include "generated/ops/bitwise_not.h"
#include "generated/ops/contiguous.h"
#include "generated/ops/div.h"
#include "generated/ops/eq.h"
#include "generated/ops/fill.h"
#include "generated/ops/gather.h"
#include "generated/ops/log_softmax.h"
#include "generated/ops/masked_fill.h"
#include "generated/ops/mul.h"
#include "generated/ops/neg.h"
#include "generated/ops/nll_loss.h"
#include "generated/ops/nll_loss2d.h"
#include "generated/ops/nll_loss_nd.h"
#include "generated/ops/reshape.h"
#include "generated/ops/sum.h"
#include "generated/ops/view.h"
#include "runtime/error.h"
#include "runtime/shape.h"

namespace tn::composite {

Tensor nll_loss_nd(const Tensor& self, const Tensor& target, OptionalTensor weight, int64_t reduction,
                   int64_t ignore_index) {
  TN_CHECK_AS(Value, self.dim() >= 1, "Expected 1 or more dimensions (got ", self.dim(), ")");
  TN_CHECK_AS(Value, self.dim() == 1 || target.dim() == 0 || self->size(0) == target->size(0),
              "Expected input batch_size (", self->size(0), ") to match target batch_size (",
              target.dim() ? target->size(0) : 0, ").");
  if (self.dim() <= 2) return at::nll_loss(self, target, weight, reduction, ignore_index);
  if (self.dim() == 4) return at::nll_loss2d(self, target, weight, reduction, ignore_index);
  const int64_t n = self->size(0), c = self->size(1);
  DimVector out_size(self.sizes());
  out_size.erase(1);
  TN_CHECK(target.sizes() == IntView(out_size), "Expected target size ", IntView(out_size), ", got ", target.sizes());
  const bool any = self.numel() > 0;
  const int64_t wide[] = {n, c, any ? 1 : 0, any ? -1 : 0}, narrow[] = {n, any ? 1 : 0, any ? -1 : 0};
  const Tensor x = at::view(at::contiguous(self), IntView(wide, 4)),
               t = at::view(at::contiguous(target), IntView(narrow, 3));
  const Tensor loss = at::nll_loss2d(x, t, weight, reduction, ignore_index);
  return reduction == 0 ? at::view(loss, out_size) : loss;
}

namespace {

// One factor a class, broadcast over the other dimensions of the input.
Tensor spread_weight(const Tensor& weight, const Tensor& input, int64_t classes) {
  DimVector shape(static_cast<size_t>(input.dim()), 1);
  shape[static_cast<size_t>(classes)] = weight.size(0);
  return at::view(weight, shape);
}
Tensor sum_over(const Tensor& t, int64_t dim) { return at::sum(t, OptionalIntArrayRef(IntView(&dim, 1)), false); }

Tensor of_probabilities(const Tensor& self, const Tensor& given, OptionalTensor weight, int64_t reduction,
                        double smoothing, int64_t classes) {
  TN_CHECK(smoothing >= 0 && smoothing <= 1, "label_smoothing must be between 0.0 and 1.0. Got: ", smoothing);
  const Tensor input = at::log_softmax(self, classes, self.dtype());
  const int64_t n = input.size(classes);
  TN_CHECK(!weight || (weight->dim() == 1 && weight->numel() == n),
           "cross_entropy: weight tensor should be defined either for all ", n,
           " classes or no classes but got weight tensor of shape: ", weight->sizes());
  const Tensor target = smoothing > 0
                            ? at::add(at::mul(given, Scalar(1 - smoothing)), Scalar(smoothing / static_cast<double>(n)))
                            : given;
  Tensor each = at::mul(input, target);
  if (weight) each = at::mul(each, input.dim() > 1 ? spread_weight(*weight, input, 1) : *weight);
  if (reduction == 0) return at::neg(sum_over(each, classes));
  if (reduction == 2) return at::neg(at::sum(each));
  TN_CHECK(reduction == 1, "Invalid reduction type encountered in cross_entropy: ", reduction);
  if (input.numel() == 0) {
    Tensor none = at::neg(at::sum(each));
    at::fill_(none, Scalar(std::numeric_limits<double>::quiet_NaN()));
    return none;
  }
  return at::div(at::neg(at::sum(each)), Scalar(input.numel() / n));
}

Tensor smoothed(const Tensor& self, const Tensor& target, OptionalTensor weight, int64_t reduction,
                int64_t ignore_index, double smoothing, int64_t classes) {
  TN_CHECK(smoothing <= 1, "label_smoothing must be between 0.0 and 1.0. Got: ", smoothing);
  const Tensor input = at::log_softmax(self, classes, self.dtype());
  const Tensor nll = at::nll_loss_nd(input, target, weight, reduction, ignore_index);
  const Tensor smooth =
      at::neg(sum_over(weight ? at::mul(input, spread_weight(*weight, input, classes)) : input, classes));
  const Tensor ignored = at::eq(target, Scalar(ignore_index));
  at::masked_fill_(smooth, ignored, Scalar(0.0));
  Tensor all = smooth;
  if (reduction == 1 && weight) {
    const int64_t flat[] = {-1};
    const Tensor used = at::reshape(at::masked_fill(target, ignored, Scalar(0)), IntView(flat, 1));
    const Tensor weights = at::gather(*weight, 0, used);
    at::masked_fill_(weights, at::reshape(ignored, IntView(flat, 1)), Scalar(0));
    const Tensor total = at::sum(weights);
    all = at::div(at::sum(smooth), total);
  } else if (reduction == 1) {
    const Tensor count = at::sum(at::bitwise_not(ignored));
    all = at::div(at::sum(smooth), count);
  } else if (reduction == 2) {
    all = at::sum(smooth);
  } else {
    TN_CHECK(reduction == 0, "Invalid reduction type encountered in cross_entropy: ", reduction);
  }
  const Tensor uniform = at::mul(all, Scalar(smoothing / static_cast<double>(input.size(classes))));
  return at::add(at::mul(nll, Scalar(1 - smoothing)), uniform);
}

}  // namespace

Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, OptionalTensor weight, int64_t reduction,
                          int64_t ignore_index, double label_smoothing) {
  const int64_t classes = self.dim() == 1 ? 0 : 1;
  if (self.sizes() == target.sizes()) {
    TN_CHECK(is_floating(target.dtype()), "Expected floating point type for target with class probabilities, got ",
             scalar_type_name(target.dtype()));
    TN_CHECK(ignore_index < 0, "ignore_index is not supported for floating point target");
    return of_probabilities(self, target, weight, reduction, label_smoothing, classes);
  }
  if (label_smoothing > 0) return smoothed(self, target, weight, reduction, ignore_index, label_smoothing, classes);
  return at::nll_loss_nd(at::log_softmax(self, classes, self.dtype()), target, weight, reduction, ignore_index);
}

}  // namespace tn::composite
