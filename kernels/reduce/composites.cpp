#include "kernels/reduce/composites.h"

#include "generated/ops/sum.h"
#include "generated/ops/view.h"
#include "runtime/shape.h"

namespace tn::composite {

Tensor sum_to_size(const Tensor& self, IntView size) {
  const int64_t leading = self.dim() - size.ssize();
  bool fits = leading >= 0;
  DimVector summed;
  for (int64_t d = 0; fits && d < self.dim(); ++d) {
    const int64_t wanted = d < leading ? 1 : size[static_cast<size_t>(d - leading)];
    fits = d < leading || wanted == 1 || wanted == self->size(d);
    if (d < leading || (wanted == 1 && self->size(d) != 1)) summed.push_back(d);
  }
  TN_CHECK(fits, "size {", size, "} is not expandable to size {", self.sizes(), "}.");
  if (size.empty()) return at::sum(self);
  const Tensor kept = summed.empty() ? self : at::sum(self, IntView(summed), true);
  return leading > 0 ? at::view(kept, size) : kept;
}

}  // namespace tn::composite
