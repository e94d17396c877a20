#include "kernels/unary/composites.h"

#include <limits>

#include "generated/ops/_conj_physical.h"
#include "generated/ops/_prelu_kernel.h"
#include "generated/ops/abs.h"
#include "generated/ops/add.h"
#include "generated/ops/all.h"
#include "generated/ops/bitwise_and.h"
#include "generated/ops/bitwise_or.h"
#include "generated/ops/cat.h"
#include "generated/ops/clamp.h"
#include "generated/ops/elu.h"
#include "generated/ops/eq.h"
#include "generated/ops/item.h"
#include "generated/ops/le.h"
#include "generated/ops/log_sigmoid_forward.h"
#include "generated/ops/mul.h"
#include "generated/ops/ne.h"
#include "generated/ops/ones_like.h"
#include "generated/ops/narrow.h"
#include "generated/ops/real.h"
#include "generated/ops/reshape.h"
#include "generated/ops/imag.h"
#include "generated/ops/sigmoid.h"
#include "generated/ops/sigmoid_backward.h"
#include "generated/ops/sub.h"
#include "runtime/op_table.h"
#include "runtime/refuse.h"
#include "runtime/shape.h"

namespace tn::composite {

Tensor isfinite(const Tensor& self) {
  if (is_integral(self.dtype(), true)) return at::ones_like(self, ScalarType::Bool);
  if (self.is_complex()) return at::bitwise_and(isfinite(at::real(self)), isfinite(at::imag(self)));
  return at::bitwise_and(at::eq(self, self), at::ne(at::abs(self), Scalar(std::numeric_limits<double>::infinity())));
}

Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  TN_CHECK(self.dtype() == other.dtype(), scalar_type_name(self.dtype()), " did not match ",
           scalar_type_name(other.dtype()));
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

// Integers keep their dtype: the bounds become integers.
Tensor hardtanh(const Tensor& self, const Scalar& min_val, const Scalar& max_val) {
  TN_CHECK(self.dtype() != ScalarType::Bool, "Bool inputs not supported for hardtanh");
  if (!is_integral(self.dtype(), false)) return at::clamp(self, min_val, max_val);
  const int64_t low = min_val.to_int64(), high = max_val.to_int64();
  TN_CHECK(self.dtype() != ScalarType::Byte || (low >= 0 && high >= 0),
           "cannot do hardtanh on an unsigned type with negative limits");
  return at::clamp(self, Scalar(low), Scalar(high));
}

Tensor scale_angle(const Tensor& self, double factor, const char* name) {
  TN_CHECK(!self.is_complex(), name, " is not supported for complex tensors.");
  return at::mul(self, Scalar(factor));
}

Tensor isreal(const Tensor& self) {
  if (!self.is_complex()) return at::ones_like(self, ScalarType::Bool);
  return at::eq(at::imag(self), Scalar(0));
}

Tensor conj_physical(const Tensor& self) { return self.is_complex() ? at::_conj_physical(self) : self; }

// The weight as a tensor that broadcasts over the channels, which are dimension 1.
Tensor prelu(const Tensor& self, const Tensor& weight) {
  TN_CHECK(self.dtype() == weight.dtype(), "prelu: Type promoting not supported. Got ", scalar_type_name(self.dtype()),
           " and ", scalar_type_name(weight.dtype()));
  const int64_t dim = self.dim();
  if (weight.numel() != 1) {
    TN_CHECK(dim > 0, "Not allow zero-dim input tensor.");
    const int64_t channels = dim > 1 ? self.size(1) : 1;
    TN_CHECK(channels == weight.numel(),
             "Mismatch of parameter numbers and input channel size. Found parameter numbers = ", weight.numel(),
             " and channel size = ", channels, ".");
  }
  TN_CHECK(weight.dim() <= 1, "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = ", weight.dim());
  if (dim == weight.dim()) return at::_prelu_kernel(self, weight);
  DimVector shape(static_cast<size_t>(dim), 1);
  if (dim > 1) shape[1] = weight.numel();
  return at::_prelu_kernel(self, at::reshape(weight, shape));
}

const Tensor& log_sigmoid_out(const Tensor& self, const Tensor& out) {
  const Tensor buffer = empty({0}, self.dtype(), self.device());
  at::log_sigmoid_forward_out(out, buffer, self);
  return out;
}

namespace {

// Checks glu's arguments; gives half the size of the dimension.
int64_t half_of(const Tensor& self, int64_t dim, OpId op) {
  if (!self.is_floating_point()) refuse_dtype(op_infos[op], self.dtype());
  TN_CHECK(self.dim() > 0, "glu does not support 0-dimensional tensors");
  const int64_t d = wrap_dim(dim, self.dim()), size = self.size(d);
  TN_CHECK(size % 2 == 0, "Halving dimension must be even, but dimension ", d, " is size ", size);
  return size / 2;
}

}  // namespace

Tensor glu(const Tensor& self, int64_t dim) {
  const int64_t half = half_of(self, dim, kOp_glu);
  return at::mul(at::narrow(self, dim, 0, half), at::sigmoid(at::narrow(self, dim, half, half)));
}

Tensor glu_jvp(const Tensor& glu, const Tensor& x, const Tensor& dx, int64_t dim) {
  const int64_t half = half_of(x, dim, kOp_glu_jvp);
  const Tensor gate = at::sigmoid(at::narrow(x, dim, half, half)), dgate = at::narrow(dx, dim, half, half);
  return at::add(at::mul(at::narrow(dx, dim, 0, half), gate), at::mul(glu, at::sub(dgate, at::mul(gate, dgate))));
}

Tensor glu_backward(const Tensor& grad_output, const Tensor& self, int64_t dim) {
  const int64_t half = half_of(self, dim, kOp_glu_backward);
  const Tensor gate = at::sigmoid(at::narrow(self, dim, half, half));
  const Tensor parts[] = {at::mul(grad_output, gate),
                          at::sigmoid_backward(at::mul(grad_output, at::narrow(self, dim, 0, half)), gate)};
  return at::cat(TensorList(parts, 2), dim);
}

}  // namespace tn::composite
