// Writes to views: the base's history learns of them, and other views catch up.
#pragma once
#include "runtime/autograd/node.h"

namespace tn {

class AutogradMeta;

// The history of a base after one of its views was written by `fn`.
class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& base, const Tensor& view, Ref<Node> fn);
  GradList apply(GradList&& grads) override;
  void release_variables() override { fn_ = nullptr; }

 private:
  Shape base_, view_;
  int64_t base_offset_, view_offset_;
  Ref<Node> fn_;
};

// The history of a view as a strided window of its base.
class AsStridedBackward final : public Node {
 public:
  AsStridedBackward(const Tensor& base, const Tensor& view);
  GradList apply(GradList&& grads) override;

 private:
  Shape base_, view_;
  int64_t offset_;
};

// Gives a view of a base that was written since a new history.
void catch_up_view(const Tensor& view, AutogradMeta& meta);

}  // namespace tn
