// How a view comes from its base, where the strides alone don't tell: other dtype, conjugate or negative bit, or a
// caller that asked for the operators themselves (torch.autograd._force_original_view_tracking).
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/intrusive.h"
#include "runtime/value.h"

namespace tn {

struct OpRow;

class ViewReplay : public RefCounted {
 public:
  // Changes what the operators were given, for one replay. Null members keep it.
  struct Visitor {
    virtual ~Visitor() = default;
    virtual int64_t symbolic_int(int64_t value) { return value; }
    virtual Tensor tensor(const Tensor& value) { return value; }
  };

  virtual ~ViewReplay() = default;
  // The view of another base.
  virtual Tensor forward(const Tensor& base, Visitor* visitor = nullptr) const = 0;
  // The base that another tensor would be a view of: a view of that tensor.
  virtual Tensor reverse(const Tensor& view) const = 0;
  static void destroy(ViewReplay* r) noexcept { delete r; }

  // The view `view` of `base`, which itself comes from its own base by `first`, through `second`. Null means by
  // strides; the answer is null when all is.
  static Ref<ViewReplay> chain(const Ref<ViewReplay>& first, const Tensor& base, const Ref<ViewReplay>& second,
                               const Tensor& view);
  // One operator's result, `output` counts among several. `self` is the argument that is viewed.
  static Ref<ViewReplay> of_op(OpRow& op, std::span<const Arg> args, const Tensor& self, const Tensor& view,
                               size_t output);
  static Ref<ViewReplay> of_strides(const Tensor& base, const Tensor& view);
};

// Whether the geometry alone does not make `view` out of `base`.
bool needs_replay(const Tensor& base, const Tensor& view);
// What tensor is asked for replays: the recorded one, or one by strides.
Ref<ViewReplay> replay_of(const Tensor& view);

}  // namespace tn
