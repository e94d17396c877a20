#include <algorithm>
#include <cmath>

#include "generated/slots/norm.h"
#include "kernels/norm/group.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/threads.h"

namespace tn {
namespace {

using namespace norm;

// Of one group: from its channels' sums, or from its elements, which lie side by side.
void contiguous_moments(const Groups& g, const Tensor& x, double eps, std::vector<double>& mean,
                        std::vector<double>& rstd) {
  const ChannelKernels& run = channel_kernels(x.dtype());
  const auto item = static_cast<int64_t>(x.itemsize());
  const char* const base = static_cast<const char*>(x->raw_data());
  parallel_for(0, g.n * g.groups, std::max<int64_t>(1, 16384 / g.size()), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const char* const at = base + i * g.size() * item;
      const auto k = static_cast<size_t>(i);
      mean[k] = run.run_sum(at, g.size()) / static_cast<double>(g.size());
      rstd[k] = 1 / std::sqrt(run.run_squares(at, g.size(), mean[k]) / static_cast<double>(g.size()) + eps);
    }
  });
}
void column_moments(const Groups& g, const Tensor& x, double eps, std::vector<double>& mean,
                    std::vector<double>& rstd) {
  const Planes p = g.sample(x.dtype(), true);
  std::vector<double> shifts(static_cast<size_t>(g.channels));
  const auto of_group = [&](const std::vector<double>& per_channel, int64_t k) {
    double sum = 0;
    for (int64_t c = k * g.each(); c < (k + 1) * g.each(); ++c) sum += per_channel[static_cast<size_t>(c)];
    return sum / static_cast<double>(g.each());
  };
  for (int64_t i = 0; i < g.n; ++i) {
    const std::vector<double> means = channel_means(p, sample_at(x, g, i));
    for (int64_t k = 0; k < g.groups; ++k) {
      const double m = mean[static_cast<size_t>(i * g.groups + k)] = of_group(means, k);
      std::fill(shifts.begin() + k * g.each(), shifts.begin() + (k + 1) * g.each(), m);
    }
    const std::vector<double> squares = channel_squares(p, sample_at(x, g, i), shifts.data());
    for (int64_t k = 0; k < g.groups; ++k)
      rstd[static_cast<size_t>(i * g.groups + k)] =
          1 / std::sqrt(of_group(squares, k) / static_cast<double>(g.inner) + eps);
  }
}

Tensor statistics(const std::vector<double>& values, IntView sizes, ScalarType dtype) {
  const Tensor t = empty(sizes, dtype);
  if (!values.empty())
    convert_row(ScalarType::Double, reinterpret_cast<const char*>(values.data()), sizeof(double), dtype,
                static_cast<char*>(t->raw_data()), static_cast<int64_t>(t.itemsize()),
                static_cast<int64_t>(values.size()));
  return t;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> native::native_group_norm(const Tensor& input, OptionalTensor weight,
                                                             OptionalTensor bias, int64_t n, int64_t c, int64_t inner,
                                                             int64_t groups, double eps) {
  TN_CHECK_AS(NotImplemented, is_floating(input.dtype()), "\"GroupNormKernelImpl\" not implemented for '",
              scalar_type_name(input.dtype()), "'");
  const ScalarType saved = is_mixed(input, {weight, bias}) ? ScalarType::Float : input.dtype();
  TN_CHECK(groups > 0 && c % groups == 0 && n * c * inner == input.numel(), "native_group_norm: expected ",
           input.numel(), " elements in groups of channels, got ", n, ", ", c, ", ", inner, " and ", groups, " groups");
  const Groups g = {n, c, inner, groups};
  const MemoryFormat format = group_format(input);
  const Tensor x = contiguous(input, format);
  Tensor out = empty(input.sizes(), input.dtype(), {}, format);
  std::vector<double> mean(static_cast<size_t>(n * groups)), rstd(mean.size(), std::nan(""));
  if (x.numel() > 0) {
    const bool columns = in_columns(x);
    if (columns) column_moments(g, x, eps, mean, rstd);
    else contiguous_moments(g, x, eps, mean, rstd);
    const std::vector<double> factor = channel_values(weight, c, 1), addend = channel_values(bias, c, 0);
    std::vector<double> scale(static_cast<size_t>(n * c)), shift(scale.size());
    for (size_t i = 0; i < scale.size(); ++i) {
      const size_t channel = i % static_cast<size_t>(c), k = i / static_cast<size_t>(g.each());
      scale[i] = rstd[k] * factor[channel];
      shift[i] = addend[channel] - mean[k] * scale[i];
    }
    if (columns) {
      for (int64_t i = 0; i < n; ++i)
        channel_affine(g.sample(x.dtype(), true), sample_at(x, g, i), scale.data() + i * c, shift.data() + i * c,
                       sample_at(out, g, i));
    } else {
      channel_affine({1, n * c, inner, x.dtype()}, x->raw_data(), scale.data(), shift.data(), out->raw_data());
    }
  }
  const int64_t sizes[] = {n, groups};
  return {out, statistics(mean, IntView(sizes, 2), saved), statistics(rstd, IntView(sizes, 2), saved)};
}

}  // namespace tn
