// The upsampling operators and their gradients.
#include <algorithm>
#include <array>

#include "generated/slots/resize.h"
#include "kernels/resize/resample.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/refuse.h"
#include "runtime/shape.h"
#include "runtime/threads.h"

namespace tn {
namespace {

using namespace resize;
using Scale = std::optional<double>;

struct Kind {
  const char* name;
  Mode mode;
  int64_t dims;
  bool align = false;
  std::array<Scale, 3> scales{};
};

constexpr const char* kLetters[] = {"D", "H", "W"};

std::string named(IntView sizes) {
  std::string text;
  for (size_t i = 0; i < sizes.size(); ++i) text += str(i ? ", " : "", kLetters[3 - sizes.size() + i], ": ", sizes[i]);
  return text;
}

// Upstream's checks of sizes; `input` are those of the whole input.
DimVector resized(const Kind& kind, IntView input, IntView output) {
  TN_CHECK(output.ssize() == kind.dims, "It is expected output_size equals to ", kind.dims, ", but got size ",
           output.size());
  TN_CHECK(input.ssize() == kind.dims + 2, "It is expected input_size equals to ", kind.dims + 2, ", but got size ",
           input.size());
  const IntView spatial = input.slice(2, output.size());
  bool valid = true;
  for (size_t i = 0; i < output.size(); ++i) valid &= spatial[i] > 0 && output[i] > 0;
  TN_CHECK(valid, "Input and output sizes should be greater than 0, but got input (", named(spatial), ") output (",
           named(output), ")");
  DimVector sizes(input);
  for (size_t i = 0; i < output.size(); ++i) sizes[i + 2] = output[i];
  return sizes;
}

void check_input(const Kind& kind, const Tensor& self) {
  bool valid = self.dim() == kind.dims + 2;
  for (int64_t d = 1; valid && d < self.dim(); ++d) valid = self->size(d) != 0;
  TN_CHECK(valid, "Non-empty ", kind.dims + 2, "D data tensor expected but got a tensor with sizes ", self.sizes());
}

template <class T>
std::array<Map<T>, 3> maps_of(const Kind& kind, IntView input, IntView output, bool turn) {
  std::array<Map<T>, 3> maps;
  for (int64_t i = 0; i < kind.dims; ++i) {
    const auto k = static_cast<size_t>(i);
    maps[k] = make_map<T>(kind.mode, input[k + 2], output[k], kind.align, kind.scales[k]);
    if (turn) maps[k] = turned(maps[k]);
  }
  return maps;
}

// One dimension after the other, the last one first: it is the shortest while the others have their inputs' sizes.
template <class T>
void run(const std::array<Map<T>, 3>& maps, int64_t dims, const Tensor& x, const Tensor& out, bool last) {
  const int64_t channels = x->size(1);
  const auto inner_of = [&](int64_t axis) {
    int64_t inner = last ? channels : 1;
    for (int64_t k = axis + 1; k < dims; ++k) inner *= maps[static_cast<size_t>(k)].outputs;
    return inner;
  };
  const auto rows_before = [&](int64_t axis) {
    int64_t rows = 1;
    for (int64_t k = 0; k < axis; ++k) rows *= maps[static_cast<size_t>(k)].inputs;
    return rows;
  };
  int64_t most = 0, pixels_in = 1, pixels_out = 1;
  for (int64_t k = 0; k < dims; ++k) {
    const Map<T>& map = maps[static_cast<size_t>(k)];
    pixels_in *= map.inputs, pixels_out *= map.outputs;
    most = std::max(most, rows_before(k) * map.outputs * inner_of(k));
  }
  if (last) {
    Tensor from = x;
    for (int64_t k = dims - 1; k >= 0; --k) {
      const Map<T>& map = maps[static_cast<size_t>(k)];
      const int64_t rows = x->size(0) * rows_before(k) * map.outputs, inner = inner_of(k);
      const Tensor to = k == 0 ? out : empty({rows * inner}, x.dtype());
      parallel_for(0, rows, std::max<int64_t>(1, 16384 / inner),
                   [&](int64_t begin, int64_t end) { apply(map, from.data<T>(), inner, begin, end, to.data<T>()); });
      from = to;
    }
    return;
  }
  parallel_for(0, x->size(0) * channels, std::max<int64_t>(1, 32768 / std::max(pixels_in, pixels_out)),
               [&](int64_t begin, int64_t end) {
                 std::vector<T> buffers[2];
                 if (dims > 1) buffers[0].resize(static_cast<size_t>(most));
                 if (dims > 2) buffers[1].resize(static_cast<size_t>(most));
                 for (int64_t p = begin; p < end; ++p) {
                   const T* from = x.data<T>() + p * pixels_in;
                   for (int64_t k = dims - 1; k >= 0; --k) {
                     const Map<T>& map = maps[static_cast<size_t>(k)];
                     T* const to = k == 0 ? out.data<T>() + p * pixels_out : buffers[k - 1].data();
                     apply(map, from, inner_of(k), 0, rows_before(k) * map.outputs, to);
                     from = to;
                   }
                 }
               });
}

Tensor resample(const Kind& kind, const Tensor& x, IntView sizes, IntView input, IntView output, bool turn) {
  const MemoryFormat format = kind.dims == 1 ? MemoryFormat::Contiguous : suggest_memory_format(x);
  const Tensor out = empty(sizes, x.dtype(), x.device(), format);
  if (x.is_meta() || out.numel() == 0) return out;
  const bool bytes = x.dtype() == ScalarType::Byte;
  TN_CHECK_AS(NotImplemented, is_floating(x.dtype()) || bytes, '"', kind.name, "\" not implemented for '",
              scalar_type_name(x.dtype()), "'");
  const bool smooth = kind.mode >= Mode::LinearSmooth;
  TN_CHECK_AS(NotImplemented, !smooth || turn || !is_reduced_float(x.dtype()),
              "\"compute_index_ranges_weights\" not implemented for '", scalar_type_name(x.dtype()), "'");
  TN_CHECK_AS(NotImplemented, !bytes || kind.dims != 3 || kind.mode != Mode::Linear,
              "\"compute_indices_weights_linear\" not implemented for 'Byte'");
  if (bytes && kind.mode > Mode::NearestExact)
    refuse(str("aten::", kind.name), "dtype uint8", "no kernel yet for its weights of 16 bits");
  const ScalarType compute = x.dtype() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
  const Tensor from = contiguous(cast(x, compute), format);
  const Tensor to = compute == x.dtype() ? out : empty(sizes, compute, {}, format);
  const bool last = format != MemoryFormat::Contiguous;
  if (compute == ScalarType::Double) run(maps_of<double>(kind, input, output, turn), kind.dims, from, to, last);
  else run(maps_of<float>(kind, input, output, turn), kind.dims, from, to, last);
  if (!to.is_same(out)) copy_into(out, to);
  return out;
}

Tensor upsample(const Kind& kind, const Tensor& self, IntView output) {
  const DimVector sizes = resized(kind, self.sizes(), output);
  check_input(kind, self);
  return resample(kind, self, sizes, self.sizes(), output, false);
}

Tensor upsample_backward(const Kind& kind, const Tensor& grad, IntView output, IntView input) {
  const DimVector sizes = resized(kind, input, output);
  TN_CHECK(grad.dim() == kind.dims + 2, "Expected grad_output to be a tensor of dimension ", kind.dims + 2,
           " but got: dimension ", grad.dim());
  for (int64_t d = 0; d < grad.dim(); ++d)
    TN_CHECK(grad->size(d) == sizes[static_cast<size_t>(d)],
             "Expected grad_output to have the same shape as output; output.size(", d,
             ") = ", sizes[static_cast<size_t>(d)], " but got grad_output.size(", d, ") = ", grad->size(d));
  return resample(kind, grad, input, input, output, true);
}

}  // namespace

namespace native {

Tensor upsample_nearest1d(const Tensor& self, IntArrayRef output, Scale a) {
  return upsample({"upsample_nearest1d", Mode::Nearest, 1, false, {{a}}}, self, output);
}
Tensor upsample_nearest1d_backward(const Tensor& grad, IntArrayRef output, IntArrayRef input, Scale a) {
  return upsample_backward({"upsample_nearest1d_backward", Mode::Nearest, 1, false, {{a}}}, grad, output, input);
}
Tensor _upsample_nearest_exact1d(const Tensor& self, IntArrayRef output, Scale a) {
  return upsample({"upsample_nearest_exact1d", Mode::NearestExact, 1, false, {{a}}}, self, output);
}
Tensor _upsample_nearest_exact1d_backward(const Tensor& grad, IntArrayRef output, IntArrayRef input, Scale a) {
  return upsample_backward({"upsample_nearest_exact1d_backward", Mode::NearestExact, 1, false, {{a}}}, grad, output,
                           input);
}
Tensor upsample_nearest2d(const Tensor& self, IntArrayRef output, Scale a, Scale b) {
  return upsample({"upsample_nearest2d", Mode::Nearest, 2, false, {{a, b}}}, self, output);
}
Tensor upsample_nearest2d_backward(const Tensor& grad, IntArrayRef output, IntArrayRef input, Scale a, Scale b) {
  return upsample_backward({"upsample_nearest2d_backward", Mode::Nearest, 2, false, {{a, b}}}, grad, output, input);
}
Tensor _upsample_nearest_exact2d(const Tensor& self, IntArrayRef output, Scale a, Scale b) {
  return upsample({"upsample_nearest_exact2d", Mode::NearestExact, 2, false, {{a, b}}}, self, output);
}
Tensor _upsample_nearest_exact2d_backward(const Tensor& grad, IntArrayRef output, IntArrayRef input, Scale a, Scale b) {
  return upsample_backward({"upsample_nearest_exact2d_backward", Mode::NearestExact, 2, false, {{a, b}}}, grad, output,
                           input);
}
Tensor upsample_nearest3d(const Tensor& self, IntArrayRef output, Scale a, Scale b, Scale c) {
  return upsample({"upsample_nearest3d", Mode::Nearest, 3, false, {{a, b, c}}}, self, output);
}
Tensor upsample_nearest3d_backward(const Tensor& grad, IntArrayRef output, IntArrayRef input, Scale a, Scale b,
                                   Scale c) {
  return upsample_backward({"upsample_nearest3d_backward", Mode::Nearest, 3, false, {{a, b, c}}}, grad, output, input);
}
Tensor _upsample_nearest_exact3d(const Tensor& self, IntArrayRef output, Scale a, Scale b, Scale c) {
  return upsample({"upsample_nearest_exact3d", Mode::NearestExact, 3, false, {{a, b, c}}}, self, output);
}
Tensor _upsample_nearest_exact3d_backward(const Tensor& grad, IntArrayRef output, IntArrayRef input, Scale a, Scale b,
                                          Scale c) {
  return upsample_backward({"upsample_nearest_exact3d_backward", Mode::NearestExact, 3, false, {{a, b, c}}}, grad,
                           output, input);
}
Tensor upsample_linear1d(const Tensor& self, IntArrayRef output, bool align, Scale a) {
  return upsample({"upsample_linear1d", Mode::Linear, 1, align, {{a}}}, self, output);
}
Tensor upsample_linear1d_backward(const Tensor& grad, IntArrayRef output, IntArrayRef input, bool align, Scale a) {
  return upsample_backward({"upsample_linear1d_backward", Mode::Linear, 1, align, {{a}}}, grad, output, input);
}
Tensor upsample_bilinear2d(const Tensor& self, IntArrayRef output, bool align, Scale a, Scale b) {
  return upsample({"upsample_bilinear2d", Mode::Linear, 2, align, {{a, b}}}, self, output);
}
Tensor upsample_bilinear2d_backward(const Tensor& grad, IntArrayRef output, IntArrayRef input, bool align, Scale a,
                                    Scale b) {
  return upsample_backward({"upsample_bilinear2d_backward", Mode::Linear, 2, align, {{a, b}}}, grad, output, input);
}
Tensor upsample_trilinear3d(const Tensor& self, IntArrayRef output, bool align, Scale a, Scale b, Scale c) {
  return upsample({"upsample_trilinear3d", Mode::Linear, 3, align, {{a, b, c}}}, self, output);
}
Tensor upsample_trilinear3d_backward(const Tensor& grad, IntArrayRef output, IntArrayRef input, bool align, Scale a,
                                     Scale b, Scale c) {
  return upsample_backward({"upsample_trilinear3d_backward", Mode::Linear, 3, align, {{a, b, c}}}, grad, output, input);
}
Tensor upsample_bicubic2d(const Tensor& self, IntArrayRef output, bool align, Scale a, Scale b) {
  return upsample({"upsample_bicubic2d", Mode::Cubic, 2, align, {{a, b}}}, self, output);
}
Tensor upsample_bicubic2d_backward(const Tensor& grad, IntArrayRef output, IntArrayRef input, bool align, Scale a,
                                   Scale b) {
  return upsample_backward({"upsample_bicubic2d_backward", Mode::Cubic, 2, align, {{a, b}}}, grad, output, input);
}
Tensor _upsample_bilinear2d_aa(const Tensor& self, IntArrayRef output, bool align, Scale a, Scale b) {
  return upsample({"upsample_bilinear2d_aa", Mode::LinearSmooth, 2, align, {{a, b}}}, self, output);
}
Tensor _upsample_bilinear2d_aa_backward(const Tensor& grad, IntArrayRef output, IntArrayRef input, bool align, Scale a,
                                        Scale b) {
  return upsample_backward({"upsample_bilinear2d_aa_backward", Mode::LinearSmooth, 2, align, {{a, b}}}, grad, output,
                           input);
}
Tensor _upsample_bicubic2d_aa(const Tensor& self, IntArrayRef output, bool align, Scale a, Scale b) {
  return upsample({"upsample_bicubic2d_aa", Mode::CubicSmooth, 2, align, {{a, b}}}, self, output);
}
Tensor _upsample_bicubic2d_aa_backward(const Tensor& grad, IntArrayRef output, IntArrayRef input, bool align, Scale a,
                                       Scale b) {
  return upsample_backward({"upsample_bicubic2d_aa_backward", Mode::CubicSmooth, 2, align, {{a, b}}}, grad, output,
                           input);
}
Tensor _upsample_lanczos2d_aa(const Tensor& self, IntArrayRef output, bool align, Scale a, Scale b) {
  return upsample({"upsample_lanczos2d_aa", Mode::LanczosSmooth, 2, align, {{a, b}}}, self, output);
}
Tensor _upsample_lanczos2d_aa_backward(const Tensor& grad, IntArrayRef output, IntArrayRef input, bool align, Scale a,
                                       Scale b) {
  return upsample_backward({"upsample_lanczos2d_aa_backward", Mode::LanczosSmooth, 2, align, {{a, b}}}, grad, output,
                           input);
}

}  // namespace native
}  // namespace tn
