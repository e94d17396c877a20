#include "kernels/convolution/checks.h"

#include "kernels/matmul/checks.h"
#include "runtime/error.h"

namespace tn::convolution {
namespace {

using matmul::element_type;

DimVector expanded_list(IntView list, int64_t dims, const char* name) {
  if (list.ssize() == dims) return list;
  TN_CHECK(list.size() == 1, "expected ", name, " to be a single integer value or a list of ", dims,
           " values to match the convolution dimensions, but got ", name, "=", list);
  return DimVector(static_cast<size_t>(dims), list[0]);
}

bool any_below(IntView list, int64_t least) {
  for (const int64_t v : list)
    if (v < least) return true;
  return false;
}

}  // namespace

Params expand(const Tensor& weight, IntView stride, IntView padding, IntView dilation, bool transposed, IntView output_padding, int64_t groups) {
  const int64_t dims = weight.dim() - 2;
  TN_CHECK(dims > 0, "weight should have at least three dimensions");
  TN_CHECK(groups > 0, "non-positive groups is not supported");
  Params p;
  p.stride = expanded_list(stride, dims, "stride");
  p.padding = expanded_list(padding, dims, "padding");
  p.dilation = expanded_list(dilation, dims, "dilation");
  p.output_padding = expanded_list(output_padding, dims, "output_padding");
  p.transposed = transposed;
  p.groups = groups;
  return p;
}

void check_forward(const Params& p, const Tensor& input, IntView w, OptionalTensor bias) {
  const int64_t ndim = input.dim(), wdim = w.ssize(), groups = p.groups;
  TN_CHECK(!any_below(p.padding, 0), "negative padding is not supported");
  TN_CHECK(!any_below(p.output_padding, 0), "negative output_padding is not supported");
  TN_CHECK(!any_below(p.stride, 1), "non-positive stride is not supported");
  TN_CHECK(!any_below(p.dilation, 1), "dilation should be greater than zero");
  TN_CHECK(wdim == ndim, "Expected ", wdim, "-dimensional input for ", wdim, "-dimensional weight ", w, ", but got ", ndim,
           "-dimensional input of size ", input.sizes(), " instead");
  TN_CHECK(w[0] >= groups, "Given groups=", groups, ", expected weight to be at least ", groups, " at dimension 0, but got weight of size ", w,
           " instead");
  TN_CHECK(w[0] % groups == 0, "Given groups=", groups, ", expected weight to be divisible by ", groups,
           " at dimension 0, but got weight of size ", w, " instead");
  if (!p.transposed) {
    TN_CHECK(input->size(1) == w[1] * groups, "Given groups=", groups, ", weight of size ", w, ", expected input", input.sizes(), " to have ",
             w[1] * groups, " channels, but got ", input->size(1), " channels instead");
    TN_CHECK(!bias || (bias->dim() == 1 && bias->size(0) == w[0]), "Given weight of size ", w, ", expected bias to be 1-dimensional with ", w[0],
             " elements, but got bias of size ", bias ? bias->sizes() : IntView(), " instead");
    bool fits = true;
    std::string sizes, kernel;
    for (int64_t d = 2; d < ndim; ++d) {
      const auto i = static_cast<size_t>(d - 2);
      const int64_t padded = input->size(d) + 2 * p.padding[i], taps = p.dilation[i] * (w[static_cast<size_t>(d)] - 1) + 1;
      fits &= padded >= taps;
      sizes = sizes.empty() ? str(padded) : str(sizes, " x ", padded);
      kernel = kernel.empty() ? str(taps) : str(kernel, " x ", taps);
      TN_CHECK(w[static_cast<size_t>(d)] > 0, "Non-positive kernel size is not supported: weight of size ", w);
    }
    TN_CHECK(fits, "Calculated padded input size per channel: (", sizes, "). Kernel size: (", kernel,
             "). Kernel size can't be greater than actual input size");
  } else {
    TN_CHECK(input->size(1) == w[0], "Given transposed=1, weight of size ", w, ", expected input", input.sizes(), " to have ", w[0],
             " channels, but got ", input->size(1), " channels instead");
    TN_CHECK(!bias || (bias->dim() == 1 && bias->size(0) == w[1] * groups), "Given transposed=1, weight of size ", w,
             ", expected bias to be 1-dimensional with ", w[1] * groups, " elements, but got bias of size ", bias ? bias->sizes() : IntView(),
             " instead");
    for (size_t i = 0; i < p.stride.size(); ++i)
      TN_CHECK(p.output_padding[i] < p.stride[i] || p.output_padding[i] < p.dilation[i],
               "output padding must be smaller than either stride or dilation, but got output_padding: ", IntView(p.output_padding), " stride: ",
               IntView(p.stride), " dilation: ", IntView(p.dilation));
  }
}

void check_dtypes(const Tensor& input, const Tensor& weight, OptionalTensor bias) {
  TN_CHECK(input.dtype() == weight.dtype(), "Input type (", element_type(input.dtype()), ") and weight type (", element_type(weight.dtype()),
           ") should be the same");
  TN_CHECK(!bias || bias->dtype() == input.dtype(), "Input type (", element_type(input.dtype()), ") and bias type (",
           bias ? element_type(bias->dtype()) : "", ") should be the same");
}

DimVector output_sizes(const Params& p, const Tensor& input, IntView w) {
  DimVector sizes(input.sizes());
  sizes[1] = p.transposed ? w[1] * p.groups : w[0];
  for (size_t d = 2; d < sizes.size(); ++d) {
    const size_t i = d - 2;
    const int64_t span = p.dilation[i] * (w[d] - 1);
    sizes[d] = p.transposed ? (sizes[d] - 1) * p.stride[i] - 2 * p.padding[i] + span + p.output_padding[i] + 1
                            : (sizes[d] + 2 * p.padding[i] - span - 1) / p.stride[i] + 1;
  }
  for (size_t d = 2; p.transposed && d < sizes.size(); ++d)
    TN_CHECK(sizes[d] > 0 || input.numel() == 0, "Given input size per channel: ", input.sizes().slice(2, sizes.size() - 2),
             ". Calculated output size per channel: ", IntView(sizes).slice(2, sizes.size() - 2), ". Output size is too small");
  return sizes;
}

Problem problem_of(const Params& params, IntView input, IntView weight, IntView output) {
  const IntView x = params.transposed ? output : input, y = params.transposed ? input : output;
  Problem p;
  p.batch = x[0], p.groups = params.groups, p.x_channels = x[1], p.y_channels = y[1];
  const size_t dims = weight.size() - 2, skip = 3 - dims;
  for (size_t i = 0; i < dims; ++i) {
    p.x[skip + i] = x[2 + i], p.y[skip + i] = y[2 + i], p.kernel[skip + i] = weight[2 + i];
    p.stride[skip + i] = params.stride[i], p.pad[skip + i] = params.padding[i], p.dilation[skip + i] = params.dilation[i];
  }
  return p;
}

MemoryFormat result_format(const Tensor& input, const Tensor& weight) {
  // Upstream's kernels of double know planes only.
  if (input.dtype() == ScalarType::Double || input.dim() < 4 || input.dim() > 5) return MemoryFormat::Contiguous;
  const MemoryFormat last = input.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
  if (input.dim() == 5 && !is_floating(input.dtype())) return MemoryFormat::Contiguous;
  return suggest_memory_format(input) == last || suggest_memory_format(weight) == last ? last : MemoryFormat::Contiguous;
}

Tensor as_planes(const Tensor& t) {
  DimVector sizes(t.sizes()), strides(t.strides());
  sizes.insert(2, 1);
  strides.insert(2, t->size(2) * t->stride(2));
  return alias_with_geometry(t, sizes, strides, t.storage_offset());
}

Tensor from_planes(const Tensor& t) {
  DimVector sizes(t.sizes()), strides(t.strides());
  sizes.erase(2);
  strides.erase(2);
  return alias_with_geometry(t, sizes, strides, t.storage_offset());
}

}  // namespace tn::convolution
