// Writes to views: the base's history learns of them, and other views catch up.
#pragma once
#include "runtime/autograd/node.h"
#include "runtime/autograd/view_replay.h"

namespace tn {

class AutogradMeta;
struct ViewInfo;

// The history of a base after one of its views was written by `fn`.
class CopySlices final : public Node {
 public:
  CopySlices(const ViewInfo& info, const Tensor& view, Ref<Node> fn);
  GradList apply(GradList&& grads) override;
  void release_variables() override { fn_ = nullptr; }
  // The node through which `fn` became history when it wrote to this view; null if there is none.
  static CopySlices* around(const Node& fn, const Tensor& view);
  // What the view's history is after the write.
  Ref<Node> history_of_view();

 private:
  Tensor window_of(const Tensor& whole) const;

  Shape base_, view_;
  int64_t offset_;          // of the view's start from the base's
  Ref<ViewReplay> replay_;  // null: the view is a strided window
  Ref<Node> fn_;
};

// The history of a view as a window of its base.
class AsStridedBackward final : public Node {
 public:
  AsStridedBackward(const ViewInfo& info, const Tensor& view);
  AsStridedBackward(const Shape& base, ScalarType dtype, const Shape& view, int64_t offset, Ref<ViewReplay> replay,
                    Edge edge);
  GradList apply(GradList&& grads) override;

 private:
  Shape base_, view_;
  ScalarType dtype_;  // of the base
  int64_t offset_;
  Ref<ViewReplay> replay_;
};

// Gives a view of a base that was written since a new history.
void catch_up_view(const Tensor& view, AutogradMeta& meta);

}  // namespace tn
