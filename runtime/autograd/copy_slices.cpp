#include "runtime/autograd/copy_slices.h"

#include "generated/ops/as_strided.h"
#include "generated/ops/as_strided_scatter.h"
#include "generated/ops/clone.h"
#include "generated/ops/copy.h"
#include "generated/ops/new_empty_strided.h"
#include "generated/ops/zero.h"
#include "runtime/autograd/saved_variable.h"
#include "runtime/autograd_meta.h"

namespace tn {

CopySlices::CopySlices(const Tensor& base, const Tensor& view, Ref<Node> fn) : Node("CopySlices"), fn_(std::move(fn)) {
  base_.assign(base.sizes(), base.strides());
  view_.assign(view.sizes(), view.strides());
  base_offset_ = base.storage_offset();
  view_offset_ = view.storage_offset();
  add_input(base);
  edges.push_back(gradient_edge(base));
  for (size_t i = 1; i < fn_->edges.size(); ++i) edges.push_back(fn_->edges[i]);
}

GradList CopySlices::apply(GradList&& grads) {
  GradList results(edges.size());
  Tensor grad = grads[0];
  if (!grad.defined()) return results;
  if (!fn_) fail_released();
  const int64_t offset = view_offset_ - base_offset_;
  // The base's strides hold for the copy: the window's strides are counted in them.
  Tensor whole = at::new_empty_strided(grad, base_.sizes(), base_.strides());
  at::copy_(whole, grad);
  Tensor window = at::as_strided(whole, view_.sizes(), view_.strides(), whole.storage_offset() + offset);
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

AsStridedBackward::AsStridedBackward(const Tensor& base, const Tensor& view) : Node("AsStridedBackward0") {
  base_.assign(base.sizes(), base.strides());
  view_.assign(view.sizes(), view.strides());
  offset_ = view.storage_offset() - base.storage_offset();
  edges.push_back(gradient_edge(base));
}

GradList AsStridedBackward::apply(GradList&& grads) {
  GradList results(1);
  if (!grads[0].defined()) return results;
  const Tensor zeros = at::new_empty_strided(grads[0], base_.sizes(), base_.strides());
  at::zero_(zeros);
  results[0] =
      at::as_strided_scatter(zeros, grads[0], view_.sizes(), view_.strides(), zeros.storage_offset() + offset_);
  return results;
}

void catch_up_view(const Tensor& view, AutogradMeta& meta) {
  const Tensor base = meta.view_base;
  const Ref<Node>& base_fn = grad_fn_of(base);
  meta.attr_version = view->version();
  if (!base_fn) return;  // the base was written without a graph: the view's own history stands
  if (base->autograd->rebased_version == 0) return;
  Ref<Node> fn = make_ref<AsStridedBackward>(base, view);
  fn->add_input(view);
  meta.grad_fn = std::move(fn);
  meta.output_nr = 0;
  view->set_requires_grad_bit(true);
}

void rebase_history(const Tensor& self, Ref<Node> node) {
  if (!is_view(self)) {
    set_history(self, node);
    if (self->autograd) self->autograd->rebased_version = self->version() + 1;
    return;
  }
  const Tensor base = self->autograd->view_base;
  node->add_input(self);
  Ref<Node> slices = make_ref<CopySlices>(base, self, std::move(node));
  AutogradMeta& meta = autograd_meta(base);
  meta.grad_fn = slices;
  meta.output_nr = 0;
  meta.attr_version = base->version();
  meta.rebased_version = base->version() + 1;
  base->set_requires_grad_bit(true);
  self->autograd->attr_version = self->version() - 1;
  grad_fn_of(self);
}

}  // namespace tn
