// Windows over up to three spatial dimensions, and their walk: rows of outputs that a run of lanes computes at once.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "runtime/shape.h"
#include "runtime/tensor.h"
#include "runtime/threads.h"

namespace tn::pool {

using Three = std::array<int64_t, 3>;

// The valid taps of each output along one dimension: first, first + step, ... The outputs [inner_from, inner_to) have
// all taps, and their first ones lie `stride` apart.
struct Axis {
  int64_t size = 1, step = 1, stride = 1, inner_from = 0, inner_to = 0;
  std::vector<int64_t> first, count;
  std::vector<int64_t> padded;  // taps counting those in the padding; upstream's divisor of averages
  int64_t outputs() const { return static_cast<int64_t>(first.size()); }
};

Axis regular_axis(int64_t size, int64_t outputs, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation);
Axis adaptive_axis(int64_t size, int64_t outputs);

struct Windows {
  int64_t batch = 1, channels = 1;
  bool last = false;  // channels innermost
  std::array<Axis, 3> axes;
  int64_t in_pixels() const { return axes[0].size * axes[1].size * axes[2].size; }
  int64_t out_pixels() const { return axes[0].outputs() * axes[1].outputs() * axes[2].outputs(); }
  int64_t window() const {  // a bound of its taps
    int64_t taps = 1;
    for (const Axis& a : axes)
      if (!a.count.empty()) taps *= *std::max_element(a.count.begin(), a.count.end());
    return taps;
  }
};

// `n` outputs at once. Lane i reads x[offsets[t] + i * lane_stride], whose index is indices[t] + i * index_step.
template <class T>
struct Run {
  const T* x;
  const int64_t* offsets;
  const int64_t* indices;
  int64_t taps, lane_stride, index_step, n;
};

// Calls f(run, first output element, divisor of an average) for all outputs; plane pointers are resolved in `run.x`.
template <class T, class F>
void for_runs(const Windows& w, const T* x, bool with_pad, F&& f) {
  const Axis &az = w.axes[0], &ay = w.axes[1], &ax = w.axes[2];
  const int64_t rows = az.outputs() * ay.outputs(), width = ax.outputs(), pixels = w.out_pixels();
  const int64_t planes = w.last ? w.batch : w.batch * w.channels, lanes = w.last ? w.channels : 1;
  const int64_t cost = std::max<int64_t>(1, width * w.window() * lanes);
  parallel_for(0, planes * rows, std::max<int64_t>(1, 65536 / cost), [&](int64_t begin, int64_t end) {
    std::vector<int64_t> lines, offsets, indices;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t plane = i / rows, row = i % rows;
      const auto z = static_cast<size_t>(row / ay.outputs()), y = static_cast<size_t>(row % ay.outputs());
      lines.clear();
      for (int64_t a = 0; a < az.count[z]; ++a)
        for (int64_t b = 0; b < ay.count[y]; ++b)
          lines.push_back(((az.first[z] + a * az.step) * ay.size + ay.first[y] + b * ay.step) * ax.size);
      const T* const base = x + plane * w.in_pixels() * lanes;
      const auto run_at = [&](int64_t o, int64_t n) {
        const auto at = static_cast<size_t>(o);
        indices.clear();
        for (const int64_t line : lines)
          for (int64_t k = 0; k < ax.count[at]; ++k) indices.push_back(line + ax.first[at] + k * ax.step);
        const int64_t* places = indices.data();
        if (w.last) {
          offsets.resize(indices.size());
          for (size_t k = 0; k < indices.size(); ++k) offsets[k] = indices[k] * lanes;
          places = offsets.data();
        }
        const int64_t divisor =
            with_pad ? az.padded[z] * ay.padded[y] * ax.padded[at] : static_cast<int64_t>(indices.size());
        const Run<T> run{base,
                         places,
                         indices.data(),
                         static_cast<int64_t>(indices.size()),
                         w.last ? 1 : ax.stride,
                         w.last ? 0 : ax.stride,
                         w.last ? lanes : n};
        f(run, ((plane * pixels) + row * width + o) * lanes, divisor);
      };
      if (w.last || ax.inner_to <= ax.inner_from) {
        for (int64_t o = 0; o < width; ++o) run_at(o, 1);
      } else {
        for (int64_t o = 0; o < ax.inner_from; ++o) run_at(o, 1);
        run_at(ax.inner_from, ax.inner_to - ax.inner_from);
        for (int64_t o = ax.inner_to; o < width; ++o) run_at(o, 1);
      }
    }
  });
}

// The best of each lane's taps: the first of equal ones, a NaN before all else; and its index.
void max_run(const Run<float>& run, float* out, int64_t* index);
void max_run(const Run<double>& run, double* out, int64_t* index);
// Their sums over the divisor.
void mean_run(const Run<float>& run, int64_t divisor, float* out);
void mean_run(const Run<double>& run, int64_t divisor, double* out);

template <class T>
void max_run(const Run<T>& run, T* out, int64_t* index) {
  for (int64_t i = 0; i < run.n; ++i) {
    T best = run.x[run.offsets[0] + i * run.lane_stride];
    int64_t at = run.indices[0];
    for (int64_t t = 1; t < run.taps; ++t) {
      const T v = run.x[run.offsets[t] + i * run.lane_stride];
      if (v > best) best = v, at = run.indices[t];
    }
    out[i] = best;
    index[i] = at + i * run.index_step;
  }
}
template <class T>
void mean_run(const Run<T>& run, int64_t divisor, T* out) {
  for (int64_t i = 0; i < run.n; ++i) {
    T sum = 0;
    for (int64_t t = 0; t < run.taps; ++t) sum = static_cast<T>(sum + run.x[run.offsets[t] + i * run.lane_stride]);
    out[i] = static_cast<T>(sum / static_cast<T>(divisor));
  }
}

// ---- arguments ----

struct Spec {
  const char* name;  // of the operator, for messages
  int64_t dims;
  DimVector kernel, stride, pad, dilation;
  bool ceil = false;
};

// Lists as given, with one value for all dimensions, no stride for the kernel's.
Spec make_spec(const char* name, int64_t dims, IntView kernel, IntView stride, IntView pad, IntView dilation,
               bool ceil);
// Sizes of the result, checked as upstream checks.
DimVector pooled_sizes(const Spec& spec, const Tensor& input);
DimVector adaptive_sizes(const char* name, int64_t dims, const Tensor& input, IntView output);
Windows make_windows(const Spec& spec, const Tensor& input, IntView sizes, bool last);
Windows adaptive_windows(int64_t dims, const Tensor& input, IntView sizes, bool last);
// Channels innermost where the input has them so.
MemoryFormat format_of(int64_t dims, const Tensor& input);

// Calls f.operator()<T>() for the numbers that pooling takes; 16-bit floats are not among them.
template <class F>
bool with_number(ScalarType t, F&& f) {
  switch (t) {
    case ScalarType::Float: f.template operator()<float>(); return true;
    case ScalarType::Double: f.template operator()<double>(); return true;
    case ScalarType::Byte: f.template operator()<uint8_t>(); return true;
    case ScalarType::Char: f.template operator()<int8_t>(); return true;
    case ScalarType::Short: f.template operator()<int16_t>(); return true;
    case ScalarType::Int: f.template operator()<int32_t>(); return true;
    case ScalarType::Long: f.template operator()<int64_t>(); return true;
    default: return false;
  }
}
inline ScalarType compute_type(ScalarType t) { return is_reduced_float(t) ? ScalarType::Float : t; }
[[noreturn]] void not_implemented(const char* kernel, ScalarType t);

}  // namespace tn::pool
