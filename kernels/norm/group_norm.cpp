#include <algorithm>
#include <cmath>

#include "generated/slots/norm.h"
#include "kernels/norm/rows.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/threads.h"

namespace tn {
namespace {

template <class T>
void run(const T* x, int64_t n, int64_t channels, int64_t inner, int64_t groups, const T* weight, const T* bias, double eps, T* out, T* mean,
         T* rstd) {
  const int64_t each = channels / groups, size = each * inner;
  parallel_for(0, n * groups, std::max<int64_t>(1, 16384 / std::max<int64_t>(size, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T squares;
      norm::moments(x + i * size, size, &mean[i], &squares);
      rstd[i] = T{1} / std::sqrt(squares / static_cast<T>(size) + static_cast<T>(eps));
      for (int64_t k = 0; k < each; ++k) {
        const int64_t channel = i % groups * each + k, at = i * size + k * inner;
        norm::affine<T>(x + at, inner, mean[i], rstd[i], nullptr, nullptr, out + at);
        if (!weight && !bias) continue;
        const T w = weight ? weight[channel] : T{1}, b = bias ? bias[channel] : T{0};
        for (int64_t j = 0; j < inner; ++j) out[at + j] = out[at + j] * w + b;
      }
    }
  });
}
template <class T>
const T* pointer(const Tensor& t) {
  return t.defined() ? t.data<T>() : nullptr;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> native::native_group_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias, int64_t n, int64_t c,
                                                             int64_t inner, int64_t groups, double eps) {
  TN_CHECK_AS(NotImplemented, is_floating(input.dtype()), "\"GroupNormKernelImpl\" not implemented for '", scalar_type_name(input.dtype()), "'");
  const ScalarType compute = input.dtype() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
  const bool mixed = is_reduced_float(input.dtype()) && ((weight && weight->dtype() == ScalarType::Float) || (bias && bias->dtype() == ScalarType::Float));
  const ScalarType stats = mixed ? ScalarType::Float : input.dtype();
  const Tensor x = contiguous(cast(input, compute)), out = empty(input.sizes(), compute);
  const Tensor mean = empty({n, groups}, compute), rstd = empty({n, groups}, compute);
  const Tensor w = weight ? contiguous(cast(*weight, compute)) : Tensor(), b = bias ? contiguous(cast(*bias, compute)) : Tensor();
  if (x.numel() == 0) {
    zero(mean);
    fill(rstd, std::nan(""));
  } else if (compute == ScalarType::Double) {
    run(x.data<double>(), n, c, inner, groups, pointer<double>(w), pointer<double>(b), eps, out.data<double>(), mean.data<double>(), rstd.data<double>());
  } else {
    run(x.data<float>(), n, c, inner, groups, pointer<float>(w), pointer<float>(b), eps, out.data<float>(), mean.data<float>(), rstd.data<float>());
  }
  return {cast(out, input.dtype()), cast(mean, stats), cast(rstd, stats)};
}

}  // namespace tn
