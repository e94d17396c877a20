// diff and the trapezoidal rule.
#include <algorithm>

#include "generated/ops/add.h"
#include "generated/ops/cat.h"
#include "generated/ops/cumsum.h"
#include "generated/ops/clone.h"
#include "generated/ops/div.h"
#include "generated/ops/logical_xor.h"
#include "generated/ops/mul.h"
#include "generated/ops/narrow.h"
#include "generated/ops/select.h"
#include "generated/ops/slice.h"
#include "generated/ops/sub.h"
#include "generated/ops/sum.h"
#include "generated/ops/view.h"
#include "generated/ops/zeros.h"
#include "kernels/calculus/composites.h"
#include "runtime/shape.h"

namespace tn::composite {
namespace {

void check_joins(const Tensor& self, int64_t dim, const Tensor& part) {
  TN_CHECK(part.dim() == self.dim(), "diff expects prepend or append to be the same dimension as input");
  for (int64_t d = 0; d < self.dim(); ++d)
    TN_CHECK(d == dim || part->size(d) == self->size(d),
             "diff expects the shape of tensor to prepend or append to match that of input except along the "
             "differencing dimension; input.size(",
             d, ") = ", self->size(d), ", but got tensor.size(", d, ") = ", part->size(d));
}

Tensor differences(const Tensor& self, int64_t n, int64_t dim) {
  if (n == 0) return at::clone(self);
  Tensor result = self;
  int64_t length = self->size(dim) - 1;
  for (n = std::min(n, self->size(dim)); n > 0; --n, --length) {
    const Tensor later = at::narrow(result, dim, 1, length), earlier = at::narrow(result, dim, 0, length);
    result = self.dtype() == ScalarType::Bool ? at::logical_xor(later, earlier) : at::sub(later, earlier);
  }
  return result;
}

// x, shaped so that it broadcasts along y's dimension.
Tensor sample_points(const char* op, const Tensor& y, const Tensor& x, int64_t dim) {
  if (x.dim() == 1) {
    TN_CHECK(x->size(0) == y.size(dim), op, ": There must be one `x` value for each sample point");
    DimVector shape(static_cast<size_t>(y.dim()), 1);
    shape[static_cast<size_t>(dim)] = x->size(0);
    return at::view(x, shape);
  }
  if (x.dim() >= y.dim()) return x;
  DimVector shape(static_cast<size_t>(y.dim() - x.dim()), 1);
  for (const int64_t s : x.sizes()) shape.push_back(s);
  return at::view(x, shape);
}

Tensor without_last(const Tensor& t, int64_t dim) { return at::slice(t, dim, 0, -1); }
Tensor without_first(const Tensor& t, int64_t dim) { return at::slice(t, dim, 1); }

Tensor empty_integral(const Tensor& y, int64_t dim) {
  DimVector shape(y.sizes());
  shape.erase(static_cast<size_t>(dim));
  return at::zeros(shape, y.dtype(), Layout::Strided, y.device());
}

void check_not_bool(const char* op, const Tensor& y, const Tensor* x) {
  TN_CHECK(y.dtype() != ScalarType::Bool && (!x || x->dtype() != ScalarType::Bool), op, ": received a bool input for `",
           x ? "x` or `" : "", "y`, but bool is not supported");
}

}  // namespace

Tensor diff(const Tensor& self, int64_t n, int64_t dim, OptionalTensor prepend, OptionalTensor append) {
  TN_CHECK(self.dim() >= 1, "diff expects input to be at least one-dimensional");
  TN_CHECK(n >= 0, "order must be non-negative but got ", n);
  dim = wrap_dim(dim, self.dim());
  if (prepend) check_joins(self, dim, *prepend);
  if (append) check_joins(self, dim, *append);
  if (n == 0 || (!prepend && !append)) return differences(self, n, dim);
  std::vector<Tensor> parts;
  if (prepend) parts.push_back(*prepend);
  parts.push_back(self);
  if (append) parts.push_back(*append);
  return differences(at::cat(parts, dim), n, dim);
}

Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  dim = wrap_dim(dim, y.dim());
  if (y.size(dim) == 0) return empty_integral(y, dim);
  check_not_bool("trapezoid", y, &x);
  const Tensor points = sample_points("trapezoid", y, x, dim);
  const Tensor widths = at::sub(without_first(points, dim), without_last(points, dim));
  const Tensor doubled = at::mul(at::add(without_last(y, dim), without_first(y, dim)), widths);
  return at::div(at::sum(doubled, IntView{dim}), Scalar(2.0));
}

Tensor trapezoid(const Tensor& y, const Scalar& dx, int64_t dim) {
  dim = wrap_dim(dim, y.dim());
  if (y.size(dim) == 0) return empty_integral(y, dim);
  check_not_bool("trapezoid", y, nullptr);
  TN_CHECK(!dx.is_complex() && !dx.is_bool(), "trapezoid: Currently, we only support dx as a real number.");
  const Tensor ends = at::mul(at::add(at::select(y, dim, 0), at::select(y, dim, -1)), Scalar(0.5));
  return at::mul(at::sub(at::sum(y, IntView{dim}), ends), dx);
}

Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  dim = wrap_dim(dim, y.dim());
  check_not_bool("cumulative_trapezoid", y, &x);
  const Tensor points = sample_points("cumulative_trapezoid", y, x, dim);
  const Tensor widths = at::sub(without_first(points, dim), without_last(points, dim));
  const Tensor doubled = at::mul(at::add(without_last(y, dim), without_first(y, dim)), widths);
  return at::div(at::cumsum(doubled, dim), Scalar(2.0));
}

Tensor cumulative_trapezoid(const Tensor& y, const Scalar& dx, int64_t dim) {
  dim = wrap_dim(dim, y.dim());
  check_not_bool("cumulative_trapezoid", y, nullptr);
  TN_CHECK(!dx.is_complex() && !dx.is_bool(), "cumulative_trapezoid: Currently, we only support dx as a real number.");
  const Tensor pairs = at::add(without_last(y, dim), without_first(y, dim));
  return at::cumsum(at::mul(pairs, Scalar(dx.to_double() / 2)), dim);
}

}  // namespace tn::composite
