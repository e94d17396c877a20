// Powers. An exponent that is one number for the whole row takes the cheap, exact forms of upstream: squares, roots,
// inverses.
#include <cmath>

#include "generated/ops/pow.h"
#include "generated/slots/binary.h"
#include "kernels/common/scalars.h"
#include "runtime/copy.h"
#include "runtime/op_table.h"
#include "runtime/promote.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/binary/power.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/common/map-inl.h"
#include "kernels/common/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

// In PowerIndex's order; all but the first read the base only.
const FloatBodies* Powers() {
  static constexpr FloatBodies table[] = {
      Bodies<2>([](auto d, auto a, auto b) HWY_ATTR { return math::Pow(d, a, b); }),
      Bodies<1>([](auto, auto a) HWY_ATTR { return hn::Mul(a, a); }),
      Bodies<1>([](auto, auto a) HWY_ATTR { return hn::Mul(hn::Mul(a, a), a); }),
      Bodies<1>([](auto, auto a) HWY_ATTR { return hn::Sqrt(a); }),
      Bodies<1>([](auto d, auto a) HWY_ATTR { return hn::Div(SetNumber(d, 1), a); }),
      Bodies<1>([](auto d, auto a) HWY_ATTR { return hn::Div(SetNumber(d, 1), hn::Mul(a, a)); }),
      Bodies<1>([](auto d, auto a) HWY_ATTR { return hn::Div(SetNumber(d, 1), hn::Sqrt(a)); }),
  };
  return table;
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(Powers);
namespace {

enum PowerIndex { kPow, kSquare, kCube, kRoot, kInverse, kInverseSquare, kInverseRoot };

// By squaring, wrapping around; a negative exponent gives what integer division of 1 would.
template <class T>
T integer_power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) return base == T{1} ? T{1} : base == T{-1} ? static_cast<T>(exponent & 1 ? -1 : 1) : T{0};
  }
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (auto e = static_cast<uint64_t>(exponent); e != 0; e >>= 1) {
    if (e & 1) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}

// The body for an exponent that is the same for the whole row, or kPow.
PowerIndex special(double exponent) {
  return exponent == 2      ? kSquare
         : exponent == 3    ? kCube
         : exponent == 0.5  ? kRoot
         : exponent == -1   ? kInverse
         : exponent == -2   ? kInverseSquare
         : exponent == -0.5 ? kInverseRoot
                            : kPow;
}

double first_exponent(const Row& row) {
  double value = 0;
  convert_row(row.dtype, row.data[2], 0, ScalarType::Double, reinterpret_cast<char*>(&value), 0, 1);
  return value;
}

void pow_row(const Row& row) {
  const FloatBodies* const bodies = HWY_DYNAMIC_DISPATCH(Powers)();
  const bool floats = is_floating(row.dtype);
  const PowerIndex index = floats && row.strides[2] == 0 ? special(first_exponent(row)) : kPow;
  if (index != kPow) {
    map_floats<1>(row, bodies[index]);
    return;
  }
  if (map_floats<2>(row, bodies[kPow])) return;
  if (visit_complex(row.dtype, [&]<class T>() { map_scalars<T, T, T>(row, [](T a, T b) { return std::pow(a, b); }); }))
    return;
  visit_integral(row.dtype,
                 [&]<class T>() { map_scalars<T, T, T>(row, [](T a, T b) { return integer_power(a, b); }); });
}

Tensor filled_like(const Tensor& self, ScalarType dtype, const Scalar& value) {
  Tensor out = empty(self.sizes(), dtype, self.device());
  if (!out.is_meta()) fill(out, value);
  return out;
}

}  // namespace

const PointwiseSlot slots::pow_Tensor_Tensor = {.row = pow_row, .cost = 16};

Tensor native::pow_Tensor_Scalar(const Tensor& self, const Scalar& exponent) {
  TN_CHECK(!(is_integral(self.dtype(), true) && exponent.is_integral(true) && exponent.to_int64() < 0 &&
             !exponent.is_bool()),
           "Integers to negative integer powers are not allowed.");
  const Tensor number = wrapped_scalar(exponent);
  if (exponent.equal(Scalar(0.0)) || exponent.equal(Scalar(1.0))) {
    const ScalarType dtype = result_type(self, number);
    if (!exponent.equal(Scalar(1.0))) return filled_like(self, dtype, Scalar(1));
    return cast(self, dtype, /*force=*/true);
  }
  const Tensor* const inputs[] = {&self, &number};
  const Arg params[] = {Arg()};
  return pointwise({op_infos[kOp_pow_Tensor_Scalar], slots::pow_Tensor_Tensor, DTypeSet(0x86ff)}, inputs, params);
}

Tensor native::pow_Scalar(const Scalar& self, const Tensor& exponent) {
  const Tensor number = wrapped_scalar(self);
  if (self.equal(Scalar(1.0))) return filled_like(exponent, result_type(number, exponent), Scalar(1));
  const Tensor* const inputs[] = {&number, &exponent};
  const Arg params[] = {Arg()};
  return pointwise({op_infos[kOp_pow_Scalar], slots::pow_Tensor_Tensor, DTypeSet(0x86ff)}, inputs, params);
}

}  // namespace tn
#endif
