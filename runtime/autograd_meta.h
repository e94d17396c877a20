// What a tensor has when it takes part in a graph, or is a view: made on first need, owned by the header.
#pragma once
#include <string>

#include "runtime/intrusive.h"
#include "runtime/tensor.h"

namespace tn {

// A step of the backward graph. For now only named: the engine comes with the derivatives, and running one refuses.
class Node : public RefCounted {
 public:
  explicit Node(std::string name) : name_(std::move(name)) {}
  virtual ~Node() = default;
  const std::string& name() const { return name_; }
  static void destroy(Node* n) noexcept { delete n; }

  void* pyobj = nullptr;  // Python's object of this node, owned by the bindings

 private:
  std::string name_;
};

class AutogradMeta {
 public:
  Tensor grad;
  Ref<Node> grad_fn;      // null for leaves
  Tensor view_base;       // set for views: the tensor at the root of the chain
  std::string name;
  uint32_t output_nr = 0;
  bool requires_grad = false;  // of leaves
  bool retains_grad = false;
  void* hooks = nullptr;       // Python's dict of hooks, owned by the bindings
  void (*release_hooks)(void*) = nullptr;
};

// The tensor's meta, made when missing.
AutogradMeta& autograd_meta(const Tensor& t);
// RuntimeError for a dtype that cannot have a gradient, with upstream's wording.
void set_requires_grad(const Tensor& t, bool on);
bool is_leaf(const Tensor& t);
bool is_view(const Tensor& t);

}  // namespace tn
