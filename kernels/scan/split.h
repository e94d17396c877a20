// A tensor as [outer, n, inner] around one dimension.
#pragma once
#include "runtime/tensor.h"

namespace tn::scan {

struct Split {
  int64_t outer = 1, n = 1, inner = 1;
};
inline Split split_at(const Tensor& self, int64_t dim) {
  const int64_t at = wrap_dim(dim, self.dim());
  Split s;
  for (int64_t d = 0; d < self.dim(); ++d) (d < at ? s.outer : d == at ? s.n : s.inner) *= self->size(d);
  return s;
}

}  // namespace tn::scan
