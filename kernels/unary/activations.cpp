// Activation functions. Errors: a few ULP from those of exp, tanh and erf (1 ULP each).
#include <algorithm>
#include <cmath>
#include <numbers>

#include "generated/slots/unary.h"  // declares the slots, so that a wrong name or type stops the build
#include "kernels/common/checks.h"
#include "kernels/common/scalars.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/unary/activations.cpp"
#include "hwy/foreach_target.h"      // IWYU pragma: keep
#include "kernels/common/map-inl.h"  // after foreach_target.h
#include "kernels/common/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

// max(v, 0) and min(v, 6) that keep NaN: Highway's may return either operand for it.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Clip06(D d, V v) {
  v = hn::IfThenElse(hn::Lt(v, hn::Zero(d)), hn::Zero(d), v);
  return hn::IfThenElse(hn::Gt(v, SetNumber(d, 6)), SetNumber(d, 6), v);
}

// In ActivationIndex's order.
const FloatBodies* Activations() {
  static constexpr FloatBodies table[] = {
      Bodies<1>([](auto d, auto v) HWY_ATTR { return hn::IfThenElse(hn::Lt(v, hn::Zero(d)), hn::Zero(d), v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR {
        const auto erf = math::Erf(d, hn::Mul(v, SetNumber(d, std::numbers::sqrt2 / 2)));
        return hn::Mul(hn::Mul(v, SetNumber(d, 0.5)), hn::Add(SetNumber(d, 1), erf));
      }),
      Bodies<1>([](auto d, auto v) HWY_ATTR {
        const auto cube = hn::Mul(hn::Mul(v, v), v);
        const auto inner = hn::Mul(SetNumber(d, std::numbers::sqrt2 * std::numbers::inv_sqrtpi),
                                   hn::Add(v, hn::Mul(SetNumber(d, 0.044715), cube)));
        return hn::Mul(hn::Mul(SetNumber(d, 0.5), v), hn::Add(SetNumber(d, 1), math::Tanh(d, inner)));
      }),
      BodiesWith<1>([](const Arg* params) {
        return [slope = params[0].number()](auto d, auto v)
                   HWY_ATTR { return hn::IfThenElse(hn::Gt(v, hn::Zero(d)), v, hn::Mul(v, SetNumber(d, slope))); };
      }),
      BodiesWith<1>([](const Arg* params) {
        const double alpha = params[0].number(), scale = params[1].number(), input_scale = params[2].number();
        return [=](auto d, auto v) HWY_ATTR {
          const auto negative =
              hn::Mul(math::Expm1(d, hn::Mul(v, SetNumber(d, input_scale))), SetNumber(d, alpha * scale));
          return hn::IfThenElse(hn::Lt(v, hn::Zero(d)), negative, hn::Mul(v, SetNumber(d, scale)));
        };
      }),
      BodiesWith<1>([](const Arg* params) {
        return [beta = params[0].number(), threshold = params[1].number()](auto d, auto v) HWY_ATTR {
          const auto x = hn::Mul(v, SetNumber(d, beta));
          const auto soft = hn::Div(math::Log1p(d, math::Exp(d, x)), SetNumber(d, beta));
          return hn::IfThenElse(hn::Gt(x, SetNumber(d, threshold)), v, soft);
        };
      }),
      Bodies<1>([](auto d, auto v)
                    HWY_ATTR { return hn::Div(hn::Mul(v, Clip06(d, hn::Add(v, SetNumber(d, 3)))), SetNumber(d, 6)); }),
      Bodies<1>([](auto d, auto v)
                    HWY_ATTR { return hn::Div(Clip06(d, hn::Add(v, SetNumber(d, 3))), SetNumber(d, 6)); }),
      BodiesWith<1>([](const Arg* params) {
        return [lambd = params[0].number()](auto d, auto v) HWY_ATTR {
          const auto inside = hn::And(hn::Ge(v, SetNumber(d, -lambd)), hn::Le(v, SetNumber(d, lambd)));
          return hn::IfThenZeroElse(inside, v);
        };
      }),
      BodiesWith<1>([](const Arg* params) {
        return [lambd = params[0].number()](auto d, auto v) HWY_ATTR {
          const auto l = SetNumber(d, lambd);
          const auto low = hn::IfThenElse(hn::Lt(v, hn::Neg(l)), hn::Add(v, l), hn::IfThenElseZero(hn::IsNaN(v), v));
          return hn::IfThenElse(hn::Gt(v, l), hn::Sub(v, l), low);
        };
      }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return hn::Mul(v, math::Tanh(d, math::Log1p(d, math::Exp(d, v)))); }),
      BodiesWith<1>([](const Arg* params) {
        return [threshold = params[0].number(), value = params[1].number()](auto d, auto v)
                   HWY_ATTR { return hn::IfThenElse(hn::Le(v, SetNumber(d, threshold)), SetNumber(d, value), v); };
      }),
  };
  return table;
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(Activations);
namespace {

enum ActivationIndex {
  kRelu,
  kGelu,
  kGeluTanh,
  kLeakyRelu,
  kElu,
  kSoftplus,
  kHardswish,
  kHardsigmoid,
  kHardshrink,
  kSoftshrink,
  kMish,
  kThreshold,
};

using checks::Inputs;

template <ActivationIndex kIndex>
bool floats(const Row& row) {
  return map_floats<1>(row, HWY_DYNAMIC_DISPATCH(Activations)()[kIndex]);
}
template <ActivationIndex kIndex>
constexpr PointwiseSlot slot(int8_t cost, void (*check)(Inputs, const Arg*) = nullptr) {
  return {.row = [](const Row& row) { floats<kIndex>(row); }, .cost = cost, .check = check};
}

}  // namespace

const PointwiseSlot slots::relu = {
    .row =
        [](const Row& row) {
          if (floats<kRelu>(row)) return;
          visit_integral(row.dtype,
                         [&]<class T>() { map_scalars<T, T>(row, [](T v) { return v > T{0} ? v : T{0}; }); });
        },
    .check =
        [](Inputs inputs, const Arg*) {
          TN_CHECK(inputs[0]->dtype() != ScalarType::Bool, "Boolean inputs not supported for relu");
        }};
const PointwiseSlot slots::gelu = {
    .row = [](const Row& row) { row.params[0].string() == "tanh" ? floats<kGeluTanh>(row) : floats<kGelu>(row); },
    .cost = 12,
    .check =
        [](Inputs, const Arg* params) {
          TN_CHECK(params[0].string() == "none" || params[0].string() == "tanh",
                   "approximate argument must be either none or tanh.");
        }};
const PointwiseSlot slots::leaky_relu = slot<kLeakyRelu>(1);
const PointwiseSlot slots::elu = slot<kElu>(8);
const PointwiseSlot slots::softplus = slot<kSoftplus>(12);
const PointwiseSlot slots::hardswish = slot<kHardswish>(2);
const PointwiseSlot slots::hardsigmoid = slot<kHardsigmoid>(2);
const PointwiseSlot slots::hardshrink = slot<kHardshrink>(1);
const PointwiseSlot slots::softshrink = slot<kSoftshrink>(1, [](Inputs, const Arg* params) {
  TN_CHECK(params[0].number() >= 0, "lambda must be greater or equal to 0, but found to be ", params[0].number(), ".");
});
const PointwiseSlot slots::mish = slot<kMish>(16);
const PointwiseSlot slots::threshold = {.row = [](const Row& row) {
  if (floats<kThreshold>(row)) return;
  visit_integral(row.dtype, [&]<class T>() {
    const T threshold = row.params[0].scalar().to<T>(), value = row.params[1].scalar().to<T>();
    map_scalars<T, T>(row, [=](T v) { return v <= threshold ? value : v; });
  });
}};

}  // namespace tn
#endif
