// Tensor.retain_grad: a result that keeps its gradient as a leaf would.
#include <mutex>

#include "generated/ops/add.h"
#include "generated/ops/clone.h"
#include "generated/slots/autograd.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd_meta.h"

namespace tn {

namespace {

class RetainGrad final : public RetainHook {
 public:
  using RetainHook::RetainHook;
  void call(GradList& grads) override {
    const Tensor t = lock();
    if (!t.defined() || index() >= grads.size() || !grads[index()].defined()) return;
    Tensor& into = autograd_meta(t).grad;
    into = into.defined() ? at::add(into, grads[index()]) : at::clone(grads[index()]);
  }
};

}  // namespace

void native::retain_grad(const Tensor& self) {
  TN_CHECK(self.requires_grad(), "can't retain_grad on Tensor that has requires_grad=False");
  const Ref<Node> fn = grad_fn_of(self);
  if (!fn) return;  // a leaf keeps its gradient anyway
  AutogradMeta& meta = autograd_meta(self);
  if (meta.retains_grad) return;
  auto hook = make_ref<RetainGrad>(self.impl(), meta.output_nr);
  meta.retain_hook = hook;
  fn->retain_hooks.push_back(hook);
  meta.retains_grad = true;
}

}  // namespace tn
