// RMS norm: upstream's composition, and the same in one pass over the rows where nobody could tell.
#include <cmath>
#include <limits>
#include <vector>

#include "generated/ops/_fused_rms_norm.h"
#include "generated/ops/_to_copy.h"
#include "generated/ops/add.h"
#include "generated/ops/mean.h"
#include "generated/ops/mul.h"
#include "generated/ops/pow.h"
#include "generated/ops/rsqrt.h"
#include "generated/ops/type_as.h"
#include "kernels/common/halves.h"
#include "kernels/matmul/checks.h"
#include "kernels/matmul/fast.h"
#include "kernels/norm/composites.h"
#include "kernels/norm/rows.h"
#include "runtime/copy.h"
#include "runtime/shape.h"
#include "runtime/threads.h"
#include "runtime/warn.h"

namespace tn::composite {
namespace {

ScalarType wide_type(ScalarType t) { return is_reduced_float(t) ? ScalarType::Float : t; }

double epsilon(ScalarType dtype, std::optional<double> eps) {
  if (dtype == ScalarType::Double || dtype == ScalarType::ComplexDouble)
    return eps.value_or(std::numeric_limits<double>::epsilon());
  return eps ? static_cast<float>(*eps) : std::numeric_limits<float>::epsilon();
}

std::tuple<Tensor, Tensor> compose(const Tensor& input, IntView shape, OptionalTensor weight,
                                   std::optional<double> eps) {
  DimVector dims;
  for (int64_t d = input.dim() - 1; d >= input.dim() - shape.ssize(); --d) dims.push_back(d);
  const Tensor x = wide_type(input.dtype()) == input.dtype() ? input : at::_to_copy(input, wide_type(input.dtype()));
  const Tensor mean = at::mean(at::pow(x, Scalar(2)), std::optional<IntArrayRef>(dims), true);
  const Tensor rrms = at::rsqrt(at::add_(mean, Scalar(epsilon(input.dtype(), eps))));
  Tensor out = at::mul(x, rrms);
  if (weight) out = at::mul(out, *weight);
  if (out.dtype() != input.dtype()) out = at::type_as(out, input);
  return {out, rrms};
}

template <class S, class T>
void run(const Tensor& x, int64_t rows, int64_t n, const T* weight, T eps, const Tensor& out) {
  parallel_for(0, rows, std::max<int64_t>(1, 16384 / n), [&](int64_t begin, int64_t end) {
    std::vector<T> room(sizeof(S) == sizeof(T) ? 0 : static_cast<size_t>(n));
    for (int64_t i = begin; i < end; ++i) {
      const T* from;
      T* to;
      if constexpr (sizeof(S) == sizeof(T)) {
        from = x.data<T>() + i * n, to = out.data<T>() + i * n;
      } else {
        widen(x.dtype(), x.data<S>() + i * n, room.data(), room.size());
        from = to = room.data();
      }
      const T factor = T{1} / std::sqrt(norm::squares(from, n) / static_cast<T>(n) + eps);
      norm::affine<T>(from, n, T{0}, factor, weight, nullptr, to);
      if constexpr (sizeof(S) != sizeof(T)) shorten(x.dtype(), room.data(), out.data<S>() + i * n, room.size());
    }
  });
}
Tensor at_once(const Tensor& input, IntView shape, OptionalTensor weight, std::optional<double> eps) {
  const Tensor &x = input, to = empty(input.sizes(), input.dtype());
  const Tensor w = weight ? contiguous(cast(*weight, wide_type(input.dtype()))) : Tensor();
  const int64_t n = product(shape), rows = n ? input.numel() / n : 0;
  const double e = epsilon(input.dtype(), eps);
  if (input.numel() > 0) {
    if (input.dtype() == ScalarType::Double)
      run<double, double>(x, rows, n, w.defined() ? w.data<double>() : nullptr, e, to);
    else if (input.dtype() == ScalarType::Float)
      run<float, float>(x, rows, n, w.defined() ? w.data<float>() : nullptr, static_cast<float>(e), to);
    else run<uint16_t, float>(x, rows, n, w.defined() ? w.data<float>() : nullptr, static_cast<float>(e), to);
  }
  return to;
}

}  // namespace

std::tuple<Tensor, Tensor> fused_rms_norm(const Tensor& input, IntView shape, OptionalTensor weight,
                                          std::optional<double> eps) {
  return compose(input, shape, weight, eps);
}

Tensor rms_norm(const Tensor& input, IntView shape, OptionalTensor weight, std::optional<double> eps) {
  check_normalized_shape(input, shape, weight, {});
  const Tensor& second = weight ? *weight : input;
  const bool same = second.dtype() == input.dtype();
  if (!same) {
    static bool told = false;
    if (!told)
      warn(str("Mismatch dtype between input and weight: input dtype = ", element_type_name(input.dtype()),
               ", weight dtype = ", element_type_name(second.dtype()), ", Cannot dispatch to fused implementation."));
    told = true;
  }
  if (input.is_cpu() && is_floating(input.dtype()) && (same || second.dtype() == wide_type(input.dtype())) &&
      input.is_contiguous() &&
      matmul::may_skip_door({&input, &second}, {kOp_pow_Tensor_Scalar, kOp_mean_dim, kOp_rsqrt, kOp_mul_Tensor}))
    return at_once(input, shape, weight, eps);
  if (!same || input.is_complex() || suggest_memory_format(input) != MemoryFormat::Contiguous)
    return std::get<0>(compose(input, shape, weight, eps));
  return std::get<0>(at::_fused_rms_norm(input, shape, weight, eps));
}

}  // namespace tn::composite
