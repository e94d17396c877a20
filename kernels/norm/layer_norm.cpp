#include <cmath>
#include <limits>
#include <vector>

#include "generated/slots/norm.h"
#include "kernels/common/halves.h"
#include "kernels/norm/composites.h"
#include "kernels/norm/rows.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/shape.h"
#include "runtime/threads.h"

namespace tn {
namespace {

int64_t groups_of(const Tensor& input, IntView shape) {
  int64_t rows = 1;
  for (int64_t d = 0; d < input.dim() - shape.ssize(); ++d) rows *= input->size(d);
  return rows;
}

// 16-bit input may come with float parameters: then the statistics are float.
ScalarType stats_dtype(const Tensor& input, OptionalTensor weight, OptionalTensor bias) {
  if (!is_reduced_float(input.dtype())) return input.dtype();
  return (weight && weight->dtype() == ScalarType::Float) || (!weight && bias && bias->dtype() == ScalarType::Float)
             ? ScalarType::Float
             : input.dtype();
}

template <class T>
void whole(const T* x, int64_t rows, int64_t n, const T* weight, const T* bias, double eps, T* out, T* mean, T* rstd) {
  parallel_for(0, rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(n, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T squares;
      norm::moments(x + i * n, n, &mean[i], &squares);
      rstd[i] = T{1} / std::sqrt(squares / static_cast<T>(n) + static_cast<T>(eps));
      norm::affine(x + i * n, n, mean[i], rstd[i], weight, bias, out + i * n);
    }
  });
}

void widened(ScalarType dtype, const uint16_t* x, int64_t rows, int64_t n, const float* weight, const float* bias,
             double eps, uint16_t* out, float* mean, float* rstd) {
  parallel_for(0, rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(n, 1)), [&](int64_t begin, int64_t end) {
    std::vector<float> row(static_cast<size_t>(n));
    for (int64_t i = begin; i < end; ++i) {
      widen(dtype, x + i * n, row.data(), row.size());
      float squares;
      norm::moments(row.data(), n, &mean[i], &squares);
      rstd[i] = 1 / std::sqrt(squares / static_cast<float>(n) + static_cast<float>(eps));
      norm::affine(row.data(), n, mean[i], rstd[i], weight, bias, row.data());
      shorten(dtype, row.data(), out + i * n, row.size());
    }
  });
}

Tensor parameter(OptionalTensor t, ScalarType dtype) { return t ? contiguous(cast(*t, dtype)) : Tensor(); }

}  // namespace

namespace slots {

void native_layer_norm_meta(Outputs& outs, const Tensor& input, IntArrayRef shape, OptionalTensor weight,
                            OptionalTensor bias, double) {
  composite::check_normalized_shape(input, shape, weight, bias);
  outs.set(0, input.sizes(), input.dtype(), input.device());
  DimVector stat(input.sizes());
  for (int64_t d = input.dim() - shape.ssize(); d < input.dim(); ++d) stat[static_cast<size_t>(d)] = 1;
  const ScalarType dtype = stats_dtype(input, weight, bias);
  outs.set(1, stat, dtype, input.device());
  outs.set(2, stat, dtype, input.device());
}
void native_layer_norm_cpu(Outputs& outs, const Tensor& input, IntArrayRef shape, OptionalTensor weight,
                           OptionalTensor bias, double eps) {
  const int64_t rows = groups_of(input, shape), n = product(shape);
  if (rows == 0) return;
  if (n == 0) {
    // No element: upstream's moments of nothing.
    zero(outs[1]);
    fill(outs[2], 1 / std::sqrt(eps));
    return;
  }
  const Tensor x = contiguous(input);
  const ScalarType compute = input.dtype() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
  const Tensor w = parameter(weight, compute), b = parameter(bias, compute);
  if (compute == ScalarType::Double) {
    return whole(x.data<double>(), rows, n, w.defined() ? w.data<double>() : nullptr,
                 b.defined() ? b.data<double>() : nullptr, eps, outs[0].data<double>(), outs[1].data<double>(),
                 outs[2].data<double>());
  }
  const float *wp = w.defined() ? w.data<float>() : nullptr, *bp = b.defined() ? b.data<float>() : nullptr;
  if (input.dtype() == ScalarType::Float)
    return whole(x.data<float>(), rows, n, wp, bp, eps, outs[0].data<float>(), outs[1].data<float>(),
                 outs[2].data<float>());
  const bool direct = outs[1].dtype() == ScalarType::Float;
  const Tensor mean = direct ? outs[1] : empty({rows}, ScalarType::Float),
               rstd = direct ? outs[2] : empty({rows}, ScalarType::Float);
  widened(input.dtype(), x.data<uint16_t>(), rows, n, wp, bp, eps, outs[0].data<uint16_t>(), mean.data<float>(),
          rstd.data<float>());
  if (direct) return;
  shorten(input.dtype(), mean.data<float>(), outs[1].data<uint16_t>(), static_cast<size_t>(rows));
  shorten(input.dtype(), rstd.data<float>(), outs[2].data<uint16_t>(), static_cast<size_t>(rows));
}

}  // namespace slots
}  // namespace tn
