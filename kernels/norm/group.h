// Group norm's operands: [n, channels, inner] or, channels last, [n, inner, channels].
#pragma once
#include "kernels/norm/batch.h"
#include "runtime/shape.h"

namespace tn::norm {

struct Groups {
  int64_t n, channels, inner, groups;
  int64_t each() const { return channels / groups; }  // channels of a group
  int64_t size() const { return each() * inner; }     // elements of a group
  // One sample as planes or columns.
  Planes sample(ScalarType dtype, bool columns) const {
    return columns ? Planes{inner, channels, 1, dtype} : Planes{1, channels, inner, dtype};
  }
};
// The memory format in which the kernels take a tensor: channels last stays as it is.
inline MemoryFormat group_format(const Tensor& x) { return suggest_memory_format(x); }
inline bool in_columns(const Tensor& x) { return !x.is_contiguous() || x.dim() == 2; }
inline const char* sample_at(const Tensor& x, const Groups& g, int64_t i) {
  return static_cast<const char*>(x->raw_data()) + i * g.channels * g.inner * static_cast<int64_t>(x.itemsize());
}
inline char* sample_at(Tensor& x, const Groups& g, int64_t i) {
  return static_cast<char*>(x->raw_data()) + i * g.channels * g.inner * static_cast<int64_t>(x.itemsize());
}

}  // namespace tn::norm
