// self + value * a * b and its kin, and linear interpolation.
#include "generated/slots/ternary.h"
#include "kernels/common/scalars.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ternary/fused.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/common/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

// Weights below a half start from `a`, others come back from `b`: both ends are then exact.
template <class D, class V>
HWY_INLINE V Lerp(D d, V a, V b, V w) {
  const auto diff = hn::Sub(b, a);
  const auto from_a = hn::Add(a, hn::Mul(w, diff));
  const auto from_b = hn::Sub(b, hn::Mul(diff, hn::Sub(SetNumber(d, 1), w)));
  return hn::IfThenElse(hn::Lt(hn::Abs(w), SetNumber(d, 0.5)), from_a, from_b);
}

// In FusedIndex's order.
const FloatBodies* Fused() {
  static constexpr FloatBodies table[] = {
      BodiesWith<3>([](const Arg* p) {
        return [value = p[0].number()](auto d, auto self, auto a, auto b)
                   HWY_ATTR { return hn::MulAdd(hn::Mul(SetNumber(d, value), a), b, self); };
      }),
      BodiesWith<3>([](const Arg* p) {
        return [value = p[0].number()](auto d, auto self, auto a, auto b)
                   HWY_ATTR { return hn::Add(self, hn::Div(hn::Mul(SetNumber(d, value), a), b)); };
      }),
      BodiesWith<2>([](const Arg* p) {
        return [w = p[0].number()](auto d, auto a, auto b) HWY_ATTR { return Lerp(d, a, b, SetNumber(d, w)); };
      }),
      Bodies<3>([](auto d, auto a, auto b, auto w) HWY_ATTR { return Lerp(d, a, b, w); }),
  };
  return table;
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(Fused);
namespace {

enum FusedIndex { kAddcmul, kAddcdiv, kLerpNumber, kLerpTensor };

template <class T>
T lerp(T a, T b, T w) {
  return std::abs(w) < 0.5 ? a + w * (b - a) : b - (b - a) * (T(1) - w);
}

}  // namespace

const PointwiseSlot slots::addcmul = {.row = [](const Row& row) {
  if (map_floats<3>(row, HWY_DYNAMIC_DISPATCH(Fused)()[kAddcmul])) return;
  const Scalar value = row.params[0].scalar();
  const auto run = [&]<class T>() {
    const T v = value.to<T>();
    map_scalars<T, T, T, T>(row, [v](T self, T a, T b) { return static_cast<T>(self + v * a * b); });
  };
  if (!visit_complex(row.dtype, run)) visit_integral(row.dtype, run);
}};

const PointwiseSlot slots::addcdiv = {
    .row =
        [](const Row& row) {
          if (map_floats<3>(row, HWY_DYNAMIC_DISPATCH(Fused)()[kAddcdiv])) return;
          const Scalar value = row.params[0].scalar();
          visit_complex(row.dtype, [&]<class T>() {
            const T v = value.to<T>();
            map_scalars<T, T, T, T>(row, [v](T self, T a, T b) { return self + v * a / b; });
          });
        },
    .check =
        [](std::span<const Tensor* const> inputs, const Arg*) {
          TN_CHECK(!is_integral(inputs[1]->dtype(), true) || !is_integral(inputs[2]->dtype(), true),
                   "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will "
                   "perform a true division of "
                   "tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * "
                   "torch.trunc(tensor1 / tensor2)).to"
                   "(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for float inputs. The "
                   "future addcdiv behavior "
                   "is just the latter implementation: (input + value * tensor1 / tensor2), for all dtypes.");
        }};

const PointwiseSlot slots::lerp_Scalar = {.row = [](const Row& row) {
  if (map_floats<2>(row, HWY_DYNAMIC_DISPATCH(Fused)()[kLerpNumber])) return;
  const Scalar weight = row.params[0].scalar();
  visit_complex(row.dtype, [&]<class T>() {
    const T w = weight.to<T>();
    map_scalars<T, T, T>(row, [w](T a, T b) { return lerp(a, b, w); });
  });
}};
const PointwiseSlot slots::lerp_Tensor = {.row = [](const Row& row) {
  if (map_floats<3>(row, HWY_DYNAMIC_DISPATCH(Fused)()[kLerpTensor])) return;
  visit_complex(row.dtype,
                [&]<class T>() { map_scalars<T, T, T, T>(row, [](T a, T b, T w) { return lerp(a, b, w); }); });
}};

}  // namespace tn
#endif
