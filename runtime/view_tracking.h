// What happens at ADInplaceOrView: views remember their base, writes bump the version.
#pragma once
#include <vector>

#include "runtime/tensor.h"

namespace tn {

// Makes `view` a tracked view of base's own base (or of base): `_base`, `_is_view`, shared version. Not in inference
// mode.
void track_view(const Tensor& base, const Tensor& view);
inline void track_view(const Tensor& base, const std::vector<Tensor>& views) {
  for (const Tensor& v : views) track_view(base, v);
}
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
