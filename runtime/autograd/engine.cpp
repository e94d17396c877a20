#include "runtime/autograd/engine.h"

#include <queue>
#include <unordered_map>

#include "generated/ops/add.h"
#include "generated/ops/any.h"
#include "generated/ops/item.h"
#include "generated/ops/ne.h"
#include "generated/ops/squeeze.h"
#include "generated/ops/sum.h"
#include "generated/ops/to.h"
#include "runtime/autograd_meta.h"
#include "runtime/keyset.h"
#include "runtime/profile.h"

namespace tn::engine {

constinit TensorHooks tensor_hooks{};
constinit Anomaly anomaly{};

namespace {

bool has_nan(const Tensor& t) { return at::item(at::any(at::ne(t, t))).to_bool(); }

struct Callback {
  void (*call)(void*);
  void* data;
  void (*drop)(void*);
};

// Gradients of one node that wait for the rest of them.
struct Pending {
  GradList grads;
  std::vector<bool> ours;  // made by adding here, so it may be added to in place
  uint32_t missing = 0;    // edges that have not delivered yet
  int32_t capture = -1;    // first place in `captures` for this node
  bool needed = true;
  bool queued = false;

  void add(size_t i, Tensor t) {
    if (grads.size() <= i) grads.resize(i + 1);
    ours.resize(grads.size());
    if (!t.defined()) return;
    Tensor& into = grads[i];
    if (!into.defined()) into = std::move(t);
    else if (ours[i] && !grad_mode() && into->use_count() == 1 && !into->python_dispatch) at::add_(into, t);
    else {
      into = at::add(into, t);
      ours[i] = true;
    }
  }
};

struct Capture {
  uint32_t input;
  size_t result;
  int32_t next;
};

struct Ready {
  uint64_t sequence;
  Ref<Node> node;
  bool operator<(const Ready& o) const { return sequence < o.sequence; }
};

class Run {
 public:
  explicit Run(Request& request) : request_(request), outer_(current) { current = this; }
  ~Run() {
    current = outer_;
    for (Callback& c : callbacks_) c.drop(c.data);
  }
  GradList go();

  bool needs(const Edge& e) const {
    if (!e.node) return false;
    if (request_.wanted.empty()) return true;
    const auto it = nodes_.find(e.node.get());
    return it != nodes_.end() && it->second.needed;
  }
  bool keeps_graph() const { return request_.keep_graph; }
  static bool all_accumulate() {
    for (const Run* r = current; r; r = r->outer_)
      if (!r->request_.wanted.empty()) return false;
    return true;
  }
  void queue(Callback c) { callbacks_.push_back(c); }
  static constinit thread_local Run* current;

 private:
  void count();
  void mark_needed();
  void evaluate(const Ref<Node>& node);
  void check(const Node& node, GradList& grads);
  Pending& pending(Node* n) { return nodes_[n]; }

  Request& request_;
  Run* outer_;
  std::unordered_map<Node*, Pending> nodes_;
  std::vector<Node*> order_;  // every node once, roots first
  std::vector<Capture> captures_;
  GradList results_;
  std::priority_queue<Ready> ready_;
  std::vector<Callback> callbacks_;
};

constinit thread_local Run* Run::current = nullptr;

// Counts for each node how many edges will deliver to it.
void Run::count() {
  std::vector<Node*> stack;
  for (const Edge& root : request_.roots)
    if (root.node && nodes_.try_emplace(root.node.get()).second) stack.push_back(root.node.get());
  while (!stack.empty()) {
    Node* const n = stack.back();
    stack.pop_back();
    order_.push_back(n);
    for (const Edge& e : n->edges) {
      if (!e.node) continue;
      const auto [it, fresh] = nodes_.try_emplace(e.node.get());
      ++it->second.missing;
      if (fresh) stack.push_back(e.node.get());
    }
  }
}

// With `wanted`, only nodes on a way to one of them run. Sequence numbers don't order nodes of several threads, so this
// is a walk: a node is done once its children are.
void Run::mark_needed() {
  results_.resize(request_.wanted.size());
  for (auto& [node, p] : nodes_) p.needed = false;
  for (size_t i = 0; i < request_.wanted.size(); ++i) {
    const Edge& e = request_.wanted[i];
    const auto it = nodes_.find(e.node.get());
    if (it == nodes_.end()) continue;
    it->second.needed = true;
    if (request_.accumulate) continue;
    captures_.push_back({e.input, i, it->second.capture});
    it->second.capture = static_cast<int32_t>(captures_.size() - 1);
  }
  struct Step {
    Node* node;
    size_t next;
  };
  std::unordered_map<Node*, bool> seen;
  std::vector<Step> stack;
  for (const Edge& root : request_.roots) {
    if (!root.node || !seen.emplace(root.node.get(), true).second) continue;
    stack.push_back({root.node.get(), 0});
    while (!stack.empty()) {
      Step& s = stack.back();
      if (s.next < s.node->edges.size()) {
        Node* const child = s.node->edges[s.next++].node.get();
        if (child && seen.emplace(child, true).second) stack.push_back({child, 0});
        continue;
      }
      Node* const done = s.node;
      stack.pop_back();
      for (const Edge& e : done->edges)
        if (e.node && pending(e.node.get()).needed) pending(done).needed = true;
    }
  }
}

// Gradients fit what the forward gave: broadcast dimensions are summed away, the dtype is the result's.
void Run::check(const Node& node, GradList& grads) {
  TN_CHECK(grads.size() == node.edges.size() || node.edges.empty(), "Function ", node.name(),
           " returned an incorrect number of gradients (expected ", node.edges.size(), ", got ", grads.size(), ")");
  for (size_t i = 0; i < grads.size() && i < node.edges.size(); ++i) {
    const Edge& e = node.edges[i];
    Tensor& g = grads[i];
    if (!e.node || !g.defined() || e.input >= e.node->inputs.size()) continue;
    const InputMeta& m = e.node->inputs[e.input];
    if (m.is_undefined()) continue;
    if (g.sizes() != m.shape.sizes()) {
      const IntView from = g.sizes(), to = m.shape.sizes();
      bool fits = from.size() >= to.size();
      std::vector<int64_t> dims;
      const size_t lead = fits ? from.size() - to.size() : 0;
      for (size_t d = 0; fits && d < from.size(); ++d) {
        if (d < lead) dims.push_back(static_cast<int64_t>(d));
        else if (to[d - lead] == 1 && from[d] != 1) dims.push_back(static_cast<int64_t>(d));
        else fits = to[d - lead] == from[d];
      }
      TN_CHECK(fits, "Function ", node.name(), " returned an invalid gradient at index ", i, " - got ", from,
               " but expected shape compatible with ", to);
      if (!dims.empty()) g = at::sum(g, IntView(dims), true);
      for (size_t d = 0; d < lead; ++d) g = at::squeeze(g, 0);
    }
    if (g.dtype() != m.dtype) {
      TN_CHECK(is_complex(m.dtype) || !g.is_complex(), "Function ", node.name(),
               " returned a complex gradient at index ", i, " but the input is real");
      g = at::to(g, m.dtype);
    }
  }
}

void Run::evaluate(const Ref<Node>& node) {
  const profile::NodeRange range("autograd::engine::evaluate_function: ", node->name(), node->sequence(),
                                 profile::Scope::Function);
  Pending& p = nodes_.find(node.get())->second;
  GradList grads = std::move(p.grads);
  grads.resize(std::max(grads.size(), node->num_inputs()));
  for (const auto* hooks : {&node->tensor_hooks, &node->retain_hooks})
    for (const Ref<PreHook>& h : *hooks) h->call(grads);
  if (p.capture >= 0) {
    if (auto* const leaf = dynamic_cast<AccumulateGrad*>(node.get()); leaf && tensor_hooks.leaf && grads[0].defined())
      tensor_hooks.leaf(leaf->variable(), grads[0]);
    bool more = false;
    for (int32_t c = p.capture; c >= 0; c = captures_[static_cast<size_t>(c)].next)
      results_[captures_[static_cast<size_t>(c)].result] = grads[captures_[static_cast<size_t>(c)].input];
    for (const Edge& e : node->edges) more |= e.node && nodes_.find(e.node.get())->second.needed;
    if (!more) return;
  }
  if (!p.needed) return;
  for (const Ref<PreHook>& h : node->pre_hooks) h->call(grads);
  const bool post = !node->post_hooks.empty();
  GradList kept;
  if (post) kept = grads;
  GradList results = [&] {
    const profile::NodeRange running("", node->name(), node->sequence(), profile::Scope::Backward,
                                     TensorList(grads.data(), grads.size()));
    return node->apply(std::move(grads));
  }();
  check(*node, results);
  for (const Ref<PostHook>& h : node->post_hooks) h->call(results, kept);
  if (anomaly.enabled && anomaly.check_nan) {
    const GradModeGuard off(false);
    for (size_t i = 0; i < results.size(); ++i)
      TN_CHECK(!results[i].defined() || !has_nan(results[i]), "Function '", node->name(),
               "' returned nan values in its ", i, "th output.");
  }
  if (!request_.keep_graph) node->release_variables();
  for (size_t i = 0; i < node->edges.size(); ++i) {
    const Edge& e = node->edges[i];
    if (!e.node) continue;
    Pending& to = nodes_.find(e.node.get())->second;
    if (i < results.size()) to.add(e.input, std::move(results[i]));
    if (--to.missing == 0 && to.needed) {
      to.queued = true;
      ready_.push({e.node->sequence(), e.node});
    }
  }
}

GradList Run::go() {
  count();
  if (!request_.wanted.empty()) mark_needed();
  const GradModeGuard mode(request_.create_graph);
  for (size_t i = 0; i < request_.roots.size(); ++i) {
    const Edge& e = request_.roots[i];
    if (e.node) pending(e.node.get()).add(e.input, request_.grads[i]);
  }
  request_.grads.clear();
  for (const Edge& e : request_.roots) {
    if (!e.node) continue;
    Pending& p = pending(e.node.get());
    if (p.missing != 0 || p.queued || !p.needed) continue;
    p.queued = true;
    ready_.push({e.node->sequence(), e.node});
  }
  while (!ready_.empty()) {
    const Ref<Node> node = ready_.top().node;
    ready_.pop();
    evaluate(node);
  }
  for (size_t i = 0; i < callbacks_.size(); ++i) callbacks_[i].call(callbacks_[i].data);  // one may queue another
  return std::move(results_);
}

}  // namespace

GradList run(Request request) {
  Run run(request);
  return run.go();
}
bool needs(const Edge& edge) { return Run::current ? Run::current->needs(edge) : static_cast<bool>(edge.node); }
bool running() { return Run::current != nullptr; }
bool keeps_graph() { return Run::current && Run::current->keeps_graph(); }
bool accumulates() { return Run::all_accumulate(); }
void queue_callback(void (*call)(void*), void* data, void (*drop)(void*)) {
  TN_CHECK(Run::current, "Final callbacks can only be installed during backward pass.");
  Run::current->queue({call, data, drop});
}

}  // namespace tn::engine
