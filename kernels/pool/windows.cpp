#include "kernels/pool/windows.h"

#include <string>

#include "runtime/error.h"

namespace tn::pool {
namespace {

constexpr const char* kNumbers[] = {"one int", "two ints", "three ints"};
constexpr const char* kLetters[] = {"T", "H", "W"};

DimVector list_of(const char* op, const char* name, IntView list, int64_t dims, const char* must,
                  const char* omitted = "") {
  TN_CHECK(list.size() == 1 || list.ssize() == dims, op, ": ", name, must, omitted, "a single int, or a tuple of ",
           kNumbers[dims - 1]);
  return list.ssize() == dims ? DimVector(list) : DimVector(static_cast<size_t>(dims), list[0]);
}

std::string named(const char* prefix, IntView values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i)
    text += str(i ? " " : "", prefix, kLetters[3 - values.size() + i], ": ", values[i]);
  return text;
}

void check_positive(IntView values, const char* what, const char* prefix) {
  for (const int64_t v : values) TN_CHECK(v > 0, what, " should be greater than zero, but got ", named(prefix, values));
}

// (3x4x5)
std::string crossed(IntView sizes) {
  std::string text = "(";
  for (size_t i = 0; i < sizes.size(); ++i) text += str(i ? "x" : "", sizes[i]);
  return text + ")";
}

int64_t pooled_size(int64_t size, int64_t kernel, int64_t pad, int64_t stride, int64_t dilation, bool ceil) {
  TN_CHECK(stride != 0, "stride should not be zero");
  TN_CHECK(pad >= 0, "pad must be non-negative, but got pad: ", pad);
  TN_CHECK(pad <= ((kernel - 1) * dilation + 1) / 2,
           "pad should be at most half of effective kernel size, but got pad=", pad, ", kernel_size=", kernel,
           " and dilation=", dilation);
  const int64_t room = size + 2 * pad - dilation * (kernel - 1) - 1 + (ceil ? stride - 1 : 0);
  int64_t n = (room >= 0 ? room / stride : -((-room + stride - 1) / stride)) + 1;
  // No window starts in the right padding.
  if (ceil && (n - 1) * stride >= size + pad) --n;
  return n;
}

}  // namespace

void not_implemented(const char* kernel, ScalarType t) {
  fail(ErrorKind::NotImplemented, '"', kernel, "\" not implemented for '", scalar_type_name(t), "'");
}

Axis regular_axis(int64_t size, int64_t outputs, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
  Axis a;
  a.size = size, a.step = dilation, a.stride = stride;
  a.inner_from = outputs, a.inner_to = 0;
  for (int64_t o = 0; o < outputs; ++o) {
    const int64_t start = o * stride - pad, skip = start < 0 ? (-start + dilation - 1) / dilation : 0;
    const int64_t first = start + skip * dilation;
    const int64_t count = std::max<int64_t>(0, std::min(kernel - skip, (size - first + dilation - 1) / dilation));
    a.first.push_back(first);
    a.count.push_back(count);
    a.padded.push_back(std::min(start + kernel, size + pad) - start);
    if (count == kernel) a.inner_from = std::min(a.inner_from, o), a.inner_to = o + 1;
  }
  return a;
}

Axis adaptive_axis(int64_t size, int64_t outputs) {
  Axis a;
  a.size = size;
  for (int64_t o = 0; o < outputs; ++o) {
    const int64_t from = o * size / outputs, to = ((o + 1) * size + outputs - 1) / outputs;
    a.first.push_back(from);
    a.count.push_back(to - from);
  }
  a.padded = a.count;
  return a;
}

Spec make_spec(const char* name, int64_t dims, IntView kernel, IntView stride, IntView pad, IntView dilation,
               bool ceil) {
  Spec s{name, dims, {}, {}, {}, {}, ceil};
  const bool average = std::string_view(name).starts_with("avg");
  s.kernel = list_of(name, "kernel_size", kernel, dims, average && dims == 3 ? " must be " : " must either be ");
  s.stride = stride.empty() ? s.kernel : list_of(name, "stride", stride, dims, " must either be omitted, ");
  s.pad = list_of(name, "padding", pad, dims,
                  average && dims == 2 ? " must either be "
                  : average            ? " must be "
                                       : " must either be ");
  s.dilation = list_of(name, "dilation", dilation, dims, " must be either ");
  return s;
}

DimVector pooled_sizes(const Spec& s, const Tensor& input) {
  const int64_t ndim = input.dim();
  TN_CHECK(ndim == s.dims + 1 || ndim == s.dims + 2, "non-empty ", s.dims + 1, "D or ", s.dims + 2,
           "D (batch mode) tensor expected for input");
  DimVector sizes(input.sizes());
  for (int64_t i = 0; i < s.dims && ndim >= s.dims; ++i) {
    const auto k = static_cast<size_t>(i);
    const auto d = static_cast<size_t>(ndim - s.dims + i);
    sizes[d] = pooled_size(sizes[d], s.kernel[k], s.pad[k], s.stride[k], s.dilation[k], s.ceil);
  }
  check_positive(s.kernel, "kernel size", "k");
  check_positive(s.stride, "stride", "d");
  check_positive(s.dilation, "dilation", "dilation");
  bool valid = ndim == s.dims + 1 || ndim == s.dims + 2;
  for (int64_t d = ndim == s.dims + 2 ? 1 : 0; valid && d < ndim; ++d) valid = input->size(d) != 0;
  if (s.dims == 2) {
    TN_CHECK(valid,
             "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:", input.sizes());
  } else {
    TN_CHECK(valid, s.name,
             ": Expected input's non-batch dimensions to have positive length, but input has a shape of ",
             input.sizes(), " and non-batch dimension has length zero!");
  }
  for (size_t k = 0; k < s.pad.size(); ++k)
    TN_CHECK(s.kernel[k] / 2 >= s.pad[k], "pad should be smaller than or equal to half of kernel size, but got ",
             named("k", s.kernel), " ", named("pad", s.pad));
  const size_t channel = static_cast<size_t>(ndim - s.dims - 1);
  for (size_t d = channel + 1; d < sizes.size(); ++d)
    TN_CHECK(sizes[d] >= 1, "Given input size: ", crossed(input.sizes().slice(channel, sizes.size() - channel)),
             ". Calculated output size: ", crossed(IntView(sizes).slice(channel, sizes.size() - channel)),
             ". Output size is too small");
  return sizes;
}

DimVector adaptive_sizes(const char* name, int64_t dims, const Tensor& input, IntView output) {
  const int64_t ndim = input.dim();
  TN_CHECK(output.ssize() == dims, name, ": internal error: output_size.size() must be ", dims);
  TN_CHECK(ndim == dims + 1 || ndim == dims + 2, name, ": Expected ", dims + 1, "D or ", dims + 2, "D tensor, but got ",
           input.sizes());
  for (int64_t d = ndim - dims; d < ndim; ++d)
    TN_CHECK(input->size(d) > 0, name,
             ": Expected input to have non-zero size for non-batch dimensions, but input has sizes ", input.sizes(),
             " with dimension ", d, " being empty");
  DimVector sizes(input.sizes());
  for (int64_t i = 0; i < dims; ++i) {
    TN_CHECK(output[static_cast<size_t>(i)] >= 0, name,
             ": elements of output_size must be greater than or equal to 0 but received ", output);
    sizes[static_cast<size_t>(ndim - dims + i)] = output[static_cast<size_t>(i)];
  }
  return sizes;
}

namespace {

Windows bare_windows(int64_t dims, const Tensor& input, bool last) {
  Windows w;
  w.last = last;
  w.channels = input.size(-dims - 1);
  w.batch = input.dim() == dims + 2 ? input->size(0) : 1;
  return w;
}

}  // namespace

Windows make_windows(const Spec& s, const Tensor& input, IntView sizes, bool last) {
  Windows w = bare_windows(s.dims, input, last);
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t k = i - (3 - s.dims);
    const auto at = static_cast<size_t>(std::max<int64_t>(k, 0));
    w.axes[static_cast<size_t>(i)] =
        k < 0 ? regular_axis(1, 1, 1, 1, 0, 1)
              : regular_axis(input.size(k - s.dims), sizes[sizes.size() - static_cast<size_t>(s.dims - k)],
                             s.kernel[at], s.stride[at], s.pad[at], s.dilation[at]);
  }
  return w;
}

Windows adaptive_windows(int64_t dims, const Tensor& input, IntView sizes, bool last) {
  Windows w = bare_windows(dims, input, last);
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t k = i - (3 - dims);
    w.axes[static_cast<size_t>(i)] =
        k < 0 ? adaptive_axis(1, 1)
              : adaptive_axis(input.size(k - dims), sizes[sizes.size() - static_cast<size_t>(dims - k)]);
  }
  return w;
}

MemoryFormat format_of(int64_t dims, const Tensor& input) {
  return input.dim() == dims + 2 && dims > 1 ? suggest_memory_format(input) : MemoryFormat::Contiguous;
}

}  // namespace tn::pool
