// Functions of two integers.
#include <numeric>

#include "generated/slots/binary.h"
#include "kernels/common/scalars.h"

namespace tn {
namespace {

template <class F>
constexpr PointwiseSlot slot(int8_t cost, F) {
  return {.row =
              [](const Row& row) {
                visit_integral(row.dtype,
                               [&]<class T>() { map_scalars<T, T, T>(row, [](T a, T b) { return F{}(a, b); }); });
              },
          .cost = cost};
}

// Wraps around for the most negative number, which has no absolute value of its own.
template <class T>
std::make_unsigned_t<T> magnitude(T v) {
  using U = std::make_unsigned_t<T>;
  return v < 0 ? static_cast<U>(U{0} - static_cast<U>(v)) : static_cast<U>(v);
}
template <class T>
T greatest_divisor(T a, T b) {
  return static_cast<T>(std::gcd(magnitude(a), magnitude(b)));
}

// Distances outside the type's bits shift everything out.
template <class T>
bool outside(T distance) {
  return distance < 0 || static_cast<uint64_t>(distance) >= sizeof(T) * 8;
}

}  // namespace

const PointwiseSlot slots::gcd = slot(16, [](auto a, auto b) { return greatest_divisor(a, b); });
const PointwiseSlot slots::lcm = slot(16, [](auto a, auto b) {
  using T = decltype(a);
  using U = std::make_unsigned_t<T>;
  const T divisor = greatest_divisor(a, b);
  if (divisor == 0) return T{0};
  const auto product = static_cast<T>(static_cast<U>(static_cast<U>(a / divisor) * static_cast<U>(b)));
  return static_cast<T>(magnitude(product));
});
const PointwiseSlot slots::bitwise_left_shift_Tensor = slot(1, [](auto a, auto b) {
  using T = decltype(a);
  return outside(b) ? T{0} : static_cast<T>(static_cast<uint64_t>(a) << b);
});
const PointwiseSlot slots::bitwise_right_shift_Tensor = slot(1, [](auto a, auto b) {
  using T = decltype(a);
  return outside(b) ? static_cast<T>(a < 0 ? -1 : 0) : static_cast<T>(a >> b);
});

}  // namespace tn
