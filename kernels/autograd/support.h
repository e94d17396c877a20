// What generated nodes and their kernels need besides operators.
#pragma once
#include <string>

#include "generated/autograd/api.h"
#include "runtime/autograd/engine.h"
#include "runtime/autograd/forward.h"
#include "runtime/autograd/saved_variable.h"
#include "runtime/autograd_meta.h"

namespace tn::autograd {

inline constexpr KeySet kAutogradKeys = KeySet(DispatchKey::AutogradFunctionality) |
                                        KeySet(DispatchKey::AutogradOther) | KeySet(DispatchKey::AutogradNestedTensor);

// As formulas ask for it.
struct GradMode {
  static bool is_enabled() { return grad_mode(); }
};

inline bool needs_one(const tn::Tensor& t) { return t.defined() && t.requires_grad(); }
inline bool needs_one(OptionalTensor t) { return t && t->requires_grad(); }
inline bool needs_one(TensorList list) {
  for (const tn::Tensor& t : list)
    if (needs_one(t)) return true;
  return false;
}
template <class... T>
bool needs_graph(const T&... inputs) {
  return (false || ... || needs_one(inputs));
}

inline const Tensor& rich_result(const tn::Tensor& t) { return rich(t); }
inline const std::vector<tn::Tensor>& rich_result(const std::vector<tn::Tensor>& list) { return list; }
inline const tn::Tensor& plain(const tn::Tensor& t) { return t; }
inline const tn::Tensor& plain(const OptionalTensor& t) { return *t; }

inline bool any_defined(const GradList& grads) {
  for (const tn::Tensor& g : grads)
    if (g.defined()) return true;
  return false;
}
inline bool wants(const Node& n, size_t edge) {
  return edge < n.edges.size() && n.edges[edge].node && engine::needs(n.edges[edge]);
}
bool wants_any(const Node& n, size_t first, size_t count);
void spread(const std::vector<tn::Tensor>& grads, GradList& out, size_t first);
inline void release(std::vector<SavedVariable>& list) {
  for (SavedVariable& s : list) s.reset();
}
Tensor copy_of(const Tensor& t);

// Copies of borrowed arguments, which a node outlives.
inline std::vector<int64_t> stored(IntArrayRef v) { return v.vec(); }
inline std::string stored(std::string_view v) { return std::string(v); }
template <class T>
std::optional<T> stored(const std::optional<T>& v) {
  return v;
}
inline std::optional<std::vector<int64_t>> stored(const std::optional<IntArrayRef>& v) {
  return v ? std::optional(v->vec()) : std::nullopt;
}
inline std::optional<std::string> stored(const std::optional<std::string_view>& v) {
  return v ? std::optional(std::string(*v)) : std::nullopt;
}
inline std::optional<Scalar> stored(const std::optional<tn::Scalar>& v) {
  return v ? std::optional<Scalar>(*v) : std::nullopt;
}

[[noreturn]] void refuse_formula(const char* node, const char* inputs, const char* missing);
[[noreturn]] void fail_out(const char* op);

}  // namespace tn::autograd
