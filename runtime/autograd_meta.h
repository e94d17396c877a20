// What a tensor has when it takes part in a graph, or is a view: made on first need, owned by the header.
#pragma once
#include <string>

#include "runtime/autograd/forward.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/view_replay.h"
#include "runtime/intrusive.h"
#include "runtime/tensor.h"

namespace tn {

// How a view was made, which decides whether autograd can follow a write to it.
enum class Creation : uint8_t { Plain, InFunction, MultiOutput, NoGrad, Inference };

// The tensor at the root of a chain of views, and how the view comes from it (null: by its strides).
struct ViewInfo {
  Tensor base;
  Ref<ViewReplay> replay;
};

class AutogradMeta {
 public:
  Tensor grad;
  Ref<Node> grad_fn;  // null for leaves; of views only grad_fn_of is up to date
  std::string name;
  uint32_t output_nr = 0;
  bool requires_grad = false;  // of leaves
  bool retains_grad = false;
  Ref<RetainHook> retain_hook;          // what keeps the gradient of a result
  forward::Tangent* tangent = nullptr;  // owned, see autograd/forward.h
  Node* accumulator = nullptr;          // of leaves; weak, see accumulator_of

  // Of views:
  ViewInfo view;
  ViewInfo own_forward;       // where tangents come from, if elsewhere than gradients
  bool forward_view = false;  // a tangent of the base is one of the view, too
  Creation creation = Creation::Plain;
  uint32_t attr_version = 0;    // the version for which grad_fn holds
  TensorImpl* owner = nullptr;  // the view itself, while it is in its base's list
  Ref<VersionCounter> listed;   // the list's head
  AutogradMeta *next_view = nullptr, *previous_view = nullptr;

  const ViewInfo& forward_info() const { return own_forward.base.defined() ? own_forward : view; }
};

// The tensor's meta, made when missing.
AutogradMeta& autograd_meta(const Tensor& t);
// RuntimeError for a dtype that cannot have a gradient, with upstream's wording.
void set_requires_grad(const Tensor& t, bool on);
bool is_leaf(const Tensor& t);
bool is_view(const Tensor& t);

// Recomputes whether the tensor needs a gradient (as a leaf, a result or a view of such), for its views, too.
void refresh_needs_grad(const Tensor& t);
// The same after `node` became the tensor's history.
void mark_needs_grad(const Tensor& t);
// Says to the views of a base that it got, or lost, a tangent.
void mark_views_dual(TensorImpl& base, bool on);
// Ends the history of a tensor that is no view.
void forget_history(const Tensor& t);

// RuntimeError where a write to this view, or to its base (`indirect`), can't be followed; then the view's gradient
// would silently be wrong.
void check_view_write(const Tensor& view, bool indirect);
// A tensor has a new history: hooks stay with the old one, what keeps its gradient moves on.
void move_hooks(const Tensor& t, const Ref<Node>& old_fn, const Ref<Node>& new_fn);
// Set by the bindings: Python's dict of hooks belongs to the old history.
using RebasedHook = void (*)(TensorImpl& t) noexcept;
extern constinit RebasedHook rebased_hook;

}  // namespace tn
