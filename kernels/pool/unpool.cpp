// The partial inverse of max pooling, and fractional max pooling.
#include <limits>

#include "generated/slots/pool.h"
#include "kernels/pool/windows.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/half.h"

namespace tn {
namespace {

using namespace pool;
using Two = std::tuple<Tensor, Tensor>;

Tensor unpool(const char* name, int64_t dims, const Tensor& self, const Tensor& indices, IntView output) {
  TN_CHECK(indices.dtype() == ScalarType::Long,
           "elements in indices should be type int64 but got: ", scalar_type_name(indices.dtype()));
  TN_CHECK(output.ssize() == dims, "There should be exactly ",
           dims == 2 ? "two elements (height, width)" : "three elements (depth, height, width)",
           " in output_size, but got ", output.size(), " elements.");
  TN_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, "Input to ", name, " should be a ", dims + 1, "d or ",
           dims + 2, "d Tensor, but got a tensor with ", self.dim(), " dimensions.");
  TN_CHECK(self.sizes() == indices.sizes(), "Expected shape of indices to be same as that of the input tensor (",
           self.sizes(), ") but got indices tensor with shape: ", indices.sizes());
  for (int64_t d = 1; d < self.dim(); ++d)
    TN_CHECK(self->size(d) > 0, name, "(): Expected input to have non-zero size for non-batch dimensions, but got ",
             self.sizes(), " with dimension ", d, " being empty.");
  DimVector sizes(self.sizes());
  int64_t pixels = 1, inputs = 1;
  for (int64_t i = 0; i < dims; ++i) {
    const auto d = sizes.size() - static_cast<size_t>(dims - i);
    inputs *= sizes[d];
    sizes[d] = output[static_cast<size_t>(i)];
    pixels *= sizes[d];
  }
  const MemoryFormat format = dims == 2 ? format_of(2, self) : MemoryFormat::Contiguous;
  const Tensor out = empty(sizes, self.dtype(), self.device(), format);
  if (self.is_meta() || out.numel() == 0) return out;
  const ScalarType compute = compute_type(self.dtype());
  const Tensor x = contiguous(cast(self, compute)), places = contiguous(indices), to = empty(sizes, compute);
  const int64_t planes = x.numel() / std::max<int64_t>(inputs, 1);
  const bool served = with_number(compute, [&]<class T>() {
    parallel_for(0, planes, std::max<int64_t>(1, 32768 / (pixels + inputs)), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        T* const target = to.data<T>() + p * pixels;
        std::fill_n(target, pixels, T{0});
        for (int64_t i = 0; i < inputs; ++i) {
          const int64_t at = places.data<int64_t>()[p * inputs + i];
          TN_CHECK(at >= 0 && at < pixels, "Found an invalid max index: ", at, " (output volumes are of size ",
                   output[0], 'x', output[1], dims == 3 ? str('x', output[2]) : "", ')');
          target[at] = x.data<T>()[p * inputs + i];
        }
      }
    });
  });
  if (!served) not_implemented(name, self.dtype());
  copy_into(out, to);
  return out;
}

// Where windows of `kernel` start along a dimension: pseudo-random steps, the last at the end.
template <class T>
std::vector<int64_t> intervals(ScalarType dtype, T sample, int64_t size, int64_t outputs, int64_t kernel) {
  // Upstream computes in the input's dtype, rounding each step.
  const auto round = [dtype](T v) {
    if (dtype == ScalarType::BFloat16) return static_cast<T>(to_float(to_bfloat16(static_cast<float>(v))));
    return dtype == ScalarType::Half ? static_cast<T>(to_float(to_half(static_cast<float>(v)))) : v;
  };
  std::vector<int64_t> starts(static_cast<size_t>(outputs));
  if (outputs > 1) {
    const T alpha = round(round(static_cast<T>(size - kernel)) / round(static_cast<T>(outputs - 1)));
    for (int64_t i = 0; i < outputs - 1; ++i)
      starts[static_cast<size_t>(i)] = static_cast<int64_t>(round(round(static_cast<T>(i) + sample) * alpha)) -
                                       static_cast<int64_t>(round(sample * alpha));
  }
  if (outputs > 0) starts[static_cast<size_t>(outputs - 1)] = size - kernel;
  return starts;
}

Two fractional(const char* name, int64_t dims, const Tensor& self, IntView kernel, IntView output,
               const Tensor& samples) {
  static constexpr const char* kNames[] = {"time", "height", "width"};
  TN_CHECK(kernel.ssize() == dims, name, ": kernel_size must either be a single int or tuple of ",
           dims == 2 ? "two" : "three", " ints");
  TN_CHECK(output.ssize() == dims, name, ": output_size must either be a single int or tuple of ",
           dims == 2 ? "two" : "three", " ints");
  TN_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, name, ": Expected ", dims + 1, "D or ", dims + 2,
           "D tensor, but got: ", self.sizes());
  DimVector sizes(self.sizes());
  for (int64_t d = self.dim() - dims - 1; d < self.dim(); ++d)
    TN_CHECK(self->size(d) > 0, name, ": Expected input to have non-zero size for non-batch dimensions, but got ",
             self.sizes(), " with dimension ", d, " being empty.");
  for (int64_t i = 0; i < dims; ++i) {
    const auto k = static_cast<size_t>(i), d = sizes.size() - static_cast<size_t>(dims - i);
    TN_CHECK(output[k] + kernel[k] - 1 <= sizes[d], name, ": pool ", kNames[3 - dims + i], " ", kernel[k],
             " too large relative to input ", kNames[3 - dims + i], " ", sizes[d]);
    sizes[d] = output[k];
  }
  const Tensor out = empty(sizes, self.dtype(), self.device()), index = empty(sizes, ScalarType::Long, self.device());
  if (self.is_meta() || out.numel() == 0) return {out, index};
  const int64_t batch = self.dim() == dims + 2 ? self->size(0) : 1, channels = self.size(-dims - 1);
  TN_CHECK(samples.dim() == 3, "Expect _random_samples to have 3 dimensions, got ", samples.dim());
  TN_CHECK(samples->size(0) >= batch, "Expect _random_samples.size(0) no less then input batch size.");
  TN_CHECK(samples->size(1) == channels, "Expect _random_samples.size(1) equals to input channel size.");
  TN_CHECK(samples->size(2) == dims, "Expect _random_samples.size(2) equals to ", dims, "; got ", samples->size(2),
           '.');
  TN_CHECK(samples.dtype() == self.dtype(), "Expect _random_samples to have the same dtype as input");
  const ScalarType compute = compute_type(self.dtype());
  if (!is_floating(compute)) not_implemented(name, self.dtype());
  const Tensor x = contiguous(cast(self, compute)), random = contiguous(cast(samples, compute)),
               to = empty(sizes, compute);
  const auto run = [&]<class T>() {
    const int64_t in[] = {dims == 3 ? self.size(-3) : 1, self.size(-2), self.size(-1)},
                  k[] = {dims == 3 ? kernel[0] : 1, kernel[kernel.size() - 2], kernel[kernel.size() - 1]};
    const int64_t o[] = {dims == 3 ? output[0] : 1, output[output.size() - 2], output[output.size() - 1]};
    const int64_t pixels = in[0] * in[1] * in[2], outputs = o[0] * o[1] * o[2];
    parallel_for(0, batch * channels, std::max<int64_t>(1, 16384 / (outputs * k[0] * k[1] * k[2])),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t p = begin; p < end; ++p) {
                     const T* const plane = x.data<T>() + p * pixels;
                     const T* const s = random.data<T>() + p * dims;
                     // Upstream draws for the width first in two dimensions, and last in three.
                     const auto zs =
                         dims == 3 ? intervals<T>(self.dtype(), s[0], in[0], o[0], k[0]) : std::vector<int64_t>{0};
                     const auto ys = intervals<T>(self.dtype(), s[1], in[1], o[1], k[1]),
                                xs = intervals<T>(self.dtype(), dims == 3 ? s[2] : s[0], in[2], o[2], k[2]);
                     int64_t at = p * outputs;
                     for (const int64_t z : zs)
                       for (const int64_t y : ys)
                         for (const int64_t left : xs) {
                           T best = -std::numeric_limits<T>::infinity();
                           int64_t place = (z * in[1] + y) * in[2] + left;
                           for (int64_t a = 0; a < k[0]; ++a)
                             for (int64_t b = 0; b < k[1]; ++b)
                               for (int64_t c = 0; c < k[2]; ++c) {
                                 const int64_t here = ((z + a) * in[1] + y + b) * in[2] + left + c;
                                 if (plane[here] > best || plane[here] != plane[here]) best = plane[here], place = here;
                               }
                           to.data<T>()[at] = best;
                           index.data<int64_t>()[at++] = place;
                         }
                   }
                 });
  };
  if (compute == ScalarType::Double) run.template operator()<double>();
  else run.template operator()<float>();
  copy_into(out, to);
  return {out, index};
}

Tensor fractional_backward(const char* name, int64_t dims, const Tensor& grad_output, const Tensor& self,
                           IntView output, const Tensor& indices) {
  const Tensor out = empty(self.sizes(), self.dtype(), self.device());
  for (int64_t i = 0; i < dims; ++i)
    TN_CHECK(grad_output.size(i - dims) == output[static_cast<size_t>(i)], name, ": grad_output ",
             i == dims - 1   ? "width"
             : i == dims - 2 ? "height"
                             : "time",
             " unexpected");
  if (self.is_meta() || out.numel() == 0) return out;
  const ScalarType compute = compute_type(self.dtype());
  const Tensor grad = contiguous(cast(grad_output, compute)), places = contiguous(indices),
               to = empty(self.sizes(), compute);
  zero(to);
  int64_t pixels = 1, outputs = 1;
  for (int64_t d = 1; d <= dims; ++d) pixels *= self.size(-d), outputs *= grad.size(-d);
  const bool served = with_number(compute, [&]<class T>() {
    for (int64_t i = 0; i < grad.numel(); ++i) {
      const int64_t at = places.data<int64_t>()[i];
      TN_CHECK(at >= 0 && at < pixels, name, ": expected an index in [0, ", pixels, "), got ", at);
      T& target = to.data<T>()[i / outputs * pixels + at];
      target = static_cast<T>(target + grad.data<T>()[i]);
    }
  });
  if (!served) not_implemented(name, self.dtype());
  copy_into(out, to);
  return out;
}

}  // namespace

namespace native {

Tensor max_unpool2d(const Tensor& self, const Tensor& indices, IntArrayRef output) {
  return unpool("max_unpooling2d", 2, self, indices, output);
}
Tensor max_unpool3d(const Tensor& self, const Tensor& indices, IntArrayRef output, IntArrayRef stride,
                    IntArrayRef pad) {
  TN_CHECK(stride.size() == 3,
           "There should be exactly three elements (depth, height, width) in stride, but got: ", stride.size(),
           " elements.");
  TN_CHECK(pad.size() == 3,
           "There should be exactly three elements (depth, height, width) in padding, but got: ", pad.size(),
           " elements.");
  for (const int64_t s : stride) TN_CHECK(s > 0, "strides should be greater than zero, but got stride: ", stride);
  return unpool("max_unpooling3d", 3, self, indices, output);
}
Two fractional_max_pool2d(const Tensor& self, IntArrayRef kernel, IntArrayRef output, const Tensor& samples) {
  return fractional("fractional_max_pool2d", 2, self, kernel, output, samples);
}
Two fractional_max_pool3d(const Tensor& self, IntArrayRef kernel, IntArrayRef output, const Tensor& samples) {
  return fractional("fractional_max_pool3d", 3, self, kernel, output, samples);
}
Tensor fractional_max_pool2d_backward(const Tensor& grad, const Tensor& self, IntArrayRef, IntArrayRef output,
                                      const Tensor& indices) {
  return fractional_backward("fractional_max_pool2d_backward", 2, grad, self, output, indices);
}
Tensor fractional_max_pool3d_backward(const Tensor& grad, const Tensor& self, IntArrayRef, IntArrayRef output,
                                      const Tensor& indices) {
  return fractional_backward("fractional_max_pool3d_backward", 3, grad, self, output, indices);
}

}  // namespace native
}  // namespace tn
