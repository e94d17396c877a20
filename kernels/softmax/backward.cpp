// Gradients of softmax and log_softmax from their results.
#include <algorithm>

#include "generated/slots/softmax.h"
#include "kernels/common/scalars.h"
#include "kernels/softmax/gradient_rows.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/threads.h"

namespace tn {
namespace {

void set_gradient(Outputs& outs, const char* name, const Tensor& grad, const Tensor& output, int64_t dim,
                  ScalarType input_dtype) {
  wrap_dim(dim, grad.dim());
  TN_CHECK(grad.sizes() == output.sizes(), name, ": expected grad and output of one shape, got ", grad.sizes(), " and ",
           output.sizes());
  TN_CHECK(grad.dtype() == output.dtype() && input_dtype == grad.dtype(), name, ": expected one dtype, got ",
           dtype_name(grad.dtype()), ", ", dtype_name(output.dtype()), " and ", dtype_name(input_dtype));
  outs.set(0, grad.sizes(), grad.dtype(), grad.device());
}
void gradient(Outputs& outs, const Tensor& grad, const Tensor& output, int64_t dim, bool log) {
  if (grad.numel() == 0) return;
  const Tensor g = contiguous(grad), y = contiguous(output);
  const int64_t at = wrap_dim(dim, g.dim());
  int64_t outer = 1, n = 1, inner = 1;
  for (int64_t d = 0; d < g.dim(); ++d) (d < at ? outer : d == at ? n : inner) *= g->size(d);
  const ScalarType dtype = g.dtype();
  const auto item = static_cast<int64_t>(g.itemsize());
  const char *const from = static_cast<const char*>(g->raw_data()), *const results =
                                                                        static_cast<const char*>(y->raw_data());
  char* const to = static_cast<char*>(outs[0]->raw_data());
  if (inner == 1) {
    parallel_for(0, outer, std::max<int64_t>(1, 16384 / n), [&](int64_t begin, int64_t end) {
      const int64_t skip = begin * n * item;
      softmax::gradient_rows(dtype, log, from + skip, results + skip, end - begin, n, to + skip);
    });
    return;
  }
  // Strips of columns, which a cache line holds together.
  constexpr int64_t kStrip = 64;
  const int64_t strips = (inner + kStrip - 1) / kStrip;
  parallel_for(0, outer * strips, std::max<int64_t>(1, 16384 / (n * kStrip)), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t skip = t / strips * n * inner * item, first = t % strips * kStrip;
      softmax::gradient_columns(dtype, log, from + skip, results + skip, n, inner, first,
                                std::min(kStrip, inner - first), to + skip);
    }
  });
}

}  // namespace

namespace slots {

void _softmax_backward_data_meta(Outputs& outs, const Tensor& grad_output, const Tensor& output, int64_t dim,
                                 ScalarType input_dtype) {
  set_gradient(outs, "_softmax_backward_data", grad_output, output, dim, input_dtype);
}
void _softmax_backward_data_cpu(Outputs& outs, const Tensor& grad_output, const Tensor& output, int64_t dim,
                                ScalarType) {
  gradient(outs, grad_output, output, dim, false);
}
void _log_softmax_backward_data_meta(Outputs& outs, const Tensor& grad_output, const Tensor& output, int64_t dim,
                                     ScalarType input_dtype) {
  set_gradient(outs, "_log_softmax_backward_data", grad_output, output, dim, input_dtype);
}
void _log_softmax_backward_data_cpu(Outputs& outs, const Tensor& grad_output, const Tensor& output, int64_t dim,
                                    ScalarType) {
  gradient(outs, grad_output, output, dim, true);
}

}  // namespace slots
}  // namespace tn
