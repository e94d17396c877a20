// Logical functions: whatever is not zero is true, NaN too.
#include "generated/slots/compare.h"
#include "kernels/common/blocks.h"
#include "kernels/common/scalars.h"

namespace tn {
namespace {

template <class F>
constexpr PointwiseSlot logical(F) {
  return {.row =
              [](const Row& row) {
                const auto f = [](auto a, auto b) { return F{}(a != decltype(a){}, b != decltype(b){}); };
                if (map_floats<2>(row, plain_tests<2>(f))) return;
                if (visit_complex(row.dtype, [&]<class T>() { map_scalars<bool, T, T>(row, f); })) return;
                visit_integral_and_bool(row.dtype, [&]<class T>() { map_scalars<bool, T, T>(row, f); });
              },
          .promotion = Promotion::ToBool};
}

}  // namespace

const PointwiseSlot slots::logical_and = logical([](bool a, bool b) { return a && b; });
const PointwiseSlot slots::logical_or = logical([](bool a, bool b) { return a || b; });
const PointwiseSlot slots::logical_xor = logical([](bool a, bool b) { return a != b; });

}  // namespace tn
