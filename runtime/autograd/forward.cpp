#include "runtime/autograd/forward.h"

#include <mutex>

#include "generated/ops/_fw_primal.h"
#include "generated/ops/as_strided.h"
#include "generated/ops/copy.h"
#include "generated/ops/new_empty_strided.h"
#include "generated/ops/zeros_like.h"
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

// The same values with the tensor's own strides: views of the one then fit the other.
Tensor with_geometry_of(const Tensor& tangent, const Tensor& t) {
  if (tangent.strides() == t.strides()) return tangent;
  const Tensor made = at::new_empty_strided(tangent, t.sizes(), t.strides());
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
    delete t;
    t = next;
  }
  l.first = nullptr;
}

Tensor tangent_of(const Tensor& t) {
  return is_dual(t) && t->autograd && t->autograd->tangent ? t->autograd->tangent->value : Tensor();
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
  if (inplace && is_view(t)) {
    // The base was written through its view: its tangent is zero elsewhere, and the view's is a window of it.
    const Tensor base = t->autograd->view_base;
    if (!is_dual(base)) attach(base, with_geometry_of(at::zeros_like(base), base));
    const Tensor whole = tangent_of(base);
    const Tensor window = at::as_strided(whole, t.sizes(), t.strides(),
                                         whole.storage_offset() + t.storage_offset() - base.storage_offset());
    at::copy_(window, tangent);
    return attach(t, window);
  }
  // An expanded tensor's elements share memory, which their tangents can't.
  bool shares = false;
  for (int64_t d = 0; d < t.dim(); ++d) shares |= t.stride(d) == 0 && t.size(d) > 1;
  attach(t, shares ? tangent : with_geometry_of(tangent, t));
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
