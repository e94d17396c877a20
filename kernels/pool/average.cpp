// Means of windows, in regular and adaptive windows, and the gradients.
#include "generated/slots/pool.h"
#include "kernels/pool/windows.h"
#include "runtime/copy.h"
#include "runtime/error.h"

namespace tn {
namespace {

using namespace pool;

struct Divisor {
  bool with_pad = false;
  std::optional<int64_t> given;
};

template <class F>
Tensor averaged(const char* kernel, const Tensor& self, IntView sizes, MemoryFormat format, const Divisor& divisor,
                F&& make) {
  const Tensor out = empty(sizes, self.dtype(), self.device(), format);
  if (self.is_meta() || out.numel() == 0) return out;
  const ScalarType compute = compute_type(self.dtype());
  if (!is_floating(compute) && compute != ScalarType::Long) not_implemented(kernel, self.dtype());
  const Windows w = make(format != MemoryFormat::Contiguous);
  const Tensor x = contiguous(cast(self, compute), format);
  const Tensor to = compute == self.dtype() ? out : empty(sizes, compute, {}, format);
  with_number(compute, [&]<class T>() {
    T* const values = to.data<T>();
    for_runs<T>(w, x.data<T>(), divisor.with_pad, [&](const Run<T>& run, int64_t at, int64_t count) {
      mean_run(run, divisor.given.value_or(count), values + at);
    });
  });
  if (!to.is_same(out)) copy_into(out, to);
  return out;
}

// Each output's gradient over its divisor goes to all its taps.
template <class T>
void spread_planes(const Windows& w, int64_t planes, const T* grad, const Divisor& divisor, T* out) {
  const Axis &az = w.axes[0], &ay = w.axes[1], &ax = w.axes[2];
  const int64_t pixels = w.in_pixels(), outputs = w.out_pixels();
  parallel_for(0, planes, std::max<int64_t>(1, 32768 / std::max<int64_t>(pixels + outputs * w.window(), 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t p = begin; p < end; ++p) {
                   T* const target = out + p * pixels;
                   std::fill_n(target, pixels, T{0});
                   const T* from = grad + p * outputs;
                   for (size_t z = 0; z < az.first.size(); ++z)
                     for (size_t y = 0; y < ay.first.size(); ++y)
                       for (size_t x = 0; x < ax.first.size(); ++x, ++from) {
                         const int64_t count = divisor.with_pad ? az.padded[z] * ay.padded[y] * ax.padded[x]
                                                                : az.count[z] * ay.count[y] * ax.count[x];
                         const T share = static_cast<T>(*from / static_cast<T>(divisor.given.value_or(count)));
                         for (int64_t a = 0; a < az.count[z]; ++a)
                           for (int64_t b = 0; b < ay.count[y]; ++b) {
                             T* const row =
                                 target + ((az.first[z] + a) * ay.size + ay.first[y] + b) * ax.size + ax.first[x];
                             for (int64_t c = 0; c < ax.count[x]; ++c) row[c] = static_cast<T>(row[c] + share);
                           }
                       }
                 }
               });
}

Tensor spread(const char* kernel, const Windows& w, const Tensor& grad_output, const Tensor& self, MemoryFormat format,
              const Divisor& divisor) {
  const Tensor out = empty(self.sizes(), self.dtype(), self.device(), format);
  if (self.is_meta() || out.numel() == 0) return out;
  const ScalarType compute = compute_type(self.dtype());
  if (!is_floating(compute) && compute != ScalarType::Long) not_implemented(kernel, self.dtype());
  const Tensor grad = contiguous(cast(grad_output, compute));
  const bool direct = compute == self.dtype() && out.is_contiguous();
  const Tensor to = direct ? out : empty(self.sizes(), compute);
  with_number(compute,
              [&]<class T>() { spread_planes(w, w.batch * w.channels, grad.data<T>(), divisor, to.data<T>()); });
  if (!direct) copy_into(out, to);
  return out;
}

constexpr int64_t kOne[] = {1};

// Upstream's kernels of three dimensions know planes only.
MemoryFormat average_format(int64_t dims, const Tensor& self) {
  return dims == 2 ? format_of(dims, self) : MemoryFormat::Contiguous;
}

Spec average_spec(int64_t dims, IntView kernel, IntView stride, IntView pad, bool ceil,
                  const std::optional<int64_t>& divisor) {
  Spec spec = make_spec(dims == 2 ? "avg_pool2d" : "avg_pool3d", dims, kernel, stride, pad, kOne, ceil);
  TN_CHECK(!divisor || *divisor != 0, "divisor must be not zero");
  return spec;
}

Tensor average(int64_t dims, const Tensor& self, IntView kernel, IntView stride, IntView pad, bool ceil, bool with_pad,
               const std::optional<int64_t>& divisor) {
  const Spec spec = average_spec(dims, kernel, stride, pad, ceil, divisor);
  const DimVector sizes = pooled_sizes(spec, self);
  if (dims == 3 && is_reduced_float(self.dtype())) not_implemented("avg_pool3d_out_frame", self.dtype());
  return averaged(spec.name, self, sizes, average_format(dims, self), {with_pad, divisor},
                  [&](bool last) { return make_windows(spec, self, sizes, last); });
}

Tensor average_backward(int64_t dims, const Tensor& grad, const Tensor& self, IntView kernel, IntView stride,
                        IntView pad, bool ceil, bool with_pad, const std::optional<int64_t>& divisor) {
  const Spec spec = average_spec(dims, kernel, stride, pad, ceil, divisor);
  const DimVector sizes = pooled_sizes(spec, self);
  TN_CHECK(grad.sizes() == IntView(sizes), spec.name, "_backward: expected grad_output of size ", IntView(sizes),
           ", got ", grad.sizes());
  return spread(spec.name, make_windows(spec, self, sizes, false), grad, self, average_format(dims, self),
                {with_pad, divisor});
}

Tensor adaptive_average(const char* name, int64_t dims, const Tensor& self, IntView output) {
  const DimVector sizes = adaptive_sizes(name, dims, self, output);
  if (!is_floating(self.dtype()))
    not_implemented(dims == 2 ? "adaptive_avg_pool2d" : "adaptive_avg_pool3d_cpu", self.dtype());
  return averaged(name, self, sizes, average_format(dims, self), {},
                  [&](bool last) { return adaptive_windows(dims, self, sizes, last); });
}

Tensor adaptive_average_backward(const char* name, int64_t dims, const Tensor& grad, const Tensor& self) {
  TN_CHECK(grad.dim() == self.dim() && (grad.dim() == dims + 1 || grad.dim() == dims + 2), name, ": Expected ",
           dims + 1, "D or ", dims + 2, "D tensor, but got ", self.sizes());
  TN_CHECK(grad.dtype() == self.dtype(), "expected dtype ", scalar_type_name(self.dtype()),
           " for `grad_output` but got dtype ", scalar_type_name(grad.dtype()));
  return spread(name, adaptive_windows(dims, self, grad.sizes(), false), grad, self, average_format(dims, self), {});
}

}  // namespace

namespace native {

Tensor avg_pool2d(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef pad, bool ceil, bool with_pad,
                  std::optional<int64_t> divisor) {
  return average(2, self, kernel, stride, pad, ceil, with_pad, divisor);
}
Tensor avg_pool3d(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef pad, bool ceil, bool with_pad,
                  std::optional<int64_t> divisor) {
  return average(3, self, kernel, stride, pad, ceil, with_pad, divisor);
}
Tensor avg_pool2d_backward(const Tensor& grad, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                           IntArrayRef pad, bool ceil, bool with_pad, std::optional<int64_t> divisor) {
  return average_backward(2, grad, self, kernel, stride, pad, ceil, with_pad, divisor);
}
Tensor avg_pool3d_backward(const Tensor& grad, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                           IntArrayRef pad, bool ceil, bool with_pad, std::optional<int64_t> divisor) {
  return average_backward(3, grad, self, kernel, stride, pad, ceil, with_pad, divisor);
}
Tensor _adaptive_avg_pool2d(const Tensor& self, IntArrayRef output) {
  return adaptive_average("adaptive_avg_pool2d()", 2, self, output);
}
Tensor _adaptive_avg_pool3d(const Tensor& self, IntArrayRef output) {
  return adaptive_average("adaptive_avg_pool3d()", 3, self, output);
}
Tensor _adaptive_avg_pool2d_backward(const Tensor& grad, const Tensor& self) {
  return adaptive_average_backward("adaptive_avg_pool2d_backward()", 2, grad, self);
}
Tensor _adaptive_avg_pool3d_backward(const Tensor& grad, const Tensor& self) {
  return adaptive_average_backward("adaptive_avg_pool3d_backward()", 3, grad, self);
}

}  // namespace native
}  // namespace tn
