// Gradients of softmax and log_softmax from their results.
#include <cmath>

#include "generated/slots/softmax.h"
#include "kernels/common/scalars.h"
#include "runtime/convert.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/threads.h"

namespace tn {
namespace {

// grad * y - y * sum(grad * y), or grad - e^y * sum(grad), over the middle of [outer, n, inner].
template <class S, class A>
void run(const S* grad, const S* y, int64_t outer, int64_t n, int64_t inner, bool log, S* out) {
  parallel_for(0, outer * inner, std::max<int64_t>(1, 8192 / n), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t at = t / inner * n * inner + t % inner;
      double sum = 0;
      for (int64_t k = 0; k < n; ++k) {
        const auto g = convert<A>(grad[at + k * inner]);
        sum += log ? static_cast<double>(g) : static_cast<double>(g) * static_cast<double>(convert<A>(y[at + k * inner]));
      }
      for (int64_t k = 0; k < n; ++k) {
        const A g = convert<A>(grad[at + k * inner]), v = convert<A>(y[at + k * inner]);
        // The differences cancel: in double they are rounded once.
        const double wide = static_cast<double>(g);
        out[at + k * inner] = convert<S>(static_cast<A>(log ? wide - static_cast<double>(std::exp(v)) * sum : (wide - sum) * static_cast<double>(v)));
      }
    }
  });
}

void set_gradient(Outputs& outs, const char* name, const Tensor& grad, const Tensor& output, int64_t dim, ScalarType input_dtype) {
  wrap_dim(dim, grad.dim());
  TN_CHECK(grad.sizes() == output.sizes(), name, ": expected grad and output of one shape, got ", grad.sizes(), " and ", output.sizes());
  TN_CHECK(grad.dtype() == output.dtype() && input_dtype == grad.dtype(), name, ": expected one dtype, got ", dtype_name(grad.dtype()), ", ",
           dtype_name(output.dtype()), " and ", dtype_name(input_dtype));
  outs.set(0, grad.sizes(), grad.dtype(), grad.device());
}
void gradient(Outputs& outs, const Tensor& grad, const Tensor& output, int64_t dim, bool log) {
  if (grad.numel() == 0) return;
  const Tensor g = contiguous(grad), y = contiguous(output);
  const int64_t at = wrap_dim(dim, g.dim());
  int64_t outer = 1, n = 1, inner = 1;
  for (int64_t d = 0; d < g.dim(); ++d) (d < at ? outer : d == at ? n : inner) *= g->size(d);
  switch (g.dtype()) {
    case ScalarType::Float: return run<float, float>(g.data<float>(), y.data<float>(), outer, n, inner, log, outs[0].data<float>());
    case ScalarType::Double: return run<double, double>(g.data<double>(), y.data<double>(), outer, n, inner, log, outs[0].data<double>());
    case ScalarType::Half: return run<Half, float>(g.data<Half>(), y.data<Half>(), outer, n, inner, log, outs[0].data<Half>());
    default: return run<BFloat16, float>(g.data<BFloat16>(), y.data<BFloat16>(), outer, n, inner, log, outs[0].data<BFloat16>());
  }
}

}  // namespace

namespace slots {

void _softmax_backward_data_meta(Outputs& outs, const Tensor& grad_output, const Tensor& output, int64_t dim, ScalarType input_dtype) {
  set_gradient(outs, "_softmax_backward_data", grad_output, output, dim, input_dtype);
}
void _softmax_backward_data_cpu(Outputs& outs, const Tensor& grad_output, const Tensor& output, int64_t dim, ScalarType) {
  gradient(outs, grad_output, output, dim, false);
}
void _log_softmax_backward_data_meta(Outputs& outs, const Tensor& grad_output, const Tensor& output, int64_t dim, ScalarType input_dtype) {
  set_gradient(outs, "_log_softmax_backward_data", grad_output, output, dim, input_dtype);
}
void _log_softmax_backward_data_cpu(Outputs& outs, const Tensor& grad_output, const Tensor& output, int64_t dim, ScalarType) {
  gradient(outs, grad_output, output, dim, true);
}

}  // namespace slots
}  // namespace tn
