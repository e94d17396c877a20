// Maxima of windows with their indices, in regular and adaptive windows, and the gradients.
#include <limits>

#include "generated/slots/pool.h"
#include "kernels/pool/windows.h"
#include "runtime/copy.h"
#include "runtime/error.h"

namespace tn {
namespace {

using namespace pool;
using Two = std::tuple<Tensor, Tensor>;

// The values do not tell the geometry: `make` gives the windows for channels innermost or not.
template <class F>
Two pooled(const char* kernel, const Tensor& self, IntView sizes, MemoryFormat format, F&& make) {
  const Tensor out = empty(sizes, self.dtype(), self.device(), format),
               index = empty(sizes, ScalarType::Long, self.device(), format);
  if (self.is_meta() || out.numel() == 0) return {out, index};
  const ScalarType compute = compute_type(self.dtype());
  const Windows w = make(format != MemoryFormat::Contiguous);
  const Tensor x = contiguous(cast(self, compute), format);
  const Tensor to = compute == self.dtype() ? out : empty(sizes, compute, {}, format);
  const bool served = with_number(compute, [&]<class T>() {
    T* const values = to.data<T>();
    int64_t* const places = index.data<int64_t>();
    for_runs<T>(w, x.data<T>(), false, [&](const Run<T>& run, int64_t at, int64_t) {
      if (run.taps > 0) return max_run(run, values + at, places + at);
      std::fill_n(values + at, run.n,
                  std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                       : std::numeric_limits<T>::lowest());
      std::fill_n(places + at, run.n, 0);  // dilation steps over the whole input
    });
  });
  if (!served) not_implemented(kernel, self.dtype());
  if (!to.is_same(out)) copy_into(out, to);
  return {out, index};
}

Two max_pool(const Spec& spec, const Tensor& self) {
  const DimVector sizes = pooled_sizes(spec, self);
  return pooled(spec.name, self, sizes, format_of(spec.dims, self),
                [&](bool last) { return make_windows(spec, self, sizes, last); });
}

void check_place(const char* kernel, int64_t place, int64_t pixels) {
  TN_CHECK(place >= 0 && place < pixels, kernel, ": expected an index in [0, ", pixels, "), got ", place);
}

// Channels innermost in all three. Tasks are blocks of channels of one image; an element's terms keep their order.
template <class T>
void scatter_channels(const char* kernel, int64_t batch, int64_t channels, int64_t pixels, int64_t outputs,
                      const T* grad, const int64_t* places, T* out) {
  constexpr int64_t kBlock = 64;
  const int64_t blocks = (channels + kBlock - 1) / kBlock;
  parallel_for(0, batch * blocks, std::max<int64_t>(1, 32768 / (pixels * kBlock)), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / blocks, c0 = task % blocks * kBlock, take = std::min(kBlock, channels - c0);
      T* const target = out + n * pixels * channels + c0;
      for (int64_t p = 0; p < pixels; ++p) std::fill_n(target + p * channels, take, T{0});
      for (int64_t i = 0; i < outputs; ++i) {
        const int64_t at = (n * outputs + i) * channels + c0;
        for (int64_t c = 0; c < take; ++c) {
          const int64_t place = places[at + c];
          if (place == -1) continue;
          check_place(kernel, place, pixels);
          T& to = target[place * channels + c];
          to = static_cast<T>(to + grad[at + c]);
        }
      }
    }
  });
}

// Each output's gradient goes to the element that its index names.
Tensor scatter(const char* kernel, int64_t dims, const Tensor& grad_output, const Tensor& self, const Tensor& indices,
               MemoryFormat format) {
  const Tensor out = empty(self.sizes(), self.dtype(), self.device(), format);
  if (self.is_meta() || out.numel() == 0) return out;
  TN_CHECK(grad_output.dtype() == self.dtype(), "expected dtype ", scalar_type_name(self.dtype()),
           " for `grad_output` but got dtype ", scalar_type_name(grad_output.dtype()));
  const ScalarType compute = compute_type(self.dtype());
  const bool last = format != MemoryFormat::Contiguous;
  const Tensor grad = contiguous(cast(grad_output, compute), format), places = contiguous(indices, format);
  const bool direct = compute == self.dtype();
  const Tensor to = direct ? out : empty(self.sizes(), compute, {}, format);
  int64_t pixels = 1, outputs = 1;
  for (int64_t d = 1; d <= dims; ++d) pixels *= self.size(-d), outputs *= grad.size(-d);
  const int64_t planes = out.numel() / pixels;
  const bool served = with_number(compute, [&]<class T>() {
    if (last) {
      return scatter_channels(kernel, self.size(0), self.size(1), pixels, outputs, grad.data<T>(),
                              places.data<int64_t>(), to.data<T>());
    }
    parallel_for(0, planes, std::max<int64_t>(1, 32768 / std::max<int64_t>(pixels, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t p = begin; p < end; ++p) {
                     T* const target = to.data<T>() + p * pixels;
                     std::fill_n(target, pixels, T{0});
                     const T* const from = grad.data<T>() + p * outputs;
                     const int64_t* const place = places.data<int64_t>() + p * outputs;
                     for (int64_t i = 0; i < outputs; ++i) {
                       if (place[i] == -1) continue;
                       check_place(kernel, place[i], pixels);
                       target[place[i]] = static_cast<T>(target[place[i]] + from[i]);
                     }
                   }
                 });
  });
  if (!served) not_implemented(kernel, self.dtype());
  if (!direct) copy_into(out, to);
  return out;
}

Tensor max_pool_backward(const Spec& spec, const Tensor& grad, const Tensor& self, const Tensor& indices) {
  const DimVector sizes = pooled_sizes(spec, self);
  TN_CHECK(grad.sizes() == IntView(sizes), spec.name, "_with_indices_backward: expected grad_output of size ",
           IntView(sizes), ", got ", grad.sizes());
  TN_CHECK(indices.sizes() == IntView(sizes), spec.name, "_with_indices_backward: expected indices of size ",
           IntView(sizes), ", got ", indices.sizes());
  return scatter(spec.name, spec.dims, grad, self, indices, format_of(spec.dims, self));
}

Two adaptive_max(const char* name, int64_t dims, const Tensor& self, IntView output) {
  const DimVector sizes = adaptive_sizes(name, dims, self, output);
  if (!is_floating(self.dtype()))
    not_implemented(dims == 2 ? "adaptive_max_pool2d" : "adaptive_max_pool3d", self.dtype());
  const MemoryFormat format = dims == 2 ? format_of(dims, self) : MemoryFormat::Contiguous;
  return pooled(name, self, sizes, format, [&](bool last) { return adaptive_windows(dims, self, sizes, last); });
}

Tensor adaptive_max_backward(const char* name, int64_t dims, const Tensor& grad, const Tensor& self,
                             const Tensor& indices) {
  TN_CHECK(grad.dim() == dims + 1 || grad.dim() == dims + 2, name, ": Expected ", dims + 1, "D or ", dims + 2,
           "D grad_output, but got ", grad.sizes());
  for (int64_t d = 1; d < grad.dim(); ++d)
    TN_CHECK(grad->size(d) > 0, name,
             ": Expected grad_output to have non-zero size for non-batch dimensions, but grad_output has sizes ",
             grad.sizes(), " with dimension ", d, " being empty");
  TN_CHECK(grad.sizes() == indices.sizes(), name, ": expected sizes ", indices.sizes(),
           " for `grad_output` but got sizes ", grad.sizes());
  return scatter(name, dims, grad, self, indices, dims == 2 ? format_of(dims, self) : MemoryFormat::Contiguous);
}

}  // namespace

namespace native {

Two max_pool2d_with_indices(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef pad,
                            IntArrayRef dilation, bool ceil) {
  return max_pool(make_spec("max_pool2d", 2, kernel, stride, pad, dilation, ceil), self);
}
Two max_pool3d_with_indices(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef pad,
                            IntArrayRef dilation, bool ceil) {
  return max_pool(make_spec("max_pool3d", 3, kernel, stride, pad, dilation, ceil), self);
}
Tensor max_pool2d_with_indices_backward(const Tensor& grad, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                                        IntArrayRef pad, IntArrayRef dilation, bool ceil, const Tensor& indices) {
  return max_pool_backward(make_spec("max_pool2d", 2, kernel, stride, pad, dilation, ceil), grad, self, indices);
}
Tensor max_pool3d_with_indices_backward(const Tensor& grad, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                                        IntArrayRef pad, IntArrayRef dilation, bool ceil, const Tensor& indices) {
  return max_pool_backward(make_spec("max_pool3d", 3, kernel, stride, pad, dilation, ceil), grad, self, indices);
}
Two adaptive_max_pool2d(const Tensor& self, IntArrayRef output) {
  return adaptive_max("adaptive_max_pool2d()", 2, self, output);
}
Two adaptive_max_pool3d(const Tensor& self, IntArrayRef output) {
  return adaptive_max("adaptive_max_pool3d()", 3, self, output);
}
Tensor adaptive_max_pool2d_backward(const Tensor& grad, const Tensor& self, const Tensor& indices) {
  return adaptive_max_backward("adaptive_max_pool2d_backward()", 2, grad, self, indices);
}
Tensor adaptive_max_pool3d_backward(const Tensor& grad, const Tensor& self, const Tensor& indices) {
  return adaptive_max_backward("adaptive_max_pool3d_backward()", 3, grad, self, indices);
}

}  // namespace native
}  // namespace tn
