#include "kernels/loss/composites.h"

#include "generated/ops/log_softmax.h"
#include "generated/ops/nll_loss.h"
#include "generated/ops/nll_loss2d.h"
#include "generated/ops/nll_loss_nd.h"
#include "generated/ops/reshape.h"
#include "generated/ops/view.h"
#include "runtime/error.h"
#include "runtime/refuse.h"
#include "runtime/shape.h"

namespace tn::composite {

Tensor nll_loss_nd(const Tensor& self, const Tensor& target, OptionalTensor weight, int64_t reduction, int64_t ignore_index) {
  TN_CHECK_AS(Value, self.dim() >= 1, "Expected 1 or more dimensions (got ", self.dim(), ")");
  TN_CHECK_AS(Value, self.dim() == 1 || target.dim() == 0 || self->size(0) == target->size(0), "Expected input batch_size (", self->size(0),
              ") to match target batch_size (", target.dim() ? target->size(0) : 0, ").");
  if (self.dim() <= 2) return at::nll_loss(self, target, weight, reduction, ignore_index);
  if (self.dim() == 4) return at::nll_loss2d(self, target, weight, reduction, ignore_index);
  const int64_t n = self->size(0), c = self->size(1);
  DimVector out_size(self.sizes());
  out_size.erase(1);
  TN_CHECK(target.sizes() == IntView(out_size), "Expected target size ", IntView(out_size), ", got ", target.sizes());
  const int64_t inner = product(out_size) / std::max<int64_t>(n, 1);
  const Tensor x = at::reshape(self, {n, c, 1, inner}), t = at::reshape(target, {n, 1, inner});
  const Tensor loss = at::nll_loss2d(x, t, weight, reduction, ignore_index);
  return reduction == 0 ? at::view(loss, out_size) : loss;
}

Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, OptionalTensor weight, int64_t reduction, int64_t ignore_index,
                          double label_smoothing) {
  const int64_t classes = self.dim() == 1 ? 0 : 1;
  if (self.sizes() == target.sizes()) {
    TN_CHECK(is_floating(target.dtype()), "Expected floating point type for target with class probabilities, got ", scalar_type_name(target.dtype()));
    refuse("aten::cross_entropy_loss", "class probabilities", "no kernel yet");
  }
  TN_CHECK(label_smoothing >= 0 && label_smoothing <= 1, "label_smoothing must be between 0.0 and 1.0. Got: ", label_smoothing);
  if (label_smoothing > 0) refuse("aten::cross_entropy_loss", "label_smoothing", "no kernel yet");
  return at::nll_loss_nd(at::log_softmax(self, classes), target, weight, reduction, ignore_index);
}

}  // namespace tn::composite
