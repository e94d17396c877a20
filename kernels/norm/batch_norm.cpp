// Batch norm over [batch, channels, inner]: with the batch's own statistics, which may move the running ones, or with those.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "generated/slots/norm.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/threads.h"

namespace tn {
namespace {

using Three = std::tuple<Tensor, Tensor, Tensor>;

struct Moments {
  double mean = 0, squares = 0;
};

template <class T>
Moments channel_moments(const T* x, int64_t n, int64_t channels, int64_t inner, int64_t c) {
  Moments m;
  const double count = static_cast<double>(n * inner);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < inner; ++j) m.mean += static_cast<double>(x[(i * channels + c) * inner + j]);
  m.mean /= count;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < inner; ++j) {
      const double u = static_cast<double>(x[(i * channels + c) * inner + j]) - m.mean;
      m.squares += u * u;
    }
  return m;
}

void update(const Tensor& running, int64_t c, double value, double momentum) {
  const Tensor at = alias_with_geometry(running, {}, {}, running.storage_offset() + c * (running.dim() ? running->stride(0) : 1));
  fill(at, (1 - momentum) * item(at).to_double() + momentum * value);
}

template <class T>
void run(const Tensor& input, OptionalTensor weight, OptionalTensor bias, OptionalTensor running_mean, OptionalTensor running_var, bool training,
         double momentum, double eps, const Tensor& out, const Tensor& save_mean, const Tensor& save_rstd) {
  const int64_t n = input->size(0), channels = input->size(1), inner = n * channels > 0 ? input.numel() / (n * channels) : 0;
  const T* x = input.data<T>();
  T* to = out.data<T>();
  const Tensor w = weight ? contiguous(cast(*weight, input.dtype())) : Tensor(), b = bias ? contiguous(cast(*bias, input.dtype())) : Tensor();
  const Tensor known_mean = training ? Tensor() : contiguous(cast(*running_mean, ScalarType::Double));
  const Tensor known_var = training ? Tensor() : contiguous(cast(*running_var, ScalarType::Double));
  const auto all = std::make_unique<Moments[]>(static_cast<size_t>(channels));
  const double count = static_cast<double>(n * inner);
  parallel_for(0, channels, std::max<int64_t>(1, 16384 / std::max<int64_t>(n * inner, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      Moments& m = all[static_cast<size_t>(c)];
      double var;
      if (training) {
        m = channel_moments(x, n, channels, inner, c);
        var = m.squares / count;
      } else {
        m.mean = known_mean.data<double>()[c];
        var = known_var.data<double>()[c];
      }
      const double rstd = 1 / std::sqrt(var + eps);
      if (training) {
        save_mean.data<T>()[c] = static_cast<T>(m.mean);
        save_rstd.data<T>()[c] = static_cast<T>(rstd);
      }
      const T scale = static_cast<T>(rstd * (w.defined() ? static_cast<double>(w.data<T>()[c]) : 1.0));
      const T shift = static_cast<T>((b.defined() ? static_cast<double>(b.data<T>()[c]) : 0.0) - m.mean * static_cast<double>(scale));
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = (i * channels + c) * inner;
        for (int64_t j = 0; j < inner; ++j) to[at + j] = x[at + j] * scale + shift;
      }
    }
  });
  if (!training) return;
  for (int64_t c = 0; c < channels; ++c) {
    if (running_mean) update(*running_mean, c, all[static_cast<size_t>(c)].mean, momentum);
    if (running_var) update(*running_var, c, all[static_cast<size_t>(c)].squares / (count - 1), momentum);
  }
}

Three batch_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias, OptionalTensor running_mean, OptionalTensor running_var,
                 bool training, double momentum, double eps) {
  TN_CHECK_AS(NotImplemented, is_floating(input.dtype()), "\"batch_norm\" not implemented for '", scalar_type_name(input.dtype()), "'");
  TN_CHECK(input.dim() >= 2, "batch_norm: expected at least 2 dimensions, got ", input.dim());
  TN_CHECK(training || (running_mean && running_var), "batch_norm: expected running_mean and running_var in evaluation, got none");
  const std::pair<const char*, OptionalTensor> given[] = {
      {"running_mean", running_mean}, {"running_var", running_var}, {"weight", weight}, {"bias", bias}};
  for (const auto& [name, t] : given)
    TN_CHECK(!t || t->numel() == input->size(1), name, " should contain ", input->size(1), " elements not ", t ? t->numel() : 0);
  const ScalarType compute = input.dtype() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
  const bool mixed = is_reduced_float(input.dtype()) && ((weight && weight->dtype() == ScalarType::Float) ||
                                                         (running_mean && running_mean->dtype() == ScalarType::Float));
  const ScalarType stats = mixed ? ScalarType::Float : input.dtype();
  const int64_t saved = training ? input->size(1) : 0;
  const Tensor x = contiguous(cast(input, compute)), out = empty(input.sizes(), compute);
  const Tensor mean = empty({saved}, compute), rstd = empty({saved}, compute);
  if (input.numel() > 0) {
    if (compute == ScalarType::Double) run<double>(x, weight, bias, running_mean, running_var, training, momentum, eps, out, mean, rstd);
    else run<float>(x, weight, bias, running_mean, running_var, training, momentum, eps, out, mean, rstd);
  }
  return {cast(out, input.dtype()), cast(mean, stats), cast(rstd, stats)};
}

}  // namespace

namespace native {

Three native_batch_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias, OptionalTensor running_mean, OptionalTensor running_var,
                        bool training, double momentum, double eps) {
  return batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}
Three _native_batch_norm_legit(const Tensor& input, OptionalTensor weight, OptionalTensor bias, const Tensor& running_mean, const Tensor& running_var,
                               bool training, double momentum, double eps) {
  return batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}
Three _native_batch_norm_legit_no_stats(const Tensor& input, OptionalTensor weight, OptionalTensor bias, bool training, double momentum, double eps) {
  return batch_norm(input, weight, bias, {}, {}, training, momentum, eps);
}
Three _native_batch_norm_legit_no_training(const Tensor& input, OptionalTensor weight, OptionalTensor bias, const Tensor& running_mean,
                                           const Tensor& running_var, double momentum, double eps) {
  return batch_norm(input, weight, bias, running_mean, running_var, false, momentum, eps);
}

}  // namespace native
}  // namespace tn
