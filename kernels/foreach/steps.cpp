// The arithmetic of the fused optimiser steps, in vectors. The order of operations is that of upstream's
// single-tensor steps.
#include "kernels/foreach/steps.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/foreach/steps.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/common/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

using foreach::StepBodies;
using foreach::StepConstants;

// The gradient as the step wants it; stores the unscaled one first, as upstream does.
template <class D, class V, class Store>
HWY_INLINE V Gradient(D d, V grad, V param, const StepConstants& c, const Store& store) {
  if (c.scaled) {
    grad = hn::Div(grad, SetNumber(d, c.grad_scale));
    store(1, grad);
  }
  if (c.maximize) grad = hn::Neg(grad);
  if (c.weight_decay != 0) grad = hn::Add(grad, hn::Mul(param, SetNumber(d, c.weight_decay)));
  return grad;
}

// (1 - weight) * a + weight * b from the nearer end.
template <class D, class V>
HWY_INLINE V Toward(D d, V a, V b, double weight) {
  const V diff = hn::Sub(b, a);
  return weight < 0.5 ? hn::Add(a, hn::Mul(SetNumber(d, weight), diff))
                      : hn::Sub(b, hn::Mul(diff, SetNumber(d, 1 - weight)));
}

template <bool kMax>
struct Adam {
  static constexpr int kArrays = kMax ? 5 : 4;
  template <class D, class Load, class Store>
  HWY_INLINE bool operator()(D d, const StepConstants& c, const Load& load, const Store& store) const {
    auto param = load(0);
    const auto grad = Gradient(d, load(1), param, c, store);
    if (c.shrink != 1) param = hn::Mul(param, SetNumber(d, c.shrink));
    const auto mean = Toward(d, load(2), grad, 1 - c.beta1);
    auto square =
        hn::Add(hn::Mul(load(3), SetNumber(d, c.beta2)), hn::Mul(hn::Mul(grad, grad), SetNumber(d, 1 - c.beta2)));
    store(2, mean);
    store(3, square);
    if constexpr (kMax) {
      const auto before = load(4);
      // A NaN stays: neither compares true, and the new value is taken.
      square = hn::IfThenElse(hn::Gt(before, square), before, square);
      store(4, square);
    }
    const auto denominator = hn::Add(hn::Div(hn::Sqrt(square), SetNumber(d, c.root_correction)), SetNumber(d, c.eps));
    store(0, hn::Sub(param, hn::Div(hn::Mul(SetNumber(d, c.lr), mean), denominator)));
    return false;
  }
};

template <bool kMomentum>
struct Sgd {
  static constexpr int kArrays = kMomentum ? 3 : 2;
  template <class D, class Load, class Store>
  HWY_INLINE bool operator()(D d, const StepConstants& c, const Load& load, const Store& store) const {
    const auto param = load(0);
    auto grad = Gradient(d, load(1), param, c, store);
    if constexpr (kMomentum) {
      auto buffer = grad;
      if (!c.first) buffer = hn::Add(hn::Mul(load(2), SetNumber(d, c.beta1)), hn::Mul(grad, SetNumber(d, c.beta2)));
      store(2, buffer);
      grad = c.nesterov ? hn::Add(grad, hn::Mul(buffer, SetNumber(d, c.beta1))) : buffer;
    }
    store(0, hn::Sub(param, hn::Mul(grad, SetNumber(d, c.lr))));
    return false;
  }
};

struct Adagrad {
  static constexpr int kArrays = 3;
  template <class D, class Load, class Store>
  HWY_INLINE bool operator()(D d, const StepConstants& c, const Load& load, const Store& store) const {
    const auto param = load(0);
    const auto grad = Gradient(d, load(1), param, c, store);
    const auto sum = hn::Add(load(2), hn::Mul(grad, grad));
    store(2, sum);
    const auto denominator = hn::Add(hn::Sqrt(sum), SetNumber(d, c.eps));
    store(0, hn::Sub(param, hn::Div(hn::Mul(SetNumber(d, c.lr), grad), denominator)));
    return false;
  }
};

// Array 0 is a gradient; `lr` the number to multiply it by.
struct Unscale {
  static constexpr int kArrays = 1;
  template <class D, class Load, class Store>
  HWY_INLINE bool operator()(D d, const StepConstants& c, const Load& load, const Store& store) const {
    const auto grad = load(0);
    if (c.lr != 1) store(0, hn::Mul(grad, SetNumber(d, c.lr)));
    // x - x is 0 for every finite x, else NaN.
    const auto rest = hn::Sub(grad, grad);
    return !hn::AllTrue(d, hn::Eq(rest, rest));
  }
};

template <class T, class Op>
bool RunStep(T* const* arrays, size_t n, const StepConstants& c) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  const Op op{};
  bool found = false;
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    found |= op(
        d, c, [&](int k) HWY_ATTR { return hn::LoadU(d, arrays[k] + i); },
        [&](int k, auto v) HWY_ATTR { hn::StoreU(v, d, arrays[k] + i); });
  }
  if (i < n) {
    const size_t rest = n - i;
    found |= op(
        d, c, [&](int k) HWY_ATTR { return LoadUpTo(d, arrays[k] + i, rest); },
        [&](int k, auto v) HWY_ATTR { StoreUpTo(v, d, arrays[k] + i, rest); });
  }
  return found;
}
template <class Op>
constexpr StepBodies Step() {
  return {&RunStep<float, Op>, &RunStep<double, Op>, Op::kArrays};
}

// In StepIndex's order.
const StepBodies* Steps() {
  static constexpr StepBodies table[] = {Step<Adam<false>>(), Step<Adam<true>>(), Step<Sgd<false>>(),
                                         Step<Sgd<true>>(),   Step<Adagrad>(),    Step<Unscale>()};
  return table;
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(Steps);

const foreach::StepBodies& foreach::step_bodies(StepIndex index) { return HWY_DYNAMIC_DISPATCH(Steps)()[index]; }

}  // namespace tn
#endif
