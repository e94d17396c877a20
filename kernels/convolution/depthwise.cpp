// Depthwise convolutions: each plane is laid out with its padding, one copy for each phase of the stride, so that every
// tap is a shift and a whole plane one run of vectors. What the run computes at the ends of rows is dropped.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/convolution/problem.h"
#include "runtime/threads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convolution/depthwise.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/common/hwy-compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// out[i] = bias + sum of weight[k] * tap[k][i]; both sides have room for whole groups of vectors behind n.
template <class T>
HWY_INLINE void Shifted(const T* const* taps, const T* weights, int64_t count, T bias, int64_t n, T* HWY_RESTRICT out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += 4 * lanes) {
    auto s0 = hn::Set(d, bias), s1 = s0, s2 = s0, s3 = s0;
    for (int64_t k = 0; k < count; ++k) {
      const T* const from = taps[k] + i;
      const auto w = hn::Set(d, weights[k]);
      s0 = hn::MulAdd(w, hn::LoadU(d, from), s0);
      s1 = hn::MulAdd(w, hn::LoadU(d, from + lanes), s1);
      s2 = hn::MulAdd(w, hn::LoadU(d, from + 2 * lanes), s2);
      s3 = hn::MulAdd(w, hn::LoadU(d, from + 3 * lanes), s3);
    }
    hn::StoreU(s0, d, out + i);
    hn::StoreU(s1, d, out + i + lanes);
    hn::StoreU(s2, d, out + i + 2 * lanes);
    hn::StoreU(s3, d, out + i + 3 * lanes);
  }
}

// sums[k] += sum of g[i] * tap[k][i]; g is zero up to a whole vector behind n.
template <class T>
HWY_INLINE void Dots(const T* HWY_RESTRICT g, const T* const* taps, int64_t count, int64_t n, double* sums) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t k = 0;
  for (; k + 4 <= count; k += 4) {
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for (int64_t i = 0; i < n; i += lanes) {
      const auto v = hn::LoadU(d, g + i);
      s0 = hn::MulAdd(v, hn::LoadU(d, taps[k] + i), s0);
      s1 = hn::MulAdd(v, hn::LoadU(d, taps[k + 1] + i), s1);
      s2 = hn::MulAdd(v, hn::LoadU(d, taps[k + 2] + i), s2);
      s3 = hn::MulAdd(v, hn::LoadU(d, taps[k + 3] + i), s3);
    }
    sums[k] += static_cast<double>(SumLanes(d, s0));
    sums[k + 1] += static_cast<double>(SumLanes(d, s1));
    sums[k + 2] += static_cast<double>(SumLanes(d, s2));
    sums[k + 3] += static_cast<double>(SumLanes(d, s3));
  }
  for (; k < count; ++k) {
    auto s = hn::Zero(d);
    for (int64_t i = 0; i < n; i += lanes) s = hn::MulAdd(hn::LoadU(d, g + i), hn::LoadU(d, taps[k] + i), s);
    sums[k] += static_cast<double>(SumLanes(d, s));
  }
}

void ShiftedFloat(const float* const* taps, const float* w, int64_t count, float bias, int64_t n, float* out) {
  Shifted(taps, w, count, bias, n, out);
}
void ShiftedDouble(const double* const* taps, const double* w, int64_t count, double bias, int64_t n, double* out) {
  Shifted(taps, w, count, bias, n, out);
}
void DotsFloat(const float* g, const float* const* taps, int64_t count, int64_t n, double* sums) {
  Dots(g, taps, count, n, sums);
}
void DotsDouble(const double* g, const double* const* taps, int64_t count, int64_t n, double* sums) {
  Dots(g, taps, count, n, sums);
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn::convolution {
HWY_EXPORT(ShiftedFloat);
HWY_EXPORT(ShiftedDouble);
HWY_EXPORT(DotsFloat);
HWY_EXPORT(DotsDouble);

namespace {

void shifted(const float* const* taps, const float* w, int64_t count, float bias, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(ShiftedFloat)(taps, w, count, bias, n, out);
}
void shifted(const double* const* taps, const double* w, int64_t count, double bias, int64_t n, double* out) {
  HWY_DYNAMIC_DISPATCH(ShiftedDouble)(taps, w, count, bias, n, out);
}
void dots(const float* g, const float* const* taps, int64_t count, int64_t n, double* sums) {
  HWY_DYNAMIC_DISPATCH(DotsFloat)(g, taps, count, n, sums);
}
void dots(const double* g, const double* const* taps, int64_t count, int64_t n, double* sums) {
  HWY_DYNAMIC_DISPATCH(DotsDouble)(g, taps, count, n, sums);
}

constexpr int64_t kSlack = 256;  // elements behind each buffer: four vectors and more
constexpr int64_t kMostElements = int64_t{1} << 24;

int64_t volume(const Three& v) { return v[0] * v[1] * v[2]; }
int64_t grain_of(int64_t flops) { return std::max<int64_t>(1, 200000 / std::max<int64_t>(flops, 1)); }

// A plane of `size` outputs computed as one run: how far its rows lie apart, and its length.
struct Run {
  Three row{};  // extents of a laid out plane
  int64_t length = 0;
  Run(const Three& extents, const Three& size)
      : row(extents), length(((size[0] - 1) * extents[1] + size[1] - 1) * extents[2] + size[2]) {}
};

// target[i * step + shift] = source[i] where that lies in [0, extent), for three dimensions; the rest is untouched.
template <class T>
void spread(const T* source, const Three& size, const Three& step, const Three& shift, const Three& extent, T* target) {
  std::array<int64_t, 3> from, to;
  for (size_t d = 0; d < 3; ++d) {
    from[d] = shift[d] >= 0 ? 0 : (-shift[d] + step[d] - 1) / step[d];
    to[d] = std::min(size[d], (extent[d] - shift[d] + step[d] - 1) / step[d]);
  }
  for (int64_t z = from[0]; z < to[0]; ++z)
    for (int64_t y = from[1]; y < to[1]; ++y) {
      const T* const row = source + (z * size[1] + y) * size[2];
      T* const out = target + ((z * step[0] + shift[0]) * extent[1] + y * step[1] + shift[1]) * extent[2] + shift[2];
      if (step[2] == 1) {
        if (to[2] > from[2])
          std::memcpy(out + from[2], row + from[2], static_cast<size_t>(to[2] - from[2]) * sizeof(T));
      } else {
        for (int64_t i = from[2]; i < to[2]; ++i) out[i * step[2]] = row[i];
      }
    }
}

// target's phase f holds source[(q * stride + f) - pad] at q.
template <class T>
void lay_phases(const Problem& p, const Three& extent, const T* source, T* target) {
  std::fill_n(target, volume(extent) * volume(p.stride), T{0});
  if (!p.is_strided()) return spread(source, p.x, {1, 1, 1}, p.pad, extent, target);
  for (int64_t z = 0; z < p.x[0]; ++z)
    for (int64_t y = 0; y < p.x[1]; ++y) {
      const int64_t uz = z + p.pad[0], uy = y + p.pad[1];
      if (uz < 0 || uy < 0 || uz / p.stride[0] >= extent[0] || uy / p.stride[1] >= extent[1]) continue;
      const int64_t phase = (uz % p.stride[0] * p.stride[1] + uy % p.stride[1]) * p.stride[2];
      const T* const row = source + (z * p.x[1] + y) * p.x[2];
      const int64_t at = (uz / p.stride[0] * extent[1] + uy / p.stride[1]) * extent[2];
      for (int64_t f = 0; f < p.stride[2]; ++f) {
        T* const out = target + (phase + f) * volume(extent) + at;
        const int64_t first = f - p.pad[2];  // x of q == 0
        const int64_t from = first >= 0 ? 0 : (-first + p.stride[2] - 1) / p.stride[2];
        const int64_t to = std::min(extent[2], (p.x[2] - first + p.stride[2] - 1) / p.stride[2]);
        for (int64_t q = from; q < to; ++q) out[q] = row[first + q * p.stride[2]];
      }
    }
}

Three phase_extents(const Problem& p) {
  Three extent;
  for (size_t d = 0; d < 3; ++d) {
    const int64_t all = (p.y[d] - 1) * p.stride[d] + (p.kernel[d] - 1) * p.dilation[d] + 1;
    extent[d] = (all + p.stride[d] - 1) / p.stride[d];
  }
  return extent;
}

template <class T>
std::vector<const T*> phase_taps(const Problem& p, const Three& extent, const T* base) {
  std::vector<const T*> taps;
  for (int64_t z = 0; z < p.kernel[0]; ++z)
    for (int64_t y = 0; y < p.kernel[1]; ++y)
      for (int64_t x = 0; x < p.kernel[2]; ++x) {
        const Three at{z * p.dilation[0], y * p.dilation[1], x * p.dilation[2]};
        int64_t phase = 0, offset = 0;
        for (size_t d = 0; d < 3; ++d) {
          phase = phase * p.stride[d] + at[d] % p.stride[d];
          offset = offset * extent[d] + at[d] / p.stride[d];
        }
        taps.push_back(base + phase * volume(extent) + offset);
      }
  return taps;
}

// The rows of a run, without what lies between them.
template <class T>
void take_rows(const T* run, const Three& extent, const Three& size, T* out) {
  for (int64_t z = 0; z < size[0]; ++z)
    for (int64_t y = 0; y < size[1]; ++y)
      std::memcpy(out + (z * size[1] + y) * size[2], run + (z * extent[1] + y) * extent[2],
                  static_cast<size_t>(size[2]) * sizeof(T));
}

template <class F>
bool with_float(ScalarType dtype, F&& f) {
  if (dtype == ScalarType::Float) f.template operator()<float>();
  else if (dtype == ScalarType::Double) f.template operator()<double>();
  else return false;
  return true;
}

bool too_large(const Three& extent, int64_t copies) { return volume(extent) * copies > kMostElements; }

}  // namespace

bool depthwise_forward(const Problem& p, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y) {
  const Three extent = phase_extents(p);
  const Run run(extent, p.y);
  if (too_large(extent, volume(p.stride))) return false;
  return with_float(x.dtype(), [&]<class T>() {
    const int64_t taps = p.taps(), each = p.y_each(), laid = volume(extent) * volume(p.stride) + kSlack;
    parallel_for(0, p.batch * p.groups, grain_of(run.length * taps * each), [&](int64_t begin, int64_t end) {
      T* const plane = static_cast<T*>(scratch(static_cast<size_t>(laid + run.length + kSlack) * sizeof(T)));
      T* const out = plane + laid;
      std::fill_n(plane + laid - kSlack, kSlack, T{0});
      const std::vector<const T*> from = phase_taps<T>(p, extent, plane);
      for (int64_t i = begin; i < end; ++i) {
        lay_phases(p, extent, x.data<T>() + i * p.x_pixels(), plane);
        for (int64_t k = 0; k < each; ++k) {
          const int64_t channel = i % p.groups * each + k;
          shifted(from.data(), w.data<T>() + channel * taps, taps, bias.defined() ? bias.data<T>()[channel] : T{0},
                  run.length, out);
          take_rows(out, extent, p.y, y.data<T>() + (i * each + k) * p.y_pixels());
        }
      }
    });
  });
}

bool depthwise_backward_data(const Problem& p, const Tensor& y, const Tensor& w, const Tensor& bias, const Tensor& x) {
  Three extent, shift;
  for (size_t d = 0; d < 3; ++d) {
    extent[d] = p.x[d] + (p.kernel[d] - 1) * p.dilation[d];
    shift[d] = (p.kernel[d] - 1) * p.dilation[d] - p.pad[d];
  }
  const Run run(extent, p.x);
  const int64_t taps = p.taps(), each = p.y_each(), plane = volume(extent);
  if (too_large(extent, each)) return false;
  return with_float(x.dtype(), [&]<class T>() {
    parallel_for(0, p.batch * p.groups, grain_of(run.length * taps * each), [&](int64_t begin, int64_t end) {
      T* const laid = static_cast<T*>(scratch(static_cast<size_t>(plane * each + run.length + 2 * kSlack) * sizeof(T)));
      T* const out = laid + plane * each + kSlack;
      std::vector<const T*> from;
      for (int64_t k = 0; k < each; ++k)
        for (int64_t a = p.kernel[0] - 1; a >= 0; --a)  // the kernel turned around
          for (int64_t b = p.kernel[1] - 1; b >= 0; --b)
            for (int64_t c = p.kernel[2] - 1; c >= 0; --c)
              from.push_back(laid + k * plane + (a * p.dilation[0] * extent[1] + b * p.dilation[1]) * extent[2] +
                             c * p.dilation[2]);
      for (int64_t i = begin; i < end; ++i) {
        std::fill_n(laid, plane * each + kSlack, T{0});
        for (int64_t k = 0; k < each; ++k)
          spread(y.data<T>() + (i * each + k) * p.y_pixels(), p.y, p.stride, shift, extent, laid + k * plane);
        const int64_t g = i % p.groups;
        shifted(from.data(), w.data<T>() + g * each * taps, each * taps, bias.defined() ? bias.data<T>()[g] : T{0},
                run.length, out);
        take_rows(out, extent, p.x, x.data<T>() + i * p.x_pixels());
      }
    });
  });
}

bool depthwise_backward_weight(const Problem& p, const Tensor& y, const Tensor& x, const Tensor& w) {
  const Three extent = phase_extents(p);
  const Run run(extent, p.y);
  if (too_large(extent, volume(p.stride))) return false;
  return with_float(x.dtype(), [&]<class T>() {
    const int64_t taps = p.taps(), each = p.y_each(), laid = volume(extent) * volume(p.stride) + kSlack;
    parallel_for(0, p.groups, grain_of(run.length * taps * each * p.batch), [&](int64_t begin, int64_t end) {
      T* const plane = static_cast<T*>(scratch(static_cast<size_t>(laid + run.length + kSlack) * sizeof(T)));
      T* const line = plane + laid;
      std::fill_n(plane + laid - kSlack, kSlack, T{0});
      std::fill_n(line, run.length + kSlack, T{0});
      const std::vector<const T*> from = phase_taps<T>(p, extent, plane);
      std::vector<double> sums(static_cast<size_t>(each * taps));
      for (int64_t g = begin; g < end; ++g) {
        std::fill(sums.begin(), sums.end(), 0.0);
        for (int64_t n = 0; n < p.batch; ++n) {
          lay_phases(p, extent, x.data<T>() + (n * p.groups + g) * p.x_pixels(), plane);
          for (int64_t k = 0; k < each; ++k) {
            const T* const grad = y.data<T>() + ((n * p.groups + g) * each + k) * p.y_pixels();
            for (int64_t row = 0; row < p.y[0] * p.y[1]; ++row)
              std::memcpy(line + (row / p.y[1] * extent[1] + row % p.y[1]) * extent[2], grad + row * p.y[2],
                          static_cast<size_t>(p.y[2]) * sizeof(T));
            dots(line, from.data(), taps, run.length, sums.data() + k * taps);
          }
        }
        for (int64_t k = 0; k < each * taps; ++k)
          w.data<T>()[g * each * taps + k] = static_cast<T>(sums[static_cast<size_t>(k)]);
      }
    });
  });
}

}  // namespace tn::convolution
#endif
