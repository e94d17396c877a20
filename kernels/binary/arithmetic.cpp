#include <array>

#include "generated/slots/binary.h"
#include "kernels/common/checks.h"
#include "kernels/common/scalars.h"
#include "runtime/promote.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/binary/arithmetic.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/common/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

// A number for the operand kNumber, in a register: a block of copies would cost as much memory as the other operand.
template <int kNumber, class T, class Op>
void RunByNumber(const Block<T>& block) {
  const auto number = hn::Set(hn::ScalableTag<T>(), *block.in[kNumber]);
  Block<T> other = block;
  other.in[0] = block.in[1 - kNumber];
  MapBlock<1>(other, [number](auto d, auto v) HWY_ATTR {
    if constexpr (kNumber == 0) return Op{}(d, number, v);
    else return Op{}(d, v, number);
  });
}
template <class Op>
constexpr std::array<FloatBodies, 2> ByNumber(Op) {
  return {{{&RunByNumber<0, float, Op>, &RunByNumber<0, double, Op>},
           {&RunByNumber<1, float, Op>, &RunByNumber<1, double, Op>}}};
}

// In NumberIndex's order; of each the bodies for a number on the left and on the right.
const std::array<FloatBodies, 2>* ArithmeticByNumber() {
  static constexpr std::array<FloatBodies, 2> table[] = {
      ByNumber([](auto, auto a, auto b) HWY_ATTR { return hn::Add(a, b); }),
      ByNumber([](auto, auto a, auto b) HWY_ATTR { return hn::Sub(a, b); }),
      ByNumber([](auto, auto a, auto b) HWY_ATTR { return hn::Mul(a, b); }),
      ByNumber([](auto, auto a, auto b) HWY_ATTR { return hn::Div(a, b); }),
  };
  return table;
}

// In ArithmeticIndex's order. alpha is 1 in nearly every call of add and sub: then there is no product.
const FloatBodies* Arithmetic() {
  static constexpr FloatBodies table[] = {
      Bodies<2>([](auto, auto a, auto b) HWY_ATTR { return hn::Add(a, b); }),
      BodiesWith<2>([](const Arg* p) {
        return [alpha = p[0].number()](auto d, auto a, auto b)
                   HWY_ATTR { return hn::MulAdd(b, SetNumber(d, alpha), a); };
      }),
      Bodies<2>([](auto, auto a, auto b) HWY_ATTR { return hn::Sub(a, b); }),
      Bodies<2>([](auto, auto a, auto b) HWY_ATTR { return hn::Mul(a, b); }),
      Bodies<2>([](auto, auto a, auto b) HWY_ATTR { return hn::Div(a, b); }),
  };
  return table;
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(Arithmetic);
HWY_EXPORT(ArithmeticByNumber);
namespace {

enum ArithmeticIndex { kAdd, kAddScaled, kSub, kMul, kDiv };
enum NumberIndex { kAddNumber, kSubNumber, kMulNumber, kDivNumber };

template <class T>
void run_by_number(const Row& row, BlockFn<T> body) {
  Block<T> block{};
  block.in[0] = row.in<T>(0), block.in[1] = row.in<T>(1);
  block.out = row.out<T>(), block.n = static_cast<size_t>(row.n), block.params = row.params;
  body(block);
}

// A float row whose one input stands still while the other and the result are contiguous.
bool map_by_number(const Row& row, NumberIndex index) {
  const int64_t size = row.dtype == ScalarType::Float ? 4 : row.dtype == ScalarType::Double ? 8 : 0;
  const bool left = row.strides[1] == 0, right = row.strides[2] == 0;
  if (size == 0 || row.n < 2 || left == right || row.strides[0] != size || row.strides[left ? 2 : 1] != size)
    return false;
  const FloatBodies& bodies = HWY_DYNAMIC_DISPATCH(ArithmeticByNumber)()[index][right ? 1 : 0];
  if (row.dtype == ScalarType::Float) run_by_number<float>(row, bodies.f32);
  else run_by_number<double>(row, bodies.f64);
  return true;
}

// Products and sums of integers wrap around; small types are computed unsigned and wide, since int would overflow.
template <class T>
using Wide = std::make_unsigned_t<std::conditional_t<(sizeof(T) < sizeof(int)), int, T>>;

template <class T>
constexpr T add_scaled(T a, T b, T alpha) {
  using U = Wide<T>;
  return static_cast<T>(static_cast<U>(a) + static_cast<U>(alpha) * static_cast<U>(b));
}

// a + alpha * b for every dtype but bool; `sign` is -1 for sub.
void add_row(const Row& row, double sign) {
  const Scalar alpha = row.params[0].scalar();
  const auto* bodies = HWY_DYNAMIC_DISPATCH(Arithmetic)();
  const bool one = alpha.to_complex() == 1.0;
  if (one) {
    if (map_by_number(row, sign > 0 ? kAddNumber : kSubNumber)) return;
    if (map_floats<2>(row, bodies[sign > 0 ? kAdd : kSub])) return;
  } else if (row.dtype == ScalarType::Float || row.dtype == ScalarType::Double || is_reduced_float(row.dtype)) {
    const Arg scaled[] = {Arg::of(sign * alpha.to_double())};
    Row copy = row;
    copy.params = scaled;
    map_floats<2>(copy, bodies[kAddScaled]);
    return;
  }
  if (visit_complex(row.dtype, [&]<class T>() {
        const T factor = alpha.to<T>() * static_cast<typename T::value_type>(sign);
        map_scalars<T, T, T>(row, [factor](T a, T b) { return a + factor * b; });
      }))
    return;
  visit_integral(row.dtype, [&]<class T>() {
    const T factor = static_cast<T>(static_cast<Wide<T>>(alpha.to<T>()) * static_cast<Wide<T>>(sign > 0 ? 1 : -1));
    map_scalars<T, T, T>(row, [factor](T a, T b) { return add_scaled(a, b, factor); });
  });
}

void check_alpha(checks::Inputs inputs, const Arg* params) {
  if (params[0].tag == Tag::Int && params[0].i == 1) return;
  checks::alpha(result_type(*inputs[0], *inputs[1]), params[0].scalar());
}

}  // namespace

const PointwiseSlot slots::add_Tensor = {.row =
                                             [](const Row& row) {
                                               if (row.dtype != ScalarType::Bool) return add_row(row, 1);
                                               const bool on = row.params[0].scalar().to_bool();
                                               map_scalars<bool, bool, bool>(
                                                   row, [on](bool a, bool b) { return a || (on && b); });
                                             },
                                         .check = check_alpha};

const PointwiseSlot slots::sub_Tensor = {.row = [](const Row& row) { add_row(row, -1); },
                                         .check =
                                             [](checks::Inputs inputs, const Arg* params) {
                                               const bool a = inputs[0]->dtype() == ScalarType::Bool,
                                                          b = inputs[1]->dtype() == ScalarType::Bool;
                                               TN_CHECK(!(a && b),
                                                        "Subtraction, the `-` operator, with two bool tensors is not "
                                                        "supported. Use the `^` or `logical_xor()` operator "
                                                        "instead.");
                                               TN_CHECK(!(a || b),
                                                        "Subtraction, the `-` operator, with a bool tensor is not "
                                                        "supported. If you are trying to invert a mask, use the "
                                                        "`~` or `logical_not()` operator instead.");
                                               check_alpha(inputs, params);
                                             }};

const PointwiseSlot slots::mul_Tensor = {.row = [](const Row& row) {
  if (map_by_number(row, kMulNumber)) return;
  if (map_floats<2>(row, HWY_DYNAMIC_DISPATCH(Arithmetic)()[kMul])) return;
  if (row.dtype == ScalarType::Bool) return map_scalars<bool, bool, bool>(row, [](bool a, bool b) { return a && b; });
  if (visit_complex(row.dtype, [&]<class T>() { map_scalars<T, T, T>(row, [](T a, T b) { return a * b; }); })) return;
  visit_integral(row.dtype, [&]<class T>() {
    map_scalars<T, T, T>(row,
                         [](T a, T b) { return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)); });
  });
}};

const PointwiseSlot slots::div_Tensor = {
    .row =
        [](const Row& row) {
          if (map_by_number(row, kDivNumber)) return;
          if (map_floats<2>(row, HWY_DYNAMIC_DISPATCH(Arithmetic)()[kDiv])) return;
          visit_complex(row.dtype, [&]<class T>() { map_scalars<T, T, T>(row, [](T a, T b) { return a / b; }); });
        },
    .promotion = Promotion::ToFloat};

}  // namespace tn
#endif
