// Sign, rounding and roots: one or two instructions an element, exact or correctly rounded.
#include <bit>
#include <cmath>

#include "generated/slots/unary.h"
#include "kernels/common/checks.h"
#include "kernels/common/scalars.h"
#include "runtime/op_table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/unary/simple.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/common/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

// In SimpleIndex's order. Rounding takes the sign back from its input: Highway's scalar target loses that of -0.
const FloatBodies* Simples() {
  static constexpr FloatBodies table[] = {
      Bodies<1>([](auto, auto v) HWY_ATTR { return hn::Abs(v); }),
      Bodies<1>([](auto, auto v) HWY_ATTR { return hn::Neg(v); }),
      Bodies<1>([](auto, auto v) HWY_ATTR { return hn::CopySign(hn::Floor(v), v); }),
      Bodies<1>([](auto, auto v) HWY_ATTR { return hn::CopySign(hn::Ceil(v), v); }),
      Bodies<1>([](auto, auto v) HWY_ATTR { return hn::CopySign(hn::Round(v), v); }),
      Bodies<1>([](auto, auto v) HWY_ATTR { return hn::CopySign(hn::Trunc(v), v); }),
      Bodies<1>([](auto, auto v) HWY_ATTR { return hn::Sub(v, hn::CopySign(hn::Trunc(v), v)); }),
      // (0 < v) - (v < 0): 0 for both zeros and, as upstream's, for NaN.
      Bodies<1>([](auto d, auto v) HWY_ATTR {
        const auto zero = hn::Zero(d), one = SetNumber(d, 1);
        return hn::Sub(hn::IfThenElseZero(hn::Gt(v, zero), one), hn::IfThenElseZero(hn::Lt(v, zero), one));
      }),
      Bodies<1>([](auto, auto v) HWY_ATTR { return hn::Sqrt(v); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return hn::Div(SetNumber(d, 1), hn::Sqrt(v)); }),
      Bodies<1>([](auto d, auto v) HWY_ATTR { return hn::Div(SetNumber(d, 1), v); }),
  };
  return table;
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(Simples);
namespace {

enum SimpleIndex { kAbs, kNeg, kFloor, kCeil, kRound, kTrunc, kFrac, kSign, kSqrt, kRsqrt, kReciprocal };

using checks::Inputs;

template <SimpleIndex kIndex>
bool floats(const Row& row) {
  return map_floats<1>(row, HWY_DYNAMIC_DISPATCH(Simples)()[kIndex]);
}

template <SimpleIndex kIndex, class C>
constexpr PointwiseSlot slot(C) {
  return {.row =
              [](const Row& row) {
                if (floats<kIndex>(row)) return;
                visit_complex(row.dtype, [&]<class T>() { map_scalars<T, T>(row, [](T z) { return C{}(z); }); });
              },
          .promotion = Promotion::ToFloat,
          .cost = 4};
}

// Rounding leaves integers as they are.
template <SimpleIndex kIndex>
constexpr PointwiseSlot rounding(void (*check)(Inputs, const Arg*)) {
  return {.row =
              [](const Row& row) {
                if (floats<kIndex>(row)) return;
                visit_integral(row.dtype, [&]<class T>() { map_scalars<T, T>(row, [](T v) { return v; }); });
              },
          .check = check};
}

constexpr uint64_t kReal = 0x80ff;  // integers of up to 64 bits and the four floats

template <class T>
T sign_of(T v) {
  return static_cast<T>((T{0} < v) - (v < T{0}));
}

}  // namespace

const PointwiseSlot slots::abs = {
    .row =
        [](const Row& row) {
          if (floats<kAbs>(row)) return;
          if (visit_complex(row.dtype, [&]<class T>() {
                map_scalars<typename T::value_type, T>(row, [](T z) { return std::abs(z); });
              }))
            return;
          visit_integral(row.dtype, [&]<class T>() {
            using U = std::make_unsigned_t<T>;
            map_scalars<T, T>(row,
                              [](T v) { return v < 0 ? static_cast<T>(static_cast<U>(U{0} - static_cast<U>(v))) : v; });
          });
        },
    .promotion = Promotion::RealPart};

const Tensor& native::abs_(const Tensor& self) {
  TN_CHECK(!self.is_complex(), "In-place abs is not supported for complex tensors.");
  const Tensor* const inputs[] = {&self};
  const Arg none[] = {Arg()};
  pointwise_inplace({op_infos[kOp_abs_], slots::abs, DTypeSet(kReal)}, inputs, none);
  return self;
}

const PointwiseSlot slots::neg = {
    .row =
        [](const Row& row) {
          if (floats<kNeg>(row)) return;
          if (visit_complex(row.dtype, [&]<class T>() { map_scalars<T, T>(row, [](T z) { return -z; }); })) return;
          visit_integral(row.dtype, [&]<class T>() {
            using U = std::make_unsigned_t<T>;
            map_scalars<T, T>(row, [](T v) { return static_cast<T>(static_cast<U>(U{0} - static_cast<U>(v))); });
          });
        },
    .check =
        [](Inputs inputs, const Arg*) {
          TN_CHECK(inputs[0]->dtype() != ScalarType::Bool,
                   "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, "
                   "use the `~` or "
                   "`logical_not()` operator instead.");
        }};

const PointwiseSlot slots::floor = rounding<kFloor>([](Inputs inputs, const Arg*) {
  TN_CHECK_AS(NotImplemented, !inputs[0]->is_complex(), "floor is not supported for complex inputs");
});
const PointwiseSlot slots::ceil = rounding<kCeil>([](Inputs inputs, const Arg*) {
  TN_CHECK_AS(NotImplemented, !inputs[0]->is_complex(), "ceil is not supported for complex inputs");
});
const PointwiseSlot slots::round = rounding<kRound>([](Inputs inputs, const Arg*) {
  TN_CHECK_AS(NotImplemented, !inputs[0]->is_complex(), "round is not supported for complex inputs");
});
const PointwiseSlot slots::trunc = rounding<kTrunc>([](Inputs inputs, const Arg*) {
  TN_CHECK_AS(NotImplemented, !inputs[0]->is_complex(), "trunc is not supported for complex inputs");
});
const PointwiseSlot slots::frac = {.row = [](const Row& row) { floats<kFrac>(row); }};

const PointwiseSlot slots::sign = {
    .row =
        [](const Row& row) {
          if (floats<kSign>(row)) return;
          visit_integral_and_bool(row.dtype,
                                  [&]<class T>() { map_scalars<T, T>(row, [](T v) { return sign_of(v); }); });
        },
    .check =
        [](Inputs inputs, const Arg*) {
          TN_CHECK_AS(
              NotImplemented, !inputs[0]->is_complex(),
              "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.");
        }};
const PointwiseSlot slots::sgn = {.row = [](const Row& row) {
  if (floats<kSign>(row)) return;
  if (visit_complex(row.dtype,
                    [&]<class T>() { map_scalars<T, T>(row, [](T z) { return z == T{} ? T{} : z / std::abs(z); }); }))
    return;
  visit_integral_and_bool(row.dtype, [&]<class T>() { map_scalars<T, T>(row, [](T v) { return sign_of(v); }); });
}};

const PointwiseSlot slots::sqrt = slot<kSqrt>([](auto z) { return std::sqrt(z); });
const PointwiseSlot slots::rsqrt = slot<kRsqrt>([](auto z) { return decltype(z)(1) / std::sqrt(z); });
const PointwiseSlot slots::reciprocal = slot<kReciprocal>([](auto z) { return decltype(z)(1) / z; });

}  // namespace tn
#endif
