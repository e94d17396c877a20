// Slots of the special functions: float, bfloat16 and float16 compute in double, so their results are rounded once.
#include <cmath>

#include "generated/slots/special.h"
#include "kernels/common/blocks.h"
#include "kernels/common/checks.h"
#include "kernels/special/functions.h"
#include "runtime/op_table.h"

namespace tn {
namespace {

template <double (*kF)(double)>
constexpr PointwiseSlot slot(int8_t cost = 32) {
  return {.row =
              [](const Row& row) {
                static constexpr FloatBodies kBodies =
                    plain_bodies<1>([](auto x) { return static_cast<decltype(x)>(kF(static_cast<double>(x))); });
                map_floats<1>(row, kBodies);
              },
          .promotion = Promotion::ToFloat,
          .cost = cost};
}
template <double (*kF)(double, double)>
constexpr PointwiseSlot slot2(Promotion promotion = Promotion::ToFloat) {
  return {.row =
              [](const Row& row) {
                static constexpr FloatBodies kBodies = plain_bodies<2>([](auto x, auto y) {
                  return static_cast<decltype(x)>(kF(static_cast<double>(x), static_cast<double>(y)));
                });
                map_floats<2>(row, kBodies);
              },
          .promotion = promotion,
          .cost = 64};
}

// The C library's; at infinity NaN, as upstream's.
double finite(double x) { return std::isinf(x) ? std::nan("") : x; }
double j0(double x) { return ::j0(finite(x)); }
double j1(double x) { return ::j1(finite(x)); }
double y0(double x) { return ::y0(finite(x)); }
double y1(double x) { return ::y1(finite(x)); }

template <class T>
void polygamma_block(const Block<T>& block) {
  const auto n = static_cast<double>(block.params[0].i);
  for (size_t i = 0; i < block.n; ++i)
    block.out[i] = static_cast<T>(special::polygamma(n, static_cast<double>(block.in[0][i])));
}

}  // namespace

const PointwiseSlot slots::lgamma = slot<special::log_gamma>();
const PointwiseSlot slots::digamma = slot<special::digamma>();
const PointwiseSlot slots::erfinv = slot<special::erf_inverse>();
const PointwiseSlot slots::i0 = slot<special::bessel_i0>();
const PointwiseSlot slots::special_i0e = slot<special::bessel_i0_scaled>();
const PointwiseSlot slots::special_i1 = slot<special::bessel_i1>();
const PointwiseSlot slots::special_i1e = slot<special::bessel_i1_scaled>();
const PointwiseSlot slots::special_modified_bessel_i0 = slot<special::bessel_i0>();
const PointwiseSlot slots::special_modified_bessel_i1 = slot<special::bessel_i1>();
const PointwiseSlot slots::special_modified_bessel_k0 = slot<special::bessel_k0>();
const PointwiseSlot slots::special_modified_bessel_k1 = slot<special::bessel_k1>();
const PointwiseSlot slots::special_scaled_modified_bessel_k0 = slot<special::bessel_k0_scaled>();
const PointwiseSlot slots::special_scaled_modified_bessel_k1 = slot<special::bessel_k1_scaled>();
const PointwiseSlot slots::special_spherical_bessel_j0 = slot<special::spherical_j0>();
const PointwiseSlot slots::special_bessel_j0 = slot<j0>();
const PointwiseSlot slots::special_bessel_j1 = slot<j1>();
const PointwiseSlot slots::special_bessel_y0 = slot<y0>();
const PointwiseSlot slots::special_bessel_y1 = slot<y1>();
const PointwiseSlot slots::special_airy_ai = slot<special::airy>(120);
const PointwiseSlot slots::special_entr = slot<special::entropy>();
const PointwiseSlot slots::special_erfcx = slot<special::erfc_scaled>();
const PointwiseSlot slots::special_ndtri = slot<special::normal_quantile>();
const PointwiseSlot slots::special_log_ndtr = slot<special::log_normal>();
const PointwiseSlot slots::special_zeta = slot2<special::zeta>();
const PointwiseSlot slots::igamma = slot2<special::gamma_lower>(Promotion::Same);
const PointwiseSlot slots::igammac = slot2<special::gamma_upper>(Promotion::Same);

const PointwiseSlot slots::polygamma = {
    .row = [](const Row& row) { map_floats<1>(row, &polygamma_block<float>, &polygamma_block<double>); },
    .promotion = Promotion::ToFloat,
    .cost = 64,
    .check = [](checks::Inputs,
                const Arg* params) { TN_CHECK(params[0].i >= 0, "polygamma(n, x) does not support negative n."); }};

const Tensor& native::polygamma_(const Tensor& self, int64_t n) {
  const Tensor* const inputs[] = {&self};
  const Arg params[] = {Arg::of(n)};
  pointwise_inplace(
      {op_infos[kOp_polygamma_], slots::polygamma, DTypeSet((1u << 5) | (1u << 6) | (1u << 7) | (1u << 15))}, inputs,
      params);
  return self;
}

}  // namespace tn
