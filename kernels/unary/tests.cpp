// Questions about one number, and the logical and bitwise complements.
#include <cmath>

#include "generated/slots/unary.h"
#include "kernels/common/blocks.h"
#include "kernels/common/scalars.h"

namespace tn {
namespace {

// A complex number asks both of its parts; an integer is asked as a float.
template <class F>
constexpr PointwiseSlot question(F) {
  return {.row =
              [](const Row& row) {
                if (map_floats<1>(row, plain_tests<1>(F{}))) return;
                if (visit_complex(row.dtype, [&]<class T>() {
                      map_scalars<bool, T>(row, [](T z) { return F{}(z.real()) || F{}(z.imag()); });
                    }))
                  return;
                visit_integral_and_bool(row.dtype, [&]<class T>() {
                  map_scalars<bool, T>(row, [](T v) { return F{}(static_cast<double>(v)); });
                });
              },
          .promotion = Promotion::ToBool};
}

}  // namespace

const PointwiseSlot slots::isnan = question([](auto v) { return v != v; });
const PointwiseSlot slots::isinf = question([](auto v) { return std::isinf(v); });
const PointwiseSlot slots::isposinf = question([](auto v) { return std::isinf(v) && v > 0; });
const PointwiseSlot slots::isneginf = question([](auto v) { return std::isinf(v) && v < 0; });
const PointwiseSlot slots::signbit = question([](auto v) { return std::signbit(v); });

const PointwiseSlot slots::logical_not = {
    .row =
        [](const Row& row) {
          const auto f = [](auto v) { return v == decltype(v){}; };
          if (map_floats<1>(row, plain_tests<1>(f))) return;
          if (visit_complex(row.dtype, [&]<class T>() { map_scalars<bool, T>(row, f); })) return;
          visit_integral_and_bool(row.dtype, [&]<class T>() { map_scalars<bool, T>(row, f); });
        },
    .promotion = Promotion::ToBool};

const PointwiseSlot slots::bitwise_not = {.row = [](const Row& row) {
  if (row.dtype == ScalarType::Bool) return map_scalars<bool, bool>(row, [](bool v) { return !v; });
  visit_integral(row.dtype, [&]<class T>() { map_scalars<T, T>(row, [](T v) { return static_cast<T>(~v); }); });
}};

}  // namespace tn
