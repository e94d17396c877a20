#include "kernels/linalg/composites.h"

#include <limits>

#include "generated/ops/_linalg_check_errors.h"
#include "generated/ops/_linalg_det.h"
#include "generated/ops/_linalg_eigh.h"
#include "generated/ops/_linalg_eigvals.h"
#include "generated/ops/_linalg_slogdet.h"
#include "generated/ops/_linalg_solve_ex.h"
#include "generated/ops/_linalg_svd.h"
#include "generated/ops/add.h"
#include "generated/ops/clone.h"
#include "generated/ops/diagonal.h"
#include "generated/ops/eq.h"
#include "generated/ops/fill.h"
#include "generated/ops/flatten.h"
#include "generated/ops/linalg_cholesky_ex.h"
#include "generated/ops/linalg_eig.h"
#include "generated/ops/linalg_inv.h"
#include "generated/ops/linalg_inv_ex.h"
#include "generated/ops/linalg_ldl_factor_ex.h"
#include "generated/ops/linalg_lu_factor_ex.h"
#include "generated/ops/linalg_lu_solve.h"
#include "generated/ops/linalg_qr.h"
#include "generated/ops/linalg_solve.h"
#include "generated/ops/linalg_solve_ex.h"
#include "generated/ops/linalg_svd.h"
#include "generated/ops/linalg_svdvals.h"
#include "generated/ops/log.h"
#include "generated/ops/mH.h"
#include "generated/ops/masked_fill.h"
#include "generated/ops/matmul.h"
#include "generated/ops/movedim.h"
#include "generated/ops/reshape.h"
#include "generated/ops/zero.h"
#include "generated/ops/zeros.h"
#include "kernels/linalg/common.h"
#include "runtime/func/layers.h"

namespace tn::composite {
namespace {

using namespace linalg;

// Values alone have no derivative: where one may be asked for, vectors are computed as well.
bool may_need_gradient(const Tensor& t) {
  return func::active() || t->wrapper != nullptr || (grad_mode() && t.requires_grad()) || t->is_dual() ||
         t->python_dispatch;
}

}  // namespace

Tensor linalg_cholesky(const Tensor& self, bool upper) {
  const auto [l, info] = at::linalg_cholesky_ex(self, upper, false);
  at::_linalg_check_errors(info, "linalg.cholesky", self.dim() == 2);
  return l;
}

Tensor linalg_inv(const Tensor& self) {
  const auto [inverse, info] = at::linalg_inv_ex(self, false);
  at::_linalg_check_errors(info, "linalg.inv", self.dim() == 2);
  return inverse;
}

Tensor linalg_det(const Tensor& self) { return std::get<0>(at::_linalg_det(self)); }

std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& self) {
  auto parts = at::_linalg_slogdet(self);
  return {std::move(std::get<0>(parts)), std::move(std::get<1>(parts))};
}

Tensor logdet(const Tensor& self) {
  check_square(self, "logdet");
  check_floating_or_complex(self, "logdet", false);
  const auto parts = at::_linalg_slogdet(self);
  const Tensor &sign = std::get<0>(parts), &log = std::get<1>(parts);
  if (self.is_complex()) return at::add(at::log(sign), log);
  return at::masked_fill(log, at::eq(sign, -1), std::numeric_limits<double>::quiet_NaN());
}

std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& a, const Tensor& b, bool left, bool check) {
  auto parts = at::_linalg_solve_ex(a, b, left, check);
  return {std::move(std::get<0>(parts)), std::move(std::get<3>(parts))};
}

Tensor linalg_solve(const Tensor& a, const Tensor& b, bool left) {
  const auto [x, info] = at::linalg_solve_ex(a, b, left, false);
  at::_linalg_check_errors(info, "torch.linalg.solve", a.dim() == 2);
  return x;
}

std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& a, bool pivot) {
  auto [lu, pivots, info] = at::linalg_lu_factor_ex(a, pivot, false);
  at::_linalg_check_errors(info, "torch.linalg.lu_factor", a.dim() == 2);
  return {lu, pivots};
}

std::tuple<Tensor, Tensor, Tensor> lu_with_info(const Tensor& self, bool pivot, bool) {
  warn_deprecated("torch.lu", "torch.linalg.lu_factor / torch.linalg.lu_factor_ex");
  return at::linalg_lu_factor_ex(self, pivot, false);
}

Tensor lu_solve(const Tensor& self, const Tensor& data, const Tensor& pivots) {
  warn_deprecated("torch.lu_solve", "torch.linalg.lu_solve");
  return at::linalg_lu_solve(data, pivots, self);
}

std::tuple<Tensor, Tensor> linalg_ldl_factor(const Tensor& self, bool hermitian) {
  auto [ld, pivots, info] = at::linalg_ldl_factor_ex(self, hermitian, false);
  at::_linalg_check_errors(info, "torch.linalg.ldl_factor", self.dim() == 2);
  return {ld, pivots};
}

std::tuple<Tensor, Tensor> qr(const Tensor& self, bool some) {
  warn_deprecated("torch.qr", "torch.linalg.qr");
  return at::linalg_qr(self, some ? "reduced" : "complete");
}

Tensor linalg_eigvals(const Tensor& self) {
  if (may_need_gradient(self)) return std::get<0>(at::linalg_eig(self));
  return at::_linalg_eigvals(self);
}

Tensor linalg_eigvalsh(const Tensor& self, std::string_view uplo) {
  return std::get<0>(at::_linalg_eigh(self, uplo, may_need_gradient(self)));
}

Tensor linalg_svdvals(const Tensor& a, std::optional<std::string_view> driver) {
  return std::get<1>(at::_linalg_svd(a, false, may_need_gradient(a), driver));
}

std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self, bool some, bool compute_uv) {
  TN_CHECK(self.dim() >= 2, "linalg.svd: input should have at least 2 dimensions, but has ", self.dim(),
           " dimensions instead");
  if (compute_uv) {
    const auto [u, s, vh] = at::linalg_svd(self, !some);
    return {u, s, at::mH(vh)};
  }
  const Tensor s = at::linalg_svdvals(self);
  const auto square = [&](int64_t n) {
    return at::zeros(joined(batch_of(self), {n, n}), self.dtype(), std::nullopt, self.device());
  };
  return {square(self.size(-2)), s, square(self.size(-1))};
}

Tensor matrix_power(const Tensor& self, int64_t n) {
  check_square(self, "linalg.matrix_power");
  if (n == 0) {
    const Tensor one = at::clone(self, MemoryFormat::Contiguous);  // keeps self's history: its gradient is zero
    at::zero_(one);
    at::fill_(at::diagonal(one, 0, -2, -1), 1);
    return one;
  }
  if (n == 1) return at::clone(self, MemoryFormat::Preserve);
  if (n == -1) return at::linalg_inv(self);
  Tensor power = n < 0 ? at::linalg_inv(self) : self, result;
  for (uint64_t left = n < 0 ? -static_cast<uint64_t>(n) : static_cast<uint64_t>(n); left > 0; left >>= 1) {
    if (left & 1) result = result.defined() ? at::matmul(result, power) : power;
    if (left > 1) power = at::matmul(power, power);
  }
  return result;
}

Tensor linalg_tensorinv(const Tensor& self, int64_t ind) {
  TN_CHECK(ind > 0, "Expected a strictly positive integer for 'ind', but got ", ind);
  TN_CHECK(ind <= self.dim(), "linalg.tensorinv: expected 'ind' of at most ", self.dim(), ", got ", ind);
  const auto at = static_cast<size_t>(ind);
  const IntView start = self.sizes().slice(0, at), end = self.sizes().slice(at, self.sizes().size() - at);
  const int64_t rows = product(end), cols = product(start);
  TN_CHECK(rows == cols,
           "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got ", rows,
           " != ", cols);
  const auto [inverse, info] = tn::at::linalg_inv_ex(tn::at::reshape(self, {rows, cols}), false);
  tn::at::_linalg_check_errors(info, "inv", true);
  DimVector sizes(end);
  for (const int64_t v : start) sizes.push_back(v);
  return tn::at::reshape(inverse, sizes);
}

Tensor linalg_tensorsolve(const Tensor& self, const Tensor& other, OptionalIntArrayRef dims) {
  Tensor a = self;
  if (dims) {
    const int64_t ndim = self.dim(), count = dims->ssize();
    std::vector<int64_t> target;
    for (int64_t i = 0; i < count; ++i) target.push_back(ndim - count + i);
    a = at::movedim(self, *dims, target);
  }
  TN_CHECK(other.dim() <= a.dim(), "linalg.tensorsolve: expected other of at most ", a.dim(), " dimensions, got ",
           other.dim());
  const auto n = static_cast<size_t>(other.dim());
  const DimVector result(a.sizes().slice(n, a.sizes().size() - n));
  const int64_t unknowns = product(result), equations = product(other.sizes());
  TN_CHECK(
      unknowns == equations,
      "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but "
      "got ",
      unknowns, " != ", equations);
  return at::reshape(at::linalg_solve(at::reshape(a, {unknowns, unknowns}), at::flatten(other)), result);
}

}  // namespace tn::composite
