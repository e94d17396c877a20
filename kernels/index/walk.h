// Walking over the positions of a shape with several operands' strides.
#pragma once
#include <array>

#include "runtime/shape.h"
#include "runtime/threads.h"

namespace tn::index {

// Positions of a shape in row-major order; offsets of kOperands operands in elements.
template <int kOperands>
class Walk {
 public:
  using Offsets = std::array<int64_t, kOperands>;

  Walk() = default;
  void add(int64_t size, const Offsets& strides) {
    if (size == 1) return;
    sizes_.push_back(size);
    strides_.push_back(strides);
    numel_ *= size;
  }
  int64_t numel() const { return numel_; }

  // f(offsets) for positions [begin, end).
  template <class F>
  void run(int64_t begin, int64_t end, F&& f) const {
    if (begin >= end) return;
    const size_t dims = strides_.size();
    std::array<int64_t, kMaxDims> at;
    Offsets offsets{};
    int64_t rest = begin;
    for (size_t d = dims; d-- > 0;) {
      at[d] = rest % sizes_[d];
      rest /= sizes_[d];
      for (int k = 0; k < kOperands; ++k) offsets[k] += at[d] * strides_[d][k];
    }
    for (int64_t i = begin;;) {
      f(static_cast<const Offsets&>(offsets));
      if (++i >= end) return;
      for (size_t d = dims; d-- > 0;) {
        for (int k = 0; k < kOperands; ++k) offsets[k] += strides_[d][k];
        if (++at[d] < sizes_[d]) break;
        for (int k = 0; k < kOperands; ++k) offsets[k] -= sizes_[d] * strides_[d][k];
        at[d] = 0;
      }
    }
  }
  template <class F>
  void run(F&& f) const {
    run(0, numel_, f);
  }

 private:
  DimVector sizes_;
  std::vector<Offsets> strides_;
  int64_t numel_ = 1;
};

// The offsets of all positions of t's dimensions [from, to), row-major.
inline std::vector<int64_t> offsets_of(const Tensor& t, int64_t from, int64_t to) {
  Walk<1> walk;
  bool empty = false;
  for (int64_t d = from; d < to; ++d) {
    empty |= t->size(d) == 0;
    walk.add(t->size(d), {t->stride(d)});
  }
  std::vector<int64_t> out;
  if (empty) return out;
  out.reserve(static_cast<size_t>(walk.numel()));
  walk.run([&](const auto& at) { out.push_back(at[0]); });
  return out;
}
// Whether dimensions [from, ndim) are dense in themselves.
inline bool dense_from(const Tensor& t, int64_t from) {
  int64_t expected = 1;
  for (int64_t d = t.dim(); d-- > from;) {
    if (t->size(d) != 1 && t->stride(d) != expected) return false;
    expected *= t->size(d);
  }
  return true;
}

}  // namespace tn::index
