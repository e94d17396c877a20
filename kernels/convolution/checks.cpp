#include "kernels/convolution/checks.h"

#include <algorithm>

#include "kernels/matmul/checks.h"
#include "runtime/error.h"

namespace tn::convolution {
namespace {

DimVector expanded_list(IntView list, int64_t dims, const char* name) {
  if (list.ssize() == dims) return list;
  TN_CHECK(list.size() == 1, "expected ", name, " to be a single integer value or a list of ", dims,
           " values to match the convolution dimensions, but got ", name, "=", list);
  return DimVector(static_cast<size_t>(dims), list[0]);
}

// "stride_height: 1 stride_width: 2": upstream names at least two dimensions, an absent one having `absent`.
std::string by_name(const char* what, IntView values, int64_t absent) {
  static constexpr const char* kNames[] = {"depth", "height", "width"};
  const size_t shown = std::max<size_t>(values.size(), 2);
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    const int64_t value = i + values.size() < shown ? absent : values[i + values.size() - shown];
    text += str(i ? " " : "", what, '_', kNames[3 - shown + i], ": ", value);
  }
  return text;
}

// "4 x 6"
std::string crossed(IntView sizes) {
  std::string text;
  for (const int64_t v : sizes) text += str(text.empty() ? "" : " x ", v);
  return text;
}

bool any_below(IntView list, int64_t least) {
  for (const int64_t v : list)
    if (v < least) return true;
  return false;
}

}  // namespace

Params expand(const Tensor& weight, IntView stride, IntView padding, IntView dilation, bool transposed,
              IntView output_padding, int64_t groups) {
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
  TN_CHECK(!any_below(p.dilation, 1), "non-positive dilation is not supported");
  TN_CHECK(wdim == ndim, "Expected ", wdim, "-dimensional input for ", wdim, "-dimensional weight ", w, ", but got ",
           ndim, "-dimensional input of size ", input.sizes(), " instead");
  TN_CHECK(w[0] >= groups, "Given groups=", groups, ", expected weight to be at least ", groups,
           " at dimension 0, but got weight of size ", w, " instead");
  TN_CHECK(w[0] % groups == 0, "Given groups=", groups, ", expected weight to be divisible by ", groups,
           " at dimension 0, but got weight of size [", w, "] instead");
  if (!p.transposed) {
    TN_CHECK(input->size(1) == w[1] * groups, "Given groups=", groups, ", weight of size ", w, ", expected input",
             input.sizes(), " to have ", w[1] * groups, " channels, but got ", input->size(1), " channels instead");
    TN_CHECK(!bias || (bias->dim() == 1 && bias->size(0) == w[0]), "Given weight of size ", w,
             ", expected bias to be 1-dimensional with ", w[0], " elements, but got bias of size ",
             bias ? bias->sizes() : IntView(), " instead");
    TN_CHECK(!any_below(w.slice(2, w.size() - 2), 1), "kernel size should be greater than zero, but got ",
             by_name("kernel", w.slice(2, w.size() - 2), 1));
    bool fits = true;
    DimVector sizes, kernel;
    for (int64_t d = 2; d < ndim; ++d) {
      const auto i = static_cast<size_t>(d - 2);
      const int64_t padded = input->size(d) + 2 * p.padding[i],
                    taps = p.dilation[i] * (w[static_cast<size_t>(d)] - 1) + 1;
      fits &= padded >= taps;
      sizes.push_back(padded);
      kernel.push_back(taps);
    }
    TN_CHECK(fits, "Calculated padded input size per channel: (", crossed(sizes), "). Kernel size: (", crossed(kernel),
             "). Kernel size can't be greater than actual input size");
  } else {
    TN_CHECK(input->size(1) == w[0], "Given transposed=1, weight of size ", w, ", expected input", input.sizes(),
             " to have ", w[0], " channels, but got ", input->size(1), " channels instead");
    TN_CHECK(!bias || (bias->dim() == 1 && bias->size(0) == w[1] * groups), "Given transposed=1, weight of size ", w,
             ", expected bias to be 1-dimensional with ", w[1] * groups, " elements, but got bias of size ",
             bias ? bias->sizes() : IntView(), " instead");
    bool small = true;
    for (size_t i = 0; i < p.stride.size(); ++i)
      small &= p.output_padding[i] < p.stride[i] || p.output_padding[i] < p.dilation[i];
    TN_CHECK(small, "output padding must be smaller than either stride or dilation, but got ",
             by_name("output_padding", p.output_padding, 0), ' ', by_name("stride", p.stride, 1), ' ',
             by_name("dilation", p.dilation, 1));
  }
}

// Whether upstream takes oneDNN, whose check of dtypes words its error in another way.
bool goes_to_onednn(const Tensor& input, const Tensor& weight, int64_t groups) {
  if (input.dtype() == ScalarType::BFloat16) return true;
  if (input.dtype() != ScalarType::Float) return false;
  int64_t images = 1;  // elements of the first four dimensions; one spatial dimension counts as two
  for (size_t d = 0; d < std::min<size_t>(input.sizes().size(), 4); ++d) images *= input.sizes()[d];
  const auto dims = static_cast<size_t>(weight.dim());
  const bool wide = dims > 3 && weight->size(dims - 1) > 3 && weight->size(dims - 2) > 3;
  return groups > 1 || wide || input->size(0) > 1 || images > 20480;
}

void check_dtypes(const Params& params, const Tensor& input, const Tensor& weight, OptionalTensor bias) {
  TN_CHECK(!bias || bias->dtype() == input.dtype(), "Input type (", element_type_name(input.dtype()),
           ") and bias type (", bias ? element_type_name(bias->dtype()) : "", ") should be the same");
  if (input.dtype() == weight.dtype()) return;
  TN_CHECK(!goes_to_onednn(input, weight, params.groups), "Input type (", tensor_type_name(input.dtype()),
           ") and weight type (", tensor_type_name(weight.dtype()),
           ") should be the same or input should be a MKLDNN tensor and weight is a dense tensor");
  fail(ErrorKind::Runtime, "expected scalar type ", scalar_type_name(input.dtype()), " but found ",
       scalar_type_name(weight.dtype()));
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
    TN_CHECK(sizes[d] > 0 || input.numel() == 0, "Given input size per channel: (",
             crossed(input.sizes().slice(2, sizes.size() - 2)), "). Calculated output size per channel: (",
             crossed(IntView(sizes).slice(2, sizes.size() - 2)), "). Output size is too small");
  if (input->size(1) == 0) sizes[1] = 0;  // upstream's result of no channels
  return sizes;
}

Problem problem_of(const Params& params, IntView input, IntView weight, IntView output) {
  const IntView x = params.transposed ? output : input, y = params.transposed ? input : output;
  Problem p;
  p.batch = x[0], p.groups = params.groups, p.x_channels = x[1], p.y_channels = y[1];
  const size_t dims = weight.size() - 2, skip = 3 - dims;
  for (size_t i = 0; i < dims; ++i) {
    p.x[skip + i] = x[2 + i], p.y[skip + i] = y[2 + i], p.kernel[skip + i] = weight[2 + i];
    p.stride[skip + i] = params.stride[i], p.pad[skip + i] = params.padding[i],
                    p.dilation[skip + i] = params.dilation[i];
  }
  return p;
}

MemoryFormat result_format(const Tensor& input, const Tensor& weight) {
  if (input.dim() < 4 || input.dim() > 5) return MemoryFormat::Contiguous;
  const MemoryFormat last = input.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
  const bool fast = input.dtype() == ScalarType::Float || input.dtype() == ScalarType::BFloat16;
  if (input.dim() == 5 && !fast) return MemoryFormat::Contiguous;
  return suggest_memory_format(input) == last || suggest_memory_format(weight) == last ? last
                                                                                       : MemoryFormat::Contiguous;
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
