// pdist: the distances of all pairs of rows, without the diagonal and each pair once.
#include <cstring>

#include "generated/slots/distance.h"
#include "kernels/distance/lp.h"
#include "runtime/copy.h"
#include "runtime/threads.h"

namespace tn::native {
namespace {

// Where the pairs (i, i + 1), (i, i + 2), ... begin.
int64_t first_pair(int64_t i, int64_t n) { return i * (2 * n - i - 1) / 2; }

int64_t grain_of(int64_t n, int64_t width) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, n * width)); }

}  // namespace

Tensor _pdist_forward(const Tensor& self, double p) {
  TN_CHECK(self.is_contiguous(), "_pdist_forward requires contiguous input");
  const int64_t n = self->size(0), width = self->size(1);
  const Tensor out = empty({n <= 1 ? 0 : n * (n - 1) / 2}, self.dtype(), self.device());
  if (out.is_meta() || out.numel() == 0) return out;
  distance::with_kind("pdist", self.dtype(), p, [&]<class T, class Kind>() {
    const T* const rows = width ? self.data<T>() : nullptr;
    T* const to = out.data<T>();
    parallel_for(0, n - 1, grain_of(n, width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t j = i + 1, at = first_pair(i, n); j < n; ++j, ++at)
          to[at] = Kind::distance(rows + i * width, rows + j * width, width, static_cast<T>(p));
    });
  });
  return out;
}

Tensor _pdist_backward(const Tensor& grad, const Tensor& self, double p, const Tensor& pdist) {
  const Tensor out = empty(self.sizes(), self.dtype(), self.device());
  if (out.is_meta() || out.numel() == 0) return out;
  std::memset(out->data(), 0, static_cast<size_t>(out.numel()) * out.itemsize());
  const int64_t n = self->size(0), width = self->size(1);
  const Tensor x = contiguous(self), g = contiguous(grad), d = contiguous(pdist);
  if (g.numel() == 0) return out;
  distance::with_kind("pdist_backward", self.dtype(), p, [&]<class T, class Kind>() {
    const T *const rows = x.data<T>(), *const grads = g.data<T>(), *const distances = d.data<T>();
    T* const to = out.data<T>();
    // A row's gradient is one thread's: it gathers from all of its pairs.
    parallel_for(0, n, grain_of(n, width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t j = 0; j < n; ++j) {
          if (j == i) continue;
          const int64_t at = i < j ? first_pair(i, n) + j - i - 1 : first_pair(j, n) + i - j - 1;
          for (int64_t k = 0; k < width; ++k)
            to[i * width + k] +=
                Kind::slope(rows[i * width + k] - rows[j * width + k], grads[at], distances[at], static_cast<T>(p));
        }
    });
  });
  return out;
}

}  // namespace tn::native
