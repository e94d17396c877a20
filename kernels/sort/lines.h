// The lines of tensors along one dimension: all of them have the same other sizes, each its own strides.
#pragma once
#include <array>
#include <cstdint>

#include "runtime/tensor.h"

namespace tn::sort {

template <size_t N>
class Lines {
 public:
  Lines(int64_t dim, const std::array<const Tensor*, N>& tensors) : dim_(dim), tensors_(tensors) {
    const Tensor& first = *tensors[0];
    for (int64_t d = 0; d < first.dim(); ++d)
      if (d != dim) count_ *= first->size(d);
    for (size_t k = 0; k < N; ++k) steps_[k] = tensors[k]->dim() == 0 ? 1 : (*tensors[k])->stride(dim);
  }
  int64_t count() const { return count_; }
  int64_t step(size_t k) const { return steps_[k]; }
  // Where line i begins, in elements.
  std::array<int64_t, N> begin(int64_t i) const {
    std::array<int64_t, N> at{};
    const Tensor& first = *tensors_[0];
    for (int64_t d = first.dim() - 1; d >= 0; --d) {
      if (d == dim_) continue;
      const int64_t size = first->size(d), index = i % size;
      i /= size;
      for (size_t k = 0; k < N; ++k) at[k] += index * (*tensors_[k])->stride(d);
    }
    return at;
  }

 private:
  int64_t dim_;
  std::array<const Tensor*, N> tensors_;
  std::array<int64_t, N> steps_{};
  int64_t count_ = 1;
};

}  // namespace tn::sort
