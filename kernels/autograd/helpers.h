// Functions that upstream's derivative formulas call and that are no operators. Codegen reads the names from here: a
// formula that calls something else refuses by name.
#pragma once
#include <cmath>
#include <complex>

#include "generated/autograd/api.h"
#include "runtime/autograd/node.h"

namespace tn::autograd {

struct TypeAndSize {
  TypeAndSize() = default;
  TypeAndSize(const Tensor& t) : sizes(t.sizes().vec()), options(t.options()) {}  // NOLINT
  Tensor zeros() const;
  std::vector<int64_t> sizes;
  TensorOptions options;
};

struct TensorGeometry {
  TensorGeometry() = default;
  explicit TensorGeometry(const Tensor& t)
      : sizes(t.sizes().vec()), strides(t.strides().vec()), offset(t.storage_offset()) {}
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;
};

#define TN_OPERATOR(symbol, name)                                                            \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return at::name(a, b); } \
  inline Tensor operator symbol(const Tensor& a, const tn::Scalar& b) { return at::name(a, b); }
TN_OPERATOR(+, add)
TN_OPERATOR(-, sub)
TN_OPERATOR(*, mul)
TN_OPERATOR(/, div)
TN_OPERATOR(==, eq)
TN_OPERATOR(!=, ne)
TN_OPERATOR(<, lt)
TN_OPERATOR(<=, le)
TN_OPERATOR(>, gt)
TN_OPERATOR(>=, ge)
TN_OPERATOR(&, bitwise_and)
TN_OPERATOR(|, bitwise_or)
#undef TN_OPERATOR
inline Tensor operator-(const Tensor& a) { return at::neg(a); }
inline Tensor operator+(const tn::Scalar& a, const Tensor& b) { return at::add(b, a); }
inline Tensor operator*(const tn::Scalar& a, const Tensor& b) { return at::mul(b, a); }
inline Tensor operator-(const tn::Scalar& a, const Tensor& b) { return at::rsub(b, a); }
inline Tensor operator/(const tn::Scalar& a, const Tensor& b) { return at::mul(at::reciprocal(b), a); }
inline Tensor operator<(const tn::Scalar& a, const Tensor& b) { return at::gt(b, a); }

// As formulas write them: 1 - z, where C++ only has numbers of one type.
inline std::complex<double> operator-(int a, const std::complex<double>& b) { return static_cast<double>(a) - b; }

namespace at {
inline double sqrt(double v) { return std::sqrt(v); }
Tensor sum_to(const Tensor& grad, IntArrayRef sizes);
}  // namespace at

// A tensor that only some of the wanted gradients read.
inline Tensor wrap_opt_if(const Tensor& t, bool condition) { return condition ? t : Tensor(); }
Tensor not_implemented(const char* name, const char* reason = "");
IntArrayRef strides_or_error(const Tensor& t, const char* name);

Tensor handle_r_to_c(ScalarType self, Tensor grad);
Tensor maybe_multiply(const Tensor& t, const Scalar& s);
Tensor mul_tensor_backward(const Tensor& grad, const Tensor& other, ScalarType self);
Tensor mul_tensor_backward(const Tensor& grad, const Scalar& other, ScalarType self);
Tensor div_tensor_self_backward(const Tensor& grad, const Tensor& other, ScalarType self,
                                std::optional<std::string_view> rounding = {});
Tensor div_tensor_self_backward(const Tensor& grad, const Scalar& other, ScalarType self,
                                std::optional<std::string_view> rounding = {});
Tensor div_tensor_other_backward(const Tensor& grad, const Tensor& self, const Tensor& other,
                                 std::optional<std::string_view> rounding = {});
Tensor pow_backward(const Tensor& grad, const Tensor& self, const Scalar& exponent);
Tensor pow_backward_self(const Tensor& grad, const Tensor& self, const Tensor& exponent);
Tensor pow_backward_exponent(const Tensor& grad, const Tensor& self, const Tensor& exponent, const Tensor& result);
Tensor pow_backward_exponent(const Tensor& grad, const Scalar& base, const Tensor& exponent, const Tensor& result);
Tensor clamp_backward(const Tensor& grad, const Tensor& self, const std::optional<Scalar>& min,
                      const std::optional<Scalar>& max);
Tensor clamp_backward(const Tensor& grad, const Tensor& self, const Tensor& min, const Tensor& max);
std::tuple<Tensor, Tensor> clamp_backward_min_max(const Tensor& grad, const Tensor& self, const Tensor& min,
                                                  const Tensor& max, const std::array<bool, 2>& mask);

Tensor sum_backward(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dims, bool keepdim);
Tensor nansum_backward(const Tensor& grad, const Tensor& self, OptionalIntArrayRef dims, bool keepdim);
Tensor mean_backward(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dims, int64_t n, bool keepdim);
Tensor restore_reduced_dims(const Tensor& output, IntArrayRef dims, bool keepdim);
Tensor scale_grad_by_count(const Tensor& grad, const Tensor& mask, IntArrayRef dims);
Tensor evenly_distribute_backward(const Tensor& grad, const Tensor& input, const Tensor& value);
Tensor prod_backward(const Tensor& grad, const Tensor& input, const Tensor& result);
Tensor prod_backward(const Tensor& grad, const Tensor& input, const Tensor& result, int64_t dim, bool keepdim);
Tensor softmax_double_backward(const Tensor& grad, const Tensor& grad_output, int64_t dim, const Tensor& output);

Tensor mm_mat1_backward(const Tensor& grad, const Tensor& mat2, IntArrayRef sizes, IntArrayRef strides, Layout layout,
                        const Scalar& alpha);
Tensor mm_mat2_backward(const Tensor& grad, const Tensor& mat1, IntArrayRef sizes, IntArrayRef strides, Layout layout,
                        const Scalar& alpha);

Tensor permute_backwards(const Tensor& grad, IntArrayRef dims);
Tensor unsqueeze_to(const Tensor& t, IntArrayRef sizes);
Tensor unsqueeze_to(const Tensor& t, int64_t dim, IntArrayRef sizes);
Tensor unsqueeze_to(const Tensor& t, IntArrayRef dims, IntArrayRef sizes);
Tensor slice_backward_wrapper(const Tensor& grad, IntArrayRef sizes, int64_t dim, std::optional<int64_t> start,
                              std::optional<int64_t> end, int64_t step);
Tensor split_backward(const GradList& grads, int64_t split_size, int64_t dim, IntArrayRef sizes,
                      const TensorOptions& options);
Tensor split_with_sizes_backward(const GradList& grads, IntArrayRef split_sizes, int64_t dim, IntArrayRef sizes,
                                 const TensorOptions& options);
Tensor unbind_backward(const GradList& grads, int64_t dim);
Tensor as_strided_backward(Tensor grad, const TensorGeometry& input, IntArrayRef sizes, IntArrayRef strides,
                           std::optional<int64_t> offset);
Tensor masked_fill_backward(const Tensor& grad, const Tensor& mask);
Tensor _to_copy_backward(const Tensor& grad, const TensorOptions& options);

// ---- kernels/autograd/more.cpp ----
namespace c10 {
using SymInt = int64_t;
}
std::vector<int64_t> reverse_list(IntArrayRef list);
std::vector<int64_t> reverse_list_symint(IntArrayRef list);
template <class F>
std::vector<int64_t> fmap(std::vector<int64_t> list, const F& f) {
  for (int64_t& v : list) v = f(v);
  return list;
}
Tensor value_selecting_reduction_backward_symint(const Tensor& grad, int64_t dim, const Tensor& indices,
                                                 IntArrayRef sizes, bool keepdim);
Tensor cumsum_backward(const Tensor& grad, int64_t dim);
Tensor cumprod_backward(const Tensor& grad, const Tensor& input, int64_t dim, const Tensor& output);
Tensor cummaxmin_backward(const Tensor& grad, const Tensor& input, const Tensor& indices, int64_t dim);
Tensor trace_backward_symint(const Tensor& grad, IntArrayRef sizes);
Tensor repeat_backward(const Tensor& grad, IntArrayRef repeats, IntArrayRef sizes);
Tensor constant_pad_nd_backward(const Tensor& grad, IntArrayRef pad);
Tensor take_backward(const Tensor& grad, const Tensor& self, const Tensor& index);
Tensor embedding_dense_double_backward_symint(const Tensor& grad, const Tensor& indices, int64_t padding_idx);
Tensor logsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result, IntArrayRef dim, bool keepdim);
Tensor var_backward(const Tensor& grad, const Tensor& self, OptionalIntArrayRef dim,
                    const std::optional<Scalar>& correction, bool keepdim);
Tensor std_backward(const Tensor& result, const Tensor& grad, const Tensor& self, OptionalIntArrayRef dim,
                    const std::optional<Scalar>& correction, bool keepdim);
Tensor var_mean_backward(const Tensor& gvar, const Tensor& gmean, const Tensor& self, OptionalIntArrayRef dim,
                         const std::optional<Scalar>& correction, bool keepdim);
Tensor std_mean_backward(const Tensor& gstd, const Tensor& gmean, const Tensor& self, const Tensor& std,
                         OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool keepdim);
Tensor norm_backward(const Tensor& grad, const Tensor& self, const std::optional<Scalar>& p, const Tensor& norm);
Tensor norm_backward(const Tensor& grad, const Tensor& self, const std::optional<Scalar>& p, const Tensor& norm,
                     IntArrayRef dim, bool keepdim);
Tensor linalg_vector_norm_backward(const Tensor& grad, const Tensor& self, const Scalar& ord, const Tensor& norm,
                                   OptionalIntArrayRef dim, bool keepdim);
Tensor aminmax_backward(const Tensor& self, std::optional<int64_t> dim, bool keepdim, const Tensor& grad_min,
                        const Tensor& grad_max, const Tensor& min, const Tensor& max);
Tensor log1p_backward(const Tensor& grad, const Tensor& self);
Tensor sinc_backward(const Tensor& grad, const Tensor& self);
Tensor sgn_backward(const Tensor& x, const Tensor& grad, const Tensor& sgn);
Tensor infinitely_differentiable_silu_backward(const Tensor& grad, const Tensor& x);
Tensor infinitely_differentiable_mish_backward(const Tensor& grad, const Tensor& x);
Tensor infinitely_differentiable_logit_backward(const Tensor& grad, const Tensor& self, std::optional<double> eps);
Tensor infinitely_differentiable_native_dropout_backward(const Tensor& grad, const Tensor& mask, double scale);
Tensor native_dropout_double_backward(const Tensor& ggi, const Tensor& grad, const Tensor& mask, double scale);
Tensor binary_cross_entropy_target_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                            const Tensor& weight, int64_t reduction);
Tensor mse_loss_double_backward(const Tensor& grad, const Tensor& input, int64_t reduction);
Tensor smooth_l1_loss_double_backward(const Tensor& grad, const Tensor& input, const Tensor& target, int64_t reduction,
                                      double beta);
Tensor huber_loss_double_backward(const Tensor& grad, const Tensor& input, const Tensor& target, int64_t reduction,
                                  double delta);
std::tuple<Tensor, Tensor, Tensor> infinitely_differentiable_native_group_norm_backward(
    const Tensor& dy, const Tensor& dmean, const Tensor& drstd, const Tensor& x, const Tensor& mean, const Tensor& rstd,
    const Tensor& gamma, int64_t n, int64_t c, int64_t hw, int64_t group, double eps, const std::array<bool, 3>& mask);

// ---- kernels/autograd/joins.cpp ----
std::vector<std::vector<int64_t>> to_args_sizes(TensorList tensors);
std::vector<std::vector<int64_t>> to_args_sizes_symint(TensorList tensors);
std::vector<ScalarType> to_args_scalartypes(TensorList tensors);
std::vector<tn::Tensor> cat_tensors_backward(const Tensor& grad, const std::vector<std::vector<int64_t>>& sizes,
                                             const std::vector<ScalarType>& dtypes, int64_t dim);
std::vector<tn::Tensor> stack_tensors_backward(const Tensor& grad, int64_t dim, const std::vector<ScalarType>& dtypes);
std::vector<tn::Tensor> block_diag_backward(const Tensor& grad, const std::vector<std::vector<int64_t>>& sizes,
                                            const std::vector<ScalarType>& dtypes);
Tensor index_backward(const Tensor& zeros, TensorList indices, const Tensor& grad);
Tensor as_strided_scatter_backward(const Tensor& grad, const TensorGeometry& input, const TensorGeometry& src,
                                   IntArrayRef sizes, IntArrayRef strides, std::optional<int64_t> offset);
std::tuple<Tensor, Tensor> scatter_reduce_backward(const Tensor& grad, const Tensor& self, int64_t dim,
                                                   const Tensor& index, const Tensor& src, std::string_view reduce,
                                                   bool include_self, const Tensor& result);
std::tuple<Tensor, Tensor> index_reduce_backward(const Tensor& grad, const Tensor& self, int64_t dim,
                                                 const Tensor& index, const Tensor& source, std::string_view reduce,
                                                 bool include_self, const Tensor& result);
std::tuple<Tensor, Tensor, Tensor> _trilinear_backward(const Tensor& grad, const Tensor& i1, const Tensor& i2,
                                                       const Tensor& i3, IntArrayRef expand1, IntArrayRef expand2,
                                                       IntArrayRef expand3, IntArrayRef sumdim,
                                                       const std::array<bool, 3>& mask);
std::tuple<Tensor, Tensor> _euclidean_dist_backward(const Tensor& grad, const Tensor& x1, const Tensor& x2,
                                                    const Tensor& result);
Tensor _grouped_mm_mat1_backward(const Tensor& grad, const Tensor& mat2, IntArrayRef sizes, IntArrayRef strides,
                                 Layout layout, const Tensor& offs, const Scalar& alpha);
Tensor _grouped_mm_mat2_backward(const Tensor& grad, const Tensor& mat1, IntArrayRef sizes, IntArrayRef strides,
                                 Layout layout, const Tensor& offs, const Scalar& alpha);

// ---- kernels/autograd/functions.cpp ----
Tensor angle_backward(const Tensor& grad, const Tensor& self);
std::tuple<Tensor, Tensor> atan2_backward(const Tensor& grad, const Tensor& self, const Tensor& other,
                                          const std::array<bool, 2>& mask);
Tensor copysign_tensor_self_backward(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor deg2rad_backward(const Tensor& grad);
Tensor rad2deg_backward(const Tensor& grad);
std::tuple<Tensor, Tensor> polar_backward(const Tensor& grad, const Tensor& result);
Tensor i1_backward(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor i1e_backward(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor mvlgamma_backward(const Tensor& grad, const Tensor& self, int64_t p);
Tensor logcumsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim);
Tensor elu_double_backward(const Tensor& grad, const Tensor& grad_output, const Scalar& alpha, const Scalar& scale,
                           const Scalar& input_scale, bool is_result, const Tensor& self_or_result);
Tensor gelu_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self,
                            std::string_view approximate);
Tensor glu_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self, int64_t dim);
Tensor glu_double_backward_grad_output(const Tensor& grad, const Tensor& self, int64_t dim);
Tensor log_sigmoid_double_backward(const Tensor& grad, const Tensor& self);
Tensor softplus_double_backward(const Tensor& grad, const Tensor& self, const Scalar& beta, const Scalar& threshold);

}  // namespace tn::autograd
