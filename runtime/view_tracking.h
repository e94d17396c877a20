// What happens at ADInplaceOrView: views remember their base, writes bump the version.
#pragma once
#include <vector>

#include "runtime/autograd/view_replay.h"
#include "runtime/door.h"
#include "runtime/tensor.h"

namespace tn {

// Makes `view` a tracked view of base's own base (or of base): `_base`, `_is_view`, shared version. Not in inference
// mode. `several`: an operator answered it together with others.
void track_view(const Tensor& base, const Tensor& view, Ref<ViewReplay> replay = nullptr, bool several = false);

namespace door {

inline bool wants_replay(const Tensor& base, const Tensor& view) {
  return thread_state.view_replay || (view.defined() && base.defined() && needs_replay(base, view));
}

// Tracks the result of a view operator, whose arguments are kept where strides don't tell the view.
template <class... A>
void track_result(OpRow& op, const Tensor& base, const Tensor& view, const A&... args) {
  if (__builtin_expect(!wants_replay(base, view), 1)) return track_view(base, view);
  const Arg packed[] = {pack<A>(args)...};
  track_view(base, view, ViewReplay::of_op(op, packed, base, view, 0));
}
template <class... A>
void track_result(OpRow& op, const Tensor& base, const std::vector<Tensor>& views, const A&... args) {
  const Arg packed[] = {pack<A>(args)...};
  for (size_t i = 0; i < views.size(); ++i)
    track_view(base, views[i],
               wants_replay(base, views[i]) ? ViewReplay::of_op(op, packed, base, views[i], i) : Ref<ViewReplay>(),
               true);
}

}  // namespace door

[[noreturn]] void fail_inference_write();
inline void bump_version(const Tensor& t) {
  if (!t.defined()) return;
  if (__builtin_expect(t->is_inference(), 0)) fail_inference_write();
  t->bump_version();
}
inline void bump_version(OptionalTensor t) {
  if (t) bump_version(*t);
}
inline void bump_version(TensorList list) {
  for (const Tensor& t : list) bump_version(t);
}

}  // namespace tn
