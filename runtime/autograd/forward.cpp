#include "runtime/autograd/forward.h"

#include <mutex>

#include "generated/ops/_fw_primal.h"
#include "generated/ops/_new_zeros_with_same_feature_meta.h"
#include "generated/ops/as_strided.h"
#include "generated/ops/copy.h"
#include "generated/ops/zeros_like.h"
#include "runtime/autograd/layout.h"
#include "runtime/autograd_meta.h"
#include "runtime/refuse.h"

namespace tn::forward {

namespace {

struct Level {
  std::mutex mutex;
  Tangent* first = nullptr;
  bool open = false;
};
Level& level() {
  static Level l;
  return l;
}

void link(Tangent* t) {
  Level& l = level();
  const std::lock_guard lock(l.mutex);
  t->next = l.first;
  if (l.first) l.first->previous = t;
  l.first = t;
}
void unlink(Tangent* t) {
  Level& l = level();
  const std::lock_guard lock(l.mutex);
  if (t->previous) t->previous->next = t->next;
  else if (l.first == t) l.first = t->next;
  if (t->next) t->next->previous = t->previous;
  t->previous = t->next = nullptr;
}

bool differentiable(const Tensor& t) { return t.is_floating_point() || t.is_complex(); }

// A tangent lies as its tensor does, in a storage of the same size: views of the one then fit the other. Elements of an
// expanded tensor share memory, which their tangents can't.
Tensor laid_out_as(const Tensor& tangent, const Tensor& t) {
  if (same_layout(tangent, t)) return tangent;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.stride(d) == 0 && t.size(d) > 1) return tangent;
  const Tensor made = at::_new_zeros_with_same_feature_meta(tangent, t);
  at::copy_(made, tangent);
  return made;
}

void attach(const Tensor& t, const Tensor& tangent) {
  AutogradMeta& meta = autograd_meta(t);
  if (meta.tangent) {
    meta.tangent->value = tangent;
  } else {
    meta.tangent = new Tangent{tangent, t.impl()};
    link(meta.tangent);
  }
  t->set_dual_bit(true);
  mark_views_dual(*t.impl(), true);
}

// Views that were made before their base got a tangent find it there.
bool follows_base(const Tensor& t) {
  return t->autograd && !t->autograd->tangent && t->autograd->forward_view && is_dual(t->autograd->forward_info().base);
}
// The part of a base's tangent that belongs to its view.
Tensor window_of(const Tensor& whole, const Tensor& base, const Tensor& view, const ViewInfo& info) {
  if (info.replay) return info.replay->forward(whole);
  return at::as_strided(whole, view.sizes(), view.strides(),
                        whole.storage_offset() + view.storage_offset() - base.storage_offset());
}

}  // namespace

void destroy(Tangent* t) noexcept {
  unlink(t);
  delete t;
}

int64_t enter_level() {
  Level& l = level();
  const std::lock_guard lock(l.mutex);
  TN_CHECK(!l.open, "Nested forward mode AD is not supported at the moment");
  l.open = true;
  return 0;
}

void exit_level(int64_t number) {
  Level& l = level();
  std::vector<Tensor> dropped;  // die after the lock
  const std::lock_guard lock(l.mutex);
  TN_CHECK(l.open && number == 0,
           "Exiting a forward AD level that was not the last one that was created is not supported.");
  l.open = false;
  for (Tangent* t = l.first; t;) {
    Tangent* const next = t->next;
    dropped.push_back(std::move(t->value));
    t->owner->set_dual_bit(false);
    t->owner->autograd->tangent = nullptr;
    mark_views_dual(*t->owner, false);
    delete t;
    t = next;
  }
  l.first = nullptr;
}

Tensor tangent_of(const Tensor& t) {
  if (!is_dual(t) || !t->autograd) return {};
  if (t->autograd->tangent) return t->autograd->tangent->value;
  if (!follows_base(t)) return {};
  const ViewInfo& info = t->autograd->forward_info();
  attach(t, window_of(tangent_of(info.base), info.base, t, info));
  return t->autograd->tangent->value;
}
Tensor tangent_or_zeros(const Tensor& t) {
  Tensor found = tangent_of(t);
  if (found.defined() || !t.defined()) return found;
  found = at::zeros_like(t);
  found->set_wrapped_number(t->is_wrapped_number());
  return found;
}

Tensor primal_of(const Tensor& t) { return is_dual(t) ? at::_fw_primal(t, 0) : t; }

void set_tangent(const Tensor& t, const Tensor& tangent, bool inplace) {
  if (!t.defined() || !tangent.defined() || !differentiable(t)) return;
  TN_CHECK(differentiable(tangent), "Expected both tensor and its forward grad to be floating point or complex");
  TN_CHECK(level().open, "Trying to set a forward gradient outside of a dual level, which is not supported.");
  TN_CHECK(!is_dual(tangent),
           "Setting a forward grad that itself has a forward gradient at the same level 0 is not supported.");
  if (inplace && is_dual(t)) {
    const Tensor own = tangent_of(t);
    if (!own.is_same(tangent)) at::copy_(own, tangent);
    return;
  }
  TN_CHECK(tangent.sizes() == t.sizes(),
           "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
           "supported. Tensor is of size ",
           t.sizes(), " while the given forward gradient is of size ", tangent.sizes(), ".");
  if (inplace && is_view(t) && t->autograd->forward_view) {
    // The base was written through its view: its tangent is zero elsewhere, and the view's is a window of it.
    const ViewInfo& info = t->autograd->forward_info();
    const Tensor base = info.base;
    if (!is_dual(base) && same_layout(tangent, base) && same_layout(tangent, t)) {
      attach(base, tangent);
      return attach(t, tangent);
    }
    if (!is_dual(base)) attach(base, at::_new_zeros_with_same_feature_meta(tangent, base));
    const Tensor window = window_of(tangent_of(base), base, t, info);
    at::copy_(window, tangent);
    return attach(t, window);
  }
  attach(t, laid_out_as(tangent, t));
}

void set_tangents(TensorList list, const std::vector<Tensor>& tangents) {
  for (size_t i = 0; i < list.size() && i < tangents.size(); ++i) set_tangent(list[i], tangents[i], false);
}

void refuse(const char* op) {
  fail(ErrorKind::NotImplemented, "Trying to use forward AD with ", op,
       " that does not support it because it has not been implemented yet.\nPlease file an issue to PyTorch at "
       "https://github.com/pytorch/pytorch/issues/new?template=feature-request.yml so that we can prioritize its "
       "implementation.");
}
void refuse_out(const char* op) {
  fail(ErrorKind::NotImplemented, "Trying to use forward AD with ", op,
       " that does not support it because it is an out= function");
}
void refuse_missing(const char* op, const char* function) {
  tn::refuse(std::string("aten::") + op, "forward mode",
             std::string("no kernel yet for ") + function + ", which its formula calls");
}

}  // namespace tn::forward
