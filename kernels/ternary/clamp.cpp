#include <limits>

#include "generated/slots/ternary.h"
#include "kernels/common/scalars.h"
#include "runtime/copy.h"
#include "runtime/op_table.h"
#include "runtime/promote.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ternary/clamp.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/common/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

// Bounds lo and hi; NaN of the input stays, and hi wins where they cross.
const FloatBodies* Clamps() {
  static constexpr FloatBodies table[] = {BodiesWith<1>([](const Arg* p) {
    return [lo = p[0].number(), hi = p[1].number()](auto d, auto v) HWY_ATTR {
      const auto low = SetNumber(d, lo), high = SetNumber(d, hi);
      const auto raised = hn::IfThenElse(hn::Lt(v, low), low, v);
      return hn::IfThenElse(hn::Gt(raised, high), high, raised);
    };
  })};
  return table;
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(Clamps);
namespace {

const PointwiseSlot kClamp = {.row = [](const Row& row) {
  if (map_floats<1>(row, HWY_DYNAMIC_DISPATCH(Clamps)()[0])) return;
  visit_integral_and_bool(row.dtype, [&]<class T>() {
    const T lo = row.params[0].is_none() ? std::numeric_limits<T>::lowest() : row.params[0].scalar().to<T>();
    const T hi = row.params[1].is_none() ? std::numeric_limits<T>::max() : row.params[1].scalar().to<T>();
    map_scalars<T, T>(row, [lo, hi](T v) {
      const T raised = v < lo ? lo : v;
      return raised > hi ? hi : raised;
    });
  });
}};

Tensor clamp_impl(OpId id, const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max) {
  TN_CHECK(min || max, "torch.clamp: At least one of 'min' or 'max' must not be None");
  TN_CHECK_AS(NotImplemented, !self.is_complex(), "clamp is not supported for complex types");
  ResultType type;
  type.add(self);
  for (const std::optional<Scalar>* bound : {&min, &max})
    if (*bound) type.add(wrapped_scalar(**bound));
  const ScalarType dtype = type.get();
  const Tensor input = dtype == self.dtype() ? self : cast(self, dtype);
  // A NaN bound makes everything NaN, as upstream documents.
  const auto is_nan = [](const std::optional<Scalar>& s) {
    return s && s->is_floating() && s->to_double() != s->to_double();
  };
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Arg params[2];
  if (is_floating(dtype)) {
    params[0] = Arg::of(min ? min->to_double() : -kInf);
    params[1] = Arg::of(max ? max->to_double() : kInf);
  } else {
    params[0] = min ? Arg::of(*min) : Arg();
    params[1] = max ? Arg::of(*max) : Arg();
  }
  const Tensor* const inputs[] = {&input};
  Tensor out = pointwise({op_infos[id], kClamp, DTypeSet(0x88ff)}, inputs, params);
  if ((is_nan(min) || is_nan(max)) && !out.is_meta()) fill(out, Scalar(std::numeric_limits<double>::quiet_NaN()));
  return out;
}

}  // namespace

Tensor native::clamp(const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max) {
  return clamp_impl(kOp_clamp, self, min, max);
}
Tensor native::clamp_min(const Tensor& self, const Scalar& min) {
  return clamp_impl(kOp_clamp_min, self, min, std::nullopt);
}
Tensor native::clamp_max(const Tensor& self, const Scalar& max) {
  return clamp_impl(kOp_clamp_max, self, std::nullopt, max);
}

}  // namespace tn
#endif
