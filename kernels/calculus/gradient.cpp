// torch.gradient: second-order central differences inside, one-sided ones of order `edge_order` at both ends
// (Fornberg 1988, "Generation of finite difference formulas on arbitrarily spaced grids").
#include "generated/ops/add.h"
#include "generated/ops/cat.h"
#include "generated/ops/div.h"
#include "generated/ops/mul.h"
#include "generated/ops/neg.h"
#include "generated/ops/reshape.h"
#include "generated/ops/slice.h"
#include "generated/ops/sub.h"
#include "kernels/calculus/composites.h"
#include "runtime/shape.h"

namespace tn::composite {
namespace {

void check(const Tensor& self, size_t spacings, const Axes& axes, int64_t edge_order) {
  TN_CHECK(self.dtype() != ScalarType::Byte, "torch.gradient does not support uint8 input.");
  if (!axes.given)
    TN_CHECK(spacings == 1 || static_cast<int64_t>(spacings) == self.dim(),
             "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = ",
             self.dim(), "', since dim argument was not given, but got a list of length ", spacings);
  else
    TN_CHECK(spacings == axes.dims.size(),
             "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have "
             "the same length, but got a "
             "spacing argument of length ",
             spacings, " and a dim argument of length ", axes.dims.size(), ".");
  TN_CHECK(edge_order == 1 || edge_order == 2, "torch.gradient only supports edge_order=1 and edge_order=2.");
  for (const int64_t d : axes.dims)
    TN_CHECK(self->size(d) >= edge_order + 1,
             "torch.gradient expected each dimension size to be at least edge_order+1");
}

// The difference of two slices of length one at `from` and `from + 1`.
Tensor at_index(const Tensor& t, int64_t dim, int64_t index) {
  return at::slice(t, dim, index, index == -1 ? std::nullopt : std::optional<int64_t>(index + 1));
}

struct Weights {
  Tensor first, second, third;
};

Tensor combine(const Tensor& self, int64_t dim, int64_t from, const Weights& w) {
  const Tensor a = at::mul(w.first, at_index(self, dim, from)), b = at::mul(w.second, at_index(self, dim, from + 1));
  return at::add(at::add(a, b), at::mul(w.third, at_index(self, dim, from + 2)));
}

// Derivatives with one distance for the whole dimension.
Tensor even(const Tensor& self, int64_t dim, const Scalar& dx, int64_t edge_order) {
  Tensor first, last;
  if (edge_order == 1) {
    first = at::div(at::sub(at_index(self, dim, 1), at_index(self, dim, 0)), dx);
    last = at::div(at::sub(at_index(self, dim, -1), at_index(self, dim, -2)), dx);
  } else {
    const auto one_sided = [&](int64_t end, int64_t next, int64_t after, double sign) {
      const Tensor near =
          at::sub(at::mul(at_index(self, dim, next), Scalar(4)), at::mul(at_index(self, dim, end), Scalar(3)));
      return at::div(at::mul(at::sub(near, at_index(self, dim, after)), Scalar(sign * 0.5)), dx);
    };
    first = one_sided(0, 1, 2, 1);
    last = one_sided(-1, -2, -3, -1);
  }
  const Tensor inside = at::div(at::sub(at::slice(self, dim, 2), at::slice(self, dim, 0, -2)), dx);
  return at::cat(std::vector<Tensor>{first, at::div(inside, Scalar(2)), last}, dim);
}

// Derivatives at the sample points of `coordinates`, unevenly far apart.
Tensor uneven(const Tensor& self, int64_t dim, const Tensor& coordinates, int64_t edge_order) {
  TN_CHECK(coordinates.dim() == 1,
           "torch.gradient expected each element of spacing to have one dimension, but got an element with ",
           coordinates.dim(), " dimensions!");
  DimVector shape(static_cast<size_t>(self.dim()), 1);
  shape[static_cast<size_t>(dim)] = -1;
  const Tensor widths = at::reshape(diff(coordinates, 1, 0, {}, {}), shape);
  const Tensor left = at::slice(widths, dim, 0, -1), right = at::slice(widths, dim, 1);
  const auto ratio = [](const Tensor& a, const Tensor& b, const Tensor& c) { return at::div(a, at::mul(b, c)); };

  Weights w{at::neg(ratio(right, left, at::add(left, right))), ratio(at::sub(right, left), left, right),
            ratio(left, right, at::add(left, right))};
  const Tensor inside =
      at::add(at::add(at::mul(w.first, at::slice(self, dim, 0, -2)), at::mul(w.second, at::slice(self, dim, 1, -1))),
              at::mul(w.third, at::slice(self, dim, 2)));
  Tensor first, last;
  if (edge_order == 1) {
    first = at::div(at::sub(at_index(self, dim, 1), at_index(self, dim, 0)), at_index(widths, dim, 0));
    last = at::div(at::sub(at_index(self, dim, -1), at_index(self, dim, -2)), at_index(widths, dim, -1));
  } else {
    const Tensor a = at_index(widths, dim, 0), b = at_index(widths, dim, 1), sum = at::add(a, b);
    first = combine(
        self, dim, 0,
        {at::neg(ratio(at::add(at::mul(a, Scalar(2)), b), a, sum)), ratio(sum, a, b), at::neg(ratio(a, b, sum))});
    const Tensor c = at_index(widths, dim, -2), d = at_index(widths, dim, -1), both = at::add(c, d);
    last = combine(self, dim, -3,
                   {ratio(d, c, both), at::neg(ratio(both, c, d)), ratio(at::add(at::mul(d, Scalar(2)), c), d, both)});
  }
  return at::cat(std::vector<Tensor>{first, inside, last}, dim);
}

}  // namespace

Axes axes(const Tensor& self, std::optional<int64_t> dim) {
  if (dim) return {DimVector(1, wrap_dim(*dim, self.dim())), true};
  Axes all{{}, false};
  for (int64_t d = 0; d < self.dim(); ++d) all.dims.push_back(d);
  return all;
}

Axes axes(const Tensor& self, IntView dims) {
  Axes some{{}, true};
  for (const int64_t d : dims) {
    some.dims.push_back(wrap_dim(d, self.dim()));
    for (size_t i = 0; i + 1 < some.dims.size(); ++i)
      TN_CHECK(some.dims[i] != some.dims.back(), "dim ", some.dims.back(),
               " appears multiple times in the list of dims");
  }
  return some;
}

std::vector<Scalar> one_spacing(const Tensor& self, const std::optional<Scalar>& spacing, std::optional<int64_t> dim) {
  return std::vector<Scalar>(dim ? 1 : static_cast<size_t>(self.dim()), spacing.value_or(Scalar(1)));
}

std::vector<Tensor> gradient(const Tensor& self, const std::vector<Scalar>& spacing, const Axes& axes,
                             int64_t edge_order) {
  check(self, spacing.size(), axes, edge_order);
  std::vector<Tensor> all;
  for (size_t i = 0; i < axes.dims.size(); ++i)
    all.push_back(even(self, axes.dims[i], spacing[spacing.size() == 1 ? 0 : i], edge_order));
  return all;
}

std::vector<Tensor> gradient(const Tensor& self, TensorList coordinates, const Axes& axes, int64_t edge_order) {
  check(self, coordinates.size(), axes, edge_order);
  std::vector<Tensor> all;
  for (size_t i = 0; i < axes.dims.size(); ++i)
    all.push_back(uneven(self, axes.dims[i], coordinates[coordinates.size() == 1 ? 0 : i], edge_order));
  return all;
}

}  // namespace tn::composite
