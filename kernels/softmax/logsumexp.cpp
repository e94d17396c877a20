#include <algorithm>

#include "generated/ops/add.h"
#include "generated/ops/amax.h"
#include "generated/ops/exp.h"
#include "generated/ops/isinf.h"
#include "generated/ops/log.h"
#include "generated/ops/masked_fill.h"
#include "generated/ops/real.h"
#include "generated/ops/reshape.h"
#include "generated/ops/sub.h"
#include "generated/ops/sum.h"
#include "generated/slots/softmax.h"
#include "kernels/common/moved.h"
#include "kernels/softmax/rows.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/shape.h"
#include "runtime/threads.h"

namespace tn {
namespace {

ScalarType result_dtype(const Tensor& self) { return is_integral(self.dtype(), true) ? default_dtype() : self.dtype(); }

template <class T>
void run(const T* x, int64_t outer, int64_t n, int64_t inner, T* out) {
  if (inner == 1) {
    parallel_for(0, outer, std::max<int64_t>(1, 8192 / std::max<int64_t>(n, 1)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = softmax::log_sum(x + i * n, n);
    });
    return;
  }
  constexpr int64_t kWidth = softmax::kColumns;
  const int64_t blocks = (inner + kWidth - 1) / kWidth;
  parallel_for(0, outer * blocks, std::max<int64_t>(1, 8192 / std::max<int64_t>(n * kWidth, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t t = begin; t < end; ++t) {
                   const int64_t start = t % blocks * kWidth, i = t / blocks;
                   softmax::log_sum_columns(x + i * n * inner + start, inner, n, std::min(kWidth, inner - start),
                                            out + i * inner + start);
                 }
               });
}

// Few numbers are complex: through the door, about the largest real part.
void run_complex(const Tensor& self, IntArrayRef dim, const Tensor& out) {
  const Tensor top = at::amax(at::real(self), dim, true);
  const Tensor finite = at::masked_fill(top, at::isinf(top), 0);
  const Tensor sum = at::sum(at::exp(at::sub(self, finite)), dim, true);
  copy_into(out, at::reshape(at::add(at::log(sum), finite), out.sizes()));
}

}  // namespace

namespace slots {

void logsumexp_meta(Outputs& outs, const Tensor& self, IntArrayRef dim, bool keepdim) {
  const uint64_t mask = dim_mask(OptionalIntArrayRef(dim), self.dim());
  DimVector sizes;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (!(mask >> d & 1)) sizes.push_back(self->size(d));
    else if (keepdim) sizes.push_back(1);
  }
  outs.set(0, sizes, result_dtype(self), self.device());
}
void logsumexp_cpu(Outputs& outs, const Tensor& self, IntArrayRef dim, bool) {
  const Tensor& out = outs[0];
  if (out.numel() == 0) return;
  if (is_complex(self.dtype())) return run_complex(self, dim, out);
  const uint64_t mask = dim_mask(OptionalIntArrayRef(dim), self.dim());
  const ScalarType compute = out.dtype() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
  Tensor x = cast(self, compute);
  // Neighbouring dimensions reduce in place; others move to the end first.
  int64_t first = -1, last = -1, outer = 1, n = 1, inner = 1;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (!(mask >> d & 1)) continue;
    if (first < 0) first = d;
    last = d;
  }
  bool together = true;
  for (int64_t d = first; d <= last && first >= 0; ++d) together &= mask >> d & 1;
  if (!together) {
    x = with_masked_last(x, mask);
    n = x.numel() / out.numel();
    outer = out.numel();
  } else {
    x = contiguous(x);
    for (int64_t d = 0; d < x.dim(); ++d) (d < first ? outer : d <= last ? n : inner) *= x->size(d);
  }
  if (n == 0) return fill(out, -__builtin_inf());
  if (compute == ScalarType::Double) return run(x.data<double>(), outer, n, inner, out.data<double>());
  if (out.dtype() == ScalarType::Float) return run(x.data<float>(), outer, n, inner, out.data<float>());
  const Tensor wide = empty({out.numel()}, ScalarType::Float),
               flat = alias_with_geometry(out, {out.numel()}, {1}, out.storage_offset());
  run(x.data<float>(), outer, n, inner, wide.data<float>());
  copy_into(flat, wide);
}

}  // namespace slots
}  // namespace tn
