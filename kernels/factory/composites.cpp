#include "kernels/factory/composites.h"

#include "generated/ops/item.h"
#include "generated/ops/linspace.h"
#include "generated/ops/logspace.h"

namespace tn::composite {
namespace {

void check_ends(const char* op, const Ends& ends) {
  const bool both = ends.start.tensor && ends.end.tensor;
  const char* what = both ? "start and end" : ends.start.tensor ? "start" : "end";
  TN_CHECK(ends.start.dim == 0 && ends.end.dim == 0, op, " only supports 0-dimensional ", both ? "start and end" : what,
           " tensors, but got ",
           both ? str("start with ", ends.start.dim, " dimension(s) and end with ", ends.end.dim, " dimension(s).")
                : str(what, " with ", ends.start.tensor ? ends.start.dim : ends.end.dim, " dimension(s)."));
}

}  // namespace

Scalar End::value() const { return tensor ? at::item(*tensor) : number; }

Tensor linspace(const Ends& ends, int64_t steps, const NewTensor& o) {
  check_ends("linspace", ends);
  return at::linspace(ends.start.value(), ends.end.value(), steps, o.dtype, o.layout, o.device, o.pin_memory);
}
const Tensor& linspace_out(const Ends& ends, int64_t steps, const Tensor& out) {
  check_ends("linspace", ends);
  return at::linspace_out(out, ends.start.value(), ends.end.value(), steps);
}
Tensor logspace(const Ends& ends, int64_t steps, double base, const NewTensor& o) {
  check_ends("logspace", ends);
  return at::logspace(ends.start.value(), ends.end.value(), steps, base, o.dtype, o.layout, o.device, o.pin_memory);
}
const Tensor& logspace_out(const Ends& ends, int64_t steps, double base, const Tensor& out) {
  check_ends("logspace", ends);
  return at::logspace_out(out, ends.start.value(), ends.end.value(), steps, base);
}

}  // namespace tn::composite
