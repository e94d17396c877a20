// Autograd kernels of operators whose derivative upstream writes by hand: copy_.
#include "generated/ops/to.h"
#include "generated/ops/zeros_like.h"
#include "kernels/autograd/helpers.h"
#include "kernels/autograd/support.h"
#include "runtime/op_table.h"

namespace tn {

namespace autograd {
namespace {

class CopyBackwards final : public Node {
 public:
  CopyBackwards() : Node("CopyBackwards") {}
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
    door::Call<const tn::Tensor&(const tn::Tensor&, const tn::Tensor&, bool)>::below(op_rows[kOp_copy_], DispatchKey::AutogradOther, self, src,
                                                                                      non_blocking);
  }
  if (node) rebase_history(self, node);
  return self;
}

constinit const Adapter copy_adapter = &door::Call<const tn::Tensor&(const tn::Tensor&, const tn::Tensor&, bool)>::adapt;

}  // namespace
}  // namespace autograd

extern const KernelRow kernel_rows_autograd_manual[];
const KernelRow kernel_rows_autograd_manual[] = {
    {kOp_copy_, KernelRow::kAutograd, reinterpret_cast<AnyFn>(&autograd::v_copy_), &autograd::copy_adapter},
    {0, KernelRow::kEnd, nullptr, nullptr},
};

}  // namespace tn
