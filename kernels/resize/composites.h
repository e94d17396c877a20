// Sizes from scale factors, for the overloads that take both.
#pragma once
#include <optional>
#include <vector>

#include "runtime/array_ref.h"
#include "runtime/error.h"
#include "runtime/shape.h"
#include "runtime/tensor.h"

namespace tn::composite {

// The factor of each dimension, absent where sizes were given.
struct Factors {
  std::optional<ArrayRef<double>> values;
  std::optional<double> at(size_t i) const {
    return values && i < values->size() ? std::optional<double>((*values)[i]) : std::nullopt;
  }
};

// The size that is asked, given outright or by factors.
inline DimVector size_asked(const Tensor& input, const std::optional<IntArrayRef>& size,
                            const std::optional<ArrayRef<double>>& factors) {
  TN_CHECK(size.has_value() != factors.has_value(), "Must specify exactly one of output_size and scale_factors");
  const size_t dims = static_cast<size_t>(input.dim()) - 2;
  if (size) {
    TN_CHECK(size->size() == dims, "expected output_size of ", dims, " elements, got ", size->size());
    return *size;
  }
  TN_CHECK(factors->size() == dims, "expected scale_factors of ", dims, " elements, got ", factors->size());
  DimVector sizes(dims);
  for (size_t i = 0; i < dims; ++i)
    sizes[i] = static_cast<int64_t>(static_cast<double>(input->size(static_cast<int64_t>(i) + 2)) * (*factors)[i]);
  return sizes;
}

template <class F>
Tensor upsampled(const Tensor& input, const std::optional<IntArrayRef>& size,
                 const std::optional<ArrayRef<double>>& factors, F&& f) {
  const DimVector sizes = size_asked(input, size, factors);
  return f(IntArrayRef(sizes), Factors{factors});
}

}  // namespace tn::composite
