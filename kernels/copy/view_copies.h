// Copies of views, writes into a part of a copy, and the gradients of views: they only call the door.
#pragma once
#include <optional>
#include <vector>

#include "runtime/tensor.h"

namespace tn::composite {

Tensor copied(const Tensor& view);
Tensor narrow_copy(const Tensor& self, int64_t dim, int64_t start, int64_t length);
std::vector<Tensor> copied(const std::vector<Tensor>& views);
// Upstream resizes the results of some of these operators only.
void copy_each(const std::vector<Tensor>& views, TensorList out, bool resizes);

Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index);
Tensor slice_scatter(const Tensor& self, const Tensor& src, int64_t dim, std::optional<int64_t> start,
                     std::optional<int64_t> end, int64_t step);
Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2);
Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntView size, IntView stride,
                          std::optional<int64_t> storage_offset);

Tensor select_backward(const Tensor& grad, IntView input_sizes, int64_t dim, int64_t index);
Tensor slice_backward(const Tensor& grad, IntView input_sizes, int64_t dim, int64_t start, int64_t end, int64_t step);
Tensor diagonal_backward(const Tensor& grad, IntView input_sizes, int64_t offset, int64_t dim1, int64_t dim2);
Tensor unfold_backward(const Tensor& grad, IntView input_sizes, int64_t dim, int64_t size, int64_t step);

}  // namespace tn::composite
