// Helpers of formulas: joined, indexed and scattered tensors, and products of several.
#include "kernels/autograd/helpers.h"
#include "kernels/autograd/support.h"
#include "runtime/shape.h"

namespace tn::autograd {

namespace {

// A real operand of a complex result takes the gradient's real part.
Tensor like(const Tensor& grad, ScalarType dtype) {
  return grad.is_complex() && !is_complex(dtype) ? Tensor(at::real(grad)) : grad;
}

}  // namespace

std::vector<std::vector<int64_t>> to_args_sizes(TensorList tensors) {
  std::vector<std::vector<int64_t>> sizes;
  for (const tn::Tensor& t : tensors) sizes.push_back(t.sizes().vec());
  return sizes;
}
std::vector<std::vector<int64_t>> to_args_sizes_symint(TensorList tensors) { return to_args_sizes(tensors); }
std::vector<ScalarType> to_args_scalartypes(TensorList tensors) {
  std::vector<ScalarType> dtypes;
  for (const tn::Tensor& t : tensors) dtypes.push_back(t.dtype());
  return dtypes;
}

std::vector<tn::Tensor> cat_tensors_backward(const Tensor& grad, const std::vector<std::vector<int64_t>>& sizes,
                                             const std::vector<ScalarType>& dtypes, int64_t dim) {
  std::vector<tn::Tensor> grads(sizes.size());
  if (!grad.defined()) return grads;
  dim = wrap_dim(dim, grad.dim());
  int64_t start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Tensor g = like(grad, dtypes[i]);
    // cat passes over empty tensors of one dimension, whatever the others' dimensions are.
    if (sizes[i].size() == 1 && sizes[i][0] == 0) {
      grads[i] = at::zeros(sizes[i], g.options());
      continue;
    }
    const int64_t length = sizes[i][static_cast<size_t>(dim)];
    grads[i] = g.narrow(dim, start, length);
    start += length;
  }
  return grads;
}

std::vector<tn::Tensor> stack_tensors_backward(const Tensor& grad, int64_t dim, const std::vector<ScalarType>& dtypes) {
  if (!grad.defined()) return std::vector<tn::Tensor>(dtypes.size());
  std::vector<tn::Tensor> grads = grad.unbind(dim);
  for (size_t i = 0; i < grads.size(); ++i) grads[i] = like(grads[i], dtypes[i]);
  return grads;
}

std::vector<tn::Tensor> block_diag_backward(const Tensor& grad, const std::vector<std::vector<int64_t>>& sizes,
                                            const std::vector<ScalarType>& dtypes) {
  std::vector<tn::Tensor> grads(sizes.size());
  if (!grad.defined()) return grads;
  int64_t row = 0, column = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::vector<int64_t>& s = sizes[i];
    const int64_t height = s.size() == 2 ? s[0] : 1, width = s.empty() ? 1 : s.back();
    grads[i] = like(grad, dtypes[i]).narrow(0, row, height).narrow(1, column, width).reshape(s);
    row += height;
    column += width;
  }
  return grads;
}

Tensor index_backward(const Tensor& zeros, TensorList indices, const Tensor& grad) {
  return at::_index_put_impl_(zeros, indices, grad, true, true);
}

// ---- scatters that reduce --------------------------------------------------------------------------------------

namespace {

// What the two families of reductions share: `take` reads a result's values for the source, `add` sums the source into
// zeros.
template <class Take, class Add, class Reduce, class Clear>
std::tuple<Tensor, Tensor> reduce_backward(const char* op, const Tensor& grad, const Tensor& self, const Tensor& source,
                                           std::string_view reduce, bool include_self, const Tensor& result,
                                           const Take& take, const Add& add, const Reduce& again, const Clear& clear) {
  if (!grad.defined()) return {};
  Tensor to_self, to_source;
  if (reduce == "sum") {
    to_self = grad;
    to_source = take(grad);
  } else if (reduce == "mean") {
    Tensor count =
        add(include_self ? Tensor(at::ones_like(grad)) : Tensor(at::zeros_like(grad)), Tensor(at::ones_like(source)));
    count = count.masked_fill(count == Scalar(0), Scalar(1));
    to_self = grad / count;
    to_source = take(grad) / take(count);
  } else if (reduce == "amax" || reduce == "amin") {
    // Shared by all that reach the extreme.
    const Tensor self_wins = Tensor(self == result).to(self.dtype()),
                 source_wins = Tensor(source == take(result)).to(self.dtype());
    const Tensor share = grad / add(self_wins, source_wins);
    to_self = self_wins * share;
    to_source = source_wins * take(share);
  } else if (reduce == "prod") {
    const Tensor safe_self = self.masked_fill(self == Scalar(0), Scalar(1));
    to_self = grad * again(safe_self, source) / safe_self;
    // Among several factors a zero takes the product of the others, unless another is zero too.
    const Tensor zero = source == Scalar(0);
    const Tensor zeros = take(add(Tensor(at::zeros_like(self)), zero.to(self.dtype())));
    const Tensor only_zero = at::bitwise_and(zero, zeros == Scalar(1));
    const Tensor without = again(self, source.masked_fill(only_zero, Scalar(1)));
    to_source = at::where(only_zero, take(grad * without), take(grad * result) / source.masked_fill(zero, Scalar(1)));
  } else {
    fail(ErrorKind::Runtime, op, ": expected reduce to be one of sum, prod, mean, amax, amin, got ", reduce);
  }
  return {include_self ? to_self : clear(to_self), to_source};
}

}  // namespace

std::tuple<Tensor, Tensor> scatter_reduce_backward(const Tensor& grad, const Tensor& self, int64_t dim,
                                                   const Tensor& index, const Tensor& src, std::string_view reduce,
                                                   bool include_self, const Tensor& result) {
  return reduce_backward(
      "scatter_reduce", grad, self, src, reduce, include_self, result,
      [&](const Tensor& t) { return Tensor(t.gather(dim, index)); },
      [&](const Tensor& into, const Tensor& t) { return Tensor(into.scatter_add(dim, index, t)); },
      [&](const Tensor& into, const Tensor& t) {
        return Tensor(into.scatter_reduce(dim, index, t, reduce, include_self));
      },
      [&](const Tensor& t) { return Tensor(t.scatter(dim, index, Scalar(0))); });
}

std::tuple<Tensor, Tensor> index_reduce_backward(const Tensor& grad, const Tensor& self, int64_t dim,
                                                 const Tensor& index, const Tensor& source, std::string_view reduce,
                                                 bool include_self, const Tensor& result) {
  return reduce_backward(
      "index_reduce", grad, self, source, reduce, include_self, result,
      [&](const Tensor& t) { return Tensor(t.index_select(dim, index)); },
      [&](const Tensor& into, const Tensor& t) { return Tensor(into.index_add(dim, index, t)); },
      [&](const Tensor& into, const Tensor& t) {
        return Tensor(into.index_reduce(dim, index, t, reduce, include_self));
      },
      [&](const Tensor& t) { return Tensor(t.index_fill(dim, index, Scalar(0))); });
}

// ---- products --------------------------------------------------------------------------------------------------

std::tuple<Tensor, Tensor, Tensor> _trilinear_backward(const Tensor& grad, const Tensor& i1, const Tensor& i2,
                                                       const Tensor& i3, IntArrayRef expand1, IntArrayRef expand2,
                                                       IntArrayRef expand3, IntArrayRef sumdim,
                                                       const std::array<bool, 3>& mask) {
  Tensor g1, g2, g3;
  if (!grad.defined()) return {};
  if (mask[0]) g1 = at::_trilinear(grad, i2, i3, sumdim, expand2, expand3, expand1);
  if (mask[1]) g2 = at::_trilinear(i1, grad, i3, expand1, sumdim, expand3, expand2);
  if (mask[2]) g3 = at::_trilinear(i1, i2, grad, expand1, expand2, sumdim, expand3);
  return {g1, g2, g3};
}

std::tuple<Tensor, Tensor> _euclidean_dist_backward(const Tensor& grad, const Tensor& x1, const Tensor& x2,
                                                    const Tensor& result) {
  if (!grad.defined()) return {};
  const Tensor ratio = Tensor(grad / result).masked_fill(result == Scalar(0), Scalar(0));
  const int64_t last[] = {-1}, before[] = {-2};
  return {
      x1 * Tensor(ratio.sum(IntArrayRef(last), true)) - Tensor(ratio.matmul(x2)),
      x2 * Tensor(Tensor(ratio.sum(IntArrayRef(before))).unsqueeze(-1)) - Tensor(ratio.transpose(-2, -1)).matmul(x1)};
}

Tensor _grouped_mm_mat1_backward(const Tensor& grad, const Tensor& mat2, IntArrayRef, IntArrayRef, Layout,
                                 const Tensor& offs, const Scalar& alpha) {
  return maybe_multiply(at::_grouped_mm(grad, mat2.transpose(-2, -1), OptionalTensor(offs)), alpha);
}
Tensor _grouped_mm_mat2_backward(const Tensor& grad, const Tensor& mat1, IntArrayRef, IntArrayRef, Layout,
                                 const Tensor& offs, const Scalar& alpha) {
  return maybe_multiply(at::_grouped_mm(mat1.transpose(-2, -1), grad, OptionalTensor(offs)), alpha);
}

}  // namespace tn::autograd
