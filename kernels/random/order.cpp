#include "kernels/random/order.h"

#include <utility>

#include "runtime/error.h"

namespace tn::rng {

// Negative: a stays before b. Positive: they change places. Zero: undecided.
int Walk::compare(int a, int b) const {
  for (int op = 0; op < operands_; ++op) {
    const int64_t sa = strides_[op][a], sb = strides_[op][b];
    if (sa == 0 || sb == 0) continue;
    if (sa != sb) return sa < sb ? -1 : 1;
    if (sizes_[a] > sizes_[b]) return 1;
  }
  return 0;
}

Walk::Walk(IntView sizes, std::span<const IntView> operands) {
  TN_CHECK(sizes.size() <= kMaxDims, "random fill: expected at most ", kMaxDims, " dimensions, got ", sizes.size());
  dims_ = static_cast<int>(sizes.size());
  operands_ = static_cast<int>(operands.size());
  for (int d = 0; d < dims_; ++d) {
    const auto from =
        static_cast<size_t>(dims_ - 1 - d);  // the last dimension is the fastest until strides say otherwise
    sizes_[d] = sizes[from];
    for (int k = 0; k < operands_; ++k) strides_[k][d] = operands[k][from];
    numel_ *= sizes[from];
  }
  const auto swap = [this](int a, int b) {
    std::swap(sizes_[a], sizes_[b]);
    for (auto& s : strides_) std::swap(s[a], s[b]);
  };
  // Upstream's insertion sort, step by step: with undecided pairs its outcome depends on the way.
  for (int i = 1; i < dims_; ++i)
    for (int a = i - 1, b = i; a >= 0; --a) {
      const int c = compare(a, b);
      if (c < 0) break;
      if (c > 0) {
        swap(a, b);
        b = a;
      }
    }
  // Merge neighbours that are one run for every operand.
  int last = 0;
  const auto joins = [this](int a, int b) {
    if (sizes_[a] == 1 || sizes_[b] == 1) return true;
    for (int op = 0; op < operands_; ++op)
      if (sizes_[a] * strides_[op][a] != strides_[op][b]) return false;
    return true;
  };
  for (int d = 1; d < dims_; ++d) {
    if (joins(last, d)) {
      if (sizes_[last] == 1)
        for (auto& s : strides_) s[last] = s[d];
      sizes_[last] *= sizes_[d];
    } else {
      ++last;
      sizes_[last] = sizes_[d];
      for (auto& s : strides_) s[last] = s[d];
    }
  }
  dims_ = dims_ == 0 ? 0 : last + 1;
  if (dims_ == 1 && sizes_[0] == 1) dims_ = 0;
}

}  // namespace tn::rng
