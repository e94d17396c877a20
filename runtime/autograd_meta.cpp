#include "runtime/autograd_meta.h"

#include <algorithm>

#include "runtime/autograd/names.h"
#include "runtime/keyset.h"
#include "runtime/view_tracking.h"

namespace tn {

constinit RebasedHook rebased_hook = nullptr;

void fail_inference_write() {
  fail(ErrorKind::Runtime,
       "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal "
       "tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.");
}

// ---- the list of a base's views ----------------------------------------------------------------------------------

namespace {

// Held for a few instructions, and hardly ever contended.
class ListLock {
 public:
  explicit ListLock(VersionCounter& v) : counter_(v) {
    while (counter_.busy.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~ListLock() { counter_.busy.clear(std::memory_order_release); }
  ListLock(const ListLock&) = delete;
  ListLock& operator=(const ListLock&) = delete;

 private:
  VersionCounter& counter_;
};

void unlist(AutogradMeta& meta) noexcept {
  if (!meta.listed) return;
  {
    const ListLock lock(*meta.listed);
    if (meta.previous_view) meta.previous_view->next_view = meta.next_view;
    else meta.listed->views = meta.next_view;
    if (meta.next_view) meta.next_view->previous_view = meta.previous_view;
    meta.next_view = meta.previous_view = nullptr;
  }
  meta.listed = nullptr;
}

void list(AutogradMeta& meta, const Tensor& view) {
  VersionCounter* const counter = view->shared_version();
  if (meta.listed.get() == counter) return;
  unlist(meta);
  meta.owner = view.impl();
  meta.listed = Ref<VersionCounter>::share(counter);
  const ListLock lock(*counter);
  meta.next_view = counter->views;
  if (counter->views) counter->views->previous_view = &meta;
  counter->views = &meta;
}

// Views that share the counter, `f(meta, view)`, under the lock: f only sets bits.
template <class F>
void each_view(const TensorImpl& base, F f) {
  VersionCounter* const counter = base.shared_version();
  if (!counter || !counter->views) return;
  const ListLock lock(*counter);
  for (AutogradMeta* m = counter->views; m; m = m->next_view) f(*m, *m->owner);
}

bool needs_grad(const AutogradMeta& meta) {
  return meta.requires_grad || meta.grad_fn || (meta.view.base.defined() && meta.view.base.requires_grad());
}

}  // namespace

void destroy_autograd_meta(AutogradMeta* meta) noexcept {
  unlist(*meta);
  if (meta->retain_hook) meta->retain_hook->forget();
  if (meta->tangent) forward::destroy(meta->tangent);
  delete meta;
}

AutogradMeta& autograd_meta(const Tensor& t) {
  if (!t->autograd) t->autograd = new AutogradMeta();
  return *t->autograd;
}

// ---- who needs a gradient ------------------------------------------------------------------------------------------

void refresh_needs_grad(const Tensor& t) {
  AutogradMeta& meta = autograd_meta(t);
  t->set_requires_grad_bit(needs_grad(meta));
  if (meta.view.base.defined()) return;
  each_view(*t.impl(), [&](const AutogradMeta& m, TensorImpl& view) {
    if (m.view.base.is_same(t)) view.set_requires_grad_bit(needs_grad(m));
  });
}

void mark_needs_grad(const Tensor& t) {
  if (t.requires_grad()) return;
  t->set_requires_grad_bit(true);
  if (t->autograd->view.base.defined()) return;
  each_view(*t.impl(), [&](const AutogradMeta& m, TensorImpl& view) {
    if (m.view.base.is_same(t)) view.set_requires_grad_bit(true);
  });
}

void mark_views_dual(TensorImpl& base, bool on) {
  each_view(base, [&](const AutogradMeta& m, TensorImpl& view) {
    if (m.forward_view && m.forward_info().base.impl() == &base) view.set_dual_bit(on || m.tangent);
  });
}

void set_requires_grad(const Tensor& t, bool on) {
  TN_CHECK(!on || t.is_floating_point() || t.is_complex(),
           "only Tensors of floating point dtype can require gradients");
  TN_CHECK(!on || !t->is_inference() || thread_state.inference_mode,
           "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  autograd_meta(t).requires_grad = on;
  refresh_needs_grad(t);
}

void forget_history(const Tensor& t) {
  if (!t->autograd) return;
  AutogradMeta& meta = *t->autograd;
  meta.grad_fn = nullptr;
  meta.output_nr = 0;
  meta.requires_grad = false;
  refresh_needs_grad(t);
  if (meta.tangent) {
    forward::destroy(meta.tangent);
    meta.tangent = nullptr;
    t->set_dual_bit(false);
    mark_views_dual(*t.impl(), false);
  }
}

bool is_leaf(const Tensor& t) { return !grad_fn_of(t); }
bool is_view(const Tensor& t) { return t->autograd && t->autograd->view.base.defined(); }

// ---- views
// -----------------------------------------------------------------------------------------------------------

namespace {

Creation creation_now(bool several) {
  if (thread_state.inference_mode) return Creation::Inference;
  if (!grad_mode()) return Creation::NoGrad;
  return several ? Creation::MultiOutput : Creation::Plain;
}

}  // namespace

void track_view(const Tensor& base, const Tensor& view, Ref<ViewReplay> replay, bool several) {
  if (!view.defined() || !base.defined() || view.is_same(base) || view->is_inference()) return;
  if (view.storage() != base.storage()) return;  // some view operators copy when they must
  AutogradMeta& meta = autograd_meta(view);
  meta.creation = creation_now(several);
  if (is_view(base)) {
    const AutogradMeta& from = *base->autograd;
    if (meta.creation == Creation::Plain) meta.creation = from.creation;
    meta.view = {from.view.base, ViewReplay::chain(from.view.replay, base, replay, view)};
    if (!from.forward_view) meta.own_forward = {base, replay};
    else if (from.own_forward.base.defined())
      meta.own_forward = {from.own_forward.base, ViewReplay::chain(from.own_forward.replay, base, replay, view)};
  } else {
    meta.view = {base, std::move(replay)};
  }
  meta.forward_view = true;
  view->share_version(*meta.view.base.impl());
  meta.attr_version = view->version();
  list(meta, view);
  if (meta.view.base.requires_grad()) view->set_requires_grad_bit(true);
  if (meta.forward_info().base->is_dual()) view->set_dual_bit(true);
}

void check_view_write(const Tensor& view, bool indirect) {
  const AutogradMeta& meta = *view->autograd;
  if (meta.creation == Creation::Plain) return;
  const char* const modified = indirect ? "its base or another view of its base has been" : "is being";
  const Node* const fn = meta.grad_fn.get();
  std::string what;
  if (meta.creation == Creation::Inference || meta.creation == Creation::NoGrad || !fn) {
    what = fn ? str("Output ", meta.output_nr, " of ", forward_name(*fn), " is a view of a view which was created in ")
              : std::string("A view was created in ");
    what += meta.creation == Creation::Inference
                ? str("inference mode and ", modified, " modified inplace in normal mode.")
                : str("no_grad mode and ", modified, " modified inplace with grad mode enabled.");
  } else {
    what = str("Output ", meta.output_nr, " of ", forward_name(*fn), " is a view and ", modified, " modified inplace.");
  }
  switch (meta.creation) {
    case Creation::Plain: return;
    case Creation::MultiOutput:
      fail(ErrorKind::Runtime, what,
           " This view is the output of a function that returns multiple views. Such functions do not allow the output "
           "views to be modified inplace. You should replace the inplace operation by an out-of-place one.");
    case Creation::NoGrad:
    case Creation::Inference: {
      const char* const mode = meta.creation == Creation::NoGrad ? "no_grad" : "inference_mode";
      fail(ErrorKind::Runtime, what,
           " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
           "moving both the view and the inplace either both inside the ",
           mode,
           " block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be "
           "tracked).");
    }
    case Creation::InFunction:
      fail(ErrorKind::Runtime, what,
           " This view was created inside a custom Function (or because an input was returned as-is) and the autograd "
           "logic to handle view+inplace would override the custom backward associated with the custom Function, "
           "leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the "
           "custom Function.");
  }
}

void move_hooks(const Tensor& t, const Ref<Node>& old_fn, const Ref<Node>& new_fn) {
  if (rebased_hook && t->pyobj) rebased_hook(*t.impl());
  AutogradMeta& meta = *t->autograd;
  if (!meta.retain_hook || !old_fn || old_fn == new_fn) return;
  std::vector<Ref<PreHook>>& from = old_fn->retain_hooks;
  const auto at =
      std::find_if(from.begin(), from.end(), [&](const auto& h) { return h.get() == meta.retain_hook.get(); });
  if (at == from.end()) return;
  from.erase(at);
  meta.retain_hook->set_index(meta.output_nr);
  new_fn->retain_hooks.push_back(meta.retain_hook);
}

}  // namespace tn
