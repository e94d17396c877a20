// Patches of x as columns for a matrix product, and back: a tile at a time, so that they stay in cache.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/convolution/problem.h"

namespace tn::convolution {

// The outputs [from, to) along one dimension whose tap `k` lies inside of x.
struct Inside {
  int64_t from, to;
};
inline Inside inside(const Problem& p, size_t d, int64_t k) {
  const int64_t shift = k * p.dilation[d] - p.pad[d], s = p.stride[d];
  const int64_t from = shift >= 0 ? 0 : (-shift + s - 1) / s;
  const int64_t past = p.x[d] - shift;  // o * s < past
  const int64_t to = past <= 0 ? 0 : std::min(p.y[d], (past + s - 1) / s);
  return {std::min(from, to), to};
}

// Calls f(row of the tile's columns, first pixel, count, x offset or -1) for each run of a tap's pixels [from, to) that
// stand in one row of y.
template <class F>
void for_rows(const Problem& p, int64_t kz, int64_t ky, int64_t from, int64_t to, F&& f) {
  const int64_t width = p.y[2];
  int64_t row = from / width;
  for (int64_t at = from; at < to; ++row) {
    const int64_t end = std::min(to, (row + 1) * width);
    const int64_t z = (row / p.y[1]) * p.stride[0] - p.pad[0] + kz * p.dilation[0];
    const int64_t y = (row % p.y[1]) * p.stride[1] - p.pad[1] + ky * p.dilation[1];
    const bool valid = z >= 0 && z < p.x[0] && y >= 0 && y < p.x[1];
    f(at - row * width, end - row * width, at - from, valid ? (z * p.x[1] + y) * p.x[2] : -1);
    at = end;
  }
}

// to[(c * taps + tap) * ld + i] = x[c] at the tap of pixel from + i, for `channels` planes of x.
template <class T>
void to_columns(const Problem& p, const T* x, int64_t channels, int64_t from, int64_t to, T* columns, int64_t ld) {
  const int64_t step = p.stride[2];
  for (int64_t kz = 0; kz < p.kernel[0]; ++kz)
    for (int64_t ky = 0; ky < p.kernel[1]; ++ky)
      for (int64_t kx = 0; kx < p.kernel[2]; ++kx) {
        const int64_t tap = (kz * p.kernel[1] + ky) * p.kernel[2] + kx;
        const Inside in = inside(p, 2, kx);
        const int64_t shift = kx * p.dilation[2] - p.pad[2];
        for_rows(p, kz, ky, from, to, [&](int64_t first, int64_t last, int64_t place, int64_t base) {
          const int64_t a = base < 0 ? last : std::clamp(in.from, first, last),
                        b = base < 0 ? last : std::clamp(in.to, a, last);
          for (int64_t c = 0; c < channels; ++c) {
            T* const out = columns + (c * p.taps() + tap) * ld + place;
            for (int64_t i = first; i < a; ++i) out[i - first] = T{};
            const T* const source = x + c * p.x_pixels() + base + shift;
            if (step == 1) {
              if (b > a)
                std::memcpy(static_cast<void*>(out + a - first), source + a, static_cast<size_t>(b - a) * sizeof(T));
            } else {
              for (int64_t i = a; i < b; ++i) out[i - first] = source[i * step];
            }
            for (int64_t i = b; i < last; ++i) out[i - first] = T{};
          }
        });
      }
}

// The sum of columns at their places: x[c] += ...
template <class T>
void from_columns(const Problem& p, const T* columns, int64_t ld, int64_t channels, int64_t from, int64_t to, T* x) {
  const int64_t step = p.stride[2];
  for (int64_t kz = 0; kz < p.kernel[0]; ++kz)
    for (int64_t ky = 0; ky < p.kernel[1]; ++ky)
      for (int64_t kx = 0; kx < p.kernel[2]; ++kx) {
        const int64_t tap = (kz * p.kernel[1] + ky) * p.kernel[2] + kx;
        const Inside in = inside(p, 2, kx);
        const int64_t shift = kx * p.dilation[2] - p.pad[2];
        for_rows(p, kz, ky, from, to, [&](int64_t first, int64_t last, int64_t place, int64_t base) {
          if (base < 0) return;
          const int64_t a = std::clamp(in.from, first, last), b = std::clamp(in.to, a, last);
          for (int64_t c = 0; c < channels; ++c) {
            const T* const source = columns + (c * p.taps() + tap) * ld + place - first;
            T* const target = x + c * p.x_pixels() + base + shift;
            if (step == 1) {
              for (int64_t i = a; i < b; ++i) target[i] += source[i];
            } else {
              for (int64_t i = a; i < b; ++i) target[i * step] += source[i];
            }
          }
        });
      }
}

// Channels innermost: to[i * depth + tap * channels + c] for `channels` of `all` adjacent ones.
template <class T>
void to_rows(const Problem& p, const T* x, int64_t all, int64_t channels, int64_t from, int64_t to, T* rows) {
  const auto bytes = static_cast<size_t>(channels) * sizeof(T);
  for (int64_t i = from; i < to; ++i) {
    const int64_t ox = i % p.y[2], oy = i / p.y[2] % p.y[1], oz = i / (p.y[2] * p.y[1]);
    for (int64_t kz = 0; kz < p.kernel[0]; ++kz)
      for (int64_t ky = 0; ky < p.kernel[1]; ++ky) {
        const int64_t z = oz * p.stride[0] - p.pad[0] + kz * p.dilation[0],
                      y = oy * p.stride[1] - p.pad[1] + ky * p.dilation[1];
        const bool valid = z >= 0 && z < p.x[0] && y >= 0 && y < p.x[1];
        for (int64_t kx = 0; kx < p.kernel[2]; ++kx, rows += channels) {
          const int64_t at = ox * p.stride[2] - p.pad[2] + kx * p.dilation[2];
          if (valid && at >= 0 && at < p.x[2]) {
            std::memcpy(static_cast<void*>(rows), x + ((z * p.x[1] + y) * p.x[2] + at) * all, bytes);
          } else {
            std::memset(static_cast<void*>(rows), 0, bytes);
          }
        }
      }
  }
}

}  // namespace tn::convolution
