// Forward mode: tangents that tensors carry beside their values, for the one level that may be open.
//
// A tensor with a tangent is dual: bit KeySet::kDual of its keys, which keeps the autograd keys of a call alive as
// kNeedsGrad does. Each generated autograd kernel tests the bit once and hands its results to a formula of its
// operator.
#pragma once
#include "runtime/box.h"
#include "runtime/tensor.h"

namespace tn {

class AutogradMeta;

namespace forward {

// A tangent, owned by its tensor's meta and known to the level, which ends it.
struct Tangent {
  Tensor value;
  TensorImpl* owner = nullptr;
  Tangent* previous = nullptr;
  Tangent* next = nullptr;
};
void destroy(Tangent* t) noexcept;

// Opens the level and answers its number. RuntimeError when one is open, or for another number at the end.
int64_t enter_level();
void exit_level(int64_t level);

template <class T>
uint64_t bits(const T& v) {
  if constexpr (std::is_base_of_v<Tensor, T>) return door::key_bits(static_cast<const Tensor&>(v));
  else return door::key_bits(v);
}
template <class... A>
bool any_dual(const A&... args) {
  return ((uint64_t{0} | ... | bits(args)) & ~thread_state.excluded & KeySet::kDual) != 0;
}
inline bool is_dual(const Tensor& t) { return t.defined() && t->is_dual(); }

// Undefined when there is none.
Tensor tangent_of(const Tensor& t);
Tensor tangent_or_zeros(const Tensor& t);
// The value without its tangent, in the same backward graph.
Tensor primal_of(const Tensor& t);
// Makes t dual. With `inplace` t was written: a tangent that it has is written, too, and a view's goes to its base.
void set_tangent(const Tensor& t, const Tensor& tangent, bool inplace);
void set_tangents(TensorList list, const std::vector<Tensor>& tangents);

// NotImplementedError with upstream's words.
[[noreturn]] void refuse(const char* op);
[[noreturn]] void refuse_out(const char* op);
[[noreturn]] void refuse_missing(const char* op, const char* function);

}  // namespace forward
}  // namespace tn
