#include <algorithm>
#include <cmath>

#include "kernels/resize/resample.h"

namespace tn::resize {
namespace {

template <class T>
T step_of(int64_t inputs, int64_t outputs, bool align, std::optional<double> scale) {
  if (align) return outputs > 1 ? static_cast<T>(inputs - 1) / static_cast<T>(outputs - 1) : T{0};
  return scale && *scale > 0 ? static_cast<T>(1.0 / *scale) : static_cast<T>(inputs) / static_cast<T>(outputs);
}

// Rounded once, as upstream's compiler does it here and in the cubic: cancellation would show a second rounding.
template <class T>
T center_of(int64_t o, T step) {
  return std::fma(step, static_cast<T>(o) + T{0.5}, T{-0.5});
}

// Keys' cubic; upstream takes a = -0.75, and -0.5 where it smooths.
template <class T>
T cubic_near(T x, T a) {
  return std::fma(std::fma(a + 2, x, -(a + 3)) * x, x, T{1});
}
template <class T>
T cubic_far(T x, T a) {
  return std::fma(std::fma(std::fma(a, x, -5 * a), x, 8 * a), x, -4 * a);
}
template <class T>
T cubic(T x, T a) {
  x = std::abs(x);
  return x < 1 ? cubic_near(x, a) : x < 2 ? cubic_far(x, a) : T{0};
}

template <class T>
T lanczos(T x) {
  const auto sinc = [](T v) { return v == 0 ? T{1} : std::sin(v * static_cast<T>(M_PI)) / (v * static_cast<T>(M_PI)); };
  return x > -3 && x < 3 ? sinc(x) * sinc(x / 3) : T{0};
}

template <class T>
void add(Map<T>& map, int64_t index, T weight) {
  map.index.push_back(static_cast<int32_t>(index));
  map.weight.push_back(weight);
}

template <class T>
void smooth(Map<T>& map, Mode mode, int64_t o, T step) {
  const T size = mode == Mode::LinearSmooth ? T{2} : mode == Mode::CubicSmooth ? T{4} : T{6};
  const T support = step >= 1 ? size * T{0.5} * step : size * T{0.5}, inverse = step >= 1 ? 1 / step : T{1};
  const T center = step * (static_cast<T>(o) + T{0.5});
  const auto first = std::max<int64_t>(static_cast<int64_t>(center - support + T{0.5}), 0);
  const auto most = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  const int64_t count =
      std::clamp<int64_t>(std::min(static_cast<int64_t>(center + support + T{0.5}), map.inputs) - first, 0, most);
  const size_t begin = map.weight.size();
  T total = 0;
  for (int64_t j = 0; j < count; ++j) {
    const T x = (static_cast<T>(j + first) - center + T{0.5}) * inverse;
    const T w = mode == Mode::LinearSmooth  ? std::max(T{0}, 1 - std::abs(x))
                : mode == Mode::CubicSmooth ? cubic(x, T{-0.5})
                                            : lanczos(x);
    add(map, first + j, w);
    total += w;
  }
  if (total != 0)
    for (size_t i = begin; i < map.weight.size(); ++i) map.weight[i] /= total;
}

}  // namespace

template <class T>
Map<T> make_map(Mode mode, int64_t inputs, int64_t outputs, bool align, std::optional<double> scale) {
  Map<T> map;
  map.inputs = inputs, map.outputs = outputs;
  const T step = step_of<T>(inputs, outputs, align, scale);
  for (int64_t o = 0; o < outputs; ++o) {
    map.start.push_back(static_cast<int64_t>(map.index.size()));
    switch (mode) {
      case Mode::Nearest:
      case Mode::NearestExact: {
        const T at = static_cast<T>(o) + (mode == Mode::NearestExact ? T{0.5} : T{0});
        add(map, std::min(static_cast<int64_t>(std::floor(at * step)), inputs - 1), T{1});
        break;
      }
      case Mode::Linear: {
        if (inputs == outputs) {
          add(map, o, T{1});
          add(map, o, T{0});
          break;
        }
        const T at = align ? step * static_cast<T>(o) : std::max(center_of(o, step), T{0});
        const int64_t first = std::min(static_cast<int64_t>(at), inputs - 1);
        const T part = std::clamp(at - static_cast<T>(first), T{0}, T{1});
        add(map, first, 1 - part);
        add(map, std::min(first + 1, inputs - 1), part);
        break;
      }
      case Mode::Cubic: {
        const T at = align ? step * static_cast<T>(o) : center_of(o, step);
        const T floor = std::floor(at), part = at - floor;
        constexpr T kA = -0.75;
        const T rest = 1 - part;
        const T weights[] = {cubic_far(part + 1, kA), cubic_near(part, kA), cubic_near(rest, kA),
                             cubic_far(rest + 1, kA)};
        for (int64_t j = 0; j < 4; ++j)
          add(map, std::clamp<int64_t>(static_cast<int64_t>(floor) + j - 1, 0, inputs - 1), weights[j]);
        break;
      }
      default: smooth(map, mode, o, step);
    }
  }
  map.start.push_back(static_cast<int64_t>(map.index.size()));
  map.each = mode <= Mode::NearestExact ? 1 : mode == Mode::Linear ? 2 : mode == Mode::Cubic ? 4 : 0;
  return map;
}

template <class T>
Map<T> turned(const Map<T>& map) {
  Map<T> t;
  t.inputs = map.outputs, t.outputs = map.inputs;
  t.start.assign(static_cast<size_t>(map.inputs) + 1, 0);
  for (const int32_t i : map.index) ++t.start[static_cast<size_t>(i) + 1];
  for (size_t i = 1; i < t.start.size(); ++i) t.start[i] += t.start[i - 1];
  t.index.resize(map.index.size());
  t.weight.resize(map.index.size());
  std::vector<int64_t> next(t.start.begin(), t.start.end() - 1);
  for (int64_t o = 0; o < map.outputs; ++o)
    for (int64_t k = map.start[static_cast<size_t>(o)]; k < map.start[static_cast<size_t>(o) + 1]; ++k) {
      const auto at = static_cast<size_t>(next[static_cast<size_t>(map.index[static_cast<size_t>(k)])]++);
      t.index[at] = static_cast<int32_t>(o);
      t.weight[at] = map.weight[static_cast<size_t>(k)];
    }
  return t;
}

template Map<float> make_map(Mode, int64_t, int64_t, bool, std::optional<double>);
template Map<double> make_map(Mode, int64_t, int64_t, bool, std::optional<double>);
template Map<float> turned(const Map<float>&);
template Map<double> turned(const Map<double>&);

}  // namespace tn::resize
