// Operators over lists of tensors and over diagonals that upstream composes of others: they only call the door.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/tensor.h"

namespace tn::composite {

Tensor stack(TensorList tensors, int64_t dim);
const Tensor& stack_out(TensorList tensors, int64_t dim, const Tensor& out);
// What hstack and its relatives concatenate, and along which dimension.
struct Joined {
  std::vector<Tensor> tensors;
  int64_t dim;
};
Joined horizontal(TensorList tensors, const char* name = "hstack");
Joined vertical(TensorList tensors, const char* name = "vstack");
Joined deep(TensorList tensors);
Joined columns(TensorList tensors);
Tensor join(const Joined& what);
const Tensor& join_out(const Joined& what, const Tensor& out);

Tensor atleast_1d(const Tensor& self);
Tensor atleast_2d(const Tensor& self);
Tensor atleast_3d(const Tensor& self);
std::vector<Tensor> atleast_1d(TensorList tensors);
std::vector<Tensor> atleast_2d(TensorList tensors);
std::vector<Tensor> atleast_3d(TensorList tensors);

Tensor tile(const Tensor& self, IntView dims);
Tensor repeat_interleave(const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size);
Tensor repeat_interleave(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size);
Tensor rot90(const Tensor& self, int64_t k, IntView dims);
Tensor fliplr(const Tensor& self);
Tensor flipud(const Tensor& self);

std::vector<Tensor> broadcast_tensors(TensorList tensors);
std::vector<Tensor> meshgrid(TensorList tensors);
std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing);
Tensor cartesian_prod(TensorList tensors);
Tensor combinations(const Tensor& self, int64_t r, bool with_replacement);

Tensor block_diag(TensorList tensors);
Tensor diag(const Tensor& self, int64_t diagonal);
Tensor diag_embed(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2);
Tensor diagflat(const Tensor& self, int64_t offset);

}  // namespace tn::composite
