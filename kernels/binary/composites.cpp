#include "kernels/binary/composites.h"

#include "generated/ops/mul.h"
#include "generated/ops/pow.h"
#include "generated/ops/to.h"

namespace tn::composite {
namespace {

ScalarType wide(bool complex) { return complex ? ScalarType::ComplexDouble : ScalarType::Double; }
Scalar widened(const Scalar& s, ScalarType dtype) {
  return dtype == ScalarType::Double ? Scalar(s.to_double()) : Scalar(s.to_complex());
}

}  // namespace

Tensor float_power(const Tensor& self, const Tensor& exponent) {
  const ScalarType dtype = wide(self.is_complex() || exponent.is_complex());
  return at::pow(at::to(self, dtype), at::to(exponent, dtype));
}
Tensor float_power(const Tensor& self, const Scalar& exponent) {
  const ScalarType dtype = wide(self.is_complex() || exponent.is_complex());
  return at::pow(at::to(self, dtype), widened(exponent, dtype));
}
Tensor float_power(const Scalar& self, const Tensor& exponent) {
  const ScalarType dtype = wide(self.is_complex() || exponent.is_complex());
  return at::pow(widened(self, dtype), at::to(exponent, dtype));
}

namespace {

// A tensor can't change its dtype in place.
void check_base(const Tensor& self, ScalarType dtype) {
  TN_CHECK(self.dtype() == dtype, "the base given to float_power_ has dtype ", scalar_type_name(self.dtype()),
           " but the operation's result requires dtype ", scalar_type_name(dtype));
}

}  // namespace

const Tensor& float_power_(const Tensor& self, const Tensor& exponent) {
  const ScalarType dtype = wide(self.is_complex() || exponent.is_complex());
  check_base(self, dtype);
  return at::pow_(self, at::to(exponent, dtype));
}
const Tensor& float_power_(const Tensor& self, const Scalar& exponent) {
  const ScalarType dtype = wide(self.is_complex() || exponent.is_complex());
  check_base(self, dtype);
  return at::pow_(self, widened(exponent, dtype));
}

namespace {

void check_result(const Tensor& out, ScalarType dtype) {
  TN_CHECK(out.dtype() == dtype, "the output given to float_power has dtype ", scalar_type_name(out.dtype()),
           " but the operation's result requires dtype ", scalar_type_name(dtype));
}

}  // namespace

const Tensor& float_power_out(const Tensor& self, const Tensor& exponent, const Tensor& out) {
  const ScalarType dtype = wide(self.is_complex() || exponent.is_complex());
  check_result(out, dtype);
  return at::pow_out(out, at::to(self, dtype), at::to(exponent, dtype));
}
const Tensor& float_power_out(const Tensor& self, const Scalar& exponent, const Tensor& out) {
  const ScalarType dtype = wide(self.is_complex() || exponent.is_complex());
  check_result(out, dtype);
  return at::pow_out(out, at::to(self, dtype), widened(exponent, dtype));
}
const Tensor& float_power_out(const Scalar& self, const Tensor& exponent, const Tensor& out) {
  const ScalarType dtype = wide(self.is_complex() || exponent.is_complex());
  check_result(out, dtype);
  return at::pow_out(out, widened(self, dtype), at::to(exponent, dtype));
}

Tensor ldexp(const Tensor& self, const Tensor& other) { return at::mul(self, at::pow(Scalar(2.0), other)); }

}  // namespace tn::composite
