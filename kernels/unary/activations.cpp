#include "generated/slots/unary.h"  // declares the slots, so that a wrong name or type stops the build
#include "kernels/common/scalars.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/unary/activations.cpp"
#include "hwy/foreach_target.h"     // IWYU pragma: keep
#include "kernels/common/map-inl.h"  // after foreach_target.h

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

struct ReluOp {
  // Compare and select: upstream keeps NaN, and Max may return either operand for NaN.
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V v) const {
    return hn::IfThenElse(hn::Lt(v, hn::Zero(d)), hn::Zero(d), v);
  }
};
void Relu32(const Block<float>& block) { MapBlock<1>(block, ReluOp()); }
void Relu64(const Block<double>& block) { MapBlock<1>(block, ReluOp()); }

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(Relu32);
HWY_EXPORT(Relu64);

const PointwiseSlot slots::relu = {.row = [](const Row& row) {
  if (map_floats<1>(row, HWY_DYNAMIC_DISPATCH(Relu32), HWY_DYNAMIC_DISPATCH(Relu64))) return;
  visit_integral(row.dtype, [&]<class T>() { map_scalars<T, T>(row, [](T v) { return v > T{0} ? v : T{0}; }); });
}};

}  // namespace tn
#endif
