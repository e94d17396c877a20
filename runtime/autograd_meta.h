// What a tensor has when it takes part in a graph, or is a view: made on first need, owned by the header.
#pragma once
#include <string>

#include "runtime/autograd/forward.h"
#include "runtime/autograd/node.h"
#include "runtime/intrusive.h"
#include "runtime/tensor.h"

namespace tn {

class AutogradMeta {
 public:
  Tensor grad;
  Ref<Node> grad_fn;  // null for leaves
  Tensor view_base;   // set for views: the tensor at the root of the chain
  std::string name;
  uint32_t output_nr = 0;
  bool requires_grad = false;  // of leaves
  bool retains_grad = false;
  Ref<RetainHook> retain_hook;          // what keeps the gradient of a result
  bool multi_view = false;              // one of several views that an operator answered together
  forward::Tangent* tangent = nullptr;  // owned, see autograd/forward.h
  Node* accumulator = nullptr;          // of leaves; weak, see accumulator_of
  uint32_t attr_version = 0;            // of views: the version for which grad_fn holds
  uint32_t rebased_version = 0;         // of bases: not zero once a write changed the history
};

// The tensor's meta, made when missing.
AutogradMeta& autograd_meta(const Tensor& t);
// RuntimeError for a dtype that cannot have a gradient, with upstream's wording.
void set_requires_grad(const Tensor& t, bool on);
bool is_leaf(const Tensor& t);
bool is_view(const Tensor& t);

}  // namespace tn
