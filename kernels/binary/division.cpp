// Division with rounding and its remainders: Python's rules for floor, C's for trunc.
#include <cmath>
#include <limits>

#include "generated/ops/div.h"
#include "generated/slots/binary.h"
#include "kernels/common/blocks.h"
#include "kernels/common/scalars.h"
#include "runtime/op_table.h"

namespace tn {
namespace {

constexpr DTypeSet kReal(0x80ff);  // the claims' `real`

template <class T>
void check_divisor(T b) {
  TN_CHECK(b != T{0}, "ZeroDivisionError");
}

// The smallest integer has no positive counterpart: dividing it by -1 wraps, without the hardware's trap.
template <class T>
constexpr bool overflows(T a, T b) {
  if constexpr (std::is_signed_v<T>) return a == std::numeric_limits<T>::min() && b == T{-1};
  return false;
}

struct FloorDivide {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (b == 0) return a / b;
      // The quotient of the exact remainder, corrected where rounding to nearest went past the floor.
      const T mod = std::fmod(a, b);
      T div = (a - mod) / b;
      if (mod != 0 && (b < 0) != (mod < 0)) div -= T{1};
      if (div == 0) return std::copysign(T{0}, a / b);
      const T floored = std::floor(div);
      return div - floored > T{0.5} ? floored + T{1} : floored;
    } else {
      check_divisor(b);
      if (overflows(a, b)) return a;
      const T quotient = static_cast<T>(a / b);
      return static_cast<T>(a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient);
    }
  }
};
struct TruncDivide {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) return std::trunc(a / b);
    else {
      check_divisor(b);
      return overflows(a, b) ? a : static_cast<T>(a / b);
    }
  }
};
struct Remainder {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      const T mod = std::fmod(a, b);
      return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod;
    } else {
      check_divisor(b);
      if (overflows(a, b)) return T{0};
      const T mod = static_cast<T>(a % b);
      return static_cast<T>(mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod);
    }
  }
};
struct Fmod {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) return std::fmod(a, b);
    else {
      check_divisor(b);
      return overflows(a, b) ? T{0} : static_cast<T>(a % b);
    }
  }
};

template <class F>
void divide_row(const Row& row) {
  if (map_floats<2>(row, plain_bodies<2>(F{}))) return;
  visit_integral(row.dtype, [&]<class T>() { map_scalars<T, T, T>(row, F{}); });
}

const PointwiseSlot kFloorDivide = {.row = divide_row<FloorDivide>, .cost = 8};
const PointwiseSlot kTruncDivide = {.row = divide_row<TruncDivide>, .cost = 4};

}  // namespace

Tensor native::div_Tensor_mode(const Tensor& self, const Tensor& other, std::optional<std::string_view> rounding_mode) {
  if (!rounding_mode) return at::div(self, other);
  const bool floor = *rounding_mode == "floor";
  TN_CHECK(floor || *rounding_mode == "trunc",
           "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", *rounding_mode, "'");
  const Tensor* const inputs[] = {&self, &other};
  const Arg params[] = {Arg()};
  return pointwise({op_infos[kOp_div_Tensor_mode], floor ? kFloorDivide : kTruncDivide, kReal}, inputs, params);
}

Tensor native::floor_divide(const Tensor& self, const Tensor& other) {
  const Tensor* const inputs[] = {&self, &other};
  const Arg params[] = {Arg()};
  return pointwise({op_infos[kOp_floor_divide], kFloorDivide, kReal}, inputs, params);
}

const PointwiseSlot slots::remainder_Tensor = {.row = divide_row<Remainder>, .cost = 8};
const PointwiseSlot slots::fmod_Tensor = {.row = divide_row<Fmod>, .cost = 8};

}  // namespace tn
