#include "kernels/autograd/losses.h"

namespace tn::autograd {
namespace {

constexpr int64_t kNone = 0, kMean = 1;
// Keeps the quotients of probabilities finite, as upstream's.
constexpr double kEps = 1e-12;

Tensor weighed(const Tensor& t, const Tensor& weight) { return weight.defined() ? t * weight : t; }
Tensor shared(const Tensor& t, int64_t n, int64_t reduction) { return reduction == kMean ? t / Scalar(n) : t; }
// A gradient of the reduced loss gathers what its elements give.
Tensor gathered(const Tensor& t, int64_t n, int64_t reduction) {
  return reduction == kNone ? t : shared(t.sum(), n, reduction);
}
Tensor rest(const Tensor& p) { return Scalar(1) - p; }

}  // namespace

Tensor binary_cross_entropy_with_logits_backward(const Tensor& grad, const Tensor& input, const Tensor& target,
                                                 const Tensor& weight, const Tensor& pos_weight, int64_t reduction) {
  Tensor slope;
  if (pos_weight.defined()) {
    const Tensor t = pos_weight * target;
    slope = (t + Scalar(1) - target) * input.sigmoid() - t;
  } else {
    slope = input.sigmoid() - target;
  }
  return shared(weighed(slope * grad, weight), input.numel(), reduction);
}

Tensor binary_cross_entropy_with_logits_target_backward(const Tensor& grad, const Tensor& input, const Tensor& target,
                                                        const Tensor& weight, const Tensor& pos_weight,
                                                        int64_t reduction) {
  const Tensor slope = pos_weight.defined()
                           ? Tensor(at::log_sigmoid(-input) - at::log_sigmoid(input) * pos_weight) * grad
                           : -input * grad;
  return shared(weighed(slope, weight), target.numel(), reduction);
}

Tensor binary_cross_entropy_double_backward(const Tensor& grad_output, const Tensor& grad, const Tensor& input,
                                            const Tensor& target, const Tensor& weight, int64_t reduction) {
  const Tensor high = input + Scalar(kEps), low = rest(input) + Scalar(kEps);
  const Tensor curve = (input * input - input * target * Scalar(2) + target) / (high * high * low * low);
  return shared(weighed(curve * grad * grad_output, weight), input.numel(), reduction);
}
Tensor binary_cross_entropy_double_backward_target(const Tensor& grad, const Tensor& grad_output, const Tensor& input,
                                                   const Tensor& target, const Tensor& weight, int64_t reduction) {
  const Tensor high = input + Scalar(kEps), low = rest(input) + Scalar(kEps);
  return shared(weighed(-(grad * grad_output) / (high * low), weight), target.numel(), reduction);
}
Tensor binary_cross_entropy_double_backward_grad_output(const Tensor& grad, const Tensor& input, const Tensor& target,
                                                        const Tensor& weight, int64_t reduction) {
  const Tensor slope = (input - target) / ((input + Scalar(kEps)) * (rest(input) + Scalar(kEps)));
  return gathered(weighed(slope * grad, weight), input.numel(), reduction);
}

Tensor huber_loss_double_backward_grad_output(const Tensor& grad, const Tensor& grad_output, const Tensor& input,
                                              const Tensor& target, int64_t reduction, double delta) {
  if (reduction == kNone) return at::huber_loss_backward(grad, input, target, reduction, delta);
  return (at::huber_loss_backward(at::ones_like(grad_output), input, target, reduction, delta) * grad).sum();
}

Tensor soft_margin_loss_double_backward(const Tensor& grad, const Tensor& input, const Tensor& target,
                                        int64_t reduction) {
  const Tensor z = (-input * target).exp(), zp1 = z + Scalar(1);
  return shared(grad * (target * target) * (z / (zp1 * zp1)), input.numel(), reduction);
}
Tensor soft_margin_loss_double_backward_grad_output(const Tensor& grad, const Tensor& grad_output, const Tensor& input,
                                                    const Tensor& target, int64_t reduction) {
  if (reduction == kNone) return at::soft_margin_loss_backward(grad, input, target, reduction);
  return (at::soft_margin_loss_backward(at::ones_like(grad_output), input, target, reduction) * grad).sum();
}

}  // namespace tn::autograd
