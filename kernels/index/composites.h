// Indexing operators that upstream composes of others: they only call the door.
#pragma once
#include <optional>
#include <tuple>

#include <optional>
#include <string_view>
#include <vector>

#include "runtime/tensor.h"

namespace tn::composite {

const Tensor& index_put_(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate);
Tensor index_put(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate);
Tensor index_put_impl(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate, bool unsafe);
Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value);
Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value);
Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate);
Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source);
Tensor masked_scatter_backward(const Tensor& grad, const Tensor& mask, IntView sizes);
Tensor masked_select_backward(const Tensor& grad, const Tensor& input, const Tensor& mask);
Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim);
const Tensor& take_along_dim_out(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim,
                                 const Tensor& out);
std::vector<Tensor> nonzero_numpy(const Tensor& self);
const Tensor& fill_diagonal_(const Tensor& self, const Scalar& value, bool wrap);
Tensor one_hot(const Tensor& self, int64_t num_classes);

Tensor gather_backward(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index, bool sparse_grad);
Tensor index_select_backward(const Tensor& grad, IntView self_sizes, int64_t dim, const Tensor& index);

Tensor embedding(const Tensor& weight, const Tensor& indices);
std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(const Tensor& weight, const Tensor& indices,
                                                         const Tensor& offsets, bool scale_grad_by_freq, int64_t mode,
                                                         bool sparse, OptionalTensor per_sample_weights,
                                                         bool include_last_offset, std::optional<int64_t> padding_idx);
Tensor embedding_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights, int64_t padding_idx,
                          bool scale_grad_by_freq, bool sparse);

Tensor constant_pad(const Tensor& self, IntView pad, const Scalar& value);
Tensor pad(const Tensor& self, IntView pad, std::string_view mode, std::optional<double> value);
Tensor pad(const Tensor& self, IntView pad, int64_t mode, std::optional<double> value);
Tensor pad_circular(const Tensor& self, IntView pad);

}  // namespace tn::composite
