// Bitwise functions of integers and bool.
#include "generated/slots/binary.h"
#include "kernels/common/scalars.h"

namespace tn {
namespace {

template <class F>
void bits_row(const Row& row) {
  visit_integral_and_bool(
      row.dtype, [&]<class T>() { map_scalars<T, T, T>(row, [](T a, T b) { return static_cast<T>(F{}(a, b)); }); });
}
struct And {
  int64_t operator()(int64_t a, int64_t b) const { return a & b; }
};
struct Or {
  int64_t operator()(int64_t a, int64_t b) const { return a | b; }
};
struct Xor {
  int64_t operator()(int64_t a, int64_t b) const { return a ^ b; }
};

}  // namespace

const PointwiseSlot slots::bitwise_and_Tensor = {.row = bits_row<And>};
const PointwiseSlot slots::bitwise_or_Tensor = {.row = bits_row<Or>};
const PointwiseSlot slots::bitwise_xor_Tensor = {.row = bits_row<Xor>};

}  // namespace tn
