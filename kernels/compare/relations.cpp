#include "generated/slots/compare.h"
#include "kernels/common/scalars.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/compare/relations.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/common/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

// In RelationIndex's order. NaN compares unequal to everything.
const TestBodies* Relations() {
  static constexpr TestBodies table[] = {
      Tests<2>([](auto, auto a, auto b) HWY_ATTR { return hn::Eq(a, b); }),
      Tests<2>([](auto, auto a, auto b) HWY_ATTR { return hn::Not(hn::Eq(a, b)); }),
      Tests<2>([](auto, auto a, auto b) HWY_ATTR { return hn::Lt(a, b); }),
      Tests<2>([](auto, auto a, auto b) HWY_ATTR { return hn::Le(a, b); }),
      Tests<2>([](auto, auto a, auto b) HWY_ATTR { return hn::Gt(a, b); }),
      Tests<2>([](auto, auto a, auto b) HWY_ATTR { return hn::Ge(a, b); }),
  };
  return table;
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(Relations);
namespace {

enum RelationIndex { kEq, kNe, kLt, kLe, kGt, kGe };

template <RelationIndex kIndex, class F>
constexpr PointwiseSlot relation(F) {
  return {.row =
              [](const Row& row) {
                if (map_floats<2>(row, HWY_DYNAMIC_DISPATCH(Relations)()[kIndex])) return;
                if constexpr (kIndex == kEq || kIndex == kNe) {
                  if (visit_complex(row.dtype, [&]<class T>() { map_scalars<bool, T, T>(row, F{}); })) return;
                }
                visit_integral_and_bool(row.dtype, [&]<class T>() { map_scalars<bool, T, T>(row, F{}); });
              },
          .promotion = Promotion::ToBool};
}

}  // namespace

const PointwiseSlot slots::eq_Tensor = relation<kEq>([](auto a, auto b) { return a == b; });
const PointwiseSlot slots::ne_Tensor = relation<kNe>([](auto a, auto b) { return a != b; });
const PointwiseSlot slots::lt_Tensor = relation<kLt>([](auto a, auto b) { return a < b; });
const PointwiseSlot slots::le_Tensor = relation<kLe>([](auto a, auto b) { return a <= b; });
const PointwiseSlot slots::gt_Tensor = relation<kGt>([](auto a, auto b) { return a > b; });
const PointwiseSlot slots::ge_Tensor = relation<kGe>([](auto a, auto b) { return a >= b; });

}  // namespace tn
#endif
