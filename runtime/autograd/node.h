// A step of the backward graph: its edges, what it knows of the forward results, hooks.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/autograd/anomaly.h"
#include "runtime/intrusive.h"
#include "runtime/tensor.h"

namespace tn {

class Node;

// Where a gradient goes: the `input`-th gradient that `node` takes. Without a node: nowhere.
struct Edge {
  Ref<Node> node;
  uint32_t input = 0;
  explicit operator bool() const { return static_cast<bool>(node); }
};

// What a node knows of a forward result, to check the gradient that comes back for it.
struct InputMeta {
  Shape shape;
  ScalarType dtype = ScalarType::Undefined;  // Undefined: the result was an undefined tensor
  Device device;
  bool is_undefined() const { return dtype == ScalarType::Undefined; }
};

using GradList = std::vector<Tensor>;

// Sees, and may replace, the gradients that a node is about to take.
class PreHook : public RefCounted {
 public:
  virtual ~PreHook() = default;
  virtual void call(GradList& grads) = 0;
  static void destroy(PreHook* h) noexcept { delete h; }
};
// A hook on behalf of a tensor that it doesn't keep alive, for one of the node's gradients.
class RetainHook : public PreHook {
 public:
  RetainHook(TensorImpl* target, uint32_t index) : target_(target), index_(index) {}
  Tensor lock() const;  // undefined once the tensor died
  void forget();
  uint32_t index() const { return index_; }
  void set_index(uint32_t index) { index_ = index; }

 private:
  TensorImpl* target_;
  uint32_t index_;
};
// Sees, and may replace, what a node answered.
class PostHook : public RefCounted {
 public:
  virtual ~PostHook() = default;
  virtual void call(GradList& results, const GradList& grads) = 0;
  static void destroy(PostHook* h) noexcept { delete h; }
};

// A value that a node keeps for its backward, as Python's `_saved_<name>` shows it.
struct SavedField {
  enum class Kind : uint8_t {
    Tensor,
    TensorList,
    Int,
    Bool,
    Double,
    Number,
    Dtype,
    Ints,
    Doubles,
    OptionalInts,
    OptionalInt,
    OptionalDouble,
    OptionalBool,
    OptionalNumber,
    OptionalDtype,
    Text,
    OptionalText
  };
  const char* name;
  Kind kind;
  void* (*get)(Node& node);
};

class Node : public RefCounted {
 public:
  // `name` must outlive the node: a literal, or kept by a subclass.
  explicit Node(const char* name, uint64_t sequence = next_sequence()) : sequence_(sequence), name_(name) {
    if (__builtin_expect(engine::anomaly.enabled, 0) && engine::anomaly.made) engine::anomaly.made(*this);
  }
  virtual ~Node() = default;

  virtual GradList apply(GradList&& grads) = 0;
  virtual void release_variables() {}
  // Of an accumulator: the leaf that it adds to. Null for other nodes.
  virtual const Tensor* leaf() const { return nullptr; }
  // Ends with a field without a name; null where there is nothing to show.
  virtual const SavedField* saved_fields() const { return nullptr; }
  const char* name() const { return name_; }
  uint64_t sequence() const { return sequence_; }
  void set_sequence(uint64_t s) { sequence_ = s; }

  size_t num_outputs() const { return edges.size(); }
  size_t num_inputs() const { return inputs.size(); }
  bool should_compute(size_t output) const { return output < edges.size() && edges[output].node; }
  void add_edge_of(const Tensor& t);
  void add_edges_of(TensorList list) {
    for (const Tensor& t : list) add_edge_of(t);
  }
  uint32_t add_input(const Tensor& result);  // undefined is allowed

  // Runs the destructor without recursion: a chain of a million nodes dies on one stack frame.
  static void destroy(Node* n) noexcept;
  // Numbers count the nodes that this thread made.
  static uint64_t next_sequence();
  static uint64_t peek_sequence();

  std::vector<Edge> edges;
  std::vector<InputMeta> inputs;
  std::vector<Ref<PreHook>> tensor_hooks, pre_hooks, retain_hooks;
  std::vector<Ref<PostHook>> post_hooks;
  void* pyobj = nullptr;     // Python's object of this node, owned by the bindings
  void* metadata = nullptr;  // Python's dict, owned
  static void (*release_metadata)(void*) noexcept;

 protected:
  uint64_t sequence_;
  const char* name_;
};

// Adds gradients into a leaf's .grad.
class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(const Tensor& variable);
  ~AccumulateGrad() override;
  GradList apply(GradList&& grads) override;
  const Tensor* leaf() const override { return &variable_; }

 private:
  Tensor variable_;
};

// Marks a result whose backward can't run; running it refuses with the reason.
class RefusingNode final : public Node {
 public:
  RefusingNode(std::string name, std::string operation, std::string reason)
      : Node(""), own_name_(std::move(name)), operation_(std::move(operation)), reason_(std::move(reason)) {
    name_ = own_name_.c_str();
  }
  GradList apply(GradList&& grads) override;

 private:
  std::string own_name_, operation_, reason_;
};

// ---- tensors and their edges -----------------------------------------------------------------------------------

// The node that made the tensor; null for leaves. Views catch up with writes to their base first.
const Ref<Node>& grad_fn_of(const Tensor& t);
// Where the tensor's gradient goes: its node, or its accumulator (made on demand) for leaves that want one.
Edge gradient_edge(const Tensor& t);
// The accumulator of a leaf, made on demand.
Ref<Node> accumulator_of(const Tensor& leaf);

// Makes `node` the history of a result. Undefined results, and those that can't have gradients, only take up a place.
void set_history(const Tensor& result, const Ref<Node>& node);
void set_history(TensorList results, const Ref<Node>& node);
// The same where the node already knows the result as its `nr`-th.
void set_edge(const Tensor& t, const Ref<Node>& node, uint32_t nr);
// The same for a tensor that was written in place: a view passes the write on to its base's history.
void rebase_history(const Tensor& self, Ref<Node> node);
void rebase_edge(const Tensor& self, Ref<Node> node, uint32_t nr);
// RuntimeError where writing this tensor in place would corrupt the graph.
void check_inplace(const Tensor& self, bool needs_graph);
// RuntimeError for an out= argument in a differentiable call.
void check_out(const char* op, const Tensor& out);
inline void check_out(const char* op, TensorList outs) {
  for (const Tensor& t : outs) check_out(op, t);
}

}  // namespace tn
