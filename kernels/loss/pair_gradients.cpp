// Gradients of the losses of pairs.
#include "generated/slots/loss.h"
#include "kernels/loss/pair_rows.h"
#include "kernels/loss/reduction.h"

namespace tn {
namespace {

using namespace loss;

void set_gradient(Outputs& outs, const Tensor& grad, const Tensor& self, const Tensor& target) {
  outs.set(0, infer_size(infer_size(self.sizes(), target.sizes()), grad.sizes()), self.dtype(), self.device());
}
// A gradient of one element goes into the factor, without being spread out.
void gradient(Outputs& outs, PairOp op, const Tensor& grad, const Tensor& self, const Tensor& target, double scale,
              double p = 0, OptionalTensor weight = {}) {
  const int64_t n = outs[0].numel();
  if (n == 0) return;
  const ScalarType dtype = outs[0].dtype();
  const auto spread = [&](OptionalTensor t) { return t ? spread_out(*t, dtype, outs[0].sizes()) : Tensor(); };
  const bool one = grad.numel() == 1;
  const Tensor a = spread(self), b = spread(target), w = spread(weight), g = one ? Tensor() : spread(grad);
  if (one) scale *= item(grad).to_double();
  const auto size = static_cast<int64_t>(item_size(dtype));
  parallel_for(0, n, 8192, [&](int64_t begin, int64_t end) {
    const auto at = [&](const Tensor& t) -> const void* {
      return t.defined() ? static_cast<const char*>(t->raw_data()) + begin * size : nullptr;
    };
    run_pairs(op, dtype,
              {.a = at(a),
               .b = at(b),
               .weight = at(w),
               .grad = at(g),
               .out = static_cast<char*>(outs[0]->raw_data()) + begin * size,
               .n = end - begin,
               .p = p,
               .scale = scale});
  });
}
double share(const Tensor& self, int64_t reduction) {
  return reduction == kMean ? 1.0 / static_cast<double>(self.numel()) : 1.0;
}

}  // namespace

namespace slots {

void mse_loss_backward_meta(Outputs& outs, const Tensor& grad_output, const Tensor& self, const Tensor& target,
                            int64_t) {
  set_gradient(outs, grad_output, self, target);
}
void mse_loss_backward_cpu(Outputs& outs, const Tensor& grad_output, const Tensor& self, const Tensor& target,
                           int64_t reduction) {
  gradient(outs, PairOp::MseGradient, grad_output, self, target, 2 * share(self, reduction));
}
void smooth_l1_loss_backward_meta(Outputs& outs, const Tensor& grad_output, const Tensor& self, const Tensor& target,
                                  int64_t, double) {
  set_gradient(outs, grad_output, self, target);
}
void smooth_l1_loss_backward_cpu(Outputs& outs, const Tensor& grad_output, const Tensor& self, const Tensor& target,
                                 int64_t reduction, double beta) {
  gradient(outs, PairOp::SmoothL1Gradient, grad_output, self, target, share(self, reduction), beta);
}
void huber_loss_backward_meta(Outputs& outs, const Tensor& grad_output, const Tensor& self, const Tensor& target,
                              int64_t, double) {
  set_gradient(outs, grad_output, self, target);
}
void huber_loss_backward_cpu(Outputs& outs, const Tensor& grad_output, const Tensor& self, const Tensor& target,
                             int64_t reduction, double delta) {
  gradient(outs, PairOp::HuberGradient, grad_output, self, target, share(self, reduction), delta);
}
void binary_cross_entropy_backward_meta(Outputs& outs, const Tensor& grad_output, const Tensor& self,
                                        const Tensor& target, OptionalTensor, int64_t) {
  set_gradient(outs, grad_output, self, target);
}
void binary_cross_entropy_backward_cpu(Outputs& outs, const Tensor& grad_output, const Tensor& self,
                                       const Tensor& target, OptionalTensor weight, int64_t reduction) {
  gradient(outs, PairOp::BinaryCrossEntropyGradient, grad_output, self, target, share(self, reduction), 0, weight);
}
void soft_margin_loss_backward_meta(Outputs& outs, const Tensor& grad, const Tensor& self, const Tensor& target,
                                    int64_t) {
  set_gradient(outs, grad, self, target);
}
void soft_margin_loss_backward_cpu(Outputs& outs, const Tensor& grad_output, const Tensor& self, const Tensor& target,
                                   int64_t reduction) {
  gradient(outs, PairOp::SoftMarginGradient, grad_output, self, target, share(self, reduction));
}

}  // namespace slots
}  // namespace tn
