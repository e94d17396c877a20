// Resizing as a linear map along each dimension: every output is a weighted sum of some inputs. Gradients are the maps
// turned around.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/tensor.h"

namespace tn::resize {

enum class Mode : uint8_t {
  Nearest,
  NearestExact,
  Linear,
  Cubic,
  LinearSmooth,
  CubicSmooth,
  LanczosSmooth
};  // ...Smooth: antialiased

template <class T>
struct Map {
  int64_t inputs = 0, outputs = 0;
  int64_t each = 0;            // summands of every output, or 0 where they vary
  std::vector<int64_t> start;  // of each output's summands, and their end
  std::vector<int32_t> index;
  std::vector<T> weight;
};

// Computes places and weights in T, as upstream's kernels of that type.
template <class T>
Map<T> make_map(Mode mode, int64_t inputs, int64_t outputs, bool align, std::optional<double> scale);
template <class T>
Map<T> turned(const Map<T>& map);

extern template Map<float> make_map(Mode, int64_t, int64_t, bool, std::optional<double>);
extern template Map<double> make_map(Mode, int64_t, int64_t, bool, std::optional<double>);
extern template Map<float> turned(const Map<float>&);
extern template Map<double> turned(const Map<double>&);

// Rows [from, to) of [outer * map.outputs] rows of `inner` elements: out[b, o, :] = sum of weight * x[b, index, :].
void apply(const Map<float>& map, const float* x, int64_t inner, int64_t from, int64_t to, float* out);
void apply(const Map<double>& map, const double* x, int64_t inner, int64_t from, int64_t to, double* out);

}  // namespace tn::resize
