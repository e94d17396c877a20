#include "kernels/reduce/positions.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "generated/slots/reduce.h"
#include "kernels/reduce/floats.h"
#include "kernels/reduce/load.h"
#include "runtime/copy.h"
#include "runtime/error.h"

namespace tn {
namespace {

using namespace reduce;

// First place of a value, by blocks that the compiler turns into vectors.
template <class T>
int64_t first_place(const T* p, int64_t n, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) {
      for (int64_t i = 0; i < n; ++i)
        if (std::isnan(p[i])) return i;
    }
  }
  constexpr int64_t kBlock = 64;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    int found = 0;
    for (int64_t k = 0; k < kBlock; ++k) found |= p[i + k] == value;
    if (found) break;
  }
  for (; i < n; ++i)
    if (p[i] == value) return i;
  return 0;
}
template <class T>
int64_t place_in_row(const T* p, int64_t n, bool largest) {
  if constexpr (std::is_floating_point_v<T>) {
    return first_place(p, n, float_operation<T>(largest ? Kind::Max : Kind::Min).row(p, n));
  } else {
    return (largest ? std::max_element(p, p + n) : std::min_element(p, p + n)) - p;
  }
}

// places[outer, inner] over x[outer, n, inner], contiguous.
template <class T>
void places_of(const T* x, int64_t outer, int64_t n, int64_t inner, bool largest, int64_t* places) {
  if (inner == 1) {
    parallel_for(0, outer, std::max<int64_t>(1, kRun / n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) places[i] = place_in_row(x + i * n, n, largest);
    });
    return;
  }
  const int64_t blocks = (inner + kBuffer - 1) / kBuffer;
  parallel_for(
      0, outer * blocks, std::max<int64_t>(1, kRun / (n * std::min(inner, kBuffer))), [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
          const int64_t start = t % blocks * kBuffer, cols = std::min(kBuffer, inner - start);
          const T* p = x + t / blocks * n * inner + start;
          int64_t* to = places + t / blocks * inner + start;
          if constexpr (std::is_floating_point_v<T>) {
            alignas(64) T values[kBuffer];
            if constexpr (sizeof(T) == 8) {
              extreme_columns(p, inner, n, cols, largest, values, to);
            } else if (n < INT32_MAX) {
              alignas(64) int32_t narrow[kBuffer];
              extreme_columns(p, inner, n, cols, largest, values, narrow);
              std::copy_n(narrow, cols, to);
            } else {
              fail(ErrorKind::Runtime, "argmax: expected fewer than 2^31 elements in a strided dimension, got ", n);
            }
          } else {
            T values[kBuffer];
            std::copy_n(p, cols, values);
            std::fill_n(to, cols, 0);
            for (int64_t i = 1; i < n; ++i)
              for (int64_t j = 0; j < cols; ++j) {
                const T v = p[i * inner + j];
                const bool take = largest ? v > values[j] : v < values[j];
                values[j] = take ? v : values[j];
                to[j] = take ? i : to[j];
              }
          }
        }
      });
}

void find_places(const Tensor& self, int64_t outer, int64_t n, int64_t inner, bool largest, int64_t* places) {
  const Tensor x = is_reduced_float(self.dtype()) ? contiguous(cast(self, ScalarType::Float)) : contiguous(self);
  visit(x.dtype(), [&]<class S>() {
    if constexpr (std::is_same_v<S, bool>)
      places_of(reinterpret_cast<const uint8_t*>(x.data<bool>()), outer, n, inner, largest, places);
    else if constexpr (std::is_arithmetic_v<S>) places_of(x.data<S>(), outer, n, inner, largest, places);
  });
}

struct Split {
  int64_t outer = 1, n = 1, inner = 1;
};
Split split_at(const Tensor& self, int64_t dim) {
  Split s;
  for (int64_t d = 0; d < self.dim(); ++d) (d < dim ? s.outer : d == dim ? s.n : s.inner) *= self->size(d);
  return s;
}

void set_with_place(Outputs& outs, const char* name, const Tensor& self, int64_t dim, bool keepdim) {
  const int64_t d = wrap_dim(dim, self.dim());
  TN_CHECK_AS(Index, self.dim() == 0 || self->size(d) != 0, name, "(): Expected reduction dim ", d,
              " to have non-zero size.");
  const DimVector sizes = reduced_sizes(self.sizes(), mask_of(self, dim), keepdim);
  outs.set(0, sizes, self.dtype(), self.device());
  outs.set(1, sizes, ScalarType::Long, self.device());
}
void extreme_with_place(Outputs& outs, const Tensor& self, int64_t dim, bool largest) {
  if (outs[0].numel() == 0) return;
  const int64_t d = wrap_dim(dim, self.dim());
  const Split s = split_at(self, d);
  const Tensor x = contiguous(self);
  int64_t* places = outs[1].data<int64_t>();
  find_places(x, s.outer, s.n, s.inner, largest, places);
  const auto item = static_cast<int64_t>(self.itemsize());
  const char* from = static_cast<const char*>(x.data_ptr());
  char* to = static_cast<char*>(outs[0].data_ptr());
  for (int64_t i = 0; i < s.outer; ++i)
    for (int64_t j = 0; j < s.inner; ++j, ++places, to += item)
      std::memcpy(to, from + ((i * s.n + *places) * s.inner + j) * item, static_cast<size_t>(item));
}

void set_place(Outputs& outs, const char* name, const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  TN_CHECK(self.dtype() != ScalarType::Bool, name, "(): does not support bool input");
  TN_CHECK(!is_complex(self.dtype()), name, "(): does not support complex input");
  if (dim) {
    const int64_t d = wrap_dim(*dim, self.dim());
    TN_CHECK_AS(Index, self.dim() == 0 || self->size(d) != 0, name, "(): Expected reduction dim ", d,
                " to have non-zero size.");
  } else {
    TN_CHECK_AS(Index, self.numel() != 0, name, "(): Expected reduction dim to be specified for input.numel() == 0.");
  }
  outs.set(0, reduced_sizes(self.sizes(), mask_of(self, dim), keepdim), ScalarType::Long, self.device());
}
void place(Outputs& outs, const Tensor& self, std::optional<int64_t> dim, bool largest) {
  if (outs[0].numel() == 0) return;
  Split s;
  if (dim) s = split_at(self, wrap_dim(*dim, self.dim()));
  else s.n = self.numel();
  int64_t* places = outs[0].data<int64_t>();
  const int64_t parts = s.outer * s.inner == 1 ? s.n / kRun : 0;
  if (parts < 2) return find_places(self, s.outer, s.n, s.inner, largest, places);
  // One long row: the extreme in parallel, then its first place.
  const Tensor x = is_reduced_float(self.dtype()) ? contiguous(cast(self, ScalarType::Float)) : contiguous(self);
  const auto of_part = std::make_unique<int64_t[]>(static_cast<size_t>(parts));
  visit(x.dtype(), [&]<class S>() {
    if constexpr (std::is_arithmetic_v<S> && !std::is_same_v<S, bool>) {
      const S* p = x.data<S>();
      parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t from = s.n * i / parts, to = s.n * (i + 1) / parts;
          of_part[static_cast<size_t>(i)] = from + place_in_row(p + from, to - from, largest);
        }
      });
      int64_t best = of_part[0];
      for (int64_t i = 1; i < parts; ++i) {
        const S a = p[best], b = p[of_part[static_cast<size_t>(i)]];
        if (a == a && (b != b || (largest ? b > a : b < a))) best = of_part[static_cast<size_t>(i)];
      }
      *places = best;
    }
  });
}

}  // namespace

namespace slots {

void max_dim_meta(Outputs& outs, const Tensor& self, int64_t dim, bool keepdim) {
  set_with_place(outs, "max", self, dim, keepdim);
}
void max_dim_cpu(Outputs& outs, const Tensor& self, int64_t dim, bool) { extreme_with_place(outs, self, dim, true); }
void min_dim_meta(Outputs& outs, const Tensor& self, int64_t dim, bool keepdim) {
  set_with_place(outs, "min", self, dim, keepdim);
}
void min_dim_cpu(Outputs& outs, const Tensor& self, int64_t dim, bool) { extreme_with_place(outs, self, dim, false); }
void argmax_meta(Outputs& outs, const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  set_place(outs, "argmax", self, dim, keepdim);
}
void argmax_cpu(Outputs& outs, const Tensor& self, std::optional<int64_t> dim, bool) { place(outs, self, dim, true); }
void argmin_meta(Outputs& outs, const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  set_place(outs, "argmin", self, dim, keepdim);
}
void argmin_cpu(Outputs& outs, const Tensor& self, std::optional<int64_t> dim, bool) { place(outs, self, dim, false); }

}  // namespace slots
}  // namespace tn
