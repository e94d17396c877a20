#include "kernels/autograd/helpers.h"

#include <algorithm>

#include "kernels/autograd/support.h"
#include "runtime/refuse.h"
#include "runtime/shape.h"

namespace tn::autograd {

bool wants_any(const Node& n, size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i)
    if (wants(n, i)) return true;
  return false;
}
void spread(const std::vector<tn::Tensor>& grads, GradList& out, size_t first) {
  for (size_t i = 0; i < grads.size() && first + i < out.size(); ++i) out[first + i] = grads[i];
}
Tensor copy_of(const Tensor& t) { return at::clone(t); }
void refuse_formula(const char* node, const char* inputs, const char* missing) {
  refuse(node, str("the gradient of ", inputs), str("its formula calls ", missing, ", which is not written yet"));
}
void fail_out(const char* op) {
  fail(ErrorKind::Runtime, op,
       "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
       "requires grad.");
}

Tensor TypeAndSize::zeros() const { return at::zeros(sizes, options); }

Tensor at::sum_to(const Tensor& grad, IntArrayRef sizes) {
  if (sizes.size() == 0) return grad.sum();
  const auto lead = static_cast<size_t>(grad.dim()) - sizes.size();
  std::vector<int64_t> dims;
  for (size_t d = 0; d < static_cast<size_t>(grad.dim()); ++d)
    if (d < lead || (sizes[d - lead] == 1 && grad.sizes()[d] != 1)) dims.push_back(static_cast<int64_t>(d));
  if (dims.empty()) return grad;
  const Tensor sum = grad.sum(IntArrayRef(dims), true);
  return lead > 0 ? sum.view(sizes) : sum;
}

Tensor not_implemented(const char* name, const char* reason) {
  fail(ErrorKind::NotImplemented, "the derivative for '", name, "' is not implemented.", *reason ? " " : "", reason);
}
IntArrayRef strides_or_error(const Tensor& t, const char*) { return t.strides(); }

// ---- arithmetic ------------------------------------------------------------------------------------------------

Tensor handle_r_to_c(ScalarType self, Tensor grad) {
  return !tn::is_complex(self) && tn::Tensor(grad).is_complex() ? Tensor(at::real(grad)) : grad;
}
Tensor maybe_multiply(const Tensor& t, const Scalar& s) { return s.equal(tn::Scalar(1)) ? t : t * s; }

Tensor mul_tensor_backward(const Tensor& grad, const Tensor& other, ScalarType self) {
  return handle_r_to_c(self, grad * other.conj());
}
Tensor mul_tensor_backward(const Tensor& grad, const Scalar& other, ScalarType self) {
  return handle_r_to_c(self, grad * other.conj());
}

Tensor div_tensor_self_backward(const Tensor& grad, const Tensor& other, ScalarType self,
                                std::optional<std::string_view> rounding) {
  if (rounding) return at::zeros_like(grad, grad.options());
  return handle_r_to_c(self, grad / other.conj());
}
Tensor div_tensor_self_backward(const Tensor& grad, const Scalar& other, ScalarType self,
                                std::optional<std::string_view> rounding) {
  if (rounding) return at::zeros_like(grad, grad.options());
  return handle_r_to_c(self, grad / other.conj());
}
Tensor div_tensor_other_backward(const Tensor& grad, const Tensor& self, const Tensor& other,
                                 std::optional<std::string_view> rounding) {
  if (rounding) return at::zeros_like(grad, other.options());
  return handle_r_to_c(other.dtype(), -grad * ((self / other) / other).conj());
}

Tensor pow_backward(const Tensor& grad, const Tensor& self, const Scalar& exponent) {
  if (exponent.equal(tn::Scalar(0.0))) return at::zeros_like(self);
  if (exponent.isComplex())
    return handle_r_to_c(self.dtype(), grad * (self.pow(Scalar(exponent.to_complex() - 1.0)) * exponent).conj());
  return handle_r_to_c(self.dtype(), grad * (self.pow(Scalar(exponent.toDouble() - 1)) * exponent).conj());
}
Tensor pow_backward_self(const Tensor& grad, const Tensor& self, const Tensor& exponent) {
  const Tensor out = at::where(exponent == tn::Scalar(0.0), at::zeros({}, grad.options()),
                               grad * (exponent * self.pow(exponent - tn::Scalar(1))).conj());
  return handle_r_to_c(self.dtype(), out);
}
// d/dexponent is result * log(base), and 0 where the base is 0 and the exponent is not negative.
Tensor pow_backward_exponent(const Tensor& grad, const Tensor& self, const Tensor& exponent, const Tensor& result) {
  Tensor zero_base;
  if (tn::is_complex(exponent.dtype()))
    zero_base = at::logical_and(self == tn::Scalar(0), at::logical_and(at::imag(exponent) == tn::Scalar(0),
                                                                       at::real(exponent) >= tn::Scalar(0)));
  else zero_base = at::logical_and(self == tn::Scalar(0), exponent >= tn::Scalar(0));
  // A negative real base has a logarithm where the exponent is complex.
  const Tensor base = at::to(self, result.dtype());
  const Tensor out = grad * at::where(zero_base, at::zeros({}, grad.options()), (result * base.log()).conj());
  return handle_r_to_c(exponent.dtype(), out);
}
Tensor pow_backward_exponent(const Tensor& grad, const Scalar& base, const Tensor& exponent, const Tensor& result) {
  const Tensor b = at::scalar_tensor(base, grad.options());
  return pow_backward_exponent(grad, b, exponent, result);
}

// A bound that equals the value lets the gradient pass; NaN bounds don't.
Tensor clamp_backward(const Tensor& grad, const Tensor& self, const std::optional<Scalar>& min,
                      const std::optional<Scalar>& max) {
  const Tensor zero = at::scalar_tensor(Scalar(0.0), grad.options());
  if (min && max) return at::where(at::logical_and(self >= *min, self <= *max), grad, zero);
  if (min) return at::where(self >= *min, grad, zero);
  if (max) return at::where(self <= *max, grad, zero);
  return grad;
}
Tensor clamp_backward(const Tensor& grad, const Tensor& self, const Tensor& min, const Tensor& max) {
  const Tensor zero = at::scalar_tensor(Scalar(0.0), grad.options());
  if (min.defined() && max.defined()) return at::where(at::logical_and(self >= min, self <= max), grad, zero);
  if (min.defined()) return at::where(self >= min, grad, zero);
  if (max.defined()) return at::where(self <= max, grad, zero);
  return grad;
}
std::tuple<Tensor, Tensor> clamp_backward_min_max(const Tensor& grad, const Tensor& self, const Tensor& min,
                                                  const Tensor& max, const std::array<bool, 2>& mask) {
  std::tuple<Tensor, Tensor> out;
  const Tensor zero = at::scalar_tensor(Scalar(0.0), grad.options());
  if (max.defined() && min.defined()) {
    if (mask[0]) std::get<0>(out) = at::where(at::logical_and(min < max, self < min), grad, zero);
    if (mask[1]) std::get<1>(out) = at::where(at::logical_or(self > max, max < min), grad, zero);
  } else if (min.defined()) {
    if (mask[0]) std::get<0>(out) = at::where(self < min, grad, zero);
  } else if (max.defined() && mask[1]) {
    std::get<1>(out) = at::where(self > max, grad, zero);
  }
  return out;
}

// ---- reductions ------------------------------------------------------------------------------------------------

namespace {

// The reduced dimensions come back with extent 1.
Tensor unreduce(const Tensor& grad, OptionalIntArrayRef dims, int64_t ndim, bool keepdim) {
  if (keepdim || ndim == 0 || !dims || dims->empty()) return grad;
  const uint64_t mask = dim_mask(dims, ndim);
  Tensor g = grad;
  for (int64_t d = 0; d < ndim; ++d)
    if (mask >> d & 1) g = g.unsqueeze(d);
  return g;
}

}  // namespace

Tensor sum_backward(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dims, bool keepdim) {
  return unreduce(grad, dims, sizes.ssize(), keepdim).expand(sizes);
}
Tensor nansum_backward(const Tensor& grad, const Tensor& self, OptionalIntArrayRef dims, bool keepdim) {
  return sum_backward(grad, self.sizes(), dims, keepdim) * (self == self);
}
Tensor mean_backward(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dims, int64_t n, bool keepdim) {
  if (!dims || dims->empty()) return sum_backward(grad, sizes, dims, keepdim) / Scalar(n);
  int64_t count = 1;
  const uint64_t mask = dim_mask(dims, sizes.ssize());
  for (size_t d = 0; d < sizes.size(); ++d)
    if (mask >> d & 1) count *= sizes[d];
  return sum_backward(grad, sizes, dims, keepdim) / Scalar(count);
}
Tensor restore_reduced_dims(const Tensor& output, IntArrayRef dims, bool keepdim) {
  if (keepdim) return output;
  return unreduce(output, OptionalIntArrayRef(dims), output.dim() + dims.ssize(), false);
}
Tensor scale_grad_by_count(const Tensor& grad, const Tensor& mask, IntArrayRef dims) {
  return (grad * mask) / mask.sum(dims, true);
}
Tensor evenly_distribute_backward(const Tensor& grad, const Tensor& input, const Tensor& value) {
  const Tensor mask = at::logical_or(input == value, at::logical_and(input != input, value != value));
  return mask * (grad / mask.sum());
}
Tensor prod_backward(const Tensor& grad, const Tensor& input, const Tensor& result) {
  if (input.dim() == 0) return grad.clone();
  const Tensor flat = input.reshape(IntArrayRef(-1));
  return prod_backward(grad, flat, result, 0, false).reshape(input.sizes());
}
// result / input where nothing is zero; else products of all others, from both sides, so that zeros don't divide.
Tensor prod_backward(const Tensor& grad, const Tensor& input, const Tensor& result, int64_t dim, bool keepdim) {
  if (input.dim() == 0) return grad.clone();
  dim = wrap_dim(dim, input.dim());
  const Tensor g = keepdim ? grad : grad.unsqueeze(dim);
  const Tensor r = keepdim ? result : result.unsqueeze(dim);
  if (!(input == Scalar(0)).any().item().to_bool()) return g * (r / input).conj();
  if (input.size(dim) == 1) return g.expand(input.sizes());
  std::vector<int64_t> one = input.sizes().vec();
  one[static_cast<size_t>(dim)] = 1;
  const Tensor ones = at::ones(one, input.options());
  const int64_t n = input.size(dim);
  const tn::Tensor before[] = {ones, input.narrow(dim, 0, n - 1)};
  const tn::Tensor after[] = {ones, input.narrow(dim, 1, n - 1).flip(IntArrayRef(dim))};
  const Tensor left = at::cat(TensorList(before), dim).cumprod(dim);
  const Tensor right = at::cat(TensorList(after), dim).cumprod(dim).flip(IntArrayRef(dim));
  return g * (left * right).conj();
}
Tensor softmax_double_backward(const Tensor& grad, const Tensor& grad_output, int64_t dim, const Tensor& output) {
  return grad_output * grad - (output * grad_output).sum(IntArrayRef(dim), true) * grad -
         grad_output * (output * grad).sum(IntArrayRef(dim), true);
}

// ---- products --------------------------------------------------------------------------------------------------

namespace {
bool column_major(IntArrayRef sizes, IntArrayRef strides) { return strides[0] == 1 && strides[1] == sizes[0]; }
}  // namespace

// The gradient takes its operand's storage order, which saves the optimiser a transposition.
Tensor mm_mat1_backward(const Tensor& grad, const Tensor& mat2, IntArrayRef sizes, IntArrayRef strides, Layout,
                        const Scalar& alpha) {
  if (column_major(sizes, strides)) return maybe_multiply(mat2.conj().mm(grad.t()).t(), alpha.conj());
  return maybe_multiply(grad.mm(mat2.t().conj()), alpha.conj());
}
Tensor mm_mat2_backward(const Tensor& grad, const Tensor& mat1, IntArrayRef sizes, IntArrayRef strides, Layout,
                        const Scalar& alpha) {
  if (column_major(sizes, strides)) return maybe_multiply(grad.t().mm(mat1.conj()).t(), alpha.conj());
  return maybe_multiply(mat1.t().conj().mm(grad), alpha.conj());
}

// ---- shapes ----------------------------------------------------------------------------------------------------

Tensor permute_backwards(const Tensor& grad, IntArrayRef dims) {
  std::vector<int64_t> inverse(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    inverse[static_cast<size_t>(wrap_dim(dims[i], dims.ssize()))] = static_cast<int64_t>(i);
  return grad.permute(inverse);
}
Tensor unsqueeze_to(const Tensor& t, IntArrayRef sizes) {
  Tensor out = t;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] == 1) out = out.unsqueeze(static_cast<int64_t>(d));
  return out;
}
Tensor unsqueeze_to(const Tensor& t, int64_t dim, IntArrayRef sizes) {
  return unsqueeze_to(t, IntArrayRef(dim), sizes);
}
Tensor unsqueeze_to(const Tensor& t, IntArrayRef dims, IntArrayRef sizes) {
  if (sizes.empty()) return t;
  const uint64_t mask = dim_mask(OptionalIntArrayRef(dims), sizes.ssize(), false);
  Tensor out = t;
  for (size_t d = 0; d < sizes.size(); ++d)
    if ((mask >> d & 1) && sizes[d] == 1) out = out.unsqueeze(static_cast<int64_t>(d));
  return out;
}
Tensor slice_backward_wrapper(const Tensor& grad, IntArrayRef sizes, int64_t dim, std::optional<int64_t> start,
                              std::optional<int64_t> end, int64_t step) {
  return at::slice_backward(grad, sizes, dim, start.value_or(0), end.value_or(INT64_MAX), step);
}
Tensor split_with_sizes_backward(const GradList& grads, IntArrayRef split_sizes, int64_t dim, IntArrayRef sizes,
                                 const TensorOptions& options) {
  dim = wrap_dim(dim, sizes.ssize());
  std::vector<tn::Tensor> parts(grads.begin(), grads.end());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].defined()) continue;
    std::vector<int64_t> part = sizes.vec();
    part[static_cast<size_t>(dim)] = split_sizes[i];
    parts[i] = at::zeros(part, options);
  }
  return at::cat(TensorList(parts), dim);
}
Tensor split_backward(const GradList& grads, int64_t split_size, int64_t dim, IntArrayRef sizes,
                      const TensorOptions& options) {
  dim = wrap_dim(dim, sizes.ssize());
  std::vector<int64_t> parts(grads.size(), split_size);
  parts.back() = sizes[static_cast<size_t>(dim)] - split_size * (static_cast<int64_t>(grads.size()) - 1);
  return split_with_sizes_backward(grads, parts, dim, sizes, options);
}
Tensor unbind_backward(const GradList& grads, int64_t dim) {
  Tensor like;
  for (const tn::Tensor& g : grads)
    if (g.defined()) like = g;
  std::vector<tn::Tensor> parts(grads.begin(), grads.end());
  for (tn::Tensor& p : parts)
    if (!p.defined()) p = at::zeros_like(like);
  return at::stack(TensorList(parts), dim);
}
Tensor masked_fill_backward(const Tensor& grad, const Tensor& mask) { return at::where(mask, grad, Scalar(0)).sum(); }
Tensor _to_copy_backward(const Tensor& grad, const TensorOptions& options) {
  // What went into a complex tensor as a real one gets the real part, without the warning of a cast.
  const bool narrows = grad.is_complex() && !is_complex(options.dtype());
  return at::_to_copy(narrows ? at::real(grad) : grad, options.dtype_opt(), {}, options.device_opt());
}

}  // namespace tn::autograd
