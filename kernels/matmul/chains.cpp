// Products of several matrices in the cheapest order, and the Kronecker product.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "generated/ops/_unsafe_view.h"
#include "generated/ops/clone.h"
#include "generated/ops/copy.h"
#include "generated/ops/mm.h"
#include "generated/ops/outer.h"
#include "generated/ops/unsqueeze.h"
#include "generated/ops/view.h"
#include "kernels/matmul/calls.h"
#include "kernels/matmul/checks.h"
#include "kernels/matmul/composites.h"
#include "runtime/shape.h"
#include "runtime/warn.h"

namespace tn::composite {
namespace {

using Table = std::vector<std::vector<int64_t>>;

// split[i][j]: where the product of matrices i to j falls into two, by the classic dynamic program over
// multiplications.
Table best_splits(const std::vector<Tensor>& t) {
  const size_t n = t.size();
  std::vector<int64_t> size(n + 1);
  for (size_t i = 0; i < n; ++i) size[i] = t[i].size(0);
  size[n] = t[n - 1].size(1);
  Table cost(n, std::vector<int64_t>(n, 0)), split(n, std::vector<int64_t>(n, 0));
  for (size_t length = 1; length < n; ++length)
    for (size_t i = 0; i + length < n; ++i) {
      const size_t j = i + length;
      cost[i][j] = std::numeric_limits<int64_t>::max();
      for (size_t k = i; k < j; ++k) {
        const int64_t total = cost[i][k] + cost[k + 1][j] + size[i] * size[k + 1] * size[j + 1];
        if (total >= cost[i][j]) continue;
        cost[i][j] = total;
        split[i][j] = static_cast<int64_t>(k);
      }
    }
  return split;
}

Tensor multiply(const std::vector<Tensor>& t, const Table& split, size_t i, size_t j) {
  if (i == j) return t[i];
  const auto k = static_cast<size_t>(split[i][j]);
  return at::mm(multiply(t, split, i, k), multiply(t, split, k + 1, j));
}

struct Chain {
  std::vector<Tensor> matrices;
  DimVector sizes;  // of the result
};

Chain as_chain(TensorList tensors) {
  const size_t n = tensors.size();
  TN_CHECK(n >= 2, "multi_dot(): expected at least 2 tensors but got ", n);
  Chain chain;
  chain.matrices.assign(tensors.begin(), tensors.end());
  Tensor& first = chain.matrices.front();
  Tensor& last = chain.matrices.back();
  TN_CHECK(first.dim() == 1 || first.dim() == 2, "multi_dot(): the first tensor must be 1D or 2D but got ", first.dim(),
           "D");
  if (first.dim() == 1) first = at::unsqueeze(first, 0);
  else chain.sizes.push_back(first.size(0));
  TN_CHECK(last.dim() == 1 || last.dim() == 2, "multi_dot(): the last tensor must be 1D or 2D but got ", last.dim(),
           "D");
  if (last.dim() == 1) last = at::unsqueeze(last, -1);
  else chain.sizes.push_back(last.size(1));
  for (size_t i = 1; i + 1 < n; ++i)
    TN_CHECK(tensors[i].dim() == 2, "multi_dot(): tensor ", i, " must be 2D but got ", tensors[i].dim(), "D");
  for (size_t i = 1; i < n; ++i) {
    TN_CHECK(tensors[i].dtype() == tensors[0].dtype(),
             "multi_dot(): all tensors must have be the same dtype but tensor 0 is ",
             element_type_name(tensors[0].dtype()), " and tensor ", i, " ", element_type_name(tensors[i].dtype()));
    TN_CHECK(tensors[i].device() == tensors[0].device(),
             "multi_dot(): all tensors must be on the same device but tensor 0 is on ", tensors[0].device().str(),
             " and tensor ", i, " on ", tensors[i].device().str());
    TN_CHECK(chain.matrices[i - 1].size(-1) == chain.matrices[i].size(0), "multi_dot(): tensors ", i - 1, " and ", i,
             " with shapes ", tensors[i - 1].sizes(), " and ", tensors[i].sizes(), " cannot be multiplied");
  }
  return chain;
}

// The two factors of the last product.
std::pair<Tensor, Tensor> last_factors(const std::vector<Tensor>& t) {
  if (t.size() == 2) return {t[0], t[1]};
  const Table split = best_splits(t);
  const auto k = static_cast<size_t>(split[0][t.size() - 1]);
  return {multiply(t, split, 0, k), multiply(t, split, k + 1, t.size() - 1)};
}

void check_chain(TensorList matrices) {
  static constinit bool warned = false;
  if (!warned) {
    warned = true;
    warn(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
        "instead, which "
        "accepts a list of two or more tensors rather than multiple parameters.");
  }
  for (const Tensor& t : matrices) TN_CHECK(t.dim() == 2, "Tensor dimension is ", t.dim(), ", expected 2 instead.");
  TN_CHECK(!matrices.empty(), "chain_matmul(): Expected one or more matrices");
}

struct Kron {
  DimVector a, b, result;
};

Kron kron_sizes(const Tensor& self, const Tensor& other) {
  const int64_t ndim = std::max(self.dim(), other.dim());
  Kron k;
  for (int64_t d = 0; d < ndim; ++d) {
    const int64_t in_a = d - (ndim - self.dim()), in_b = d - (ndim - other.dim());
    const int64_t a = in_a < 0 ? 1 : self.size(in_a), b = in_b < 0 ? 1 : other.size(in_b);
    k.a.push_back(a);
    k.a.push_back(1);
    k.b.push_back(1);
    k.b.push_back(b);
    k.result.push_back(a * b);
  }
  return k;
}

}  // namespace

Tensor multi_dot(TensorList tensors) {
  const Chain chain = as_chain(tensors);
  const auto [left, right] = last_factors(chain.matrices);
  return at::view(at::mm(left, right), chain.sizes);
}

const Tensor& multi_dot_out(TensorList tensors, const Tensor& out) {
  const Chain chain = as_chain(tensors);
  TN_CHECK(tensors[0].dtype() == out.dtype(), "multi_dot(): expected out tensor to have dtype ",
           element_type_name(tensors[0].dtype()), " but got ", element_type_name(out.dtype()));
  resize_output(out, chain.sizes);
  const auto [left, right] = last_factors(chain.matrices);
  at::mm_out(at::view(out, {left.size(0), right.size(1)}), left, right);
  return out;
}

Tensor chain_matmul(TensorList matrices) {
  check_chain(matrices);
  return matrices.size() == 1 ? at::clone(matrices[0]) : multi_dot(matrices);
}

const Tensor& chain_matmul_out(TensorList matrices, const Tensor& out) {
  check_chain(matrices);
  if (matrices.size() > 1) return multi_dot_out(matrices, out);
  resize_output(out, matrices[0].sizes());
  at::copy_(out, matrices[0]);
  return out;
}

Tensor kron(const Tensor& self, const Tensor& other) {
  const Kron k = kron_sizes(self, other);
  return at::_unsafe_view(call::mul(at::_unsafe_view(self, k.a), at::_unsafe_view(other, k.b)), k.result);
}

const Tensor& kron_out(const Tensor& self, const Tensor& other, const Tensor& out) {
  const Tensor result = kron(self, other);
  TN_CHECK(can_cast(result.dtype(), out.dtype()), "result type ", scalar_type_name(result.dtype()),
           " can't be cast to the desired output type ", scalar_type_name(out.dtype()));
  resize_output(out, result.sizes());
  at::copy_(out, result);
  return out;
}

const Tensor& ger_out(const Tensor& self, const Tensor& vec2, const Tensor& out) {
  warn("torch.ger is deprecated and will be removed in a future PyTorch release. Use torch.outer instead.");
  at::outer_out(out, self, vec2);
  return out;
}

}  // namespace tn::composite
