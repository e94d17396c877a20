// Gradients of the losses of pairs.
#include <algorithm>
#include <cmath>

#include "generated/slots/loss.h"
#include "kernels/loss/reduction.h"

namespace tn {
namespace {

using namespace loss;

void set_gradient(Outputs& outs, const Tensor& grad, const Tensor& self, const Tensor& target) {
  outs.set(0, infer_size(infer_size(self.sizes(), target.sizes()), grad.sizes()), self.dtype(), self.device());
}
template <size_t N, class F>
void gradient(Outputs& outs, const std::array<const Tensor*, N>& given, F f) {
  const int64_t n = outs[0].numel();
  if (n == 0) return;
  std::array<Tensor, N> held;
  for (size_t k = 0; k < N; ++k) held[k] = spread_out(*given[k], outs[0].dtype(), outs[0].sizes());
  visit_floating(outs[0].dtype(), [&]<class S>() {
    std::array<const S*, N> in;
    for (size_t k = 0; k < N; ++k) in[k] = held[k].template data<S>();
    map(in, outs[0].data<S>(), n, f);
  });
}
double share(const Tensor& self, int64_t reduction) { return reduction == kMean ? 1.0 / static_cast<double>(self.numel()) : 1.0; }

}  // namespace

namespace slots {

void mse_loss_backward_meta(Outputs& outs, const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t) {
  set_gradient(outs, grad_output, self, target);
}
void mse_loss_backward_cpu(Outputs& outs, const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction) {
  const double norm = 2 * share(self, reduction);
  gradient<3>(outs, {&grad_output, &self, &target}, [norm](auto g, auto a, auto b) { return static_cast<decltype(g)>(norm) * (a - b) * g; });
}
void smooth_l1_loss_backward_meta(Outputs& outs, const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t, double) {
  set_gradient(outs, grad_output, self, target);
}
void smooth_l1_loss_backward_cpu(Outputs& outs, const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
  const double norm = share(self, reduction);
  gradient<3>(outs, {&grad_output, &self, &target}, [norm, beta](auto g, auto a, auto b) {
    using T = decltype(g);
    const T x = a - b, n = static_cast<T>(norm), edge = static_cast<T>(beta);
    return x <= -edge ? -n * g : x >= edge ? n * g : n * x * g / edge;
  });
}
void huber_loss_backward_meta(Outputs& outs, const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t, double) {
  set_gradient(outs, grad_output, self, target);
}
void huber_loss_backward_cpu(Outputs& outs, const Tensor& grad_output, const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
  const double norm = share(self, reduction);
  gradient<3>(outs, {&grad_output, &self, &target}, [norm, delta](auto g, auto a, auto b) {
    using T = decltype(g);
    const T x = a - b, n = static_cast<T>(norm), edge = static_cast<T>(delta);
    return x < -edge ? -n * g * edge : x > edge ? n * g * edge : n * x * g;
  });
}
void binary_cross_entropy_backward_meta(Outputs& outs, const Tensor& grad_output, const Tensor& self, const Tensor& target, OptionalTensor, int64_t) {
  set_gradient(outs, grad_output, self, target);
}
void binary_cross_entropy_backward_cpu(Outputs& outs, const Tensor& grad_output, const Tensor& self, const Tensor& target, OptionalTensor weight,
                                       int64_t reduction) {
  const double norm = share(self, reduction);
  const auto one = [norm](auto g, auto p, auto y) {
    using T = decltype(g);
    return g * (p - y) / std::max((T(1) - p) * p, T(1e-12)) * static_cast<T>(norm);
  };
  if (!weight) return gradient<3>(outs, {&grad_output, &self, &target}, one);
  gradient<4>(outs, {&grad_output, &self, &target, &*weight}, [&](auto g, auto p, auto y, auto w) { return one(g, p, y) * w; });
}

}  // namespace slots
}  // namespace tn
