// The in-place operators, and those that give one number for each element of a tensor.
#include <cmath>
#include <utility>

#include "generated/slots/random.h"
#include "kernels/random/draw.h"
#include "kernels/random/target.h"
#include "runtime/copy.h"
#include "runtime/error.h"

namespace tn {
namespace rng {

TensorTarget::TensorTarget(const Tensor& t)
    : sizes_(t.sizes()), strides_(t.strides()), dtype_(real_of(t.dtype())), data_(t.data_ptr()) {
  if (!t.is_complex()) return;
  for (int64_t& s : strides_) s *= 2;
  sizes_.push_back(2);
  strides_.push_back(1);
}

DimVector expanded_strides(const Tensor& t, IntView sizes) {
  const auto extra = static_cast<int64_t>(sizes.size()) - t.dim();
  TN_CHECK(extra >= 0, "expand: the number of sizes provided (", sizes.size(),
           ") must be greater or equal to the number of dimensions in the tensor (", t.dim(), ")");
  DimVector strides(sizes.size());
  for (int64_t d = 0; d < t.dim(); ++d) {
    const auto at = static_cast<size_t>(extra + d);
    const int64_t own = t.impl()->size(d);
    TN_CHECK(own == sizes[at] || own == 1, "The expanded size of the tensor (", sizes[at],
             ") must match the existing size (", own, ") at non-singleton dimension ", at, ".  Target sizes: ", sizes,
             ".  Tensor sizes: ", t.sizes());
    strides[at] = own == sizes[at] ? t.impl()->stride(d) : 0;
  }
  return strides;
}

void check_no_overlap(const Tensor& t) {
  for (int64_t d = 0; d < t.dim(); ++d)
    TN_CHECK(t.impl()->stride(d) != 0 || t.impl()->size(d) <= 1,
             "unsupported operation: more than one element of the written-to tensor refers to a single "
             "memory location. Please clone() the "
             "tensor before performing the operation.");
}

namespace {

// Meta tensors have no elements to draw for.
template <class F>
const Tensor& fill_tensor(const Tensor& self, GeneratorImpl* generator, F f) {
  if (self.is_meta()) return self;
  if (self.numel() != 0) check_no_overlap(self);
  f(TensorTarget(self), generator_or_default(generator));
  return self;
}

Source source(const Tensor& t, const DimVector& strides) { return {t.dtype(), t.data_ptr(), strides}; }

}  // namespace
}  // namespace rng

namespace native {

const Tensor& uniform_(const Tensor& self, double from, double to, GeneratorImpl* generator) {
  return rng::fill_tensor(self, generator,
                          [=](const rng::Target& t, GeneratorImpl& g) { rng::uniform(t, from, to, g); });
}

const Tensor& normal_(const Tensor& self, double mean, double std, GeneratorImpl* generator) {
  TN_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std);
  // A complex number's variance is that of both its parts together.
  const double part = self.is_complex() ? std / std::sqrt(2.0) : std;
  return rng::fill_tensor(self, generator,
                          [=](const rng::Target& t, GeneratorImpl& g) { rng::normal(t, mean, part, g); });
}

const Tensor& log_normal_(const Tensor& self, double mean, double std, GeneratorImpl* generator) {
  if (self.is_complex()) rng::not_implemented("log_normal_cpu", self.dtype());
  return rng::fill_tensor(self, generator,
                          [=](const rng::Target& t, GeneratorImpl& g) { rng::log_normal(t, mean, std, g); });
}

const Tensor& exponential_(const Tensor& self, double lambd, GeneratorImpl* generator) {
  if (self.is_complex()) rng::not_implemented("exponential_cpu", self.dtype());
  return rng::fill_tensor(self, generator,
                          [=](const rng::Target& t, GeneratorImpl& g) { rng::exponential(t, lambd, g); });
}

const Tensor& geometric_(const Tensor& self, double p, GeneratorImpl* generator) {
  if (self.is_complex()) rng::not_implemented("geometric_cpu", self.dtype());
  return rng::fill_tensor(self, generator, [=](const rng::Target& t, GeneratorImpl& g) { rng::geometric(t, p, g); });
}

const Tensor& cauchy_(const Tensor& self, double median, double sigma, GeneratorImpl* generator) {
  if (self.is_complex()) rng::not_implemented("cauchy_cpu", self.dtype());
  return rng::fill_tensor(self, generator,
                          [=](const rng::Target& t, GeneratorImpl& g) { rng::cauchy(t, median, sigma, g); });
}

const Tensor& random_(const Tensor& self, GeneratorImpl* generator) {
  if (self.is_complex()) rng::not_implemented("random_kernel_cpu", self.dtype());
  return rng::fill_tensor(self, generator, [](const rng::Target& t, GeneratorImpl& g) { rng::random(t, g); });
}

const Tensor& random__from(const Tensor& self, int64_t from, std::optional<int64_t> to, GeneratorImpl* generator) {
  TN_CHECK(!self.is_complex(), "check_random_bounds handles only integral, floating-point and boolean types");
  return rng::fill_tensor(self, generator,
                          [=](const rng::Target& t, GeneratorImpl& g) { rng::random_from_to(t, from, to, g); });
}

const Tensor& random__to(const Tensor& self, int64_t to, GeneratorImpl* generator) {
  return random__from(self, 0, to, generator);
}

const Tensor& bernoulli__float(const Tensor& self, double p, GeneratorImpl* generator) {
  if (self.is_complex()) rng::not_implemented("bernoulli_scalar_cpu_", self.dtype());
  return rng::fill_tensor(self, generator, [=](const rng::Target& t, GeneratorImpl& g) { rng::bernoulli(t, p, g); });
}

const Tensor& bernoulli__Tensor(const Tensor& self, const Tensor& p, GeneratorImpl* generator) {
  if (self.is_complex()) rng::not_implemented("bernoulli_tensor_cpu_self_", self.dtype());
  return rng::fill_tensor(self, generator, [&](const rng::Target& t, GeneratorImpl& g) {
    const DimVector strides = rng::expanded_strides(p, self.sizes());
    rng::bernoulli(t, rng::source(p, strides), g);
  });
}

Tensor bernoulli(const Tensor& self, GeneratorImpl* generator) {
  Tensor result = empty(self.sizes(), self.dtype(), self.device());
  bernoulli__Tensor(result, self, generator);
  return result;
}

Tensor bernoulli_p(const Tensor& self, double p, GeneratorImpl* generator) {
  Tensor result = empty(self.sizes(), self.dtype(), self.device());
  bernoulli__float(result, p, generator);
  return result;
}

const Tensor& bernoulli_out(const Tensor& self, GeneratorImpl* generator, const Tensor& out) {
  resize_impl(*out.impl(), self.sizes());
  return bernoulli__Tensor(out, self, generator);
}

Tensor poisson(const Tensor& self, GeneratorImpl* generator) {
  if (self.is_complex()) rng::not_implemented("poisson_cpu", self.dtype());
  Tensor result = empty(self.sizes(), self.dtype(), self.device());
  rng::fill_tensor(result, generator, [&](const rng::Target& t, GeneratorImpl& g) {
    rng::poisson(t, {self.dtype(), self.data_ptr(), self.strides()}, g);
  });
  return result;
}

Tensor binomial(const Tensor& count, const Tensor& prob, GeneratorImpl* generator) {
  TN_CHECK_AS(Value, is_floating(count.dtype()),
              "binomial only supports floating-point dtypes for count, got: ", scalar_type_name(count.dtype()));
  TN_CHECK_AS(Value, is_floating(prob.dtype()),
              "binomial only supports floating-point dtypes for prob, got: ", scalar_type_name(prob.dtype()));
  TN_CHECK(count.dtype() == prob.dtype(), "Found dtype ", scalar_type_name(prob.dtype()), " but expected ",
           scalar_type_name(count.dtype()));
  const DimVector sizes = infer_size(count.sizes(), prob.sizes());
  Tensor result = empty(sizes, count.dtype(), count.device());
  rng::fill_tensor(result, generator, [&](const rng::Target& t, GeneratorImpl& g) {
    const DimVector count_strides = rng::expanded_strides(count, sizes),
                    prob_strides = rng::expanded_strides(prob, sizes);
    rng::binomial(t, rng::source(count, count_strides), rng::source(prob, prob_strides), g);
  });
  return result;
}

Tensor _standard_gamma(const Tensor& self, GeneratorImpl* generator) {
  if (self.is_complex()) rng::not_implemented("gamma_cpu", self.dtype());
  Tensor result = empty(self.sizes(), self.dtype(), self.device());
  rng::fill_tensor(result, generator, [&](const rng::Target& t, GeneratorImpl& g) {
    rng::standard_gamma(t, {self.dtype(), self.data_ptr(), self.strides()}, g);
  });
  return result;
}

const Tensor& multinomial_out(const Tensor& self, int64_t num_samples, bool replacement, GeneratorImpl* generator,
                              const Tensor& out) {
  TN_CHECK(self.dim() > 0 && self.dim() <= 2, "prob_dist must be 1 or 2 dim");
  TN_CHECK(is_floating(self.dtype()),
           "multinomial only supports floating-point dtypes for input, got: ", scalar_type_name(self.dtype()));
  TN_CHECK(out.dtype() == ScalarType::Long,
           "multinomial expects Long tensor out, got: ", scalar_type_name(out.dtype()));
  TN_CHECK(num_samples > 0, "cannot sample n_sample <= 0 samples");
  const int64_t categories = self.size(-1), rows = self.dim() == 2 ? self.size(0) : 1;
  TN_CHECK(replacement || num_samples <= categories,
           "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  // Upstream keeps indices in floats in between.
  TN_CHECK(categories <= int64_t{1} << 24, "number of categories cannot exceed 2^24");
  const int64_t sizes[] = {rows, num_samples};
  resize_impl(*out.impl(), self.dim() == 2 ? IntView(sizes, 2) : IntView(sizes + 1, 1));
  if (out.is_meta() || out.numel() == 0) return out;

  const rng::Weights weights{self.dtype(),   self.data_ptr(), rows, categories, self.dim() == 2 ? self.stride(0) : 0,
                             self.stride(-1)};
  GeneratorImpl& g = generator_or_default(generator);
  // The samplers write densely; an out= tensor keeps its strides.
  const Tensor dense = out.is_contiguous() ? out : empty(out.sizes(), ScalarType::Long);
  // Replacement makes no difference to one sample, and upstream takes the path of those without.
  if (replacement && num_samples != 1) {
    rng::multinomial_with_replacement(weights, num_samples, dense.data<int64_t>(), g);
  } else {
    const Tensor noise = empty_strided(self.sizes(), preserved_strides(self.sizes(), self.strides()), self.dtype());
    rng::multinomial_without_replacement(weights, num_samples, dense.data<int64_t>(), rng::TensorTarget(noise), g);
  }
  if (!dense.is_same(out)) copy_into(out, dense);
  return out;
}

Tensor multinomial(const Tensor& self, int64_t num_samples, bool replacement, GeneratorImpl* generator) {
  const int64_t none[] = {0};
  Tensor result = empty(IntView(none, 1), ScalarType::Long, self.device());
  multinomial_out(self, num_samples, replacement, generator, result);
  return result;
}

}  // namespace native
}  // namespace tn
