#include "runtime/autograd/copy_slices.h"

#include <algorithm>

#include "generated/ops/arange.h"
#include "generated/ops/as_strided.h"
#include "generated/ops/clone.h"
#include "generated/ops/copy.h"
#include "generated/ops/index_add.h"
#include "generated/ops/new_empty_strided.h"
#include "generated/ops/new_zeros.h"
#include "generated/ops/reshape.h"
#include "generated/ops/zero.h"
#include "runtime/autograd/saved_variable.h"
#include "runtime/autograd_meta.h"
#include "runtime/overlap.h"

namespace tn {

CopySlices::CopySlices(const ViewInfo& info, const Tensor& view, Ref<Node> fn)
    : Node("torch::autograd::CopySlices"),
      offset_(view.storage_offset() - info.base.storage_offset()),
      replay_(info.replay),
      fn_(std::move(fn)) {
  const Tensor& base = info.base;
  base_.assign(base.sizes(), base.strides());
  view_.assign(view.sizes(), view.strides());
  add_input(base);
  edges.push_back(gradient_edge(base));
  for (size_t i = 1; i < fn_->edges.size(); ++i) edges.push_back(fn_->edges[i]);
  // What fn gives for the view goes into the base: the view's own history is no part of the graph any more.
  if (!fn_->edges.empty()) fn_->edges[0] = edges[0];
}

CopySlices* CopySlices::around(const Node& fn, const Tensor& view) {
  auto* const slices = dynamic_cast<CopySlices*>(grad_fn_of(view->autograd->view.base).get());
  return slices && slices->fn_.get() == &fn ? slices : nullptr;
}

Ref<Node> CopySlices::history_of_view() {
  return make_ref<AsStridedBackward>(base_, inputs[0].dtype, view_, offset_, replay_, Edge{Ref<Node>::share(this), 0});
}

Tensor CopySlices::window_of(const Tensor& whole) const {
  return replay_ ? replay_->forward(whole)
                 : at::as_strided(whole, view_.sizes(), view_.strides(), whole.storage_offset() + offset_);
}

GradList CopySlices::apply(GradList&& grads) {
  GradList results(edges.size());
  Tensor grad = grads[0];
  if (!grad.defined()) return results;
  if (!fn_) fail_released();
  // The base's strides hold for the copy: the window's strides are counted in them.
  Tensor whole = at::new_empty_strided(grad, base_.sizes(), base_.strides());
  at::copy_(whole, grad);
  Tensor window = window_of(whole);
  GradList passed;
  passed.push_back(at::clone(window, MemoryFormat::Contiguous));
  GradList inner = fn_->apply(std::move(passed));
  for (size_t i = 0; i < inner.size() && i < results.size(); ++i) {
    if (!inner[i].defined()) {
      if (i == 0) {
        at::zero_(window);
        results[0] = whole;
      }
      continue;
    }
    if (i == 0) {
      at::copy_(window, inner[0]);
      results[0] = whole;
    } else {
      results[i] = std::move(inner[i]);
    }
  }
  if (inner.empty()) results[0] = whole;
  return results;
}

AsStridedBackward::AsStridedBackward(const Shape& base, ScalarType dtype, const Shape& view, int64_t offset,
                                     Ref<ViewReplay> replay, Edge edge)
    : Node("AsStridedBackward0"), base_(base), view_(view), dtype_(dtype), offset_(offset), replay_(std::move(replay)) {
  edges.push_back(std::move(edge));
}
AsStridedBackward::AsStridedBackward(const ViewInfo& info, const Tensor& view)
    : Node("AsStridedBackward0"),
      dtype_(info.base.dtype()),
      offset_(view.storage_offset() - info.base.storage_offset()),
      replay_(info.replay) {
  base_.assign(info.base.sizes(), info.base.strides());
  view_.assign(view.sizes(), view.strides());
  edges.push_back(gradient_edge(info.base));
  add_input(view);
}

namespace {

int64_t elements_until_end(const Shape& shape, int64_t offset) {
  return static_cast<int64_t>(storage_bytes(shape.sizes(), shape.strides(), offset, 1));
}
// The same sizes and strides over the numbers 0, 1, ...: where each element lies.
Tensor places(int64_t length, const Shape& shape, int64_t offset, Device device) {
  const Tensor all = at::arange(Scalar(length), ScalarType::Long, Layout::Strided, device);
  return at::reshape(at::as_strided(all, shape.sizes(), shape.strides(), offset), {-1});
}

}  // namespace

// The gradient lies in memory as the base and its view do, zero where only the base shows it. Made from grad, so that a
// batch of gradients gives a batch.
GradList AsStridedBackward::apply(GradList&& grads) {
  GradList results(1);
  const Tensor& grad = grads[0];
  if (!grad.defined()) return results;
  if (replay_) {
    const Tensor zeros = at::new_empty_strided(grad, base_.sizes(), base_.strides(), dtype_);
    at::zero_(zeros);
    at::copy_(replay_->forward(zeros), grad);
    results[0] = zeros;
    return results;
  }
  const int64_t base_at = std::max<int64_t>(-offset_, 0), view_at = std::max<int64_t>(offset_, 0);
  const int64_t length = std::max(elements_until_end(base_, base_at), elements_until_end(view_, view_at));
  Tensor whole = at::new_zeros(grad, {length});
  if (may_overlap(view_.sizes(), view_.strides()))
    whole = at::index_add(whole, 0, places(length, view_, view_at, grad.device()), at::reshape(grad, {-1}));
  else at::copy_(at::as_strided(whole, view_.sizes(), view_.strides(), view_at), grad);
  results[0] = at::as_strided(whole, base_.sizes(), base_.strides(), base_at);
  return results;
}

void catch_up_view(const Tensor& view, AutogradMeta& meta) {
  const ViewInfo& info = meta.view;
  if (!meta.grad_fn && !info.base.requires_grad()) return;
  check_view_write(view, true);
  const Ref<Node> old_fn = meta.grad_fn;
  if (info.replay) {
    const GradModeGuard on(true);  // the engine asks with grad mode off, too
    const Tensor again = info.replay->forward(info.base);
    meta.grad_fn = grad_fn_of(again);
    meta.output_nr = again->autograd ? again->autograd->output_nr : 0;
  } else {
    meta.grad_fn = make_ref<AsStridedBackward>(info, view);
    meta.output_nr = 0;
  }
  meta.attr_version = view->version();
  refresh_needs_grad(view);
  if (old_fn) move_hooks(view, old_fn, meta.grad_fn);
}

void rebase_history(const Tensor& self, Ref<Node> node) {
  const uint32_t nr = self.defined() ? node->add_input(self) : 0;
  if (self.defined()) rebase_edge(self, std::move(node), nr);
}

void rebase_edge(const Tensor& self, Ref<Node> node, uint32_t nr) {
  if (!is_view(self)) {
    const Ref<Node> old_fn = self->autograd ? self->autograd->grad_fn : nullptr;
    set_edge(self, node, nr);
    return move_hooks(self, old_fn, node);
  }
  AutogradMeta& meta = *self->autograd;
  TN_CHECK(node->num_inputs() == 1, "Functions which modify views in-place must return a single Variable");
  const Tensor& base = meta.view.base;
  meta.output_nr = 0;
  const Ref<Node> old_fn = grad_fn_of(base);
  const Ref<Node> slices = make_ref<CopySlices>(meta.view, self, std::move(node));
  const bool had = self.requires_grad();
  set_edge(base, slices, 0);
  // The view catches up below, even if it did so between the write and now.
  meta.attr_version = self->version() - 1;
  if (had) move_hooks(base, old_fn, slices);
  grad_fn_of(self);
}

}  // namespace tn
