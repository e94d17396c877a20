#include "kernels/autograd/forward_helpers.h"

#include <limits>

#include "runtime/autograd/forward.h"

namespace tn::autograd {

namespace {

std::vector<int64_t> all_dims(const Tensor& t) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < t.dim(); ++d) dims.push_back(d);
  return dims;
}
// A reduced tensor with its reduced dimensions back, of length one.
Tensor with_dims(const Tensor& t, const Tensor& input, IntArrayRef dims, bool keepdim) {
  if (keepdim || input.dim() == 0) return t;
  const std::vector<int64_t> all = all_dims(input);
  return restore_reduced_dims(t, dims.empty() ? IntArrayRef(all) : dims, false);
}
Tensor total(const Tensor& t, IntArrayRef dims, bool keepdim) {
  return dims.empty() ? Tensor(at::sum(t, IntArrayRef(all_dims(t)), keepdim)) : Tensor(at::sum(t, dims, keepdim));
}
// Where a reduction is separable, its gradient for ones is the factor of each tangent.
Tensor contract(const Tensor& factor, const Tensor& dx, const Tensor& result, IntArrayRef dims, bool keepdim) {
  if (!factor.defined())
    return at::zeros_like(result);  // the gradient is zero everywhere, as of the number of non-zeros
  const Tensor product = at::mul(at::conj(factor), dx);
  const Tensor sum = total(product, dims, keepdim);
  return sum.is_complex() ? Tensor(at::real(sum)) : sum;
}
Tensor per_channel(const Tensor& t, int64_t dims) {
  std::vector<int64_t> shape(static_cast<size_t>(dims), 1);
  shape[1] = t.numel();
  return at::reshape(t, shape);
}
// The tangent of (x - mean) * invstd, where both are taken over `dims`.
Tensor normalized_jvp(const Tensor& normal, const Tensor& dx, const Tensor& invstd, IntArrayRef dims) {
  const Tensor centred = at::sub(dx, at::mean(dx, dims, true));
  return at::mul(invstd, at::sub(centred, at::mul(normal, at::mean(at::mul(normal, dx), dims, true))));
}
Tensor affine_jvp(const Tensor& normal, const Tensor& dnormal, const Tensor& weight, const Tensor& dweight,
                  const Tensor& dbias) {
  Tensor made = weight.defined() ? Tensor(at::mul(dnormal, weight)) : dnormal;
  if (dweight.defined()) made = at::add(made, at::mul(normal, dweight));
  return dbias.defined() ? Tensor(at::add(made, dbias)) : made;
}

std::vector<tn::Tensor> tangents_of(TensorList tensors) {
  std::vector<tn::Tensor> tangents;
  for (const tn::Tensor& t : tensors) tangents.push_back(forward::tangent_or_zeros(t));
  return tangents;
}

}  // namespace

Tensor gather_with_keepdimed_indices(const Tensor& input, int64_t dim, const Tensor& indices, bool keepdim) {
  if (input.dim() == 0) return input;
  if (keepdim) return at::gather(input, dim, indices);
  return at::squeeze(at::gather(input, dim, at::unsqueeze(indices, dim)), dim);
}

Tensor apply_loss_reduction(const Tensor& unreduced, int64_t reduction) {
  if (reduction == 1) return at::mean(unreduced);
  return reduction == 2 ? Tensor(at::sum(unreduced)) : unreduced;
}

Tensor evenly_read_jvp(const Tensor& tangent, const Tensor& input, const Tensor& value) {
  const Tensor mask = at::logical_or(at::eq(input, value), at::logical_and(at::isnan(input), at::isnan(value)));
  return at::div(at::sum(at::masked_fill(tangent, at::logical_not(mask), tn::Scalar(int64_t{0}))), at::sum(mask));
}

Tensor amaxamin_jvp(const Tensor& x, const Tensor& dx, const Tensor& result, IntArrayRef dim, bool keepdim) {
  const Tensor mask = at::eq(x, with_dims(result, x, dim, keepdim));
  return at::div(total(at::masked_fill(dx, at::logical_not(mask), tn::Scalar(int64_t{0})), dim, keepdim),
                 total(mask, dim, keepdim));
}

Tensor aminmax_jvp(const Tensor& x, const Tensor& dx, const Tensor& result, const std::optional<int64_t>& dim,
                   bool keepdim) {
  return amaxamin_jvp(x, dx, result, dim ? IntArrayRef(*dim) : IntArrayRef(), keepdim);
}

Tensor logsumexp_jvp(const Tensor& x, const Tensor& dx, IntArrayRef dim, bool keepdim) {
  if (x.numel() == 0) return total(dx, dim, keepdim);
  Tensor top = x.is_complex() ? Tensor(at::amax(at::real(x), dim, true)) : Tensor(at::amax(x, dim, true));
  top = at::masked_fill(top, at::isinf(top), tn::Scalar(int64_t{0}));
  const Tensor weights = at::exp(at::sub(x, top));
  return at::div(total(at::mul(weights, dx), dim, keepdim), total(weights, dim, keepdim));
}
Tensor safe_logsumexp_jvp(const Tensor& x, const Tensor& dx, IntArrayRef dim, bool keepdim) {
  const Tensor made = logsumexp_jvp(x, dx, dim, keepdim);
  return at::masked_fill(made, at::isnan(made), tn::Scalar(int64_t{0}));
}

Tensor logcumsumexp_jvp(const Tensor& x, const Tensor& dx, int64_t dim) {
  if (x.dim() == 0) return dx;
  // Step by step, weights against the largest logarithm so far: none overflows, and a weight is as exact as the
  // difference of two inputs, whatever their size.
  const std::vector<tn::Tensor> logs = at::unbind(x, dim), tangents = at::unbind(dx, dim);
  if (logs.empty()) return dx;
  const auto real = [](const Tensor& t) { return t.is_complex() ? Tensor(at::real(t)) : t; };
  const auto finite = [](const Tensor& t) { return Tensor(at::masked_fill(t, at::isinf(t), tn::Scalar(int64_t{0}))); };
  const tn::Scalar zero(int64_t{0});
  std::vector<tn::Tensor> made;
  Tensor top, sum, moved;
  for (size_t k = 0; k < logs.size(); ++k) {
    const Tensor before = top;
    top = k == 0 ? real(logs[k]) : Tensor(at::where(at::gt(before, real(logs[k])), before, real(logs[k])));
    const Tensor weight = at::exp(at::sub(logs[k], finite(top)));
    const Tensor step = at::mul(weight, tangents[k]);
    const Tensor fade = k == 0 ? Tensor() : Tensor(at::exp(at::sub(before, finite(top))));
    sum = k == 0 ? weight : Tensor(at::add(at::mul(sum, fade), weight));
    moved = k == 0 ? step : Tensor(at::add(at::mul(moved, fade), step));
    // Nothing but exp(-inf) so far: upstream's tangent is zero.
    made.push_back(at::masked_fill(at::div(moved, sum), at::eq(sum, zero), zero));
  }
  return at::stack(made, dim);
}

Tensor cumprod_jvp(const Tensor& dx, const Tensor& x, const Tensor& result, int64_t dim) {
  if (x.dim() == 0) return dx;
  // The product rule step by step: exact where factors are zero, too.
  const std::vector<tn::Tensor> factors = at::unbind(x, dim), tangents = at::unbind(dx, dim),
                                products = at::unbind(result, dim);
  std::vector<tn::Tensor> made;
  for (size_t k = 0; k < factors.size(); ++k)
    made.push_back(k == 0
                       ? tangents[0]
                       : tn::Tensor(at::add(at::mul(made[k - 1], factors[k]), at::mul(products[k - 1], tangents[k]))));
  return made.empty() ? dx : Tensor(at::stack(made, dim));
}

Tensor clamp_jvp(const Tensor& x, const Tensor& dx, const Tensor& low, const Tensor& dlow, const Tensor& high,
                 const Tensor& dhigh) {
  if (!high.defined()) return at::where(at::lt(x, low), dlow, dx);
  if (!low.defined()) return at::where(at::gt(x, high), dhigh, dx);
  return at::where(at::gt(low, high), dhigh, at::where(at::lt(x, low), dlow, at::where(at::gt(x, high), dhigh, dx)));
}

Tensor norm_jvp(const Tensor& x, const Tensor& dx, const std::optional<Scalar>& p, const Tensor& norm, IntArrayRef dim,
                bool keepdim) {
  return contract(norm_backward(at::ones_like(norm), x, p, norm, dim, keepdim), dx, norm, dim, keepdim);
}
Tensor norm_jvp(const Tensor& x, const Tensor& dx, const std::optional<Scalar>& p, const Tensor& norm) {
  return contract(norm_backward(at::ones_like(norm), x, p, norm), dx, norm, {}, false);
}
Tensor linalg_vector_norm_jvp(const Tensor& x, const Tensor& dx, const Scalar& ord, const Tensor& norm,
                              OptionalIntArrayRef dim, bool keepdim) {
  return contract(linalg_vector_norm_backward(at::ones_like(norm), x, ord, norm, dim, keepdim), dx, norm,
                  dim.value_or(IntArrayRef()), keepdim);
}

Tensor cat_jvp(TensorList tensors, int64_t dim) { return at::cat(tangents_of(tensors), dim); }
Tensor stack_jvp(TensorList tensors, int64_t dim) { return at::stack(tangents_of(tensors), dim); }
Tensor block_diag_jvp(TensorList tensors) { return at::block_diag(tangents_of(tensors)); }

Tensor convolution_jvp(const Tensor& x, const Tensor& dx, const Tensor& weight, const Tensor& dweight, const Tensor&,
                       const Tensor& dbias, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                       bool transposed, IntArrayRef output_padding, int64_t groups) {
  const tn::Tensor bias = dbias;
  return at::add(at::convolution(dx, weight, {}, stride, padding, dilation, transposed, output_padding, groups),
                 at::convolution(x, dweight, bias.defined() ? OptionalTensor(bias) : OptionalTensor(), stride, padding,
                                 dilation, transposed, output_padding, groups));
}
Tensor _convolution_jvp(const Tensor& x, const Tensor& dx, const Tensor& weight, const Tensor& dweight,
                        const Tensor& bias, const Tensor& dbias, IntArrayRef stride, IntArrayRef padding,
                        IntArrayRef dilation, bool transposed, IntArrayRef output_padding, int64_t groups, bool, bool,
                        bool, bool) {
  return convolution_jvp(x, dx, weight, dweight, bias, dbias, stride, padding, dilation, transposed, output_padding,
                         groups);
}
Tensor convolution_backward_jvp_grad_bias(const Tensor& dgrad, const Tensor& grad_bias) {
  if (!grad_bias.defined()) return Tensor();
  std::vector<int64_t> dims = all_dims(dgrad);
  dims.erase(dims.begin() + 1);
  return at::sum(dgrad, IntArrayRef(dims), false);
}

// Extremes share their tangent evenly among all places that reach them, the reduced tensor's own included.
Tensor scatter_reduce_jvp(const Tensor& x, const Tensor& dx, int64_t dim, const Tensor& index, const Tensor& src,
                          const Tensor& dsrc, std::string_view reduce, bool include_self, const Tensor& result) {
  if (reduce == "sum" || reduce == "mean") return at::scatter_reduce(dx, dim, index, dsrc, reduce, include_self);
  TN_CHECK_AS(NotImplemented, reduce == "amax" || reduce == "amin",
              "scatter_reduce: forward mode is not implemented for reduce='", reduce, "'");
  const tn::Scalar zero(int64_t{0});
  const Tensor from = at::eq(src, at::gather(result, dim, index));
  Tensor own = at::eq(x, result);
  if (!include_self) {
    const Tensor reached = at::scatter(at::zeros_like(own), dim, index, tn::Scalar(true));
    own = at::logical_and(own, at::logical_not(reached));
  }
  const Tensor total = at::scatter_add(at::masked_fill(dx, at::logical_not(own), zero), dim, index,
                                       at::masked_fill(dsrc, at::logical_not(from), zero));
  return at::div(total, at::scatter_add(own.to(x.scalar_type()), dim, index, from.to(x.scalar_type())));
}

Tensor batch_norm_jvp(const Tensor& x, const Tensor& dx, const Tensor& weight, const Tensor& dweight, const Tensor&,
                      const Tensor& dbias, const Tensor& running_mean, const Tensor& running_var, const Tensor& mean,
                      const Tensor& invstd, bool train, double eps) {
  std::vector<int64_t> dims = all_dims(x);
  dims.erase(dims.begin() + 1);
  const auto channels = [&](const Tensor& t) { return t.defined() ? per_channel(t, x.dim()) : t; };
  const Tensor centre = channels(train ? mean : running_mean);
  const Tensor scale = channels(train ? invstd : Tensor(at::rsqrt(at::add(running_var, tn::Scalar(eps)))));
  const Tensor normal = at::mul(at::sub(x, centre), scale);
  const Tensor dnormal = train ? normalized_jvp(normal, dx, scale, dims) : Tensor(at::mul(dx, scale));
  return affine_jvp(normal, dnormal, channels(weight), channels(dweight), channels(dbias));
}

Tensor layer_norm_jvp(const Tensor& x, const Tensor& dx, const Tensor& weight, const Tensor& dweight, const Tensor&,
                      const Tensor& dbias, const Tensor& mean, const Tensor& invstd, IntArrayRef normalized_shape) {
  std::vector<int64_t> dims;
  for (int64_t d = x.dim() - normalized_shape.ssize(); d < x.dim(); ++d) dims.push_back(d);
  const Tensor normal = at::mul(at::sub(x, mean), invstd);
  return affine_jvp(normal, normalized_jvp(normal, dx, invstd, dims), weight, dweight, dbias);
}

namespace {
Tensor grouped(const Tensor& t, int64_t groups) {
  int64_t each = t.size(1) / groups;
  for (int64_t d = 2; d < t.dim(); ++d) each *= t.size(d);
  return at::reshape(t, IntArrayRef({t.size(0), groups, each}));
}
Tensor per_group(const Tensor& t, int64_t groups) {
  return at::reshape(t, IntArrayRef({t.numel() / groups, groups, 1}));
}
}  // namespace

Tensor group_norm_jvp(const Tensor& x, const Tensor& dx, const Tensor& weight, const Tensor& dweight, const Tensor&,
                      const Tensor& dbias, const Tensor& mean, const Tensor& invstd, int64_t groups) {
  const Tensor scale = per_group(invstd, groups);
  const Tensor normal = at::mul(at::sub(grouped(x, groups), per_group(mean, groups)), scale);
  const Tensor dnormal = normalized_jvp(normal, grouped(dx, groups), scale, {2});
  const auto channels = [&](const Tensor& t) { return t.defined() ? per_channel(t, x.dim()) : t; };
  return affine_jvp(at::reshape(normal, x.sizes()), at::reshape(dnormal, x.sizes()), channels(weight),
                    channels(dweight), channels(dbias));
}
Tensor group_norm_mean_jvp(const Tensor& dx, const Tensor& mean, int64_t groups) {
  return at::reshape(at::mean(grouped(dx, groups), IntArrayRef({2}), false), mean.sizes());
}
Tensor group_norm_invstd_jvp(const Tensor& x, const Tensor& dx, const Tensor& mean, const Tensor& invstd,
                             int64_t groups) {
  const Tensor centred = at::sub(grouped(x, groups), per_group(mean, groups));
  const Tensor covariance = at::mean(at::mul(centred, grouped(dx, groups)), IntArrayRef({2}), false);
  return at::neg(at::mul(at::pow(invstd, tn::Scalar(int64_t{3})), at::reshape(covariance, invstd.sizes())));
}

}  // namespace tn::autograd
