// Gradients of layer norm.
#include <algorithm>
#include <vector>

#include "generated/slots/norm.h"
#include "kernels/norm/composites.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/threads.h"

namespace tn {
namespace {

template <class T>
void input_gradient(const T* dy, const T* x, const T* mean, const T* rstd, const T* weight, int64_t rows, int64_t n, T* dx) {
  parallel_for(0, rows, std::max<int64_t>(1, 8192 / n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T *g = dy + i * n, *v = x + i * n;
      double along = 0, total = 0;
      for (int64_t k = 0; k < n; ++k) {
        const double up = static_cast<double>(g[k]) * (weight ? static_cast<double>(weight[k]) : 1.0);
        total += up;
        along += up * static_cast<double>((v[k] - mean[i]) * rstd[i]);
      }
      const T a = static_cast<T>(along / static_cast<double>(n)), b = static_cast<T>(total / static_cast<double>(n));
      for (int64_t k = 0; k < n; ++k) {
        const T up = weight ? g[k] * weight[k] : g[k];
        dx[i * n + k] = rstd[i] * (up - b - (v[k] - mean[i]) * rstd[i] * a);
      }
    }
  });
}
template <class T>
void parameter_gradients(const T* dy, const T* x, const T* mean, const T* rstd, int64_t rows, int64_t n, T* dweight, T* dbias) {
  constexpr int64_t kBlock = 64;
  parallel_for(0, n, kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t start = begin; start < end; start += kBlock) {
      const int64_t cols = std::min(kBlock, end - start);
      double weights[kBlock] = {}, biases[kBlock] = {};
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t k = 0; k < cols; ++k) {
          const int64_t at = i * n + start + k;
          weights[k] += static_cast<double>(dy[at] * ((x[at] - mean[i]) * rstd[i]));
          biases[k] += static_cast<double>(dy[at]);
        }
      for (int64_t k = 0; k < cols; ++k) {
        if (dweight) dweight[start + k] = static_cast<T>(weights[k]);
        if (dbias) dbias[start + k] = static_cast<T>(biases[k]);
      }
    }
  });
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> native::native_layer_norm_backward(const Tensor& grad_out, const Tensor& input, IntArrayRef shape, const Tensor& mean,
                                                                      const Tensor& rstd, OptionalTensor weight, OptionalTensor bias,
                                                                      std::array<bool, 3> mask) {
  composite::check_normalized_shape(input, shape, weight, bias);
  const ScalarType compute = input.dtype() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
  const auto wide = [&](const Tensor& t) { return contiguous(cast(t, compute)); };
  const int64_t n = product(shape), rows = n ? input.numel() / n : 0;
  const ScalarType parameter = weight ? weight->dtype() : input.dtype();
  Tensor dx = mask[0] ? empty(input.sizes(), compute) : Tensor(), dweight = mask[1] ? empty(shape, compute) : Tensor(),
         dbias = mask[2] ? empty(shape, compute) : Tensor();
  if (rows == 0 || n == 0) {
    if (dweight.defined()) zero(dweight);
    if (dbias.defined()) zero(dbias);
  } else {
    const Tensor g = wide(grad_out), x = wide(input), m = wide(mean), r = wide(rstd), w = weight ? wide(*weight) : Tensor();
    const auto of = [&]<class T>() {
      const T* factors = w.defined() ? w.data<T>() : nullptr;
      if (mask[0]) input_gradient(g.data<T>(), x.data<T>(), m.data<T>(), r.data<T>(), factors, rows, n, dx.data<T>());
      if (mask[1] || mask[2])
        parameter_gradients(g.data<T>(), x.data<T>(), m.data<T>(), r.data<T>(), rows, n, mask[1] ? dweight.data<T>() : nullptr,
                            mask[2] ? dbias.data<T>() : nullptr);
    };
    if (compute == ScalarType::Double) of.template operator()<double>();
    else of.template operator()<float>();
  }
  if (dx.defined()) dx = cast(dx, input.dtype());
  if (dweight.defined()) dweight = cast(dweight, parameter);
  if (dbias.defined()) dbias = cast(dbias, parameter);
  return {dx, dweight, dbias};
}

}  // namespace tn
