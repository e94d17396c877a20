#include "kernels/special/composites.h"

#include <cmath>
#include <numbers>

#include "generated/ops/add.h"
#include "generated/ops/erfc.h"
#include "generated/ops/lgamma.h"
#include "generated/ops/mul.h"

namespace tn::composite {

Tensor mvlgamma(const Tensor& self, int64_t p) {
  TN_CHECK(self.dtype() != ScalarType::Bool, "The input tensor may not be a boolean tensor.");
  TN_CHECK(p >= 1, "p has to be greater than or equal to 1");
  Tensor sum = at::lgamma(self);
  for (int64_t j = 1; j < p; ++j) sum = at::add(sum, at::lgamma(at::add(self, Scalar(-0.5 * static_cast<double>(j)))));
  return at::add(sum, Scalar(static_cast<double>(p * (p - 1)) / 4 * std::log(std::numbers::pi)));
}

// erfc(-x / sqrt(2)) / 2, which keeps its digits far below zero.
Tensor ndtr(const Tensor& self) {
  return at::mul(at::erfc(at::mul(self, Scalar(-std::numbers::sqrt2 / 2))), Scalar(0.5));
}

}  // namespace tn::composite
