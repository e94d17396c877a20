// Differences, integrals and moments of sampled functions. They only call the door.
#pragma once
#include <optional>
#include <vector>

#include "runtime/shape.h"
#include "runtime/tensor.h"

namespace tn::composite {

// differences.cpp
Tensor diff(const Tensor& self, int64_t n, int64_t dim, OptionalTensor prepend, OptionalTensor append);
Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim);
Tensor trapezoid(const Tensor& y, const Scalar& dx, int64_t dim);
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim);
Tensor cumulative_trapezoid(const Tensor& y, const Scalar& dx, int64_t dim);

// gradient.cpp. What the dimensions are: one, several, or all.
struct Axes {
  DimVector dims;
  bool given;
};
Axes axes(const Tensor& self, std::optional<int64_t> dim);
Axes axes(const Tensor& self, IntView dims);
// The one number of gradient(spacing=...), for each of the dimensions.
std::vector<Scalar> one_spacing(const Tensor& self, const std::optional<Scalar>& spacing, std::optional<int64_t> dim);
std::vector<Tensor> gradient(const Tensor& self, const std::vector<Scalar>& spacing, const Axes& axes,
                             int64_t edge_order);
std::vector<Tensor> gradient(const Tensor& self, TensorList coordinates, const Axes& axes, int64_t edge_order);

// moments.cpp
Tensor cov(const Tensor& self, int64_t correction, OptionalTensor fweights, OptionalTensor aweights);
Tensor corrcoef(const Tensor& self);
Tensor vander(const Tensor& x, std::optional<int64_t> n, bool increasing);
Tensor linalg_vander(const Tensor& x, std::optional<int64_t> n);
Tensor nanmean(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype);

}  // namespace tn::composite
