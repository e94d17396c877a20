// Covariance, correlation, means without NaN, and matrices of powers.
#include "generated/ops/clamp.h"
#include "generated/ops/complex.h"
#include "generated/ops/conj.h"
#include "generated/ops/cumprod.h"
#include "generated/ops/diag.h"
#include "generated/ops/div.h"
#include "generated/ops/expand.h"
#include "generated/ops/flip.h"
#include "generated/ops/cat.h"
#include "generated/ops/imag.h"
#include "generated/ops/isnan.h"
#include "generated/ops/item.h"
#include "generated/ops/logical_not.h"
#include "generated/ops/min.h"
#include "generated/ops/mm.h"
#include "generated/ops/mul.h"
#include "generated/ops/nansum.h"
#include "generated/ops/ones.h"
#include "generated/ops/real.h"
#include "generated/ops/sqrt.h"
#include "generated/ops/squeeze.h"
#include "generated/ops/sub.h"
#include "generated/ops/sum.h"
#include "generated/ops/t.h"
#include "generated/ops/true_divide.h"
#include "generated/ops/unsqueeze.h"
#include "generated/ops/view.h"
#include "generated/ops/zero.h"
#include "generated/ops/scalar_tensor.h"
#include "kernels/calculus/composites.h"
#include "runtime/warn.h"

namespace tn::composite {
namespace {

void check_weights(const char* name, const Tensor& w, int64_t observations, bool integral) {
  TN_CHECK(w.dim() <= 1, "cov(): expected ", name, " to have one or fewer dimensions but got ", name, " with ", w.dim(),
           " dimensions");
  TN_CHECK(integral ? is_integral(w.dtype(), false) : is_floating(w.dtype()), "cov(): expected ", name, " to have ",
           integral ? "integral" : "floating point", " dtype but got ", name, " with ", scalar_type_name(w.dtype()),
           " dtype");
  TN_CHECK(w.numel() == observations, "cov(): expected ", name,
           " to have the same numel as there are observations in the input but got ", w.numel(), " != ", observations);
  TN_CHECK(observations == 0 || w.is_meta() || at::item(at::min(w)).to_double() >= 0, "cov(): ", name,
           " cannot be negative");
}

}  // namespace

Tensor cov(const Tensor& self, int64_t correction, OptionalTensor fweights, OptionalTensor aweights) {
  TN_CHECK(self.dim() <= 2, "cov(): expected input to have two or fewer dimensions but got an input with ", self.dim(),
           " dimensions");
  TN_CHECK(self.dtype() != ScalarType::Bool, "cov(): bool dtype is not supported for input");
  const Tensor in = self.dim() < 2 ? at::view(self, {1, -1}) : self;
  const int64_t observations = in->size(1);
  if (fweights) check_weights("fweights", *fweights, observations, true);
  if (aweights) check_weights("aweights", *aweights, observations, false);
  Tensor w;
  if (fweights) w = *fweights;
  if (aweights) w = w.defined() ? at::mul(w, *aweights) : *aweights;

  const Tensor total =
      w.defined() ? at::sum(w) : at::scalar_tensor(observations, ScalarType::Long, Layout::Strided, in.device());
  TN_CHECK(!w.defined() || w.is_meta() || at::item(total).to_double() != 0,
           "cov(): weights sum to zero, can't be normalized");
  const Tensor mean = at::div(at::sum(w.defined() ? at::mul(in, w) : in, IntView{1}), total);
  Tensor norm = aweights && correction != 0
                    ? at::sub(total, at::div(at::mul(at::sum(at::mul(w, *aweights)), Scalar(correction)), total))
                    : at::sub(total, Scalar(correction));
  if (!norm.is_meta() && at::item(norm).to_double() <= 0) {
    warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.");
    at::zero_(norm);
  }
  const Tensor centred = at::sub(in, at::unsqueeze(mean, 1));
  const Tensor weighted = w.defined() ? at::mul(centred, w) : centred;
  return at::squeeze(at::true_divide(at::mm(centred, at::conj(at::t(weighted))), norm));
}

Tensor corrcoef(const Tensor& self) {
  TN_CHECK(self.dim() <= 2, "corrcoef(): expected input to have two or fewer dimensions but got an input with ",
           self.dim(), " dimensions");
  Tensor c = cov(self, 1, {}, {});
  if (c.dim() == 0) return at::div(c, c);
  const Tensor variances = at::diag(c);
  const Tensor deviations = at::sqrt(variances.is_complex() ? at::real(variances) : variances);
  c = at::div(at::div(c, at::view(deviations, {-1, 1})), at::view(deviations, {1, -1}));
  const std::optional<Scalar> low = Scalar(-1), high = Scalar(1);
  return c.is_complex() ? at::complex(at::clamp(at::real(c), low, high), at::clamp(at::imag(c), low, high))
                        : at::clamp(c, low, high);
}

Tensor linalg_vander(const Tensor& x, std::optional<int64_t> n) {
  TN_CHECK(is_floating(x.dtype()) || is_complex(x.dtype()) || is_integral(x.dtype(), false),
           "linalg.vander supports floating point, complex, and integer tensors, but got ",
           scalar_type_name(x.dtype()));
  const Tensor points = x.dim() == 0 ? at::unsqueeze(x, -1) : x;
  const int64_t columns = n.value_or(points.size(-1));
  TN_CHECK(columns > 1, "N must be greater than 1.");
  DimVector shape(points.sizes());
  shape.push_back(columns - 1);
  const Tensor powers = at::cumprod(at::expand(at::unsqueeze(points, -1), shape), -1);
  shape.back() = 1;
  return at::cat(std::vector<Tensor>{at::ones(shape, powers.dtype(), Layout::Strided, powers.device()), powers}, -1);
}

Tensor vander(const Tensor& x, std::optional<int64_t> n, bool increasing) {
  TN_CHECK(x.dim() == 1, "x must be a one-dimensional tensor.");
  const int64_t columns = n.value_or(x->size(0));
  TN_CHECK(columns >= 0, "N must be non-negative.");
  const ScalarType dtype = is_integral(x.dtype(), true) ? ScalarType::Long : x.dtype();
  if (columns == 0) return at::ones({x->size(0), 0}, dtype, Layout::Strided, x.device());
  const Tensor one = at::ones({x->size(0), 1}, dtype, Layout::Strided, x.device());
  if (columns == 1) return one;
  const Tensor repeated = at::expand(at::unsqueeze(x, 1), {x->size(0), columns - 1});
  const Tensor powers = at::cat(std::vector<Tensor>{one, at::cumprod(repeated, 1, dtype)}, 1);
  return increasing ? powers : at::flip(powers, {1});
}

Tensor nanmean(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) {
  TN_CHECK(is_floating(self.dtype()) || is_complex(self.dtype()),
           "nanmean(): expected input to have floating point or complex dtype but got ",
           scalar_type_name(self.dtype()));
  const Tensor count = at::sum(at::logical_not(at::isnan(self)), dim, keepdim);
  return at::div(at::nansum(self, dim, keepdim, dtype), count);
}

}  // namespace tn::composite
