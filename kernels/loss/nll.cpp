// Negative log likelihood: picks the target's class of each sample.
#include <cmath>
#include <memory>

#include "generated/slots/loss.h"
#include "kernels/loss/reduction.h"
#include "runtime/convert.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/threads.h"

namespace tn {
namespace {

using namespace loss;

// The input as [samples, classes, inner].
struct Layout {
  int64_t samples = 1, classes = 1, inner = 1;
};
Layout layout_of(const Tensor& self) {
  Layout l;
  l.classes = self->size(self.dim() == 1 ? 0 : 1);
  if (self.dim() > 1) l.samples = self->size(0);
  for (int64_t d = 2; d < self.dim(); ++d) l.inner *= self->size(d);
  return l;
}

void check_target(const Tensor& self, const Tensor& target, OptionalTensor weight) {
  TN_CHECK(self.dim() > 0 && self.dim() <= 2, "input tensor should be 1D or 2D");
  TN_CHECK(target.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported");
  TN_CHECK((self.dim() == 1 && target.dim() == 0) ||
               (target.dim() > 0 ? self->size(0) == target->size(0) : self->size(0) == 1 || self.dim() == 1),
           "size mismatch (got input: ", self.sizes(), ", target: ", target.sizes(), ")");
  const int64_t classes = layout_of(self).classes;
  TN_CHECK(!weight || (weight->dim() == 1 && weight->numel() == classes),
           "weight tensor should be defined either for all ", classes,
           " classes or no classes but got weight tensor of shape: ", weight->sizes());
}
void check_target_2d(const Tensor& self, const Tensor& target, OptionalTensor weight) {
  TN_CHECK(target.dim() == 3,
           "only batches of spatial targets supported (3D tensors) but got targets of dimension: ", target.dim());
  TN_CHECK(self.dim() == 4,
           "only batches of spatial inputs supported (4D tensors), but got input of dimension: ", self.dim());
  TN_CHECK(!weight || weight->numel() == self->size(1), "weight tensor should be defined either for all or no classes");
  TN_CHECK(self->size(0) == target->size(0) && self->size(2) == target->size(1) && self->size(3) == target->size(2),
           "size mismatch (got input: ", self.sizes(), " , target: ", target.sizes(), ")");
}

// Targets as int64; IndexError for a class that isn't there.
Tensor classes_of(const Tensor& target, const Layout& l, int64_t ignore_index) {
  TN_CHECK(target.dtype() == ScalarType::Long || target.dtype() == ScalarType::Byte,
           "expected target dtype to be Long or Byte, but got ", scalar_type_name(target.dtype()));
  const Tensor t = contiguous(cast(target, ScalarType::Long));
  for (int64_t i = 0; i < t.numel(); ++i) {
    const int64_t c = t.data<int64_t>()[i];
    TN_CHECK_AS(Index, c == ignore_index || (c >= 0 && c < l.classes), "Target ", c, " is out of bounds.");
  }
  return t;
}

void forward(Outputs& outs, const Tensor& self, const Tensor& target, OptionalTensor weight, int64_t reduction,
             int64_t ignore_index) {
  const Layout l = layout_of(self);
  const Tensor t = classes_of(target, l, ignore_index), x = contiguous(self),
               w = weight ? contiguous(cast(*weight, self.dtype())) : Tensor();
  const int64_t n = t.numel();
  visit_floating(self.dtype(), [&]<class S>() {
    const S* p = x.numel() ? x.data<S>() : nullptr;
    const S* factors = w.defined() ? w.data<S>() : nullptr;
    const int64_t* classes = n ? t.data<int64_t>() : nullptr;
    const bool each = reduction == kNone && outs[0].numel() == n && (outs[0].dim() > 0 || self.dim() == 1);
    const auto losses = std::make_unique<double[]>(static_cast<size_t>(n));
    double weights = 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t c = classes[i];
      losses[static_cast<size_t>(i)] = 0;
      if (c == ignore_index) continue;
      const double factor = factors ? convert<double>(factors[c]) : 1;
      weights += factor;
      losses[static_cast<size_t>(i)] =
          -convert<double>(p[(i / l.inner * l.classes + c) * l.inner + i % l.inner]) * factor;
    }
    if (each) {
      for (int64_t i = 0; i < n; ++i) outs[0].data<S>()[i] = convert<S>(losses[static_cast<size_t>(i)]);
      weights = 0;
    } else {
      double total = 0;
      for (int64_t i = 0; i < n; ++i) total += losses[static_cast<size_t>(i)];
      *outs[0].data<S>() = convert<S>(reduction == kMean ? total / weights : total);
    }
    *outs[1].data<S>() = convert<S>(weights);
  });
}

void backward(Outputs& outs, const Tensor& grad_output, const Tensor& self, const Tensor& target, OptionalTensor weight,
              int64_t reduction, int64_t ignore_index, const Tensor& total_weight) {
  const Layout l = layout_of(self);
  const Tensor t = classes_of(target, l, ignore_index), g = contiguous(grad_output),
               w = weight ? contiguous(cast(*weight, self.dtype())) : Tensor();
  zero(outs[0]);
  visit_floating(self.dtype(), [&]<class S>() {
    if (t.numel() == 0) return;
    S* to = outs[0].data<S>();
    const S* factors = w.defined() ? w.data<S>() : nullptr;
    const bool each = g.numel() == t.numel() && reduction == kNone;
    const double divisor = reduction == kMean ? item(total_weight).to_double() : 1;
    for (int64_t i = 0; i < t.numel(); ++i) {
      const int64_t c = t.data<int64_t>()[i];
      if (c == ignore_index) continue;
      const double up = convert<double>(g.data<S>()[each ? i : 0]);
      to[(i / l.inner * l.classes + c) * l.inner + i % l.inner] =
          convert<S>(-up * (factors ? convert<double>(factors[c]) : 1) / divisor);
    }
  });
}

}  // namespace

namespace slots {

void nll_loss_forward_meta(Outputs& outs, const Tensor& self, const Tensor& target, OptionalTensor weight,
                           int64_t reduction, int64_t) {
  check_target(self, target, weight);
  if (reduction == kNone && self.dim() == 2) outs.set(0, {self->size(0)}, self.dtype(), self.device());
  else outs.set(0, {}, self.dtype(), self.device());
  outs.set(1, {}, self.dtype(), self.device());
}
void nll_loss_forward_cpu(Outputs& outs, const Tensor& self, const Tensor& target, OptionalTensor weight,
                          int64_t reduction, int64_t ignore_index) {
  forward(outs, self, target, weight, reduction, ignore_index);
}
void nll_loss2d_forward_meta(Outputs& outs, const Tensor& self, const Tensor& target, OptionalTensor weight,
                             int64_t reduction, int64_t) {
  check_target_2d(self, target, weight);
  if (reduction == kNone) outs.set(0, target.sizes(), self.dtype(), self.device());
  else outs.set(0, {}, self.dtype(), self.device());
  outs.set(1, {}, self.dtype(), self.device());
}
void nll_loss2d_forward_cpu(Outputs& outs, const Tensor& self, const Tensor& target, OptionalTensor weight,
                            int64_t reduction, int64_t ignore_index) {
  forward(outs, self, target, weight, reduction, ignore_index);
}
void nll_loss_backward_meta(Outputs& outs, const Tensor&, const Tensor& self, const Tensor& target,
                            OptionalTensor weight, int64_t, int64_t, const Tensor&) {
  check_target(self, target, weight);
  outs.set(0, self.sizes(), self.dtype(), self.device());
}
void nll_loss_backward_cpu(Outputs& outs, const Tensor& grad_output, const Tensor& self, const Tensor& target,
                           OptionalTensor weight, int64_t reduction, int64_t ignore_index, const Tensor& total_weight) {
  backward(outs, grad_output, self, target, weight, reduction, ignore_index, total_weight);
}
void nll_loss2d_backward_meta(Outputs& outs, const Tensor&, const Tensor& self, const Tensor& target,
                              OptionalTensor weight, int64_t, int64_t, const Tensor&) {
  check_target_2d(self, target, weight);
  outs.set(0, self.sizes(), self.dtype(), self.device());
}
void nll_loss2d_backward_cpu(Outputs& outs, const Tensor& grad_output, const Tensor& self, const Tensor& target,
                             OptionalTensor weight, int64_t reduction, int64_t ignore_index,
                             const Tensor& total_weight) {
  backward(outs, grad_output, self, target, weight, reduction, ignore_index, total_weight);
}

}  // namespace slots
}  // namespace tn
