#include "kernels/pool/composites.h"

#include "generated/ops/_adaptive_avg_pool2d.h"
#include "generated/ops/_adaptive_avg_pool3d.h"
#include "generated/ops/adaptive_avg_pool2d.h"
#include "generated/ops/adaptive_max_pool2d.h"
#include "generated/ops/as_strided.h"
#include "generated/ops/avg_pool2d.h"
#include "generated/ops/max_pool1d_with_indices.h"
#include "generated/ops/max_pool2d_with_indices.h"
#include "generated/ops/mean.h"
#include "generated/ops/squeeze.h"
#include "generated/ops/unsqueeze.h"
#include "runtime/error.h"
#include "runtime/shape.h"

namespace tn::composite {
namespace {

void check_line(const Tensor& self, const char* name) {
  const int64_t ndim = self.dim();
  bool valid = ndim == 2 || ndim == 3;
  TN_CHECK(valid,
           "Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:", self.sizes());
  for (int64_t d = ndim == 3 ? 1 : 0; d < ndim; ++d) valid &= self->size(d) > 0;
  TN_CHECK(valid, name, ": Expected input to have non-zero size for non-batch dimensions, but input has sizes ",
           self.sizes());
}

int64_t only(IntView list, const char* op, const char* name) {
  TN_CHECK(list.size() == 1, op, "() argument '", name, "' should contain one int (got ", list.size(), ")");
  return list[0];
}

}  // namespace

std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& self, IntView kernel, IntView stride, IntView pad,
                                                   IntView dilation, bool ceil) {
  const IntView steps = stride.empty() ? kernel : stride;
  const int64_t k = only(kernel, "max_pool1d", "kernel_size"), s = only(steps, "max_pool1d", "stride"),
                p = only(pad, "max_pool1d", "padding"), d = only(dilation, "max_pool1d", "dilation");
  TN_CHECK(self.dim() == 2 || self.dim() == 3,
           "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:",
           self.sizes());
  TN_CHECK(k > 0, "max_pool1d() kernel_size must be greater than zero, but got ", k);
  TN_CHECK(s > 0, "max_pool1d() stride must be greater than zero, but got ", s);
  TN_CHECK(p >= 0, "max_pool1d() padding must be non-negative, but got ", p);
  TN_CHECK(p <= k / 2, "max_pool1d() padding should be at most half of kernel size, but got padding=", p,
           " and kernel_size=", k);
  TN_CHECK(d > 0, "max_pool1d() dilation must be greater than zero, but got ", d);
  TN_CHECK((self.size(-1) + 2 * p - d * (k - 1) - 1 + (ceil ? s - 1 : 0)) >= 0,
           "max_pool1d() Invalid computed output size: ",
           (self.size(-1) + 2 * p - d * (k - 1) - 1 + (ceil ? s - 1 : 0) - (s - 1)) / s + 1);
  const int64_t kernels[] = {1, k}, strides[] = {1, s}, pads[] = {0, p}, dilations[] = {1, d};
  const auto [out, index] =
      at::max_pool2d_with_indices(at::unsqueeze(self, -2), kernels, strides, pads, dilations, ceil);
  return {at::squeeze(out, -2), at::squeeze(index, -2)};
}
Tensor max_pool1d(const Tensor& self, IntView kernel, IntView stride, IntView pad, IntView dilation, bool ceil) {
  return std::get<0>(at::max_pool1d_with_indices(self, kernel, stride, pad, dilation, ceil));
}

Tensor avg_pool1d(const Tensor& self, IntView kernel, IntView stride, IntView pad, bool ceil, bool with_pad) {
  check_line(self, "avg_pool1d");
  const IntView steps = stride.empty() ? kernel : stride;
  const int64_t kernels[] = {1, only(kernel, "avg_pool1d", "kernel_size")},
                strides[] = {1, only(steps, "avg_pool1d", "stride")}, pads[] = {0, only(pad, "avg_pool1d", "padding")};
  return at::squeeze(at::avg_pool2d(at::unsqueeze(self, -2), kernels, strides, pads, ceil, with_pad), -2);
}

Tensor adaptive_avg_pool1d(const Tensor& self, IntView output) {
  check_line(self, "adaptive_avg_pool1d");
  const int64_t sizes[] = {1, only(output, "adaptive_avg_pool1d", "output_size")};
  return at::squeeze(at::adaptive_avg_pool2d(at::unsqueeze(self, -2), sizes), -2);
}

Tensor adaptive_avg_pool(int64_t dims, const Tensor& self, IntView output) {
  TN_CHECK(output.ssize() == dims, "adaptive_avg_pool", dims, "d: output_size must be ", dims);
  bool one = true;
  for (const int64_t v : output) {
    TN_CHECK(
        v >= 0, "adaptive_avg_pool", dims,
        "d: elements of output_size must be greater than or equal to 0 but received {",
        [&] {
          std::string t;
          for (const int64_t w : output) t += str(t.empty() ? "" : ", ", w);
          return t;
        }(),
        "}");
    one &= v == 1;
  }
  if (one && self.dim() > dims) {
    // The mean of everything; upstream gives the result the input's format.
    bool filled = true;
    for (int64_t d = 1; d <= dims; ++d) filled &= self.size(-d) > 0;
    if (filled && (self.dim() == dims + 1 || self.dim() == dims + 2)) {
      const int64_t axes[] = {-1, -2, -3};
      const Tensor out = at::mean(self, IntView(axes, static_cast<size_t>(dims)), true);
      const MemoryFormat last = dims == 2 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
      if (self.dim() != dims + 2 || suggest_memory_format(self) != last) return out;
      const int64_t n = self->size(0), c = self->size(1);
      DimVector sizes(static_cast<size_t>(dims + 2), 1), strides(static_cast<size_t>(dims + 2), c);
      sizes[0] = n, sizes[1] = c, strides[1] = 1;
      return at::as_strided(out, sizes, strides);
    }
  }
  return dims == 2 ? at::_adaptive_avg_pool2d(self, output) : at::_adaptive_avg_pool3d(self, output);
}

std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& self, IntView output) {
  check_line(self, "adaptive_max_pool1d()");
  const int64_t sizes[] = {1, only(output, "adaptive_max_pool1d", "output_size")};
  const auto [out, index] = at::adaptive_max_pool2d(at::unsqueeze(self, -2), sizes);
  return {at::squeeze(out, -2), at::squeeze(index, -2)};
}

}  // namespace tn::composite
