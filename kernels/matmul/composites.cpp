#include "kernels/matmul/composites.h"

#include <algorithm>

#include "generated/ops/_unsafe_view.h"
#include "generated/ops/addmm.h"
#include "generated/ops/bmm.h"
#include "generated/ops/clone.h"
#include "generated/ops/copy.h"
#include "generated/ops/dot.h"
#include "generated/ops/expand.h"
#include "generated/ops/matmul.h"
#include "generated/ops/mm.h"
#include "generated/ops/mv.h"
#include "generated/ops/reshape.h"
#include "generated/ops/squeeze.h"
#include "generated/ops/t.h"
#include "generated/ops/transpose.h"
#include "generated/ops/unsqueeze.h"
#include "generated/ops/view.h"
#include "generated/ops/view_as.h"
#include "kernels/matmul/calls.h"
#include "kernels/matmul/checks.h"
#include "kernels/matmul/fast.h"
#include "runtime/shape.h"

namespace tn::composite {
namespace {

using matmul::may_skip_door;

bool shares_memory(const Tensor& a, const Tensor& b) { return a.storage().get() == b.storage().get(); }

// Whether the larger operand becomes one matrix and the product one mm or mv, as upstream decides it: only where that
// is a view, or where the other operand needs a gradient, which a batch would make large.
bool should_fold(const Tensor& a, const Tensor& b, bool has_out) {
  const bool a_larger = a.dim() >= b.dim();
  const Tensor& large = a_larger ? a : b;
  const Tensor& small = a_larger ? b : a;
  if (large.dim() < 3 || small.dim() > 2) return false;
  if (small.requires_grad() && !has_out) return true;
  if (a.dim() == 2) return false;
  if (large.numel() == 0) return true;
  // A larger right operand is folded as its transpose: what stands in its last but one dimension is the last.
  const int64_t ndim = large.dim(), rows = a_larger ? ndim - 2 : ndim - 1;
  for (int64_t d = 0; d < ndim - 2; ++d) {
    const int64_t next = d == ndim - 3 ? rows : d + 1;
    if (large->stride(d) != large->stride(next) * large->size(next)) return false;
  }
  return true;
}

Tensor fold(const Tensor& a, const Tensor& b) {
  // A vector or matrix times a batch is computed as the transposed product.
  const bool flipped = b.dim() > a.dim();
  const Tensor large = flipped ? at::transpose(b, -2, -1) : a;
  const Tensor small = !flipped ? b : a.dim() == 2 ? at::t(a) : a;
  DimVector shape(large.sizes().slice(0, static_cast<size_t>(large.dim() - 1)));
  const int64_t rows = product(shape);
  const bool matrix = small.dim() == 2;
  if (matrix) shape.push_back(small->size(1));
  const Tensor folded = at::reshape(large, {rows, large.size(-1)});
  const Tensor out = at::_unsafe_view(matrix ? at::mm(folded, small) : at::mv(folded, small), shape);
  return flipped && matrix ? at::clone(at::transpose(out, -2, -1), MemoryFormat::Contiguous) : out;
}

const Tensor& fold_out(const Tensor& a, const Tensor& b, const Tensor& out) {
  const bool flipped = b.dim() > a.dim();
  const Tensor large = flipped ? at::transpose(b, -2, -1) : a;
  const Tensor& small = flipped ? a : b;
  DimVector shape(large.sizes().slice(0, static_cast<size_t>(large.dim() - 1)));
  const int64_t rows = product(shape);
  const bool matrix = small.dim() == 2;
  if (matrix) shape.push_back(small->size(1));
  resize_output(out, shape);
  const Tensor folded = at::reshape(large, {rows, large.size(-1)});
  const Tensor target = matrix ? at::reshape(out, {rows, small.size(-1)}) : at::reshape(out, {rows});
  if (matrix) at::mm_out(target, folded, small);
  else at::mv_out(target, folded, small);
  if (!shares_memory(target, out)) at::copy_(out, at::view_as(target, out));
  return out;
}

// Everything that is left: a batch of at least three dimensions, broadcast against the other operand.
Tensor batched(const Tensor& a, const Tensor& b, const Tensor* out) {
  const int64_t rows = a.dim() > 1 ? a.size(-2) : 1, inner = a.size(-1);
  const int64_t b_inner = b.dim() > 1 ? b.size(-2) : b->size(0), cols = b.dim() > 1 ? b.size(-1) : 1;
  const IntView a_batch = a.sizes().slice(0, static_cast<size_t>(std::max<int64_t>(a.dim() - 2, 0)));
  const IntView b_batch = b.sizes().slice(0, static_cast<size_t>(std::max<int64_t>(b.dim() - 2, 0)));
  // As in should_fold: broadcasting an operand that needs a gradient is worse than folding.
  if (a.dim() == 3 && b.dim() == 3 && a_batch[0] != b_batch[0]) {
    if (a_batch[0] == 1 && a.requires_grad()) {
      const Tensor flat = at::squeeze(a, 0);
      return out ? matmul_out(flat, b, *out) : matmul(flat, b);
    }
    if (b_batch[0] == 1 && b.requires_grad()) {
      const Tensor flat = at::squeeze(b, 0);
      return out ? matmul_out(a, flat, *out) : matmul(a, flat);
    }
  }
  DimVector shape = infer_size(a_batch, b_batch);
  const int64_t batch = product(shape);
  DimVector a_sizes(shape), b_sizes(shape);
  a_sizes.push_back(rows);
  a_sizes.push_back(inner);
  b_sizes.push_back(b_inner);
  const bool vector = b.dim() == 1;
  if (!vector) b_sizes.push_back(cols);
  const Tensor left = at::reshape(at::expand(a, a_sizes), {batch, rows, inner});
  const Tensor right = vector ? at::unsqueeze(at::reshape(at::expand(b, b_sizes), {batch, b_inner}), 2)
                              : at::reshape(at::expand(b, b_sizes), {batch, b_inner, cols});
  if (a.dim() > 1) shape.push_back(rows);
  if (b.dim() > 1) shape.push_back(cols);
  if (out == nullptr) {
    const Tensor product = at::bmm(left, right);
    return at::_unsafe_view(vector ? at::squeeze(product, -1) : product, shape);
  }
  resize_output(*out, shape);
  const Tensor target = at::reshape(*out, {batch, rows, cols});
  at::bmm_out(target, left, right);
  if (!shares_memory(target, *out)) at::copy_(*out, at::view_as(target, *out));
  return *out;
}

void check_dims(const char* name, const Tensor& a, const Tensor& b) {
  TN_CHECK(a.dim() != 0 && b.dim() != 0, "both arguments to ", name, " need to be at least 1D, but they are ", a.dim(),
           "D and ", b.dim(), "D");
}

// One stride for all leading dimensions, if there is one: the operand is a matrix of rows.
bool rows_of(const Tensor& t, int64_t* rows, int64_t* stride) {
  const int64_t last = t.dim() - 1;
  *rows = 1;
  *stride = 0;
  for (int64_t d = last - 1; d >= 0; --d) {
    const int64_t size = t->size(d);
    if (size == 1) continue;
    if (*rows == 1) *stride = t->stride(d);
    else if (t->stride(d) != *stride * *rows) return false;
    *rows *= size;
  }
  if (*rows == 1) *stride = t->size(last);
  return true;
}

// x W^T + b in one product without views, where the result is what the composition would give.
bool fast_linear(const Tensor& x, const Tensor& w, OptionalTensor bias, Tensor* out) {
  if (w.dim() != 2 || x.dim() < 2 || x.numel() == 0 || w.numel() == 0 || x->size(x.dim() - 1) != w->size(1))
    return false;
  const ScalarType dtype = x.dtype();
  if (w.dtype() != dtype || !gemm::supports(dtype)) return false;
  const void* addend = nullptr;
  if (bias) {
    const Tensor& b = *bias;
    if (b.dim() != 1 || b->size(0) != w->size(0) || b.dtype() != dtype || (b->size(0) != 1 && b->stride(0) != 1))
      return false;
    if (!may_skip_door({&x, &w, &b}, {kOp_addmm, kOp_t, kOp_view})) return false;
    addend = b->data();
  } else if (!may_skip_door({&x, &w}, {kOp_mm, kOp_t, kOp_matmul})) {
    return false;
  }
  int64_t rows, stride;
  if (!rows_of(x, &rows, &stride)) return false;
  const int64_t cols = w->size(0);
  DimVector shape(x.sizes());
  shape.back() = cols;
  *out = empty(shape, dtype);
  gemm::gemm(dtype, rows, cols, w->size(1), {x->data(), stride, x->stride(x.dim() - 1)},
             {w->data(), w->stride(1), w->stride(0)}, {(*out)->raw_data(), cols, 1}, 1, 0, addend);
  return true;
}

Tensor flat_linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  DimVector shape(input.sizes().slice(0, static_cast<size_t>(input.dim() - 1)));
  const Tensor flat = at::reshape(input, {product(shape), input.size(-1)});
  const Tensor result = at::addmm(bias, flat, at::t(weight));
  shape.push_back(result->size(1));
  return at::view(result, shape);
}

void check_vector(const Tensor& t, const char* name) {
  TN_CHECK(t.dim() == 1, "outer: Expected 1-D argument ", name, ", but got ", t.dim(), "-D");
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  check_dims("matmul", a, b);
  if (a.dim() == 2 && b.dim() == 2) return at::mm(a, b);
  if (a.dim() == 1 && b.dim() == 1) return at::dot(a, b);
  if (a.dim() == 2 && b.dim() == 1) return at::mv(a, b);
  if (a.dim() == 1 && b.dim() == 2) {
    const Tensor product = at::mm(at::unsqueeze(a, 0), b);
    at::squeeze_(product, 0);
    return product;
  }
  return should_fold(a, b, false) ? fold(a, b) : batched(a, b, nullptr);
}

const Tensor& matmul_out(const Tensor& a, const Tensor& b, const Tensor& out) {
  check_dims("matmul", a, b);
  if (a.dim() == 2 && b.dim() == 2) {
    at::mm_out(out, a, b);
    return out;
  }
  if (a.dim() == 1 && b.dim() == 1) {
    at::dot_out(out, a, b);
    return out;
  }
  if (a.dim() == 2 && b.dim() == 1) {
    at::mv_out(out, a, b);
    return out;
  }
  if (a.dim() == 1 && b.dim() == 2) {
    at::mm_out(out, at::unsqueeze(a, 0), b);
    at::squeeze_(out, 0);
    return out;
  }
  if (should_fold(a, b, true)) return fold_out(a, b, out);
  batched(a, b, &out);
  return out;
}

Tensor linear(const Tensor& input, const Tensor& weight, OptionalTensor bias) {
  check_dims("linear", input, weight);
  Tensor out;
  if (fast_linear(input, weight, bias, &out)) return out;
  if (bias) {
    if (input.dim() == 2) return at::addmm(*bias, input, at::t(weight));
    if (input.is_contiguous() && bias->dim() == 1) return flat_linear(input, weight, *bias);
  }
  const Tensor product = at::matmul(input, at::t(weight));
  if (!bias) return product;
  // Tensors with a Python class of their own must not be written behind its back.
  if ((*bias)->python_dispatch || product->python_dispatch) return call::add(product, *bias);
  return call::add_(product, *bias);
}

const Tensor& linear_out(const Tensor& input, const Tensor& weight, OptionalTensor bias, const Tensor& out) {
  if (input.dim() == 2 && bias) {
    at::addmm_out(out, *bias, input, at::t(weight));
    return out;
  }
  at::matmul_out(out, input, at::t(weight));
  if (bias) call::add_(out, *bias);
  return out;
}

Tensor outer(const Tensor& self, const Tensor& vec2) {
  check_vector(self, "self");
  check_vector(vec2, "vec2");
  return call::mul(at::reshape(self, {self->size(0), 1}), vec2);
}

const Tensor& outer_out(const Tensor& self, const Tensor& vec2, const Tensor& out) {
  check_vector(self, "self");
  check_vector(vec2, "vec2");
  call::mul_out(out, at::reshape(self, {self->size(0), 1}), vec2);
  return out;
}

}  // namespace tn::composite
