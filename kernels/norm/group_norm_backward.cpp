// Gradients of group norm.
#include <algorithm>
#include <cmath>

#include "generated/slots/norm.h"
#include "kernels/norm/group.h"
#include "runtime/copy.h"
#include "runtime/error.h"

namespace tn {
namespace {

using namespace norm;

// For each sample: sums of grad and of (x - mean) * grad over each channel, [n, 2, channels].
std::vector<double> all_dots(const Groups& g, const Tensor& x, const Tensor& grad, const std::vector<double>& means,
                             bool columns) {
  if (!columns) {
    const std::vector<double> flat =
        channel_dots({1, g.n * g.channels, g.inner, x.dtype()}, x->raw_data(), grad->raw_data(), means.data());
    std::vector<double> dots(flat.size());
    for (int64_t i = 0; i < g.n; ++i) {
      std::copy_n(flat.data() + i * g.channels, g.channels, dots.data() + 2 * i * g.channels);
      std::copy_n(flat.data() + (g.n + i) * g.channels, g.channels, dots.data() + (2 * i + 1) * g.channels);
    }
    return dots;
  }
  std::vector<double> dots;
  dots.reserve(static_cast<size_t>(2 * g.n * g.channels));
  for (int64_t i = 0; i < g.n; ++i) {
    const std::vector<double> one = channel_dots(g.sample(x.dtype(), true), sample_at(x, g, i), sample_at(grad, g, i),
                                                 means.data() + i * g.channels);
    dots.insert(dots.end(), one.begin(), one.end());
  }
  return dots;
}

Tensor parameter_gradient(const std::vector<double>& values, ScalarType dtype) {
  const auto n = static_cast<int64_t>(values.size());
  const Tensor t = empty(IntView(&n, 1), dtype);
  if (n > 0)
    convert_row(ScalarType::Double, reinterpret_cast<const char*>(values.data()), sizeof(double), dtype,
                static_cast<char*>(t->raw_data()), static_cast<int64_t>(t.itemsize()), n);
  return t;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> native::native_group_norm_backward(const Tensor& grad_out, const Tensor& input,
                                                                      const Tensor& mean, const Tensor& rstd,
                                                                      OptionalTensor weight, int64_t n, int64_t c,
                                                                      int64_t inner, int64_t groups,
                                                                      std::array<bool, 3> mask) {
  TN_CHECK_AS(NotImplemented, is_floating(input.dtype()), "\"GroupNormBackwardKernelImpl\" not implemented for '",
              scalar_type_name(input.dtype()), "'");
  TN_CHECK(grad_out.dtype() == input.dtype(), "Expected scalar types of dY and X are the same.");
  const ScalarType parameter = is_mixed(input, {mean, rstd, weight}) ? ScalarType::Float : input.dtype();
  TN_CHECK(mean.numel() == n * groups && rstd.numel() == n * groups, "native_group_norm_backward: expected ",
           n * groups, " statistics, got ", mean.numel(), " and ", rstd.numel());
  TN_CHECK(groups > 0 && c % groups == 0 && n * c * inner == input.numel() && grad_out.sizes() == input.sizes(),
           "native_group_norm_backward: expected a gradient like the input of ", n, ", ", c, ", ", inner, ", got ",
           grad_out.sizes(), " and ", input.sizes());
  const Groups g = {n, c, inner, groups};
  const MemoryFormat format = group_format(input);
  const Tensor x = contiguous(input, format), grad = contiguous(grad_out, format);
  const bool columns = in_columns(x);
  const std::vector<double> m = channel_values(mean, n * groups, 0), r = channel_values(rstd, n * groups, 0),
                            factor = channel_values(weight, c, 1);
  std::vector<double> means(static_cast<size_t>(n * c)), dots(2 * means.size());
  for (size_t i = 0; i < means.size(); ++i) means[i] = m[i / static_cast<size_t>(g.each())];
  if (x.numel() > 0) dots = all_dots(g, x, grad, means, columns);
  const auto sum_at = [&](int64_t i, int64_t channel) { return dots[static_cast<size_t>(2 * i * c + channel)]; };
  const auto dot_at = [&](int64_t i, int64_t channel) { return dots[static_cast<size_t>((2 * i + 1) * c + channel)]; };

  Tensor grad_input, grad_weight, grad_bias;
  if (mask[0]) {
    grad_input = empty(input.sizes(), input.dtype(), {}, format);
    // Each sample's four numbers of channels; see Slope.
    std::vector<double> slopes(4 * means.size());
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < groups; ++k) {
        double sum = 0, dot = 0;
        for (int64_t channel = k * g.each(); channel < (k + 1) * g.each(); ++channel) {
          sum += sum_at(i, channel) * factor[static_cast<size_t>(channel)];
          dot += dot_at(i, channel) * factor[static_cast<size_t>(channel)];
        }
        const double rs = r[static_cast<size_t>(i * groups + k)], share = rs / static_cast<double>(g.size());
        for (int64_t channel = k * g.each(); channel < (k + 1) * g.each(); ++channel) {
          // Planes take all samples at once, columns one after the other.
          double* const to = columns ? slopes.data() + 4 * i * c + channel : slopes.data() + i * c + channel;
          const int64_t step = columns ? c : n * c;
          to[0] = means[static_cast<size_t>(i * c + channel)];
          to[step] = sum * share;
          to[2 * step] = dot * share * rs * rs;
          to[3 * step] = rs * factor[static_cast<size_t>(channel)];
        }
      }
    if (x.numel() > 0 && columns) {
      for (int64_t i = 0; i < n; ++i)
        channel_gradient(g.sample(x.dtype(), true), sample_at(x, g, i), sample_at(grad, g, i),
                         slopes.data() + 4 * i * c, sample_at(grad_input, g, i));
    } else if (x.numel() > 0) {
      channel_gradient({1, n * c, inner, x.dtype()}, x->raw_data(), grad->raw_data(), slopes.data(),
                       grad_input->raw_data());
    }
  }
  std::vector<double> total(static_cast<size_t>(c));
  if (mask[1]) {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t channel = 0; channel < c; ++channel)
        total[static_cast<size_t>(channel)] +=
            dot_at(i, channel) * r[static_cast<size_t>(i * groups + channel / g.each())];
    grad_weight = parameter_gradient(total, weight ? weight->dtype() : parameter);
  }
  if (mask[2]) {
    std::fill(total.begin(), total.end(), 0.0);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t channel = 0; channel < c; ++channel) total[static_cast<size_t>(channel)] += sum_at(i, channel);
    grad_bias = parameter_gradient(total, weight ? weight->dtype() : parameter);
  }
  return {grad_input, grad_weight, grad_bias};
}

}  // namespace tn
