// View operators that upstream composes of others: they only call the door.
#pragma once
#include <vector>

#include "runtime/array_ref.h"
#include "runtime/tensor.h"

namespace tn::composite {

Tensor reshape(const Tensor& self, IntView shape);
Tensor ravel(const Tensor& self);
Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim);
Tensor unflatten(const Tensor& self, int64_t dim, IntView sizes);
Tensor movedim(const Tensor& self, IntView source, IntView destination);
Tensor reverse_dims(const Tensor& self);
Tensor matrix_transpose(const Tensor& self, const char* name);
Tensor matrix_adjoint(const Tensor& self, const char* name);
Tensor matrix_h(const Tensor& self);
Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length);
Tensor narrow(const Tensor& self, int64_t dim, const Tensor& start, int64_t length);
std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim);
std::vector<Tensor> unsafe_chunk(const Tensor& self, int64_t chunks, int64_t dim);
std::vector<Tensor> tensor_split(const Tensor& self, int64_t sections, int64_t dim);
std::vector<Tensor> tensor_split(const Tensor& self, IntView indices, int64_t dim);
std::vector<Tensor> tensor_split(const Tensor& self, const Tensor& indices_or_sections, int64_t dim);
// hsplit, vsplit and dsplit: tensor_split along a dimension of their own, whose size their sections must divide.
struct SplitAlong {
  const char* name;
  int64_t least_dims, dim;
};
inline constexpr SplitAlong kHsplit{"hsplit", 1, 1}, kVsplit{"vsplit", 2, 0}, kDsplit{"dsplit", 3, 2};
std::vector<Tensor> split_along(const Tensor& self, int64_t sections, const SplitAlong& how);
std::vector<Tensor> split_along(const Tensor& self, IntView indices, const SplitAlong& how);
Tensor real(const Tensor& self);
Tensor imag(const Tensor& self);
Tensor conj(const Tensor& self);
Tensor resolve_conj(const Tensor& self);
Tensor resolve_neg(const Tensor& self);

}  // namespace tn::composite
