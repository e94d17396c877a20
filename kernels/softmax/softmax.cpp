#include <algorithm>
#include <vector>

#include "generated/slots/softmax.h"
#include "kernels/common/halves.h"
#include "kernels/softmax/rows.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/threads.h"

namespace tn {
namespace {

constexpr int64_t kGrain = 8192;  // elements: exponentials are dear

struct Split {
  int64_t outer = 1, n = 1, inner = 1;
};
Split split_at(const Tensor& self, int64_t dim) {
  const int64_t at = wrap_dim(dim, self.dim());
  Split s;
  for (int64_t d = 0; d < self.dim(); ++d) (d < at ? s.outer : d == at ? s.n : s.inner) *= self->size(d);
  return s;
}

template <class T>
void of_type(const T* x, const Split& s, bool log, T* out) {
  if (s.inner == 1) {
    parallel_for(0, s.outer, std::max<int64_t>(1, kGrain / s.n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) softmax::row(x + i * s.n, s.n, log, out + i * s.n);
    });
    return;
  }
  const int64_t blocks = (s.inner + softmax::kColumns - 1) / softmax::kColumns;
  parallel_for(0, s.outer * blocks, std::max<int64_t>(1, kGrain / (s.n * std::min(s.inner, softmax::kColumns))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t t = begin; t < end; ++t) {
                   const int64_t start = t % blocks * softmax::kColumns, at = t / blocks * s.n * s.inner + start;
                   softmax::columns(x + at, s.inner, s.n, std::min(softmax::kColumns, s.inner - start), log, out + at,
                                    s.inner);
                 }
               });
}

// 16-bit floats: each task in a buffer of floats.
void widened(ScalarType dtype, const uint16_t* x, const Split& s, bool log, uint16_t* out) {
  if (s.inner == 1) {
    parallel_for(0, s.outer, std::max<int64_t>(1, kGrain / s.n), [&](int64_t begin, int64_t end) {
      std::vector<float> buffer(static_cast<size_t>(s.n));
      for (int64_t i = begin; i < end; ++i) {
        widen(dtype, x + i * s.n, buffer.data(), buffer.size());
        softmax::row(buffer.data(), s.n, log, buffer.data());
        shorten(dtype, buffer.data(), out + i * s.n, buffer.size());
      }
    });
    return;
  }
  constexpr int64_t kWidth = softmax::kColumns;
  const int64_t blocks = (s.inner + kWidth - 1) / kWidth;
  parallel_for(0, s.outer * blocks, std::max<int64_t>(1, kGrain / (s.n * std::min(s.inner, kWidth))),
               [&](int64_t begin, int64_t end) {
                 std::vector<float> buffer(static_cast<size_t>(s.n * kWidth));
                 for (int64_t t = begin; t < end; ++t) {
                   const int64_t start = t % blocks * kWidth, at = t / blocks * s.n * s.inner + start,
                                 cols = std::min(kWidth, s.inner - start);
                   for (int64_t i = 0; i < s.n; ++i)
                     widen(dtype, x + at + i * s.inner, buffer.data() + i * kWidth, static_cast<size_t>(cols));
                   softmax::columns(buffer.data(), kWidth, s.n, cols, log, buffer.data(), kWidth);
                   for (int64_t i = 0; i < s.n; ++i)
                     shorten(dtype, buffer.data() + i * kWidth, out + at + i * s.inner, static_cast<size_t>(cols));
                 }
               });
}

void set_softmax(Outputs& outs, const char* name, const Tensor& self, int64_t dim, bool half_to_float) {
  wrap_dim(dim, self.dim());
  TN_CHECK(!half_to_float || self.dtype() == ScalarType::Half, name,
           " with half to float conversion is not supported on CPU");
  TN_CHECK(!half_to_float || !self.is_cpu(), name, " with half to float conversion is not supported on CPU");
  outs.set(0, self.sizes(), half_to_float ? ScalarType::Float : self.dtype(), self.device());
}
void run(Outputs& outs, const Tensor& self, int64_t dim, bool log) {
  if (self.numel() == 0) return;
  const Tensor x = contiguous(self);
  const Split s = split_at(self, dim);
  switch (self.dtype()) {
    case ScalarType::Float: return of_type(x.data<float>(), s, log, outs[0].data<float>());
    case ScalarType::Double: return of_type(x.data<double>(), s, log, outs[0].data<double>());
    default: return widened(self.dtype(), x.data<uint16_t>(), s, log, outs[0].data<uint16_t>());
  }
}

}  // namespace

namespace slots {

void _softmax_meta(Outputs& outs, const Tensor& self, int64_t dim, bool half_to_float) {
  set_softmax(outs, "softmax", self, dim, half_to_float);
}
void _softmax_cpu(Outputs& outs, const Tensor& self, int64_t dim, bool) { run(outs, self, dim, false); }
void _log_softmax_meta(Outputs& outs, const Tensor& self, int64_t dim, bool half_to_float) {
  set_softmax(outs, "log_softmax", self, dim, half_to_float);
}
void _log_softmax_cpu(Outputs& outs, const Tensor& self, int64_t dim, bool) { run(outs, self, dim, true); }

}  // namespace slots
}  // namespace tn
