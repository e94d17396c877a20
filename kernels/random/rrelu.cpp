#include "kernels/random/rrelu.h"

#include "generated/ops/empty_like.h"
#include "generated/ops/leaky_relu.h"
#include "generated/ops/leaky_relu_backward.h"
#include "generated/ops/mul.h"
#include "generated/ops/rrelu_with_noise.h"
#include "generated/slots/random.h"
#include "kernels/random/draw.h"
#include "runtime/convert.h"
#include "runtime/copy.h"
#include "runtime/rng.h"

namespace tn {
namespace {

double slope_without_noise(const Scalar& lower, const Scalar& upper) {
  return (lower.to_double() + upper.to_double()) / 2;
}

struct Range {
  double lower, upper;
};

// Draws a slope for each element that isn't positive, one after the other; the others' noise is 1.
template <class T>
void draw_slopes(const Tensor& input, const Tensor& noise, const Tensor& out, Range range, GeneratorImpl& generator) {
  const std::lock_guard lock(generator.mutex());
  const T* const from = input.data<T>();
  T *const slopes = noise.data<T>(), *const to = out.data<T>();
  for (int64_t i = 0; i < input.numel(); ++i) {
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const C x = convert<C>(from[i]);
    C slope = 1;
    if (x <= 0) slope = static_cast<C>(rng::unit(generator.random64()) * (range.upper - range.lower) + range.lower);
    slopes[i] = convert<T>(slope);
    to[i] = x <= 0 ? convert<T>(x * slope) : from[i];
  }
}

void into(const Tensor& self, const Tensor& noise, const Tensor& out, const Scalar& lower, const Scalar& upper,
          bool training, GeneratorImpl* chosen) {
  if (!training) {
    at::leaky_relu_out(out, self, Scalar(slope_without_noise(lower, upper)));
    return;
  }
  const Range range{lower.to_double(), upper.to_double()};
  TN_CHECK(range.lower <= range.upper, "Lower bound should be less than or equal to the upper bound");
  TN_CHECK(self.sizes() == noise.sizes(),
           "noise tensor shape must match self tensor shape. Got self.shape = ", self.sizes(),
           " noise.shape = ", noise.sizes());
  if (self.numel() == 0) return;
  const Tensor input = contiguous(self), slopes = noise.is_contiguous() ? noise : empty(noise.sizes(), noise.dtype());
  const Tensor result = out.is_contiguous() ? out : empty(out.sizes(), out.dtype());
  GeneratorImpl& generator = generator_or_default(chosen);
  switch (self.dtype()) {
    case ScalarType::Float: draw_slopes<float>(input, slopes, result, range, generator); break;
    case ScalarType::Double: draw_slopes<double>(input, slopes, result, range, generator); break;
    case ScalarType::BFloat16: draw_slopes<BFloat16>(input, slopes, result, range, generator); break;
    case ScalarType::Half: draw_slopes<Half>(input, slopes, result, range, generator); break;
    default: rng::not_implemented("rrelu_with_noise_out_cpu", self.dtype());
  }
  if (!slopes.is_same(noise)) copy_into(noise, slopes);
  if (!result.is_same(out)) copy_into(out, result);
}

}  // namespace

Tensor native::rrelu_with_noise(const Tensor& self, const Tensor& noise, const Scalar& lower, const Scalar& upper,
                                bool training, GeneratorImpl* generator) {
  const Tensor out = empty(self.sizes(), self.dtype(), self.device());
  into(self, noise, out, lower, upper, training, generator);
  return out;
}
const Tensor& native::rrelu_with_noise_(const Tensor& self, const Tensor& noise, const Scalar& lower,
                                        const Scalar& upper, bool training, GeneratorImpl* generator) {
  into(self, noise, self, lower, upper, training, generator);
  return self;
}
const Tensor& native::rrelu_with_noise_out(const Tensor& self, const Tensor& noise, const Scalar& lower,
                                           const Scalar& upper, bool training, GeneratorImpl* generator,
                                           const Tensor& out) {
  resize_output(out, self.sizes());
  into(self, noise, out, lower, upper, training, generator);
  return out;
}

namespace composite {

Tensor rrelu(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training, GeneratorImpl* generator) {
  TN_CHECK(lower.to_double() <= upper.to_double(), "Lower bound should be less than or equal to the upper bound");
  return at::rrelu_with_noise(self, at::empty_like(self), lower, upper, training, generator);
}
const Tensor& rrelu_(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
                     GeneratorImpl* generator) {
  TN_CHECK(lower.to_double() <= upper.to_double(), "Lower bound should be less than or equal to the upper bound");
  return at::rrelu_with_noise_(self, at::empty_like(self), lower, upper, training, generator);
}
Tensor rrelu_backward(const Tensor& grad, const Tensor& self, const Tensor& noise, const Scalar& lower,
                      const Scalar& upper, bool training, bool self_is_result) {
  if (training && upper.to_double() - lower.to_double() > 1e-6) return at::mul(noise, grad);
  return at::leaky_relu_backward(grad, self, Scalar(slope_without_noise(lower, upper)), self_is_result);
}

}  // namespace composite
}  // namespace tn
