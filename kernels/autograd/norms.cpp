// Second derivatives of normalisations. With hat = (x - mean) * rstd and h = grad * weight over n elements, the
// gradient is dx = rstd * project(h), where project(v) = v - avg(v) - hat * avg(v * hat), and it is differentiated from
// there.
#include "kernels/autograd/norms.h"

namespace tn::autograd {
namespace {

struct Norm {
  Tensor hat, rstd;                 // broadcast over the statistics' dimensions
  std::vector<int64_t> stats;       // dimensions that share statistics
  std::vector<int64_t> parameters;  // dimensions that share parameters
  int64_t n = 1;

  Tensor total(const Tensor& t) const { return t.sum(IntArrayRef(stats), true); }
  Tensor average(const Tensor& t) const { return total(t) / Scalar(n); }
  Tensor project(const Tensor& t) const { return t - average(t) - hat * average(t * hat); }
  Tensor gather(const Tensor& t, const Tensor& like) const {
    return (parameters.empty() ? t : t.sum(IntArrayRef(parameters))).reshape(like.sizes());
  }
};
Tensor plus(const Tensor& a, const Tensor& b) { return !a.defined() ? b : !b.defined() ? a : a + b; }

// ggi, ggw and ggb are the gradients of dx, dweight and dbias; w is broadcast. Undefined ones are zero.
std::tuple<Tensor, Tensor, Tensor> differentiate(const Norm& m, const Tensor& g, const Tensor& w, const Tensor& weight,
                                                 const Tensor& ggi, const Tensor& ggw, const Tensor& ggb,
                                                 const std::array<bool, 3>& mask) {
  std::tuple<Tensor, Tensor, Tensor> out;
  const Tensor h = w.defined() ? g * w : g;
  if (mask[0]) {
    Tensor dx;
    if (ggi.defined()) {
      const Tensor along_h = m.average(h * m.hat), along_i = m.average(ggi * m.hat);
      const Tensor inner = m.total(ggi * h) - m.average(ggi) * m.total(h) - along_i * along_h * Scalar(m.n);
      dx = -(m.rstd * m.rstd * (inner * m.hat / Scalar(m.n) + m.project(ggi * along_h + h * along_i)));
    }
    if (ggw.defined()) dx = plus(dx, m.rstd * m.project(ggw * g));
    std::get<0>(out) = dx;
  }
  if (mask[1] && ggi.defined() && weight.defined()) std::get<1>(out) = m.gather(g * m.rstd * m.project(ggi), weight);
  if (mask[2]) {
    Tensor dg;
    if (ggi.defined()) {
      dg = m.rstd * m.project(ggi);
      if (w.defined()) dg = dg * w;
    }
    if (ggw.defined()) dg = plus(dg, ggw * m.hat);
    if (ggb.defined()) dg = plus(dg, ggb.expand_as(g));
    std::get<2>(out) = dg;
  }
  return out;
}

// Mixed dtypes compute wide.
std::tuple<Tensor, Tensor, Tensor> like_inputs(std::tuple<Tensor, Tensor, Tensor> out, const Tensor& input,
                                               const Tensor& weight, const Tensor& grad) {
  const auto back = [](Tensor& t, const Tensor& like) {
    if (t.defined() && like.defined() && t.scalar_type() != like.scalar_type()) t = t.to(like.scalar_type());
  };
  back(std::get<0>(out), input);
  back(std::get<1>(out), weight);
  back(std::get<2>(out), grad);
  return out;
}

// The projections cancel most of what they are given; a second derivative is rare enough to compute them in double.
Tensor compute(const Tensor& t) {
  return t.defined() && t.scalar_type() != ScalarType::Double ? Tensor(t.to(ScalarType::Double)) : t;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> batchnorm_double_backward(const Tensor& input, const Tensor& gamma,
                                                             const Tensor& ggi, const Tensor& ggw, const Tensor& ggb,
                                                             const Tensor& grad_out, const Tensor& running_mean,
                                                             const Tensor& running_var, bool training, double eps,
                                                             const Tensor& save_mean, const Tensor& save_rstd,
                                                             const std::array<bool, 3>& mask) {
  std::vector<int64_t> wide(static_cast<size_t>(input.dim()), 1);
  wide[1] = input.sizes()[1];
  const auto spread = [&](const Tensor& t) { return t.defined() ? Tensor(compute(t).reshape(wide)) : Tensor(); };
  Norm m;
  m.stats.push_back(0);
  for (int64_t d = 2; d < input.dim(); ++d) m.stats.push_back(d);
  m.parameters = m.stats;
  m.n = input.numel() / input.sizes()[1];
  const Tensor x = compute(input), g = compute(grad_out), i = compute(ggi), gw = spread(ggw), gb = spread(ggb),
               w = spread(gamma);
  m.rstd = training ? spread(save_rstd) : Tensor(at::rsqrt(spread(running_var) + Scalar(eps)));
  m.hat = (x - spread(training ? save_mean : running_mean)) * m.rstd;
  std::tuple<Tensor, Tensor, Tensor> out;
  if (training) {
    out = differentiate(m, g, w, gamma, i, gw, gb, mask);
  } else {
    // The statistics are constants.
    if (mask[0] && gw.defined()) std::get<0>(out) = gw * g * m.rstd;
    if (mask[1] && i.defined() && gamma.defined()) std::get<1>(out) = m.gather(g * i * m.rstd, gamma);
    if (mask[2]) {
      Tensor dg;
      if (i.defined()) dg = w.defined() ? Tensor(i * m.rstd * w) : Tensor(i * m.rstd);
      if (gw.defined()) dg = plus(dg, gw * m.hat);
      if (gb.defined()) dg = plus(dg, gb.expand_as(g));
      std::get<2>(out) = dg;
    }
  }
  return like_inputs(out, input, gamma, grad_out);
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_double_backward(const Tensor& input, const Tensor& gamma,
                                                              const Tensor& ggi, const Tensor& ggw, const Tensor& ggb,
                                                              const Tensor& grad_out, const Tensor& mean,
                                                              const Tensor& rstd, IntArrayRef shape,
                                                              const std::array<bool, 3>& mask) {
  Norm m;
  const int64_t leading = input.dim() - static_cast<int64_t>(shape.size());
  for (int64_t d = 0; d < input.dim(); ++d) (d < leading ? m.parameters : m.stats).push_back(d);
  for (const int64_t s : shape) m.n *= s;
  m.rstd = compute(rstd);
  m.hat = (compute(input) - compute(mean)) * m.rstd;
  const Tensor w = compute(gamma);
  return like_inputs(differentiate(m, compute(grad_out), w, w, compute(ggi), compute(ggw), compute(ggb), mask), input,
                     gamma, grad_out);
}

}  // namespace tn::autograd
