// Gradients of the activation functions. Where the function has a kink, the side that upstream takes.
#include <cmath>
#include <numbers>

#include "generated/slots/unary.h"
#include "kernels/common/checks.h"
#include "kernels/common/scalars.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/unary/backwards.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/common/map-inl.h"
#include "kernels/common/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

// In BackwardIndex's order. g is the gradient of the result, x the function's input (y: its result).
const FloatBodies* Backwards() {
  static constexpr FloatBodies table[] = {
      Bodies<2>([](auto d, auto g, auto y) HWY_ATTR { return hn::Mul(g, hn::NegMulAdd(y, y, SetNumber(d, 1))); }),
      Bodies<2>([](auto d, auto g, auto y) HWY_ATTR { return hn::Mul(hn::Mul(g, hn::Sub(SetNumber(d, 1), y)), y); }),
      Bodies<2>([](auto d, auto g, auto x) HWY_ATTR {
        const auto s = math::Sigmoid(d, x), one = SetNumber(d, 1);
        return hn::Mul(hn::Mul(g, s), hn::Add(one, hn::Mul(x, hn::Sub(one, s))));
      }),
      Bodies<2>([](auto d, auto g, auto x) HWY_ATTR {
        const auto erf = math::Erf(d, hn::Mul(x, SetNumber(d, std::numbers::sqrt2 / 2)));
        const auto cdf = hn::Mul(SetNumber(d, 0.5), hn::Add(SetNumber(d, 1), erf));
        const auto density = math::Exp(d, hn::Mul(hn::Mul(x, x), SetNumber(d, -0.5)));
        const auto slope = hn::Mul(density, SetNumber(d, std::numbers::inv_sqrtpi / std::numbers::sqrt2));
        return hn::Mul(g, hn::Add(cdf, hn::Mul(x, slope)));
      }),
      Bodies<2>([](auto d, auto g, auto x) HWY_ATTR {
        const auto one = SetNumber(d, 1), half = SetNumber(d, 0.5), cubic = SetNumber(d, 0.044715);
        const auto factor = SetNumber(d, std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
        const auto square = hn::Mul(x, x);
        const auto t = math::Tanh(d, hn::Mul(factor, hn::Add(x, hn::Mul(cubic, hn::Mul(square, x)))));
        const auto inner = hn::Mul(factor, hn::Add(one, hn::Mul(hn::Mul(SetNumber(d, 3), cubic), square)));
        const auto right = hn::Mul(hn::Mul(hn::Mul(half, x), hn::NegMulAdd(t, t, one)), inner);
        return hn::Mul(g, hn::Add(hn::Mul(half, hn::Add(one, t)), right));
      }),
      Bodies<2>([](auto d, auto g, auto x) HWY_ATTR {
        const auto s = math::Sigmoid(d, x), t = math::Tanh(d, math::Log1p(d, math::Exp(d, x)));
        return hn::Mul(g, hn::Add(t, hn::Mul(hn::Mul(x, s), hn::NegMulAdd(t, t, SetNumber(d, 1)))));
      }),
      BodiesWith<2>([](const Arg* params) {
        return [slope = params[0].number()](auto d, auto g, auto x)
                   HWY_ATTR { return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), g, hn::Mul(g, SetNumber(d, slope))); };
      }),
      BodiesWith<2>([](const Arg* params) {
        const double alpha = params[0].number(), scale = params[1].number(), input_scale = params[2].number();
        return [=](auto d, auto g, auto y) HWY_ATTR {
          const auto low = hn::Mul(hn::Mul(g, SetNumber(d, input_scale)), hn::Add(y, SetNumber(d, alpha * scale)));
          return hn::IfThenElse(hn::Gt(y, hn::Zero(d)), hn::Mul(g, SetNumber(d, scale)), low);
        };
      }),
      BodiesWith<2>([](const Arg* params) {
        const double alpha = params[0].number(), scale = params[1].number(), input_scale = params[2].number();
        return [=](auto d, auto g, auto x) HWY_ATTR {
          const auto power = math::Exp(d, hn::Mul(x, SetNumber(d, input_scale)));
          const auto low = hn::Mul(hn::Mul(hn::Mul(g, SetNumber(d, input_scale)), SetNumber(d, alpha * scale)), power);
          return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Mul(g, SetNumber(d, scale)), low);
        };
      }),
      BodiesWith<2>([](const Arg* params) {
        return [beta = params[0].number(), threshold = params[1].number()](auto d, auto g, auto x) HWY_ATTR {
          const auto scaled = hn::Mul(x, SetNumber(d, beta)), z = math::Exp(d, scaled);
          const auto soft = hn::Div(hn::Mul(g, z), hn::Add(z, SetNumber(d, 1)));
          return hn::IfThenElse(hn::Gt(scaled, SetNumber(d, threshold)), g, soft);
        };
      }),
      Bodies<2>([](auto d, auto g, auto x) HWY_ATTR {
        const auto three = SetNumber(d, 3);
        const auto middle = hn::Mul(g, hn::Add(hn::Div(x, three), SetNumber(d, 0.5)));
        return hn::IfThenElse(hn::Le(x, hn::Neg(three)), hn::Zero(d), hn::IfThenElse(hn::Ge(x, three), g, middle));
      }),
      Bodies<2>([](auto d, auto g, auto x) HWY_ATTR {
        const auto inside = hn::And(hn::Gt(x, SetNumber(d, -3)), hn::Lt(x, SetNumber(d, 3)));
        return hn::IfThenElseZero(inside, hn::Div(g, SetNumber(d, 6)));
      }),
      BodiesWith<2>([](const Arg* params) {
        return [low = params[0].number(), high = params[1].number()](auto d, auto g, auto x) HWY_ATTR {
          return hn::IfThenElseZero(hn::And(hn::Gt(x, SetNumber(d, low)), hn::Lt(x, SetNumber(d, high))), g);
        };
      }),
      BodiesWith<2>([](const Arg* params) {
        return [lambd = params[0].number()](auto d, auto g, auto x) HWY_ATTR {
          return hn::IfThenElseZero(hn::Or(hn::Lt(x, SetNumber(d, -lambd)), hn::Gt(x, SetNumber(d, lambd))), g);
        };
      }),
      BodiesWith<2>([](const Arg* params) {
        return [threshold = params[0].number()](auto d, auto g, auto x)
                   HWY_ATTR { return hn::IfThenZeroElse(hn::Le(x, SetNumber(d, threshold)), g); };
      }),
      BodiesWith<2>([](const Arg* params) {
        // Without eps the function is undefined outside [0, 1]; with it, constant.
        const bool clamped = !params[0].is_none() && params[0].number() >= 0;
        return [clamped, low = clamped ? params[0].number() : 0.0](auto d, auto g, auto x) HWY_ATTR {
          const auto one = SetNumber(d, 1), l = SetNumber(d, low), high = hn::Sub(one, l);
          const auto inside = hn::And(hn::Ge(x, l), hn::Le(x, high));
          const auto other = clamped ? hn::Zero(d) : SetNumber(d, std::nan(""));
          // At 0 and 1 the slope is infinite with the gradient's sign, also for -0.
          const auto slope = hn::Div(g, hn::Abs(hn::Mul(x, hn::Sub(one, x))));
          return hn::IfThenElse(inside, slope, other);
        };
      }),
      Bodies<2>([](auto d, auto x, auto weight)
                    HWY_ATTR { return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Mul(weight, x)); }),
      Bodies<2>([](auto d, auto g, auto x)
                    HWY_ATTR { return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Zero(d), hn::Mul(x, g)); }),
  };
  return table;
}

const FloatBodies* LogSigmoidParts() {
  static constexpr FloatBodies table[] = {
      Bodies<1>([](auto d, auto x) HWY_ATTR { return math::Exp(d, hn::Neg(hn::Abs(x))); }),
      // d/dx of min(0, x) - log1p(z), from z = exp(-|x|).
      Bodies<3>([](auto d, auto g, auto x, auto z) HWY_ATTR {
        const auto one = SetNumber(d, 1), negative = hn::Lt(x, hn::Zero(d));
        const auto step = hn::IfThenElseZero(negative, one), sign = hn::IfThenElse(negative, one, hn::Neg(one));
        return hn::Mul(g, hn::Sub(step, hn::Mul(sign, hn::Div(z, hn::Add(one, z)))));
      }),
      // Gradient, input and weight of prelu's input.
      Bodies<3>([](auto d, auto g, auto x, auto weight)
                    HWY_ATTR { return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), g, hn::Mul(weight, g)); }),
      Bodies<1>([](auto d, auto x) HWY_ATTR {
        const auto low = hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Zero(d), x);
        return hn::Sub(low, math::Log1p(d, math::Exp(d, hn::Neg(hn::Abs(x)))));
      }),
  };
  return table;
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/unary/parts.h"

namespace tn {
HWY_EXPORT(Backwards);
HWY_EXPORT(LogSigmoidParts);
namespace {

enum BackwardIndex {
  kTanhB,
  kSigmoidB,
  kSiluB,
  kGeluB,
  kGeluTanhB,
  kMishB,
  kLeakyReluB,
  kEluResultB,
  kEluB,
  kSoftplusB,
  kHardswishB,
  kHardsigmoidB,
  kHardtanhB,
  kShrinkB,
  kThresholdB,
  kLogitB,
  kPrelu,
  kPreluWeightB,
};

using checks::Inputs;

template <BackwardIndex kIndex>
bool floats(const Row& row) {
  return map_floats<2>(row, HWY_DYNAMIC_DISPATCH(Backwards)()[kIndex]);
}
template <BackwardIndex kIndex>
constexpr PointwiseSlot slot(int8_t cost, void (*check)(Inputs, const Arg*) = nullptr) {
  return {.row = [](const Row& row) { floats<kIndex>(row); }, .cost = cost, .check = check};
}
template <BackwardIndex kIndex, class C>
constexpr PointwiseSlot complex_slot(int8_t cost, C) {
  return {.row =
              [](const Row& row) {
                if (floats<kIndex>(row)) return;
                visit_complex(row.dtype,
                              [&]<class T>() { map_scalars<T, T, T>(row, [](T g, T x) { return C{}(g, x); }); });
              },
          .cost = cost};
}
template <int kIndex, int N>
constexpr PointwiseSlot part(int8_t cost) {
  return {.row = [](const Row& row) { map_floats<N>(row, HWY_DYNAMIC_DISPATCH(LogSigmoidParts)()[kIndex]); },
          .cost = cost};
}

}  // namespace

const PointwiseSlot slots::tanh_backward =
    complex_slot<kTanhB>(1, [](auto g, auto y) { return g * std::conj(decltype(y)(1) - y * y); });
const PointwiseSlot slots::sigmoid_backward =
    complex_slot<kSigmoidB>(1, [](auto g, auto y) { return g * std::conj((decltype(y)(1) - y) * y); });
const PointwiseSlot slots::silu_backward = complex_slot<kSiluB>(10, [](auto g, auto x) {
  const auto one = decltype(x)(1), s = one / (one + std::exp(-x));
  return g * (s * (one + x * (one - s)));  // without upstream's usual conjugate
});
const PointwiseSlot slots::gelu_backward = {
    .row = [](const Row& row) { row.params[0].string() == "tanh" ? floats<kGeluTanhB>(row) : floats<kGeluB>(row); },
    .cost = 16,
    .check =
        [](Inputs, const Arg* params) {
          TN_CHECK(params[0].string() == "none" || params[0].string() == "tanh",
                   "approximate argument must be either none or tanh.");
        }};
const PointwiseSlot slots::mish_backward = slot<kMishB>(16);
const PointwiseSlot slots::leaky_relu_backward = slot<kLeakyReluB>(1, [](Inputs, const Arg* params) {
  TN_CHECK(!params[1].b || params[0].number() >= 0.0,
           "In-place leakyReLu backward calculation is triggered with a negative slope which is not supported. This is "
           "caused by "
           "calling in-place forward function with a negative slope, please call out-of-place version instead. File an "
           "issue at "
           "https://github.com/pytorch/pytorch if you do require supporting in-place leakRelu backward calculation "
           "with negative slope");
});
const PointwiseSlot slots::elu_backward = {
    .row = [](const Row& row) { row.params[3].b ? floats<kEluResultB>(row) : floats<kEluB>(row); },
    .cost = 8,
    .check =
        [](Inputs, const Arg* params) {
          TN_CHECK(!params[3].b || params[0].number() >= 0.0,
                   "In-place elu backward calculation is triggered with a negative slope which is not supported. This "
                   "is caused by calling "
                   "in-place forward function with a negative slope, please call out-of-place version instead.");
        }};
const PointwiseSlot slots::softplus_backward = slot<kSoftplusB>(8);
const PointwiseSlot slots::hardswish_backward = slot<kHardswishB>(2);
const PointwiseSlot slots::hardsigmoid_backward = slot<kHardsigmoidB>(1);
const PointwiseSlot slots::hardtanh_backward = slot<kHardtanhB>(1);
const PointwiseSlot slots::hardshrink_backward = slot<kShrinkB>(1);
const PointwiseSlot slots::softshrink_backward = slot<kShrinkB>(1);
const PointwiseSlot slots::logit_backward = slot<kLogitB>(2);
const PointwiseSlot slots::threshold_backward = {.row = [](const Row& row) {
  if (floats<kThresholdB>(row)) return;
  visit_integral(row.dtype, [&]<class T>() {
    const T threshold = row.params[0].scalar().to<T>();
    map_scalars<T, T, T>(row, [threshold](T g, T x) { return x <= threshold ? T{0} : g; });
  });
}};
const PointwiseSlot slots::log_sigmoid_backward = part<1, 3>(2);
const PointwiseSlot slots::_prelu_kernel = slot<kPrelu>(1);

const PointwiseSlot parts::log_sigmoid_buffer = part<0, 1>(8);
const PointwiseSlot parts::log_sigmoid = part<3, 1>(16);
const PointwiseSlot parts::prelu_input_gradient = part<2, 3>(1);
const PointwiseSlot parts::prelu_weight_gradient = slot<kPreluWeightB>(1);

}  // namespace tn
#endif
