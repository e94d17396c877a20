// Helpers of formulas: selections, scans, moments, norms, activations and losses.
#include <cmath>

#include "kernels/autograd/helpers.h"
#include "kernels/autograd/support.h"
#include "runtime/shape.h"

namespace tn::autograd {

namespace {

constexpr int64_t kMean = 1;  // upstream's at::Reduction
constexpr int64_t kNone = 0;

Tensor zero_like(const Tensor& t) { return at::zeros_like(t); }
// Reduced dimensions come back with extent 1.
Tensor unreduce(const Tensor& t, OptionalIntArrayRef dims, int64_t ndim, bool keepdim) {
  if (keepdim || ndim == 0) return t;
  if (!dims || dims->empty()) {
    const std::vector<int64_t> ones(static_cast<size_t>(ndim), 1);
    return t.reshape(ones);
  }
  const uint64_t mask = dim_mask(dims, ndim);
  Tensor out = t;
  for (int64_t d = 0; d < ndim; ++d)
    if (mask >> d & 1) out = out.unsqueeze(d);
  return out;
}
Tensor reduced(const Tensor& t, int64_t n, int64_t reduction) { return reduction == kMean ? t / Scalar(n) : t; }

}  // namespace

std::vector<int64_t> reverse_list(IntArrayRef list) {
  return {std::reverse_iterator(list.end()), std::reverse_iterator(list.begin())};
}
std::vector<int64_t> reverse_list_symint(IntArrayRef list) { return reverse_list(list); }

// ---- selections and scans --------------------------------------------------------------------------------------

Tensor value_selecting_reduction_backward_symint(const Tensor& grad, int64_t dim, const Tensor& indices,
                                                 IntArrayRef sizes, bool keepdim) {
  const bool insert = !keepdim && !sizes.empty();
  const Tensor g = insert ? grad.unsqueeze(dim) : grad, i = insert ? indices.unsqueeze(dim) : indices;
  return at::zeros(sizes, g.options()).scatter(dim, i, g);
}
Tensor cumsum_backward(const Tensor& grad, int64_t dim) {
  if (grad.numel() <= 1 || grad.size(dim) == 1) return grad;
  return grad.flip(IntArrayRef(dim)).cumsum(dim).flip(IntArrayRef(dim));
}
// Without zeros: the reversed running sum of grad * output, over the input. With zeros, each element's derivative is
// the running product that leaves it out.
Tensor cumprod_backward(const Tensor& grad, const Tensor& input, int64_t dim, const Tensor& output) {
  if (input.numel() <= 1) return grad;
  dim = wrap_dim(dim, input.dim());
  if (input.size(dim) == 1) return grad;
  const Tensor in = input.conj();
  if (!(input == Scalar(0)).any().item().to_bool()) return cumsum_backward(grad * output.conj(), dim) / in;
  const int64_t n = input.size(dim);
  std::vector<tn::Tensor> parts;
  for (int64_t k = 0; k < n; ++k) {
    const Tensor tail = grad.narrow(dim, k, n - k);
    Tensor omitted = k == 0 ? at::ones_like(in.narrow(dim, 0, 1)) : in.narrow(dim, 0, k).prod(dim, true);
    if (k + 1 < n) {
      const tn::Tensor both[] = {omitted, omitted * in.narrow(dim, k + 1, n - k - 1).cumprod(dim)};
      omitted = at::cat(TensorList(both), dim);
    }
    parts.push_back((tail * omitted).sum(IntArrayRef(dim), true));
  }
  return at::cat(TensorList(parts), dim);
}
Tensor cummaxmin_backward(const Tensor& grad, const Tensor& input, const Tensor& indices, int64_t dim) {
  if (input.numel() == 0) return input;
  return at::zeros(input.sizes(), grad.options()).scatter_add(dim, indices, grad);
}
Tensor trace_backward_symint(const Tensor& grad, IntArrayRef sizes) {
  return at::eye(sizes[0], sizes[1], grad.options()) * grad;
}
Tensor repeat_backward(const Tensor& grad, IntArrayRef repeats, IntArrayRef sizes) {
  std::vector<int64_t> split, copies;
  const size_t lead = repeats.size() - sizes.size();
  for (size_t d = 0; d < repeats.size(); ++d) {
    if (repeats[d] == 0) return at::zeros(sizes, grad.options());
    copies.push_back(static_cast<int64_t>(split.size()));
    split.push_back(repeats[d]);
    if (d >= lead) split.push_back(sizes[d - lead]);
  }
  return copies.empty() ? grad : grad.reshape(split).sum(IntArrayRef(copies));
}
Tensor constant_pad_nd_backward(const Tensor& grad, IntArrayRef pad) {
  return at::constant_pad_nd(grad, fmap(pad.vec(), [](int64_t p) { return -p; }), Scalar(0));
}
Tensor take_backward(const Tensor& grad, const Tensor& self, const Tensor& index) {
  const Tensor flat = index.reshape(IntArrayRef(-1));
  const Tensor wrapped = at::where(flat < Scalar(0), flat + Scalar(self.numel()), flat);
  return at::zeros(IntArrayRef(self.numel()), grad.options())
      .scatter_add(0, wrapped, grad.reshape(IntArrayRef(-1)))
      .reshape(self.sizes());
}
Tensor embedding_dense_double_backward_symint(const Tensor& grad, const Tensor& indices, int64_t padding_idx) {
  std::vector<int64_t> sizes = indices.sizes().vec();
  sizes.push_back(grad.size(-1));
  const Tensor picked = grad.index_select(0, indices.reshape(IntArrayRef(-1))).reshape(sizes);
  if (padding_idx < 0) return picked;
  return picked.masked_fill((indices == Scalar(padding_idx)).unsqueeze(-1), Scalar(0));
}

// ---- moments and norms -----------------------------------------------------------------------------------------

Tensor logsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result, IntArrayRef dim, bool keepdim) {
  const Tensor g = unreduce(grad, dim, self.dim(), keepdim), r = unreduce(result, dim, self.dim(), keepdim);
  return g * (self - r).exp().conj();
}
Tensor var_backward(const Tensor& grad, const Tensor& self, OptionalIntArrayRef dim,
                    const std::optional<Scalar>& correction, bool keepdim) {
  const double c = correction ? correction->toDouble() : 1.0;
  const bool all = self.dim() == 0 || !dim || dim->empty();
  int64_t n = 1;
  const uint64_t mask = all ? ~uint64_t{0} : dim_mask(dim, self.dim());
  for (int64_t d = 0; d < self.dim(); ++d)
    if (mask >> d & 1) n *= self.size(d);
  const Tensor g = unreduce(grad, dim, self.dim(), keepdim);
  const double dof = static_cast<double>(n) - c;
  if (dof <= 0) return g * at::where(self == self.mean(dim, true), Scalar(NAN), Scalar(INFINITY));
  return g * ((self - self.mean(dim, true)) * Scalar(2.0 / dof));
}
Tensor std_backward(const Tensor& result, const Tensor& grad, const Tensor& self, OptionalIntArrayRef dim,
                    const std::optional<Scalar>& correction, bool keepdim) {
  const Tensor of_var = (grad / (result * Scalar(2))).masked_fill(result == Scalar(0), Scalar(0));
  return var_backward(of_var, self, dim, correction, keepdim);
}
static Tensor mean_part(const Tensor& gmean, const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
  const Tensor g = unreduce(gmean, dim, self.dim(), keepdim);
  return g.expand(self.sizes()) * Scalar(static_cast<double>(g.numel()) / static_cast<double>(self.numel()));
}
static Tensor sum_of(const Tensor& a, const Tensor& b) {
  return a.defined() && b.defined() ? a + b : a.defined() ? a : b;
}
Tensor var_mean_backward(const Tensor& gvar, const Tensor& gmean, const Tensor& self, OptionalIntArrayRef dim,
                         const std::optional<Scalar>& correction, bool keepdim) {
  return sum_of(gvar.defined() ? var_backward(gvar, self, dim, correction, keepdim) : Tensor(),
                gmean.defined() ? mean_part(gmean, self, dim, keepdim) : Tensor());
}
Tensor std_mean_backward(const Tensor& gstd, const Tensor& gmean, const Tensor& self, const Tensor& std,
                         OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool keepdim) {
  return sum_of(gstd.defined() ? std_backward(std, gstd, self, dim, correction, keepdim) : Tensor(),
                gmean.defined() ? mean_part(gmean, self, dim, keepdim) : Tensor());
}

// The subgradient at zero is zero; the infinity norm shares its gradient among the largest.
static Tensor norm_gradient(const Tensor& grad, const Tensor& self, double p, const Tensor& norm,
                            OptionalIntArrayRef dim) {
  if (p == 0.0) return {};  // as upstream: no gradient, where a zero one would do as well
  if (p == 1.0) return self.sgn() * grad;
  if (p == 2.0) return grad * (self / norm).masked_fill(norm == Scalar(0), Scalar(0));
  if (std::isinf(p)) {
    const Tensor at_extreme = at::logical_or(self.abs() == norm, at::logical_and(norm != norm, self != self));
    return self.sgn() * ((grad / at_extreme.sum(dim, true)) * at_extreme);
  }
  const Tensor size = self.abs();
  if (p < 1.0) {
    const Tensor scaled = (self.sgn() * size.pow(Scalar(p - 1))).masked_fill(self == Scalar(0), Scalar(0));
    return scaled * grad * norm.pow(Scalar(1 - p));
  }
  const Tensor scale = grad / norm.pow(Scalar(p - 1));
  const Tensor direction = p < 2.0 ? (self.sgn() * size.pow(Scalar(p - 1))) : self * size.pow(Scalar(p - 2));
  return direction * scale.masked_fill(norm == Scalar(0), Scalar(0));
}
Tensor linalg_vector_norm_backward(const Tensor& grad, const Tensor& self, const Scalar& ord, const Tensor& norm,
                                   OptionalIntArrayRef dim, bool keepdim) {
  const int64_t n = self.dim();
  return norm_gradient(unreduce(grad, dim, n, keepdim), self, ord.toDouble(), unreduce(norm, dim, n, keepdim), dim);
}
Tensor norm_backward(const Tensor& grad, const Tensor& self, const std::optional<Scalar>& p, const Tensor& norm) {
  return linalg_vector_norm_backward(grad, self, p.value_or(Scalar(2.0)), norm, {}, true);
}
Tensor norm_backward(const Tensor& grad, const Tensor& self, const std::optional<Scalar>& p, const Tensor& norm,
                     IntArrayRef dim, bool keepdim) {
  return linalg_vector_norm_backward(grad, self, p.value_or(Scalar(2.0)), norm, dim, keepdim);
}
Tensor aminmax_backward(const Tensor& self, std::optional<int64_t> dim, bool keepdim, const Tensor& grad_min,
                        const Tensor& grad_max, const Tensor& min, const Tensor& max) {
  const OptionalIntArrayRef dims = dim ? OptionalIntArrayRef(IntArrayRef(*dim)) : OptionalIntArrayRef();
  const auto part = [&](const Tensor& grad, const Tensor& extreme) {
    if (!grad.defined()) return Tensor();
    const Tensor mask = unreduce(extreme, dims, self.dim(), keepdim) == self;
    return unreduce(grad, dims, self.dim(), keepdim) * mask / mask.sum(dims, true);
  };
  return sum_of(part(grad_min, min), part(grad_max, max));
}

// ---- activations and losses ------------------------------------------------------------------------------------

Tensor log1p_backward(const Tensor& grad, const Tensor& self) { return grad / (self + Scalar(1)).conj(); }
Tensor sinc_backward(const Tensor& grad, const Tensor& self) {
  const Tensor x = self * Scalar(M_PI);
  const Tensor slope = (x.cos() * x - x.sin()) * Scalar(M_PI) / (x * x);
  return grad * slope.masked_fill(self == Scalar(0), Scalar(0)).conj();
}
Tensor sgn_backward(const Tensor& x, const Tensor& grad, const Tensor& sgn) {
  if (!tn::is_complex(x.dtype())) return zero_like(sgn);
  const Tensor size = x.abs();
  return ((grad - sgn * sgn * grad.conj()) / (size * Scalar(2))).masked_fill(size == Scalar(0), Scalar(0));
}
Tensor infinitely_differentiable_silu_backward(const Tensor& grad, const Tensor& x) {
  const Tensor s = x.sigmoid();
  return grad * s * (Scalar(1) + x * (Scalar(1) - s));
}
Tensor infinitely_differentiable_mish_backward(const Tensor& grad, const Tensor& x) {
  const Tensor s = x.sigmoid(), t = at::softplus(x).tanh();
  return grad * (t + x * s * (Scalar(1) - t * t));
}
Tensor infinitely_differentiable_logit_backward(const Tensor& grad, const Tensor& self, std::optional<double> eps) {
  const Tensor slope = grad / (self * (Scalar(1) - self));
  if (eps) return at::where(at::logical_and(self >= Scalar(*eps), self <= Scalar(1 - *eps)), slope, Scalar(0.0));
  return at::where(at::logical_and(self >= Scalar(0.0), self <= Scalar(1.0)), slope, Scalar(NAN));
}
Tensor infinitely_differentiable_native_dropout_backward(const Tensor& grad, const Tensor& mask, double scale) {
  return grad * (mask * Scalar(scale)).to(grad.scalar_type());
}
Tensor native_dropout_double_backward(const Tensor& ggi, const Tensor&, const Tensor& mask, double scale) {
  return infinitely_differentiable_native_dropout_backward(ggi, mask, scale);
}
Tensor binary_cross_entropy_target_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                            const Tensor& weight, int64_t reduction) {
  Tensor g = grad * ((Scalar(1.0) - self).log() - self.log());
  if (weight.defined()) g = g * weight;
  return reduced(g, target.numel(), reduction);
}
Tensor mse_loss_double_backward(const Tensor& grad, const Tensor& input, int64_t reduction) {
  return reduced(grad * Scalar(2), input.numel(), reduction);
}
Tensor smooth_l1_loss_double_backward(const Tensor& grad, const Tensor& input, const Tensor& target, int64_t reduction,
                                      double beta) {
  const Tensor near = (input - target).abs() < Scalar(beta);
  return reduced(at::where(near, grad / Scalar(beta), Scalar(0.0)), input.numel(), reduction);
}
Tensor huber_loss_double_backward(const Tensor& grad, const Tensor& input, const Tensor& target, int64_t reduction,
                                  double delta) {
  const Tensor near = (input - target).abs() < Scalar(delta);
  return reduced(at::where(near, grad, Scalar(0.0)), input.numel(), reduction);
}

// Plain operators, so that it can be differentiated again. Statistics' own gradients join in as the formula says.
std::tuple<Tensor, Tensor, Tensor> infinitely_differentiable_native_group_norm_backward(
    const Tensor& dy, const Tensor& dmean, const Tensor& drstd, const Tensor& x, const Tensor& mean, const Tensor& rstd,
    const Tensor& gamma, int64_t n, int64_t c, int64_t hw, int64_t group, double eps, const std::array<bool, 3>& mask) {
  (void)eps;
  const int64_t d = c / group;
  const double s = 1.0 / static_cast<double>(d * hw);
  const std::vector<int64_t> wide = {n, group, d, hw}, stats = {n, group, 1, 1}, channels = {1, group, d, 1};
  const Tensor xt = x.reshape(wide), mt = mean.reshape(stats), rt = rstd.reshape(stats);
  const Tensor hat = (xt - mt) * rt;
  std::tuple<Tensor, Tensor, Tensor> out;
  const std::vector<int64_t> inner = {2, 3}, outer = {0, 3};
  if (mask[0]) {
    Tensor dx;
    if (dy.defined()) {
      Tensor g = dy.reshape(wide);
      if (gamma.defined()) g = g * gamma.reshape(channels);
      const Tensor a = g.sum(IntArrayRef(inner), true) * Scalar(s),
                   b = (g * hat).sum(IntArrayRef(inner), true) * Scalar(s);
      dx = rt * (g - a - hat * b);
    }
    if (dmean.defined()) dx = sum_of(dx, dmean.reshape(stats).expand(wide) * Scalar(s));
    if (drstd.defined()) dx = sum_of(dx, -(drstd.reshape(stats) * rt * rt * rt * (xt - mt)) * Scalar(s));
    if (dx.defined()) std::get<0>(out) = dx.reshape(x.sizes());
  }
  if (mask[1] && dy.defined())
    std::get<1>(out) = (dy.reshape(wide) * hat).sum(IntArrayRef(outer)).reshape(IntArrayRef(c));
  if (mask[2] && dy.defined()) std::get<2>(out) = dy.reshape(wide).sum(IntArrayRef(outer)).reshape(IntArrayRef(c));
  return out;
}

}  // namespace tn::autograd
