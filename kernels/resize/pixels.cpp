// Rearranged pixels and channels, and patches as columns.
#include <complex>

#include "generated/slots/resize.h"
#include "kernels/convolution/columns.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/shape.h"
#include "runtime/threads.h"

namespace tn {
namespace {

// self's elements in the order of this geometry over its contiguous copy, as a tensor of `sizes`.
Tensor rearranged(const Tensor& self, IntView order_sizes, IntView order_strides, IntView sizes) {
  const MemoryFormat format = sizes.size() == 4 ? suggest_memory_format(self) : MemoryFormat::Contiguous;
  if (self.is_meta()) return empty(sizes, self.dtype(), self.device(), format);
  const Tensor x = contiguous(resolve(self));
  const Tensor dense =
      clone(alias_with_geometry(x, order_sizes, order_strides, x.storage_offset()), MemoryFormat::Contiguous);
  DimVector strides(sizes.size());
  contiguous_strides(sizes, strides.data());
  const Tensor out = alias_with_geometry(dense, sizes, strides, 0);
  return format == MemoryFormat::Contiguous ? out : contiguous(out, format);
}

int64_t leading(const Tensor& self, int64_t keep) {
  return product(self.sizes().slice(0, static_cast<size_t>(self.dim() - keep)));
}

Tensor shuffled(const Tensor& self, int64_t groups) {
  TN_CHECK(self.dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ", self.sizes());
  TN_CHECK(groups > 0, "Number of groups to divide channels in must be positive. Value of groups:", groups);
  const int64_t channels = self->size(1), each = channels / groups;
  TN_CHECK(channels % groups == 0, "Number of channels must be divisible by groups. Got ", channels, " channels and ",
           groups, " groups.");
  const int64_t inner = product(self.sizes().slice(2, static_cast<size_t>(self.dim() - 2)));
  const int64_t sizes[] = {self->size(0), each, groups, inner}, strides[] = {channels * inner, inner, each * inner, 1};
  return rearranged(self, sizes, strides, self.sizes());
}

void check_two(IntView v, const char* what, int64_t least, const char* must) {
  TN_CHECK(v.size() == 2, "It is expected ", what, " equals to 2, but got size ", v.size());
  TN_CHECK(v[0] >= least && v[1] >= least, what, " should be ", must, " zero, but got (", v[0], ", ", v[1], ")");
}

convolution::Problem patches(IntView image, int64_t batch, int64_t channels, IntView kernel, IntView dilation,
                             IntView pad, IntView stride) {
  check_two(kernel, "kernel_size", 1, "greater than");
  check_two(dilation, "dilation", 1, "greater than");
  check_two(pad, "padding", 0, "not less than");
  check_two(stride, "stride", 1, "greater than");
  convolution::Problem p;
  p.batch = batch, p.x_channels = channels, p.y_channels = 1;
  for (size_t d = 0; d < 2; ++d) {
    p.x[d + 1] = image[d], p.kernel[d + 1] = kernel[d], p.stride[d + 1] = stride[d], p.pad[d + 1] = pad[d],
            p.dilation[d + 1] = dilation[d];
    const int64_t room = image[d] + 2 * pad[d] - (dilation[d] * (kernel[d] - 1) + 1);
    p.y[d + 1] = room < 0 ? 0 : room / stride[d] + 1;
  }
  return p;
}

template <class F>
void with_sums(const char* name, ScalarType t, F&& f) {
  switch (t) {
    case ScalarType::Float: return f.template operator()<float>();
    case ScalarType::Double: return f.template operator()<double>();
    case ScalarType::ComplexFloat: return f.template operator()<std::complex<float>>();
    case ScalarType::ComplexDouble: return f.template operator()<std::complex<double>>();
    default: fail(ErrorKind::NotImplemented, '"', name, "\" not implemented for '", scalar_type_name(t), "'");
  }
}

}  // namespace

namespace native {

Tensor pixel_shuffle(const Tensor& self, int64_t r) {
  TN_CHECK(self.dim() >= 3, "pixel_shuffle expects input to have at least 3 dimensions, but got input with ",
           self.dim(), " dimension(s)");
  TN_CHECK(r > 0, "pixel_shuffle expects a positive upscale_factor, but got ", r);
  const int64_t c = self.size(-3), h = self.size(-2), w = self.size(-1);
  TN_CHECK(c % (r * r) == 0,
           "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
           "input.size(-3)=",
           c, " is not divisible by ", r * r);
  DimVector sizes(self.sizes());
  sizes[sizes.size() - 3] = c / (r * r), sizes[sizes.size() - 2] = h * r, sizes[sizes.size() - 1] = w * r;
  const int64_t plane = h * w, order[] = {leading(self, 3), c / (r * r), h, r, w, r};
  const int64_t strides[] = {c * plane, r * r * plane, w, r * plane, 1, plane};
  return rearranged(self, order, strides, sizes);
}

Tensor pixel_unshuffle(const Tensor& self, int64_t r) {
  TN_CHECK(self.dim() >= 3, "pixel_unshuffle expects input to have at least 3 dimensions, but got input with ",
           self.dim(), " dimension(s)");
  TN_CHECK(r > 0, "pixel_unshuffle expects a positive downscale_factor, but got ", r);
  const int64_t c = self.size(-3), h = self.size(-2), w = self.size(-1);
  TN_CHECK(h % r == 0, "pixel_unshuffle expects height to be divisible by downscale_factor, but input.size(-2)=", h,
           " is not divisible by ", r);
  TN_CHECK(w % r == 0, "pixel_unshuffle expects width to be divisible by downscale_factor, but input.size(-1)=", w,
           " is not divisible by ", r);
  DimVector sizes(self.sizes());
  sizes[sizes.size() - 3] = c * r * r, sizes[sizes.size() - 2] = h / r, sizes[sizes.size() - 1] = w / r;
  const int64_t order[] = {leading(self, 3), c, r, r, h / r, w / r}, strides[] = {c * h * w, h * w, w, 1, r * w, r};
  return rearranged(self, order, strides, sizes);
}

Tensor channel_shuffle(const Tensor& self, int64_t groups) { return shuffled(self, groups); }

Tensor im2col(const Tensor& self, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef pad, IntArrayRef stride) {
  TN_CHECK((self.dim() == 3 || self.dim() == 4) && self.size(-1) != 0 && self.size(-2) != 0 && self.size(-3) != 0,
           "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
           "but got: ",
           self.sizes());
  const bool batched = self.dim() == 4;
  const int64_t image[] = {self.size(-2), self.size(-1)}, batch = batched ? self->size(0) : 1, channels = self.size(-3);
  const convolution::Problem p = patches(image, batch, channels, kernel, dilation, pad, stride);
  TN_CHECK(p.y_pixels() > 0, "Given input with spatial size (", image[0], ", ", image[1], "), kernel_size=(", kernel[0],
           ", ", kernel[1], "), dilation=(", dilation[0], ", ", dilation[1], "), padding=(", pad[0], ", ", pad[1],
           "), calculated shape of the array of sliding blocks as (", p.y[1], ", ", p.y[2],
           "), but its components must be at least one.");
  const int64_t sizes[] = {batch, p.depth(), p.y_pixels()};
  const IntView shape = batched ? IntView(sizes) : IntView(sizes + 1, 2);
  const Tensor out = empty(shape, self.dtype(), self.device());
  if (self.is_meta() || out.numel() == 0) return out;
  const ScalarType compute = is_reduced_float(self.dtype()) ? ScalarType::Float : self.dtype();
  const Tensor x = contiguous(cast(resolve(self), compute)), to = compute == self.dtype() ? out : empty(shape, compute);
  with_sums("im2col_out_cpu", compute, [&]<class T>() {
    parallel_for(0, batch * channels, std::max<int64_t>(1, 32768 / (p.taps() * p.y_pixels())),
                 [&](int64_t begin, int64_t end) {
                   convolution::to_columns(p, x.data<T>() + begin * p.x_pixels(), end - begin, 0, p.y_pixels(),
                                           to.data<T>() + begin * p.taps() * p.y_pixels(), p.y_pixels());
                 });
  });
  if (!to.is_same(out)) copy_into(out, to);
  return out;
}

Tensor col2im(const Tensor& self, IntArrayRef output, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef pad,
              IntArrayRef stride) {
  TN_CHECK(output.size() == 2, "It is expected output_size equals to 2, but got size ", output.size());
  check_two(kernel, "kernel_size", 1, "greater than");
  TN_CHECK((self.dim() == 2 || self.dim() == 3) && self.size(-1) != 0 && self.size(-2) != 0,
           "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
           "input, but got: ",
           self.sizes());
  const bool batched = self.dim() == 3;
  const int64_t batch = batched ? self->size(0) : 1, rows = self.size(-2), taps = kernel[0] * kernel[1];
  TN_CHECK(rows % taps == 0,
           "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)=",
           rows, " and kernel_size=(", kernel[0], ", ", kernel[1], ").");
  const int64_t channels = rows / taps;
  const convolution::Problem p = patches(output, batch, channels, kernel, dilation, pad, stride);
  TN_CHECK(p.y_pixels() == self.size(-1), "Given output_size=(", output[0], ", ", output[1], "), kernel_size=(",
           kernel[0], ", ", kernel[1], "), dilation=(", dilation[0], ", ", dilation[1], "), padding=(", pad[0], ", ",
           pad[1], "), stride=(", stride[0], ", ", stride[1],
           "), expected size of input's dimension 2 to match the calculated number of sliding blocks ", p.y[1], " * ",
           p.y[2], " = ", p.y_pixels(), ", but got input.size(2)=", self.size(-1), '.');
  const int64_t sizes[] = {batch, channels, output[0], output[1]};
  const IntView shape = batched ? IntView(sizes) : IntView(sizes + 1, 3);
  const Tensor out = empty(shape, self.dtype(), self.device());
  if (self.is_meta() || out.numel() == 0) return out;
  const ScalarType compute = is_reduced_float(self.dtype()) ? ScalarType::Float : self.dtype();
  const Tensor x = contiguous(cast(resolve(self), compute)), to = compute == self.dtype() ? out : empty(shape, compute);
  zero(to);
  with_sums("col2im_out_cpu", compute, [&]<class T>() {
    parallel_for(0, batch * channels, std::max<int64_t>(1, 32768 / (p.taps() * p.y_pixels())),
                 [&](int64_t begin, int64_t end) {
                   convolution::from_columns(p, x.data<T>() + begin * p.taps() * p.y_pixels(), p.y_pixels(),
                                             end - begin, 0, p.y_pixels(), to.data<T>() + begin * p.x_pixels());
                 });
  });
  if (!to.is_same(out)) copy_into(out, to);
  return out;
}

}  // namespace native
}  // namespace tn
