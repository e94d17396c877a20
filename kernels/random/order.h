// The order in which a serial kernel visits the elements of its operands: that of upstream's iterator, by ascending stride, not by
// logical index. A random fill hands out its numbers in this order.
#pragma once
#include <array>
#include <cstdint>

#include "runtime/array_ref.h"

namespace tn::random {

inline constexpr int kMaxDims = 64;

// A walk over up to two operands of one shape. Strides are in elements here; comparing them operand by operand gives the same order
// as comparing bytes. The first operand decides; dimensions where either stride is zero are left to the second.
class Walk {
 public:
  Walk(IntView sizes, IntView first, IntView second = {});

  int64_t numel() const { return numel_; }
  // One run over the whole, in memory order.
  bool is_dense() const { return dims_ == 0 || (dims_ == 1 && strides_[0][0] == 1); }
  int dims() const { return dims_; }
  int64_t size(int dim) const { return sizes_[dim]; }
  int64_t stride(int operand, int dim) const { return strides_[operand][dim]; }

 private:
  int compare(int a, int b) const;

  int dims_ = 0;
  int operands_ = 1;
  int64_t numel_ = 1;
  std::array<int64_t, kMaxDims> sizes_{};
  std::array<std::array<int64_t, kMaxDims>, 2> strides_{};
};

// Steps through a walk, element by element.
class Cursor {
 public:
  explicit Cursor(const Walk& walk) : walk_(walk) {}
  int64_t offset(int operand) const { return offsets_[operand]; }
  void step() {
    for (int d = 0; d < walk_.dims(); ++d) {
      offsets_[0] += walk_.stride(0, d);
      offsets_[1] += walk_.stride(1, d);
      if (++index_[d] < walk_.size(d)) return;
      index_[d] = 0;
      offsets_[0] -= walk_.stride(0, d) * walk_.size(d);
      offsets_[1] -= walk_.stride(1, d) * walk_.size(d);
    }
  }

 private:
  const Walk& walk_;
  std::array<int64_t, 2> offsets_{};
  std::array<int64_t, kMaxDims> index_{};
};

}  // namespace tn::random
