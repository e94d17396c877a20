// Autograd kernels of operators whose derivative upstream writes by hand: copy_.
#include "generated/ops/alias.h"
#include "generated/ops/clone.h"
#include "generated/ops/expand.h"
#include "generated/ops/to.h"
#include "generated/ops/zeros_like.h"
#include "generated/ops/_fw_primal.h"
#include "generated/slots/autograd.h"
#include "kernels/autograd/helpers.h"
#include "kernels/autograd/support.h"
#include "kernels/autograd/unpack_dual.h"
#include "runtime/op_table.h"

namespace tn {

namespace autograd {
namespace {

class CopyBackwards final : public Node {
 public:
  CopyBackwards() : Node("torch::autograd::CopyBackwards") {}
  GradList apply(GradList&& grads) override {
    GradList out(2);
    const tn::Tensor& grad = grads[0];
    if (!grad.defined()) return out;
    if (wants(*this, 0)) out[0] = tn::at::zeros_like(grad);
    if (wants(*this, 1)) {
      tn::Tensor g = !is_complex(dtype) && grad.is_complex() ? tn::Tensor(at::real(rich(grad))) : grad;
      out[1] = tn::at::to(g, dtype);
    }
    return out;
  }
  ScalarType dtype = ScalarType::Float;
};

const tn::Tensor& v_copy_(const tn::Tensor& self, const tn::Tensor& src, bool non_blocking) {
  const bool differentiable = self.is_floating_point() || self.is_complex();
  const bool tracked = grad_mode() && differentiable && needs_graph(self, src);
  check_inplace(self, tracked);
  Ref<CopyBackwards> node;
  if (tracked) {
    node = make_ref<CopyBackwards>();
    node->add_edge_of(self);
    node->add_edge_of(src);
    node->dtype = src.dtype();
  }
  {
    const ExcludeGuard below(kAutogradKeys);
    door::Call<const tn::Tensor&(const tn::Tensor&, const tn::Tensor&, bool)>::below(
        op_rows[kOp_copy_], DispatchKey::AutogradOther, self, src, non_blocking);
  }
  if (node) rebase_history(self, node);
  if (differentiable && forward::any_dual(self, src)) {
    const tn::Tensor tangent = forward::is_dual(src) ? forward::tangent_of(src) : tn::at::zeros_like(self);
    // In the written tensor's dtype and shape, as the values are.
    if (forward::is_dual(self)) forward::set_tangent(self, tangent, true);
    else
      forward::set_tangent(self, tn::at::clone(tn::at::expand(tn::at::to(tangent, self.dtype()), self.sizes())), true);
  }
  return self;
}

// The view's tangent has nothing to do with its base's.
void without_forward(const tn::Tensor& view) {
  if (view->autograd) view->autograd->forward_view = false;
  view->set_dual_bit(false);
}

// Views of the value alone and with a tangent. Further down they are plain views: each function transform has its own
// tangents.
class FwPrimalBackward final : public Node {
 public:
  FwPrimalBackward() : Node("FwPrimalBackward0") {}
  GradList apply(GradList&& grads) override { return std::move(grads); }
};
tn::Tensor v__fw_primal(const tn::Tensor& self, int64_t) {
  Ref<FwPrimalBackward> node;
  if (grad_mode() && needs_graph(self)) {
    node = make_ref<FwPrimalBackward>();
    node->add_edge_of(self);
  }
  tn::Tensor primal = [&] {
    const ExcludeGuard below(kAutogradKeys);
    return tn::at::alias(self);
  }();
  without_forward(primal);
  if (node) set_history(primal, node);
  return primal;
}
tn::Tensor v__make_dual(const tn::Tensor& primal, const tn::Tensor& tangent, int64_t level) {
  TN_CHECK(!forward::is_dual(primal),
           "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level ", level,
           " is not supported.");
  tn::Tensor dual = tn::at::alias(primal);
  without_forward(dual);
  forward::set_tangent(dual, tangent, false);
  return dual;
}

constinit const Adapter primal_adapter = &door::Call<tn::Tensor(const tn::Tensor&, int64_t)>::adapt;
constinit const Adapter dual_adapter = &door::Call<tn::Tensor(const tn::Tensor&, const tn::Tensor&, int64_t)>::adapt;
constinit const Adapter copy_adapter =
    &door::Call<const tn::Tensor&(const tn::Tensor&, const tn::Tensor&, bool)>::adapt;

}  // namespace
}  // namespace autograd

// Below autograd there are no tangents.
Tensor native::_fw_primal(const Tensor& self, int64_t) { return at::alias(self); }
Tensor native::_make_dual(const Tensor& primal, const Tensor&, int64_t) { return at::alias(primal); }
std::tuple<Tensor, Tensor> composite::unpack_dual(const Tensor& dual, int64_t) {
  return {forward::is_dual(dual) ? at::_fw_primal(dual, 0) : at::alias(dual), forward::tangent_of(dual)};
}

extern const KernelRow kernel_rows_autograd_manual[];
const KernelRow kernel_rows_autograd_manual[] = {
    {kOp_copy_, KernelRow::kAutograd, reinterpret_cast<AnyFn>(&autograd::v_copy_), &autograd::copy_adapter},
    {kOp__fw_primal, KernelRow::kAutograd, reinterpret_cast<AnyFn>(&autograd::v__fw_primal), &autograd::primal_adapter},
    {kOp__make_dual, KernelRow::kAutograd, reinterpret_cast<AnyFn>(&autograd::v__make_dual), &autograd::dual_adapter},
    {0, KernelRow::kEnd, nullptr, nullptr},
};

}  // namespace tn
