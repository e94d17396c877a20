// Helpers of formulas: functions of one and two numbers, and second derivatives of activations.
#include <numbers>

#include "kernels/autograd/helpers.h"
#include "kernels/autograd/support.h"

namespace tn::autograd {

namespace {

constexpr double kPi = std::numbers::pi;

}  // namespace

Tensor angle_backward(const Tensor& grad, const Tensor& self) {
  if (!self.is_complex()) return at::zeros_like(self);
  const Tensor square = self.abs() * self.abs();
  const Tensor slope = grad * self / square * Scalar(std::complex<double>(0, 1));
  return slope.masked_fill(self == Scalar(0), Scalar(0));
}

std::tuple<Tensor, Tensor> atan2_backward(const Tensor& grad, const Tensor& self, const Tensor& other,
                                          const std::array<bool, 2>& mask) {
  if (!grad.defined()) return {};
  const Tensor inverse = Tensor(self * self + other * other).reciprocal();
  return {mask[0] ? grad * (other * inverse) : Tensor(), mask[1] ? grad * (self * -inverse) : Tensor()};
}

Tensor copysign_tensor_self_backward(const Tensor& grad, const Tensor& self, const Tensor& result) {
  return grad * Tensor(Tensor(result / self).masked_fill(self == Scalar(0), Scalar(0)));
}

Tensor deg2rad_backward(const Tensor& grad) { return grad * Scalar(kPi / 180); }
Tensor rad2deg_backward(const Tensor& grad) { return grad * Scalar(180 / kPi); }

std::tuple<Tensor, Tensor> polar_backward(const Tensor& grad, const Tensor& result) {
  if (!grad.defined()) return {};
  const Tensor conjugate = grad.conj();
  return {at::real(conjugate * Tensor(at::sgn(result))),
          at::real(conjugate * (result * Scalar(std::complex<double>(0, 1))))};
}

// I1' = I0 - I1 / x, which is 1/2 at 0.
// Where the quotient by self has no value, the slope is 1/2. The quotient is taken elsewhere, so that its own
// derivative is a number.
static std::pair<Tensor, Tensor> away_from_zero(const Tensor& self) {
  const double eps = self.scalar_type() == ScalarType::Double
                         ? std::numeric_limits<double>::epsilon()
                         : static_cast<double>(std::numeric_limits<float>::epsilon());
  const Tensor tiny = at::le(self.abs(), Scalar(eps));
  return {tiny, Tensor(self.masked_fill(tiny, Scalar(eps)))};
}
Tensor i1_backward(const Tensor& grad, const Tensor& self, const Tensor& result) {
  const auto [tiny, safe] = away_from_zero(self);
  const Tensor slope = at::i0(safe) - result / safe;
  return grad * Tensor(slope.masked_fill(tiny, Scalar(0.5)));
}
Tensor i1e_backward(const Tensor& grad, const Tensor& self, const Tensor& result) {
  const auto [tiny, safe] = away_from_zero(self);
  const Tensor slope = at::special_i0e(safe) - result * (at::sgn(safe) + safe.reciprocal());
  return grad * Tensor(slope.masked_fill(tiny, Scalar(0.5)));
}

Tensor mvlgamma_backward(const Tensor& grad, const Tensor& self, int64_t p) {
  Tensor sum = at::digamma(self);
  for (int64_t i = 1; i < p; ++i) sum = sum + Tensor(at::digamma(self - Scalar(static_cast<double>(i) / 2)));
  return grad * sum;
}

// Sums exp(self_i - result_j) * grad_j over j >= i in logarithms, positive and negative gradients apart.
Tensor logcumsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim) {
  if (grad.dim() == 0 || grad.numel() == 0) return grad;
  const int64_t dims[] = {dim};
  const auto reversed = [&](const Tensor& t) { return Tensor(t.flip(IntArrayRef(dims))); };
  if (grad.is_complex())
    return reversed(reversed(grad * Tensor(Tensor(-result).exp()).conj()).cumsum(dim)) * Tensor(self.exp()).conj();
  // Finite, so that differences of two of them are numbers when it is differentiated again.
  const Scalar none = grad.scalar_type() == ScalarType::Double
                          ? std::numeric_limits<double>::lowest()
                          : static_cast<double>(std::numeric_limits<float>::lowest());
  const Tensor size = Tensor(grad.abs()).log();
  const auto part = [&](const Tensor& chosen) {
    const Tensor logs = size.masked_fill(chosen.logical_not(), none) - result;
    return Tensor(Tensor(reversed(reversed(logs).logcumsumexp(dim)) + self).exp());
  };
  return part(grad > Scalar(0)) - part(grad < Scalar(0));
}

// ---- second derivatives ----------------------------------------------------------------------------------------

Tensor elu_double_backward(const Tensor& grad, const Tensor& grad_output, const Scalar& alpha, const Scalar& scale,
                           const Scalar& input_scale, bool is_result, const Tensor& self_or_result) {
  const Tensor product = grad * grad_output * input_scale;
  const Tensor curve =
      is_result ? product : Tensor(at::elu_backward(product, alpha, scale, input_scale, is_result, self_or_result));
  return curve * Tensor(self_or_result < Scalar(0)).to(grad.dtype());
}

Tensor gelu_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& x,
                            std::string_view approximate) {
  const Tensor product = grad * grad_output;
  if (approximate != "tanh") {
    // x Phi(x) has the second derivative (2 - x^2) phi(x).
    const Tensor density = Tensor((x * x * Scalar(-0.5)).exp()) * Scalar(1 / std::sqrt(2 * kPi));
    return product * density * (Scalar(2) - x * x);
  }
  constexpr double kCubic = 0.044715;
  const double k = std::sqrt(2 / kPi);
  const Tensor square = x * x, t = ((x + square * x * Scalar(kCubic)) * Scalar(k)).tanh();
  const Tensor slope = (square * Scalar(3 * kCubic) + Scalar(1)) * Scalar(k), curve = x * Scalar(6 * kCubic * k);
  const Tensor sech2 = Scalar(1) - t * t;
  return product * sech2 * (slope + x * (curve * Scalar(0.5) - t * slope * slope));
}

Tensor glu_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self, int64_t dim) {
  const std::vector<tn::Tensor> in = self.chunk(2, dim), g = grad.chunk(2, dim);
  const Tensor gate = rich(in[1]).sigmoid(), slope = gate * (Scalar(1) - gate) * grad_output;
  const Tensor to_gate = rich(g[0]) * slope + rich(g[1]) * rich(in[0]) * slope * (Scalar(1) - gate * Scalar(2));
  return at::cat(std::vector<tn::Tensor>{rich(g[1]) * slope, to_gate}, dim);
}
Tensor glu_double_backward_grad_output(const Tensor& grad, const Tensor& self, int64_t dim) {
  const std::vector<tn::Tensor> in = self.chunk(2, dim), g = grad.chunk(2, dim);
  const Tensor gate = rich(in[1]).sigmoid();
  return rich(g[0]) * gate + rich(g[1]) * rich(in[0]) * gate * (Scalar(1) - gate);
}

Tensor log_sigmoid_double_backward(const Tensor& grad, const Tensor& self) {
  const Tensor z = self.sigmoid();
  return grad * (z - Scalar(1)) * z;
}

Tensor softplus_double_backward(const Tensor& grad, const Tensor& self, const Scalar& beta, const Scalar& threshold) {
  const Tensor x = self * beta, z = x.sigmoid();
  return grad * z * (Scalar(1) - z) * beta * Tensor(x < threshold).to(grad.dtype());
}

}  // namespace tn::autograd
