#include "runtime/autograd/node.h"

#include <mutex>

#include "generated/ops/add.h"
#include "generated/ops/clone.h"
#include "generated/ops/copy.h"
#include "generated/ops/detach.h"
#include "generated/ops/empty_strided.h"
#include "runtime/autograd/accumulator.h"
#include "runtime/autograd/copy_slices.h"
#include "runtime/autograd/engine.h"
#include "runtime/autograd_meta.h"
#include "runtime/refuse.h"
#include "runtime/view_tracking.h"

namespace tn {

void (*Node::release_metadata)(void*) noexcept = nullptr;

namespace {

// Sequence numbers are the thread's own; the engine orders by them.
constinit thread_local uint64_t sequence_counter = 0;

struct DeathRow {
  std::vector<Node*> waiting;
  bool busy = false;
};
thread_local DeathRow death_row;

// Guards the weak pointer from a leaf to its accumulator.
constinit std::mutex accumulator_mutex;

bool differentiable(const Tensor& t) { return t.is_floating_point() || t.is_complex(); }

}  // namespace

uint64_t Node::next_sequence() { return sequence_counter++; }
uint64_t Node::peek_sequence() { return sequence_counter; }

void Node::destroy(Node* n) noexcept {
  DeathRow& row = death_row;
  if (row.busy) {
    row.waiting.push_back(n);
    return;
  }
  row.busy = true;
  for (;;) {
    if (n->metadata) release_metadata(n->metadata);
    delete n;
    if (row.waiting.empty()) break;
    n = row.waiting.back();
    row.waiting.pop_back();
  }
  row.busy = false;
}

void Node::add_edge_of(const Tensor& t) {
  if (t.defined() && t.requires_grad()) edges.push_back(gradient_edge(t));
  else edges.emplace_back();
}

uint32_t Node::add_input(const Tensor& result) {
  InputMeta& m = inputs.emplace_back();
  if (result.defined()) {
    m.shape.assign(result.sizes(), result.sizes());
    m.dtype = result.dtype();
    m.device = result.device();
  }
  return static_cast<uint32_t>(inputs.size() - 1);
}

namespace {
constinit std::mutex retain_mutex;
}
Tensor RetainHook::lock() const {
  const std::lock_guard guard(retain_mutex);
  return target_ && target_->retain_if_alive() ? Tensor::adopt(target_) : Tensor();
}
void RetainHook::forget() {
  const std::lock_guard guard(retain_mutex);
  target_ = nullptr;
}

// ---- leaves ----------------------------------------------------------------------------------------------------

AccumulateGrad::AccumulateGrad(const Tensor& variable)
    : Node("torch::autograd::AccumulateGrad", UINT64_MAX), variable_(variable) {
  add_input(variable);
}

AccumulateGrad::~AccumulateGrad() {
  const std::lock_guard lock(accumulator_mutex);
  AutogradMeta* const meta = variable_->autograd;
  if (meta && meta->accumulator == this) meta->accumulator = nullptr;
}

void forget_accumulator(const Tensor& leaf) {
  if (!leaf->autograd) return;
  const std::lock_guard lock(accumulator_mutex);
  leaf->autograd->accumulator = nullptr;
}

Ref<Node> accumulator_of(const Tensor& leaf) {
  AutogradMeta& meta = autograd_meta(leaf);
  const std::lock_guard lock(accumulator_mutex);
  if (meta.accumulator && meta.accumulator->retain_if_alive()) return Ref<Node>::adopt(meta.accumulator);
  Ref<Node> made = make_ref<AccumulateGrad>(leaf);
  meta.accumulator = made.get();
  return made;
}

namespace {

// A gradient has its variable's strides where those are dense, else it is contiguous.
bool obeys_layout(const Tensor& grad, const Tensor& variable) {
  return variable->is_non_overlapping_and_dense() ? grad.strides() == variable.strides() : grad.is_contiguous();
}
// A differentiable copy with the strides that the variable asks for.
Tensor clone_as(const Tensor& grad, const Tensor& variable) {
  if (!variable->is_non_overlapping_and_dense()) return at::clone(grad, MemoryFormat::Contiguous);
  if (!grad_mode() && grad.strides() == variable.strides()) return at::clone(grad);
  const Tensor copy = at::empty_strided(variable.sizes(), variable.strides(), grad.dtype(), {}, grad.device());
  at::copy_(copy, grad);
  return copy;
}

}  // namespace

GradList AccumulateGrad::apply(GradList&& grads) {
  Tensor& grad = grads[0];
  if (!grad.defined()) return {};
  if (!variable_.requires_grad()) return {};
  static constinit std::mutex mutex;  // two threads may reach the same leaf
  {
    const std::lock_guard lock(mutex);
    Tensor& into = autograd_meta(variable_).grad;
    if (!into.defined()) {
      const bool obeys = obeys_layout(grad, variable_);
      const uint32_t holders = post_hooks.empty() ? 1 : 2;  // hooks after this node see it, too
      if (grad_mode()) into = clone_as(grad, variable_);
      else if (grad->use_count() <= holders && obeys) into = at::detach(grad);
      else into = clone_as(at::detach(grad), variable_);
    } else if (!grad_mode()) {
      at::add_(into, grad);
    } else {
      into = at::add(into, grad);
    }
  }
  if (engine::tensor_hooks.accumulated) engine::tensor_hooks.accumulated(variable_);
  return {};
}

GradList RefusingNode::apply(GradList&&) { refuse(operation_, "backward", reason_); }

// ---- tensors and their edges -----------------------------------------------------------------------------------

const Ref<Node>& grad_fn_of(const Tensor& t) {
  static const Ref<Node> none;
  if (!t->autograd) return none;
  AutogradMeta& meta = *t->autograd;
  if (meta.view.base.defined() && meta.attr_version != t->version()) catch_up_view(t, meta);
  return meta.grad_fn;
}

Edge gradient_edge(const Tensor& t) {
  if (const Ref<Node>& fn = grad_fn_of(t)) return {fn, t->autograd->output_nr};
  if (t->autograd && t->autograd->requires_grad) return {accumulator_of(t), 0};
  return {};
}

void set_history(const Tensor& result, const Ref<Node>& node) {
  if (!result.defined()) {
    node->add_input(result);
    return;
  }
  const uint32_t nr = node->add_input(result);
  if (differentiable(result)) set_edge(result, node, nr);
}
void set_edge(const Tensor& t, const Ref<Node>& node, uint32_t nr) {
  AutogradMeta& meta = autograd_meta(t);
  meta.output_nr = nr;
  meta.grad_fn = node;
  meta.attr_version = t->version();
  mark_needs_grad(t);
}
void set_history(TensorList results, const Ref<Node>& node) {
  for (const Tensor& t : results) set_history(t, node);
}

void check_inplace(const Tensor& self, bool needs_graph) {
  if (!needs_graph || !grad_mode() || !self.defined()) return;
  if (is_view(self)) {
    check_view_write(self, false);
    if (self.requires_grad() && is_leaf(self->autograd->view.base))
      fail(ErrorKind::Runtime, "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  }
  // As upstream, a view that has not caught up with a write to its base counts as the leaf that it was.
  if (self.requires_grad() && !(self->autograd && self->autograd->grad_fn))
    fail(ErrorKind::Runtime, "a leaf Variable that requires grad is being used in an in-place operation.");
}

void check_out(const char* op, const Tensor& out) {
  if (out.defined() && out.requires_grad() && grad_mode())
    fail(ErrorKind::Runtime, op,
         "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
         "requires grad.");
}

}  // namespace tn
