#include "kernels/random/dropout.h"

#include <cmath>

#include "generated/ops/add.h"
#include "generated/ops/bernoulli.h"
#include "generated/ops/clone.h"
#include "generated/ops/div.h"
#include "generated/ops/empty.h"
#include "generated/ops/empty_like.h"
#include "generated/ops/ge.h"
#include "generated/ops/item.h"
#include "generated/ops/min.h"
#include "generated/ops/mul.h"
#include "generated/ops/normal.h"
#include "generated/ops/ones_like.h"
#include "generated/ops/zeros.h"
#include "runtime/error.h"
#include "runtime/rng.h"
#include "runtime/shape.h"

namespace tn::composite {
namespace {

enum class Form { Functional, Inplace };

Tensor scaled(const Tensor& input, const Tensor& noise, Form form) {
  return form == Form::Inplace ? at::mul_(input, noise) : at::mul(input, noise);
}

// One element a channel, for broadcasting.
Tensor feature_noise(const Tensor& input) {
  TN_CHECK(input.dim() >= 2, "Feature dropout requires at least 2 dimensions in the input");
  DimVector sizes(static_cast<size_t>(input.dim()), 1);
  sizes[0] = input.size(0);
  sizes[1] = input.size(1);
  return at::empty(sizes, input.dtype(), input.layout(), input.device());
}

struct Kind {
  bool features = false;
  bool alpha = false;  // keeps mean and variance of a SELU's output
};

Tensor drop(const Tensor& input, double p, bool train, Kind kind, Form form) {
  TN_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  if (p == 0 || !train || input.numel() == 0) return input;
  if (p == 1) return scaled(input, at::zeros(IntView(), input.dtype(), input.layout(), input.device()), form);
  const Tensor noise = kind.features ? feature_noise(input) : at::empty_like(input);
  at::bernoulli_(noise, 1 - p);
  if (!kind.alpha) {
    at::div_(noise, Scalar(1 - p));
    return scaled(input, noise, form);
  }
  constexpr double alpha = 1.7580993408473766;  // minus SELU's limit at minus infinity
  const double a = 1.0 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
  const Tensor shift = at::add(noise, Scalar(-1));
  at::mul_(shift, Scalar(alpha * a));
  at::add_(shift, Scalar(alpha * a * p));
  at::mul_(noise, Scalar(a));
  return at::add_(scaled(input, noise, form), shift);
}

const Tensor& drop_(const Tensor& self, double p, bool train, Kind kind) {
  drop(self, p, train, kind, Form::Inplace);
  return self;
}

void check_std(const Tensor& std) {
  TN_CHECK(!std.is_complex(), "normal expects standard deviation to be non-complex");
  TN_CHECK(std.numel() == 0 || std.is_meta() || at::item(at::ge(at::min(std), Scalar(0))).to<bool>(),
           "normal expects all elements of std >= 0.0");
}

}  // namespace

Tensor dropout(const Tensor& input, double p, bool train) { return drop(input, p, train, {}, Form::Functional); }
const Tensor& dropout_(const Tensor& self, double p, bool train) { return drop_(self, p, train, {}); }
Tensor alpha_dropout(const Tensor& input, double p, bool train) {
  return drop(input, p, train, {.alpha = true}, Form::Functional);
}
const Tensor& alpha_dropout_(const Tensor& self, double p, bool train) {
  return drop_(self, p, train, {.alpha = true});
}
Tensor feature_dropout(const Tensor& input, double p, bool train) {
  return drop(input, p, train, {.features = true}, Form::Functional);
}
const Tensor& feature_dropout_(const Tensor& self, double p, bool train) {
  return drop_(self, p, train, {.features = true});
}
Tensor feature_alpha_dropout(const Tensor& input, double p, bool train) {
  return drop(input, p, train, {.features = true, .alpha = true}, Form::Functional);
}
const Tensor& feature_alpha_dropout_(const Tensor& self, double p, bool train) {
  return drop_(self, p, train, {.features = true, .alpha = true});
}

std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p, std::optional<bool> train) {
  if (input.numel() == 0) return {input, at::empty_like(input)};
  if (!train.value_or(true)) return {at::clone(input), at::ones_like(input, ScalarType::Bool)};
  const double keep = 1.0 - p;
  const Tensor mask = at::empty_like(input, ScalarType::Bool);
  at::bernoulli_(mask, keep);
  const Tensor output = at::mul(input, mask);
  at::mul_(output, Scalar(keep == 0 ? 0.0 : 1.0 / keep));
  return {output, mask};
}

Tensor native_dropout_backward(const Tensor& grad_output, const Tensor& mask, double scale) {
  return at::mul(at::mul(grad_output, mask), Scalar(scale));
}

Tensor normal(const Tensor& mean, double std, GeneratorImpl* generator) {
  TN_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std);
  const Tensor result = at::empty(mean.sizes(), mean.dtype(), mean.layout(), mean.device());
  at::normal_(result, 0, std, generator);
  return at::add_(result, mean);
}

Tensor normal(double mean, const Tensor& std, GeneratorImpl* generator) {
  check_std(std);
  const Tensor result = at::empty(std.sizes(), std.dtype(), std.layout(), std.device());
  at::normal_(result, 0, 1, generator);
  return at::add_(at::mul_(result, std), Scalar(mean));
}

Tensor normal(const Tensor& mean, const Tensor& std, GeneratorImpl* generator) {
  check_std(std);
  const DimVector sizes = infer_size(mean.sizes(), std.sizes());
  const Tensor result = at::empty(sizes, mean.dtype(), mean.layout(), mean.device());
  at::normal_(result, 0, 1, generator);
  return at::add_(at::mul_(result, std), mean);
}

}  // namespace tn::composite
