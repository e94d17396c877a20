#include "kernels/resize/grids.h"

#include "generated/ops/bmm.h"
#include "generated/ops/reshape.h"
#include "generated/ops/transpose.h"
#include "generated/ops/view.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/shape.h"

namespace tn::composite {
namespace {

// [N, pixels, dims + 1]: each pixel's position in [-1, 1] along every dimension, the last one first, and a one.
Tensor base_grid(IntView size, bool align, ScalarType dtype, Device device) {
  const int64_t dims = size.ssize() - 2, pixels = product(size.slice(2, static_cast<size_t>(dims)));
  const Tensor values = empty({size[0], pixels, dims + 1}, ScalarType::Double);
  double* to = values.data<double>();
  for (int64_t n = 0; n < size[0]; ++n)
    for (int64_t i = 0; i < pixels; ++i, to += dims + 1) {
      int64_t rest = i;
      for (int64_t k = 0; k < dims; ++k) {
        const int64_t count = size[static_cast<size_t>(size.ssize() - 1 - k)], at = rest % count;
        rest /= count;
        const double even = count > 1 ? -1 + 2 * static_cast<double>(at) / static_cast<double>(count - 1) : 0;
        to[k] = align ? even : even * static_cast<double>(count - 1) / static_cast<double>(count);
      }
      to[dims] = 1;
    }
  return device.is_meta() ? empty(values.sizes(), dtype, device) : cast(values, dtype);
}

DimVector grid_sizes(IntView size) {
  DimVector sizes{IntView(size.slice(0, 1))};
  for (size_t d = 2; d < size.size(); ++d) sizes.push_back(size[d]);
  sizes.push_back(size.ssize() - 2);
  return sizes;
}

void check_size(IntView size) {
  TN_CHECK(size.size() == 4 || size.size() == 5, "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
}

}  // namespace

Tensor affine_grid(const Tensor& theta, IntView size, bool align_corners) {
  check_size(size);
  return at::view(at::bmm(base_grid(size, align_corners, theta.dtype(), theta.device()), at::transpose(theta, 1, 2)),
                  grid_sizes(size));
}

Tensor affine_grid_backward(const Tensor& grad, IntView size, bool align_corners) {
  check_size(size);
  const int64_t flat[] = {size[0], product(size.slice(2, size.size() - 2)), size.ssize() - 2};
  const Tensor base = base_grid(size, align_corners, grad.dtype(), grad.device());
  return at::transpose(at::bmm(at::transpose(base, 1, 2), at::reshape(grad, flat)), 1, 2);
}

}  // namespace tn::composite
