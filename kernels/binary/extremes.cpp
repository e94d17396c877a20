#include "generated/slots/binary.h"
#include "kernels/common/checks.h"
#include "kernels/common/scalars.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/binary/extremes.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/common/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

// A NaN on either side is the result; compare and select, since Highway's Max may give either operand
// for NaN. Its Ne(a, a) is no test for NaN: it is ordered on some targets.
const FloatBodies* Extremes() {
  static constexpr FloatBodies table[] = {
      Bodies<2>([](auto, auto a, auto b) HWY_ATTR { return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b); }),
      Bodies<2>([](auto, auto a, auto b) HWY_ATTR { return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b); }),
  };
  return table;
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(Extremes);
namespace {

template <int kIndex, class F>
constexpr PointwiseSlot extreme(F, void (*check)(checks::Inputs, const Arg*)) {
  return {.row =
              [](const Row& row) {
                if (map_floats<2>(row, HWY_DYNAMIC_DISPATCH(Extremes)()[kIndex])) return;
                visit_integral_and_bool(row.dtype, [&]<class T>() {
                  map_scalars<T, T, T>(row, [](T a, T b) { return F{}(a, b) ? a : b; });
                });
              },
          .check = check};
}

}  // namespace

const PointwiseSlot slots::maximum =
    extreme<0>([](auto a, auto b) { return a > b; },
               [](checks::Inputs inputs, const Arg*) {
                 TN_CHECK(!checks::any_complex(inputs), "maximum not implemented for complex tensors.");
               });
const PointwiseSlot slots::minimum =
    extreme<1>([](auto a, auto b) { return a < b; },
               [](checks::Inputs inputs, const Arg*) {
                 TN_CHECK(!checks::any_complex(inputs), "minimum not implemented for complex tensors.");
               });

}  // namespace tn
#endif
