// Running largest and smallest values with their places: the last of equal ones. Once NaN, always NaN.
#include <cmath>
#include <tuple>

#include "generated/slots/scan.h"
#include "kernels/scan/split.h"
#include "runtime/convert.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/threads.h"

namespace tn {
namespace {

template <bool kLargest, class S>
bool replaces(S now, S best) {
  if constexpr (is_small_float_v<S>) {
    return replaces<kLargest>(to_float(now), to_float(best));
  } else {
    if constexpr (std::is_floating_point_v<S>) {
      if (std::isnan(now)) return true;
      if (std::isnan(best)) return false;
    }
    return kLargest ? now >= best : now <= best;
  }
}

template <bool kLargest>
std::tuple<Tensor, Tensor> running(const char* name, const Tensor& self, int64_t dim) {
  TN_CHECK_AS(NotImplemented, !is_complex(self.dtype()), "\"", name, "_cpu\" not implemented for '",
              scalar_type_name(self.dtype()), "'");
  const Tensor values = empty(self.sizes(), self.dtype()), places = empty(self.sizes(), ScalarType::Long);
  const auto s = scan::split_at(self, dim);
  if (self.numel() == 0) return {values, places};
  const Tensor x = contiguous(self);
  with_element(self.dtype(), [&]<class S>() {
    if constexpr (!is_std_complex_v<S> && !std::is_same_v<S, ComplexHalf>) {
      const S* from = x.data<S>();
      S* to = values.data<S>();
      int64_t* at = places.data<int64_t>();
      parallel_for(0, s.outer * s.inner, std::max<int64_t>(1, 16384 / s.n), [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
          const int64_t start = t / s.inner * s.n * s.inner + t % s.inner;
          int64_t place = 0;
          S best = from[start];
          for (int64_t i = 0; i < s.n; ++i) {
            const int64_t k = start + i * s.inner;
            if (replaces<kLargest>(from[k], best)) {
              best = from[k];
              place = i;
            }
            to[k] = best;
            at[k] = place;
          }
        }
      });
    }
  });
  return {values, places};
}

}  // namespace

std::tuple<Tensor, Tensor> native::cummax(const Tensor& self, int64_t dim) {
  return running<true>("cummax", self, dim);
}
std::tuple<Tensor, Tensor> native::cummin(const Tensor& self, int64_t dim) {
  return running<false>("cummin", self, dim);
}

}  // namespace tn
