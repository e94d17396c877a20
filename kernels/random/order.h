// The order in which a serial kernel visits the elements of its operands: that of upstream's iterator, by
// ascending stride, not by logical index. A random fill hands out its numbers in this order.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "runtime/array_ref.h"

namespace tn::rng {

inline constexpr int kMaxDims = 64;
inline constexpr int kMaxOperands = 3;

// A walk over up to three operands of one shape. Strides are in elements here; comparing them operand by
// operand gives the same order as comparing bytes. The first operand decides; dimensions where either stride
// is zero are left to the next.
class Walk {
 public:
  Walk(IntView sizes, IntView first) : Walk(sizes, std::span(&first, 1)) {}
  Walk(IntView sizes, IntView first, IntView second) : Walk(sizes, std::array{first, second}) {}
  Walk(IntView sizes, IntView first, IntView second, IntView third) : Walk(sizes, std::array{first, second, third}) {}

  int64_t numel() const { return numel_; }
  // One run over the whole, in memory order.
  bool is_dense() const { return dims_ == 0 || (dims_ == 1 && strides_[0][0] == 1); }
  int dims() const { return dims_; }
  int64_t size(int dim) const { return sizes_[dim]; }
  int64_t stride(int operand, int dim) const { return strides_[operand][dim]; }

 private:
  Walk(IntView sizes, std::span<const IntView> operands);
  int compare(int a, int b) const;

  int dims_ = 0;
  int operands_ = 1;
  int64_t numel_ = 1;
  std::array<int64_t, kMaxDims> sizes_{};
  std::array<std::array<int64_t, kMaxDims>, kMaxOperands> strides_{};
};

// Steps through a walk, element by element.
class Cursor {
 public:
  explicit Cursor(const Walk& walk) : walk_(walk) {}
  int64_t offset(int operand) const { return offsets_[operand]; }
  void step() {
    for (int d = 0; d < walk_.dims(); ++d) {
      for (int k = 0; k < kMaxOperands; ++k) offsets_[k] += walk_.stride(k, d);
      if (++index_[d] < walk_.size(d)) return;
      index_[d] = 0;
      for (int k = 0; k < kMaxOperands; ++k) offsets_[k] -= walk_.stride(k, d) * walk_.size(d);
    }
  }

 private:
  const Walk& walk_;
  std::array<int64_t, kMaxOperands> offsets_{};
  std::array<int64_t, kMaxDims> index_{};
};

}  // namespace tn::rng
