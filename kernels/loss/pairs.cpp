// Losses of pairs of elements, reduced or not.
#include <algorithm>
#include <cmath>

#include "generated/slots/loss.h"
#include "kernels/loss/reduction.h"
#include "runtime/error.h"
#include "runtime/promote.h"
#include "runtime/refuse.h"

namespace tn {
namespace {

using namespace loss;

void set_pair(Outputs& outs, const Tensor& self, const Tensor& target, int64_t reduction) {
  const ScalarType dtype = result_type(self, target);
  if (!is_floating(dtype) || is_float8(dtype)) refuse_dtype(outs.op(), dtype);
  const DimVector sizes = infer_size(self.sizes(), target.sizes());
  if (reduction == kNone) outs.set(0, sizes, dtype, self.device());
  else outs.set(0, {}, dtype, self.device());
}
// f is generic in the type that it computes in.
template <size_t N, class F>
void reduce_pairs(Outputs& outs, const std::array<const Tensor*, N>& given, IntView sizes, int64_t reduction, F f) {
  const ScalarType dtype = outs[0].dtype();
  std::array<Tensor, N> held;
  for (size_t k = 0; k < N; ++k) held[k] = spread_out(*given[k], dtype, sizes);
  const int64_t n = held[0].numel();
  visit_floating(dtype, [&]<class S>() {
    std::array<const S*, N> in;
    for (size_t k = 0; k < N; ++k) in[k] = n ? held[k].template data<S>() : nullptr;
    if (reduction == kNone) {
      if (n) map(in, outs[0].data<S>(), n, f);
      return;
    }
    const double sum = total(in, n, f);
    *outs[0].data<S>() = convert<S>(reduction == kMean ? sum / static_cast<double>(n) : sum);
  });
}
template <class F>
void pair_loss(Outputs& outs, const Tensor& self, const Tensor& target, int64_t reduction, F f) {
  reduce_pairs<2>(outs, {&self, &target}, infer_size(self.sizes(), target.sizes()), reduction, f);
}

}  // namespace

namespace slots {

void mse_loss_meta(Outputs& outs, const Tensor& self, const Tensor& target, int64_t reduction) { set_pair(outs, self, target, reduction); }
void mse_loss_cpu(Outputs& outs, const Tensor& self, const Tensor& target, int64_t reduction) {
  pair_loss(outs, self, target, reduction, [](auto a, auto b) { return (a - b) * (a - b); });
}
void smooth_l1_loss_meta(Outputs& outs, const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
  TN_CHECK(beta >= 0, "smooth_l1_loss does not support negative values for beta.");
  set_pair(outs, self, target, reduction);
}
void smooth_l1_loss_cpu(Outputs& outs, const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
  pair_loss(outs, self, target, reduction, [beta](auto a, auto b) {
    using T = decltype(a);
    const T z = std::abs(a - b), edge = static_cast<T>(beta);
    return z < edge ? T(0.5) * z * z / edge : z - T(0.5) * edge;
  });
}
void huber_loss_meta(Outputs& outs, const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
  TN_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
  set_pair(outs, self, target, reduction);
}
void huber_loss_cpu(Outputs& outs, const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
  pair_loss(outs, self, target, reduction, [delta](auto a, auto b) {
    using T = decltype(a);
    const T z = std::abs(a - b), edge = static_cast<T>(delta);
    return z <= edge ? T(0.5) * z * z : edge * (z - T(0.5) * edge);
  });
}

void binary_cross_entropy_meta(Outputs& outs, const Tensor& self, const Tensor&, OptionalTensor, int64_t reduction) {
  if (reduction == kNone) outs.set(0, self.sizes(), self.dtype(), self.device());
  else outs.set(0, {}, self.dtype(), self.device());
}
void binary_cross_entropy_cpu(Outputs& outs, const Tensor& self, const Tensor& target, OptionalTensor weight, int64_t reduction) {
  const auto one = [](auto p, auto y) {
    using T = decltype(p);
    TN_CHECK(p >= 0 && p <= 1, "all elements of input should be between 0 and 1");
    return (y - 1) * std::max(std::log1p(-p), T(-100)) - y * std::max(std::log(p), T(-100));
  };
  if (!weight) return reduce_pairs<2>(outs, {&self, &target}, self.sizes(), reduction, one);
  reduce_pairs<3>(outs, {&self, &target, &*weight}, self.sizes(), reduction, [&](auto p, auto y, auto w) { return one(p, y) * w; });
}

}  // namespace slots
}  // namespace tn
