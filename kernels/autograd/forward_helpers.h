// Functions that upstream's forward-mode formulas call and that are no operators. Codegen reads the names from here, as
// it does helpers.h.
#pragma once
#include "kernels/autograd/helpers.h"

namespace tn::autograd {

namespace at::Reduction {
inline constexpr int64_t None = 0, Mean = 1, Sum = 2;
}

Tensor gather_with_keepdimed_indices(const Tensor& input, int64_t dim, const Tensor& indices, bool keepdim);
Tensor apply_loss_reduction(const Tensor& unreduced, int64_t reduction);
Tensor evenly_read_jvp(const Tensor& tangent, const Tensor& input, const Tensor& value);
Tensor amaxamin_jvp(const Tensor& x, const Tensor& dx, const Tensor& result, IntArrayRef dim, bool keepdim);
Tensor aminmax_jvp(const Tensor& x, const Tensor& dx, const Tensor& result, const std::optional<int64_t>& dim,
                   bool keepdim);
Tensor logsumexp_jvp(const Tensor& x, const Tensor& dx, IntArrayRef dim, bool keepdim);
Tensor safe_logsumexp_jvp(const Tensor& x, const Tensor& dx, IntArrayRef dim, bool keepdim);
Tensor logcumsumexp_jvp(const Tensor& x, const Tensor& dx, int64_t dim);
Tensor cumprod_jvp(const Tensor& dx, const Tensor& x, const Tensor& result, int64_t dim);
Tensor clamp_jvp(const Tensor& x, const Tensor& dx, const Tensor& low, const Tensor& dlow, const Tensor& high,
                 const Tensor& dhigh);
Tensor norm_jvp(const Tensor& x, const Tensor& dx, const std::optional<Scalar>& p, const Tensor& norm, IntArrayRef dim,
                bool keepdim);
Tensor norm_jvp(const Tensor& x, const Tensor& dx, const std::optional<Scalar>& p, const Tensor& norm);
Tensor linalg_vector_norm_jvp(const Tensor& x, const Tensor& dx, const Scalar& ord, const Tensor& norm,
                              OptionalIntArrayRef dim, bool keepdim);
Tensor cat_jvp(TensorList tensors, int64_t dim);
Tensor stack_jvp(TensorList tensors, int64_t dim);
Tensor block_diag_jvp(TensorList tensors);
Tensor convolution_jvp(const Tensor& x, const Tensor& dx, const Tensor& weight, const Tensor& dweight,
                       const Tensor& bias, const Tensor& dbias, IntArrayRef stride, IntArrayRef padding,
                       IntArrayRef dilation, bool transposed, IntArrayRef output_padding, int64_t groups);
Tensor _convolution_jvp(const Tensor& x, const Tensor& dx, const Tensor& weight, const Tensor& dweight,
                        const Tensor& bias, const Tensor& dbias, IntArrayRef stride, IntArrayRef padding,
                        IntArrayRef dilation, bool transposed, IntArrayRef output_padding, int64_t groups,
                        bool benchmark, bool deterministic, bool cudnn_enabled, bool allow_tf32);
Tensor convolution_backward_jvp_grad_bias(const Tensor& dgrad, const Tensor& grad_bias);
Tensor scatter_reduce_jvp(const Tensor& x, const Tensor& dx, int64_t dim, const Tensor& index, const Tensor& src,
                          const Tensor& dsrc, std::string_view reduce, bool include_self, const Tensor& result);
Tensor batch_norm_jvp(const Tensor& x, const Tensor& dx, const Tensor& weight, const Tensor& dweight,
                      const Tensor& bias, const Tensor& dbias, const Tensor& running_mean, const Tensor& running_var,
                      const Tensor& mean, const Tensor& invstd, bool train, double eps);
Tensor layer_norm_jvp(const Tensor& x, const Tensor& dx, const Tensor& weight, const Tensor& dweight,
                      const Tensor& bias, const Tensor& dbias, const Tensor& mean, const Tensor& invstd,
                      IntArrayRef normalized_shape);
Tensor group_norm_jvp(const Tensor& x, const Tensor& dx, const Tensor& weight, const Tensor& dweight,
                      const Tensor& bias, const Tensor& dbias, const Tensor& mean, const Tensor& invstd,
                      int64_t groups);
Tensor group_norm_mean_jvp(const Tensor& dx, const Tensor& mean, int64_t groups);
Tensor group_norm_invstd_jvp(const Tensor& x, const Tensor& dx, const Tensor& mean, const Tensor& invstd,
                             int64_t groups);

}  // namespace tn::autograd
