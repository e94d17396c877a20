// Functions whose result has another dtype than the input, or needs the dtype's own limits.
#include <cmath>
#include <limits>
#include <numbers>

#include "generated/slots/unary.h"
#include "kernels/common/blocks.h"
#include "kernels/common/checks.h"
#include "kernels/common/scalars.h"
#include "runtime/half.h"
#include "runtime/iterator.h"
#include "runtime/op_table.h"
#include "runtime/refuse.h"

namespace tn {
namespace {

constexpr uint64_t bit(ScalarType t) { return uint64_t{1} << static_cast<int>(t); }
constexpr DTypeSet kFloats(bit(ScalarType::Float) | bit(ScalarType::Double) | bit(ScalarType::Half) |
                           bit(ScalarType::BFloat16));
constexpr DTypeSet kComplexes(bit(ScalarType::ComplexFloat) | bit(ScalarType::ComplexDouble));

// The angle of a real number: pi below zero; NaN stays one, and -0 counts as positive.
constexpr FloatBodies kAngle = plain_bodies<1>([](auto v) {
  using T = decltype(v);
  return v < T{0} ? std::numbers::pi_v<T> : v != v ? v : T{0};
});
constexpr PointwiseSlot kRealAngle = {.row = [](const Row& row) { map_floats<1>(row, kAngle); },
                                      .promotion = Promotion::ToFloat};
constexpr PointwiseSlot kComplexAngle = {.row =
                                             [](const Row& row) {
                                               visit_complex(row.dtype, [&]<class T>() {
                                                 map_scalars<typename T::value_type, T>(
                                                     row, [](T z) { return std::arg(z); });
                                               });
                                             },
                                         .promotion = Promotion::RealPart,
                                         .cost = 16};

// The largest finite number of a float dtype.
double largest(ScalarType t) {
  switch (t) {
    case ScalarType::Half: return 65504.0;
    case ScalarType::BFloat16: return static_cast<double>(to_float(BFloat16{0x7f7f}));
    case ScalarType::Float: return static_cast<double>(std::numeric_limits<float>::max());
    default: return std::numeric_limits<double>::max();
  }
}

template <class T>
void replace_specials(const Block<T>& block) {
  const T nan = static_cast<T>(block.params[0].d), high = static_cast<T>(block.params[1].d),
          low = static_cast<T>(block.params[2].d);
  for (size_t i = 0; i < block.n; ++i) {
    const T v = block.in[0][i];
    block.out[i] = v != v                                     ? nan
                   : v == std::numeric_limits<T>::infinity()  ? high
                   : v == -std::numeric_limits<T>::infinity() ? low
                                                              : v;
  }
}

template <class T>
void round_decimals(const Block<T>& block) {
  const int64_t decimals = block.params[0].i;
  const T scale = static_cast<T>(std::pow(10.0, static_cast<double>(std::abs(decimals))));
  for (size_t i = 0; i < block.n; ++i) {
    const T v = block.in[0][i];
    block.out[i] = decimals < 0   ? std::nearbyint(v / scale) * scale
                   : decimals > 0 ? std::nearbyint(v * scale) / scale
                                  : std::nearbyint(v);
  }
}

// One pair of reals a complex number, made by f(a, b).
template <class F>
Tensor join(OpId op, const Tensor& a, const Tensor& b, F f) {
  const auto fits = [](const Tensor& t) {
    return t.dtype() == ScalarType::Float || t.dtype() == ScalarType::Double || t.dtype() == ScalarType::Half;
  };
  TN_CHECK(fits(a) && fits(b), "Expected both inputs to be Half, Float or Double tensors but got ",
           scalar_type_name(a.dtype()), " and ", scalar_type_name(b.dtype()));
  TN_CHECK(a.dtype() == b.dtype(), "Expected object of scalar type ", scalar_type_name(a.dtype()),
           " but got scalar type ", scalar_type_name(b.dtype()), " for second argument");
  if (a.dtype() == ScalarType::Half) refuse_dtype(op_infos[op], a.dtype());
  TensorIterator it(op_infos[op]);
  it.add_output(Tensor());
  it.add_input(a);
  it.add_input(b);
  it.build({.promotion = Promotion::None, .out_dtype = complex_of(a.dtype())});
  if (it.is_meta()) return it.output();
  it.for_rows([&](char* const* data, const int64_t* strides, int64_t n) {
    const Row row{data, strides, n, a.dtype(), it.dtype(0), nullptr};
    if (a.dtype() == ScalarType::Float) map_scalars<std::complex<float>, float, float>(row, f);
    else map_scalars<std::complex<double>, double, double>(row, f);
  });
  return it.output();
}

}  // namespace

Tensor native::angle(const Tensor& self) {
  const Tensor* const inputs[] = {&self};
  const Arg none[] = {Arg()};
  if (self.is_complex()) return pointwise({op_infos[kOp_angle], kComplexAngle, kComplexes}, inputs, none);
  return pointwise({op_infos[kOp_angle], kRealAngle, kFloats}, inputs, none);
}

const PointwiseSlot slots::_conj_physical = {.row = [](const Row& row) {
  visit_complex(row.dtype, [&]<class T>() { map_scalars<T, T>(row, [](T z) { return std::conj(z); }); });
}};

const PointwiseSlot slots::nan_to_num = {.row = [](const Row& row) {
  if (visit_integral_and_bool(row.dtype, [&]<class T>() { map_scalars<T, T>(row, [](T v) { return v; }); })) return;
  const double limit = largest(row.dtype);
  const auto chosen = [&](int i, double otherwise) {
    return Arg::of(row.params[i].is_none() ? otherwise : row.params[i].number());
  };
  const Arg replacements[] = {chosen(0, 0.0), chosen(1, limit), chosen(2, -limit)};
  Row with = row;
  with.params = replacements;
  map_floats<1>(with, &replace_specials<float>, &replace_specials<double>);
}};

const PointwiseSlot slots::round_decimals = {
    .row = [](const Row& row) { map_floats<1>(row, &tn::round_decimals<float>, &tn::round_decimals<double>); },
    .cost = 8};

Tensor native::complex(const Tensor& real, const Tensor& imag) {
  return join(kOp_complex, real, imag, [](auto a, auto b) { return std::complex(a, b); });
}
Tensor native::polar(const Tensor& abs, const Tensor& angle) {
  return join(kOp_polar, abs, angle, [](auto a, auto b) { return std::complex(a * std::cos(b), a * std::sin(b)); });
}

std::tuple<Tensor, Tensor> native::frexp_Tensor(const Tensor& self) {
  TN_CHECK(self.is_floating_point(), "torch.frexp() only supports floating-point dtypes");
  static constexpr FloatBodies kMantissa = plain_bodies<1>([](auto v) {
    int exponent = 0;
    return std::frexp(v, &exponent);
  });
  static constexpr PointwiseSlot kSlot = {.row = [](const Row& row) { map_floats<1>(row, kMantissa); }, .cost = 4};
  const Tensor* const inputs[] = {&self};
  const Arg none[] = {Arg()};
  Tensor mantissa = pointwise({op_infos[kOp_frexp_Tensor], kSlot, kFloats}, inputs, none);
  TensorIterator it(op_infos[kOp_frexp_Tensor]);
  it.add_output(Tensor());
  it.add_input(self);
  it.build({.promotion = Promotion::None, .out_dtype = ScalarType::Int});
  if (!it.is_meta()) {
    const auto exponent_of = [](auto v) {
      int exponent = 0;
      (void)std::frexp(v, &exponent);
      return static_cast<int32_t>(std::isfinite(v) ? exponent : 0);
    };
    it.for_rows([&](char* const* data, const int64_t* strides, int64_t n) {
      const Row row{data, strides, n, self.dtype(), ScalarType::Int, nullptr};
      switch (self.dtype()) {
        case ScalarType::Float: return map_scalars<int32_t, float>(row, exponent_of);
        case ScalarType::Double: return map_scalars<int32_t, double>(row, exponent_of);
        case ScalarType::Half: return map_scalars<int32_t, Half>(row, [&](Half v) { return exponent_of(to_float(v)); });
        default: return map_scalars<int32_t, BFloat16>(row, [&](BFloat16 v) { return exponent_of(to_float(v)); });
      }
    });
  }
  return {std::move(mantissa), it.output()};
}

}  // namespace tn
