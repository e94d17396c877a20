#include "runtime/autograd_meta.h"

#include "runtime/view_tracking.h"

namespace tn {

void fail_inference_write() {
  fail(ErrorKind::Runtime,
       "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
       "tensor before doing inplace "
       "update.");
}

void destroy_autograd_meta(AutogradMeta* meta) noexcept {
  if (meta->retain_hook) meta->retain_hook->forget();
  if (meta->tangent) forward::destroy(meta->tangent);
  delete meta;
}

AutogradMeta& autograd_meta(const Tensor& t) {
  if (!t->autograd) t->autograd = new AutogradMeta();
  return *t->autograd;
}

void set_requires_grad(const Tensor& t, bool on) {
  TN_CHECK(!on || t.is_floating_point() || t.is_complex(),
           "only Tensors of floating point dtype can require gradients");
  AutogradMeta& meta = autograd_meta(t);
  meta.requires_grad = on;
  t->set_requires_grad_bit(on || meta.grad_fn);
}

bool is_leaf(const Tensor& t) { return !grad_fn_of(t); }
bool is_view(const Tensor& t) { return t->autograd && t->autograd->view_base.defined(); }

void track_view(const Tensor& base, const Tensor& view) {
  if (!view.defined() || !base.defined() || view.is_same(base) || view->is_inference()) return;
  if (view.storage() != base.storage()) return;  // some view operators copy when they must
  const Tensor& root = is_view(base) ? base->autograd->view_base : base;
  AutogradMeta& meta = autograd_meta(view);
  meta.view_base = root;
  view->share_version(*root.impl());
  meta.attr_version = view->version();
}

}  // namespace tn
