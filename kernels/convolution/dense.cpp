// Convolutions as matrix products over tiles of patches. Tiles follow from shapes alone.
#include <complex>
#include <cstdlib>
#include <new>

#include "kernels/common/bytes.h"
#include "kernels/convolution/columns.h"
#include "kernels/convolution/problem.h"
#include "kernels/matmul/gemm.h"
#include "runtime/copy.h"
#include "runtime/refuse.h"
#include "runtime/threads.h"

namespace tn::convolution {
namespace {

struct Scratch {
  void* data = nullptr;
  size_t bytes = 0;
  ~Scratch() { std::free(data); }
};
constinit thread_local Scratch t_scratch;

constexpr int64_t kTileBytes = 512 * 1024;
constexpr int64_t kEnoughTasks = 8;
constexpr double kTaskFlops = 4e5;

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Pixels of a tile: its patches fill half of a second-level cache.
int64_t tile_pixels(int64_t pixels, int64_t depth, size_t item) {
  const int64_t fit = kTileBytes / std::max<int64_t>(depth * static_cast<int64_t>(item), 1) / 32 * 32;
  const int64_t most = std::clamp<int64_t>(fit, 96, 1024);
  return ceil_div(pixels, ceil_div(pixels, most));
}

const char* at(const Tensor& t, int64_t element) {
  return static_cast<const char*>(t->raw_data()) + element * static_cast<int64_t>(t.itemsize());
}
char* mutable_at(const Tensor& t, int64_t element) {
  return static_cast<char*>(t->raw_data()) + element * static_cast<int64_t>(t.itemsize());
}

// Additions by type: what gemm sums.
template <class F>
void with_sums(ScalarType dtype, F&& f) {
  switch (dtype) {
    case ScalarType::Float: return f.template operator()<float>();
    case ScalarType::Double: return f.template operator()<double>();
    case ScalarType::Byte: return f.template operator()<uint8_t>();
    case ScalarType::Char: return f.template operator()<int8_t>();
    case ScalarType::Short: return f.template operator()<int16_t>();
    case ScalarType::Int: return f.template operator()<int32_t>();
    case ScalarType::Long: return f.template operator()<int64_t>();
    case ScalarType::ComplexFloat: return f.template operator()<std::complex<float>>();
    case ScalarType::ComplexDouble: return f.template operator()<std::complex<double>>();
    default: refuse("convolution", str("dtype ", dtype_name(dtype)), "no kernel for this dtype");
  }
}

// One product a task: a tile of one image's and one group's pixels, and a part of the channels where tasks are few.
void forward_planes(const Problem& p, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y) {
  const int64_t pixels = p.y_pixels(), depth = p.depth(), each = p.y_each();
  const int64_t tile = p.is_pointwise() ? std::min<int64_t>(pixels, 1024) : tile_pixels(pixels, depth, x.itemsize());
  const int64_t tiles = ceil_div(pixels, tile), images = p.batch * p.groups;
  const int64_t parts =
      images * tiles >= kEnoughTasks ? 1 : std::min(ceil_div(each, 112), ceil_div(kEnoughTasks, images * tiles));
  const int64_t part = ceil_div(each, parts);
  const double flops = 2.0 * static_cast<double>(depth) * static_cast<double>(tile) * static_cast<double>(part);
  parallel_for(0, images * tiles * parts, static_cast<int64_t>(kTaskFlops / (flops + 1000.0)) + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t index = begin; index < end; ++index) {
                   const int64_t n = index / (p.groups * tiles * parts), g = index / (tiles * parts) % p.groups;
                   const int64_t from = index / parts % tiles * tile, to = std::min(pixels, from + tile),
                                 count = to - from;
                   const int64_t first = index % parts * part, rows = std::min(part, each - first);
                   if (rows <= 0) continue;
                   const int64_t plane = (n * p.x_channels + g * p.x_each()) * p.x_pixels(), out = g * each + first;
                   const void* columns;
                   int64_t ld = count;
                   if (p.is_pointwise()) {
                     columns = at(x, plane + from), ld = pixels;
                   } else {
                     void* const own = scratch(static_cast<size_t>(depth * count) * x.itemsize());
                     with_bytes(x.itemsize(), [&]<class T>() {
                       to_columns(p, reinterpret_cast<const T*>(at(x, plane)), p.x_each(), from, to,
                                  static_cast<T*>(own), count);
                     });
                     columns = own;
                   }
                   gemm::gemm(x.dtype(), count, rows, depth, {columns, 1, ld}, {at(w, out * depth), 1, depth},
                              {mutable_at(y, (n * p.y_channels + out) * pixels + from), 1, pixels}, 1, 0,
                              bias.defined() ? at(bias, out) : nullptr);
                 }
               });
}

// w [y_channels, x_each, taps] -> [y_channels, taps, x_each].
Tensor taps_first(const Problem& p, const Tensor& w) {
  const int64_t sizes[] = {p.y_channels, p.taps(), p.x_each()}, strides[] = {p.depth(), 1, p.taps()};
  return contiguous(alias_with_geometry(w, IntView(sizes), IntView(strides), w.storage_offset()));
}

void forward_last(const Problem& p, const Tensor& x, const Tensor& given, const Tensor& bias, const Tensor& y) {
  const int64_t pixels = p.y_pixels(), depth = p.depth(), each = p.y_each();
  const Tensor w = p.taps() > 1 ? taps_first(p, given) : given;
  if (p.is_pointwise() && p.groups == 1) {
    gemm::gemm(x.dtype(), p.batch * pixels, each, depth, {x->raw_data(), depth, 1}, {w->raw_data(), 1, depth},
               {y->raw_data(), each, 1}, 1, 0, bias.defined() ? bias->raw_data() : nullptr);
    return;
  }
  const int64_t tile = tile_pixels(pixels, depth, x.itemsize()), tiles = ceil_div(pixels, tile);
  const double flops = 2.0 * static_cast<double>(depth) * static_cast<double>(tile) * static_cast<double>(each);
  parallel_for(0, p.batch * p.groups * tiles, static_cast<int64_t>(kTaskFlops / (flops + 1000.0)) + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t index = begin; index < end; ++index) {
                   const int64_t n = index / (p.groups * tiles), g = index / tiles % p.groups;
                   const int64_t from = index % tiles * tile, to = std::min(pixels, from + tile);
                   void* const rows = scratch(static_cast<size_t>(depth * (to - from)) * x.itemsize());
                   with_bytes(x.itemsize(), [&]<class T>() {
                     const auto* source =
                         reinterpret_cast<const T*>(at(x, n * p.x_pixels() * p.x_channels + g * p.x_each()));
                     to_rows(p, source, p.x_channels, p.x_each(), from, to, static_cast<T*>(rows));
                   });
                   gemm::gemm(x.dtype(), to - from, each, depth, {rows, depth, 1}, {at(w, g * each * depth), 1, depth},
                              {mutable_at(y, (n * pixels + from) * p.y_channels + g * each), p.y_channels, 1}, 1, 0,
                              bias.defined() ? at(bias, g * each) : nullptr);
                 }
               });
}

// Without strides, the gradient of x is a convolution of y with the kernel turned around.
Problem turned(const Problem& p) {
  Problem t = p;
  t.x_channels = p.y_channels, t.y_channels = p.x_channels;
  t.x = p.y, t.y = p.x;
  for (size_t d = 0; d < 3; ++d) t.pad[d] = p.dilation[d] * (p.kernel[d] - 1) - p.pad[d];
  return t;
}
Tensor turned_weight(const Problem& p, const Tensor& w) {
  const Tensor out = empty({p.x_channels, p.y_each(), p.taps()}, w.dtype());
  const int64_t taps = p.taps(), x_each = p.x_each(), y_each = p.y_each();
  with_bytes(w.itemsize(), [&]<class T>() {
    const T* from = static_cast<const T*>(w->raw_data());
    T* to = static_cast<T*>(out->raw_data());
    parallel_for(0, p.x_channels, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, y_each * taps)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t c = begin; c < end; ++c)
                     for (int64_t o = 0; o < y_each; ++o) {
                       const T* source = from + ((c / x_each * y_each + o) * x_each + c % x_each) * taps;
                       T* target = to + (c * y_each + o) * taps;
                       for (int64_t k = 0; k < taps; ++k) target[k] = source[taps - 1 - k];
                     }
                 });
  });
  return out;
}

void scatter_data(const Problem& p, const Tensor& y, const Tensor& w, const Tensor& bias, const Tensor& x) {
  const int64_t pixels = p.y_pixels(), taps = p.taps(), each = p.x_each(), planes = p.x_pixels();
  const int64_t images = p.batch * p.groups, tile = std::min<int64_t>(pixels, 1024);
  const int64_t fit = std::max<int64_t>(1, kTileBytes / (taps * tile * static_cast<int64_t>(x.itemsize())));
  const int64_t most = images >= kEnoughTasks ? each : ceil_div(each, ceil_div(kEnoughTasks, images));
  const int64_t block = std::min(most, fit), blocks = ceil_div(each, block);
  const double flops =
      2.0 * static_cast<double>(taps * block) * static_cast<double>(pixels) * static_cast<double>(p.y_each());
  with_sums(x.dtype(), [&]<class T>() {
    parallel_for(
        0, images * blocks, static_cast<int64_t>(kTaskFlops / (flops + 1000.0)) + 1, [&](int64_t begin, int64_t end) {
          for (int64_t index = begin; index < end; ++index) {
            const int64_t n = index / (p.groups * blocks), g = index / blocks % p.groups, c = index % blocks * block;
            const int64_t channels = std::min(block, each - c);
            T* const target = reinterpret_cast<T*>(mutable_at(x, (n * p.x_channels + g * each + c) * planes));
            for (int64_t i = 0; i < channels; ++i)
              std::fill_n(target + i * planes, planes,
                          bias.defined() ? static_cast<const T*>(bias->raw_data())[g * each + c + i] : T{});
            for (int64_t from = 0; from < pixels; from += tile) {
              const int64_t count = std::min(tile, pixels - from);
              T* const columns = static_cast<T*>(scratch(static_cast<size_t>(channels * taps * count) * sizeof(T)));
              gemm::gemm(x.dtype(), channels * taps, count, p.y_each(),
                         {at(w, g * p.y_each() * p.depth() + c * taps), 1, p.depth()},
                         {at(y, (n * p.y_channels + g * p.y_each()) * pixels + from), pixels, 1}, {columns, count, 1});
              from_columns(p, columns, count, channels, from, from + count, target);
            }
          }
        });
  });
}

}  // namespace

void* scratch(size_t bytes) {
  Scratch& own = t_scratch;
  if (own.bytes >= bytes) return own.data;
  std::free(own.data);
  own.bytes = 0;
  const size_t rounded = (bytes + 4095) / 4096 * 4096;
  own.data = std::aligned_alloc(64, rounded);
  if (own.data == nullptr) throw std::bad_alloc();
  own.bytes = rounded;
  return own.data;
}

void forward(const Problem& p, bool last, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y) {
  if (y.numel() == 0) return;
  if (last) return forward_last(p, x, w, bias, y);
  if (p.is_depthwise() && depthwise_forward(p, x, w, bias, y)) return;
  forward_planes(p, x, w, bias, y);
}

void backward_data(const Problem& p, const Tensor& y, const Tensor& w, const Tensor& bias, const Tensor& x) {
  if (x.numel() == 0) return;
  if (p.is_depthwise() && depthwise_backward_data(p, y, w, bias, x)) return;
  if (!p.is_strided()) return forward_planes(turned(p), y, turned_weight(p, w), bias, x);
  scatter_data(p, y, w, bias, x);
}

void backward_weight(const Problem& p, const Tensor& y, const Tensor& x, const Tensor& w) {
  if (w.numel() == 0) return;
  if (y.numel() == 0) return zero(w);
  if (p.is_depthwise() && depthwise_backward_weight(p, y, x, w)) return;
  const int64_t pixels = p.y_pixels(), taps = p.taps(), each = p.x_each(), depth = p.depth();
  // Small images are put side by side: sums are long, so that the result is seldom read and written.
  const bool joined = pixels < 512 && p.batch > 1;
  const int64_t line = joined ? p.batch * pixels : pixels;
  Tensor lines = y;
  if (joined) {
    const int64_t sizes[] = {p.y_channels, p.batch, pixels}, strides[] = {pixels, p.y_channels * pixels, 1};
    lines = contiguous(alias_with_geometry(y, IntView(sizes), IntView(strides), y.storage_offset()));
  }
  const int64_t parts = std::min(each, std::max<int64_t>(1, kEnoughTasks / 2 / p.groups)),
                block = ceil_div(each, parts);
  const int64_t fit = kTileBytes * 2 / std::max<int64_t>(1, block * taps * static_cast<int64_t>(x.itemsize()));
  const int64_t tile = std::min(line, std::clamp<int64_t>(fit, 128, 1024));
  parallel_for(0, p.groups * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t g = index / parts, c = index % parts * block, channels = std::min(block, each - c);
      if (channels <= 0) continue;
      bool first = true;
      for (int64_t n = 0; n < (joined ? 1 : p.batch); ++n)
        for (int64_t from = 0; from < line; from += tile, first = false) {
          const int64_t count = std::min(tile, line - from);
          const void* columns;
          int64_t ld = count;
          if (p.is_pointwise() && !joined) {
            columns = at(x, (n * p.x_channels + g * each + c) * pixels + from), ld = pixels;
          } else {
            void* const own = scratch(static_cast<size_t>(channels * taps * count) * x.itemsize());
            with_bytes(x.itemsize(), [&]<class T>() {
              for (int64_t i = from; i < from + count;) {
                const int64_t image = joined ? i / pixels : n, local = joined ? i % pixels : i;
                const int64_t here = std::min(from + count - i, pixels - local);
                const auto* source =
                    reinterpret_cast<const T*>(at(x, (image * p.x_channels + g * each + c) * p.x_pixels()));
                to_columns(p, source, channels, local, local + here, static_cast<T*>(own) + (i - from), count);
                i += here;
              }
            });
            columns = own;
          }
          const int64_t row = joined ? g * p.y_each() * line : (n * p.y_channels + g * p.y_each()) * pixels;
          gemm::gemm(x.dtype(), p.y_each(), channels * taps, count, {at(lines, row + from), line, 1}, {columns, 1, ld},
                     {mutable_at(w, g * p.y_each() * depth + c * taps), depth, 1}, 1, first ? 0 : 1);
        }
    }
  });
}

}  // namespace tn::convolution
