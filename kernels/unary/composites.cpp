#include "kernels/unary/composites.h"

#include <limits>

#include "generated/ops/abs.h"
#include "generated/ops/add.h"
#include "generated/ops/all.h"
#include "generated/ops/bitwise_and.h"
#include "generated/ops/bitwise_or.h"
#include "generated/ops/elu.h"
#include "generated/ops/eq.h"
#include "generated/ops/item.h"
#include "generated/ops/le.h"
#include "generated/ops/mul.h"
#include "generated/ops/ne.h"
#include "generated/ops/ones_like.h"
#include "generated/ops/real.h"
#include "generated/ops/imag.h"
#include "generated/ops/sub.h"

namespace tn::composite {

Tensor isfinite(const Tensor& self) {
  if (is_integral(self.dtype(), true)) return at::ones_like(self, ScalarType::Bool);
  if (self.is_complex()) return at::bitwise_and(isfinite(at::real(self)), isfinite(at::imag(self)));
  return at::bitwise_and(at::eq(self, self), at::ne(at::abs(self), Scalar(std::numeric_limits<double>::infinity())));
}

Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  TN_CHECK(self.dtype() == other.dtype(), scalar_type_name(self.dtype()), " did not match ", scalar_type_name(other.dtype()));
  TN_CHECK(rtol >= 0, "rtol must be greater than or equal to zero, but got ", rtol);
  TN_CHECK(atol >= 0, "atol must be greater than or equal to zero, but got ", atol);
  Tensor close = at::eq(self, other);
  if (equal_nan && (self.is_floating_point() || self.is_complex()))
    close = at::bitwise_or(close, at::bitwise_and(at::ne(self, self), at::ne(other, other)));
  if (rtol == 0 && atol == 0) return close;
  // Differences of integers are taken in float, so that they don't wrap.
  const bool whole = is_integral(self.dtype(), true);
  const Tensor a = whole ? at::mul(self, Scalar(1.0)) : self, b = whole ? at::mul(other, Scalar(1.0)) : other;
  const Tensor allowed = at::add(at::abs(at::mul(b, Scalar(rtol))), Scalar(atol));
  const Tensor actual = at::abs(at::sub(a, b));
  return at::bitwise_or(close, at::bitwise_and(isfinite(actual), at::le(actual, allowed)));
}

bool allclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  Tensor (*const all)(const Tensor&) = at::all;  // all.dims takes the same call
  return at::item(all(isclose(self, other, rtol, atol, equal_nan))).to_bool();
}

Tensor celu(const Tensor& self, const Scalar& alpha) {
  TN_CHECK(alpha.to_double() != 0, "ZeroDivisionError: alpha cannot be 0 for CELU");
  return at::elu(self, alpha, Scalar(1.0), Scalar(1.0 / alpha.to_double()));
}

Tensor positive(const Tensor& self) {
  TN_CHECK(self.dtype() != ScalarType::Bool, "The `+` operator, on a bool tensor is not supported.");
  return self;
}

}  // namespace tn::composite
