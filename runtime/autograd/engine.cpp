#include "runtime/autograd/engine.h"

#include <atomic>
#include <queue>
#include <unordered_map>

#include "generated/ops/add.h"
#include "generated/ops/any.h"
#include "generated/ops/item.h"
#include "generated/ops/ne.h"
#include "runtime/autograd/engine_threads.h"
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
  bool needed = true;      // evaluated, and not only read
  bool queued = false;
  bool executes() const { return needed || capture >= 0; }

  void add(size_t i, Tensor t) {
    if (grads.size() <= i) grads.resize(i + 1);
    ours.resize(grads.size());
    if (!t.defined()) return;
    Tensor& into = grads[i];
    if (!into.defined()) into = std::move(t);
    else if (ours[i] && !grad_mode() && into->use_count() == 1 && !into->python_dispatch && !t->wrapper)
      at::add_(into, t);
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

// A node that is being evaluated, hooks included.
class Evaluating {
 public:
  explicit Evaluating(Node* node) : outer_(current) { current = node; }
  ~Evaluating() { current = outer_; }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;
  static constinit thread_local Node* current;

 private:
  Node* outer_;
};
constinit thread_local Node* Evaluating::current = nullptr;

constinit std::atomic<int64_t> run_count = 0;

class Run {
 public:
  explicit Run(Request& request)
      : request_(request),
        outer_(current),
        depth_(current ? current->depth_ + 1 : 1),
        id_(run_count.fetch_add(1, std::memory_order_relaxed)) {
    current = this;
  }
  ~Run() {
    current = outer_;
    for (Callback& c : callbacks_) c.drop(c.data);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  GradList go();

  bool needs(const Edge& e) const {
    if (!e.node) return false;
    if (request_.wanted.empty()) return true;
    const auto it = nodes_.find(e.node.get());
    return it != nodes_.end() && it->second.executes();
  }
  bool keeps_graph() const { return request_.keep_graph; }
  bool will_evaluate(const Node* node) const;
  std::vector<Node*> order() const;
  static bool all_accumulate() {
    for (const Run* r = current; r; r = r->outer_)
      if (!r->request_.wanted.empty()) return false;
    return true;
  }
  void queue(Callback c) { callbacks_.push_back(c); }
  int64_t id() const { return id_; }
  size_t depth() const { return depth_; }
  static constinit thread_local Run* current;

 private:
  void count();
  void mark_needed();
  void give_roots();
  void evaluate(const Ref<Node>& node);
  void evaluate_or_explain(const Ref<Node>& node);
  bool capture(const Pending& p, const GradList& grads);
  void deliver(const Node& node, GradList& results);
  Pending& pending(Node* n) { return nodes_[n]; }

  Request& request_;
  Run* outer_;
  size_t depth_;
  int64_t id_;
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
    if (request_.accumulate) {
      it->second.needed = true;
      continue;
    }
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
        if (e.node && pending(e.node.get()).executes()) pending(done).needed = true;
    }
  }
}

// What `wanted` asks for is read once the tensor's own hooks ran. False: nothing else hangs on this node.
bool Run::capture(const Pending& p, const GradList& grads) {
  for (int32_t c = p.capture; c >= 0; c = captures_[static_cast<size_t>(c)].next) {
    const Capture& at = captures_[static_cast<size_t>(c)];
    if (at.input < grads.size()) results_[at.result] = grads[at.input];
  }
  return p.needed;
}

// In upstream's order: hooks of tensors, captures, hooks before the node, the node, its checks, hooks after it.
void Run::evaluate(const Ref<Node>& node) {
  const Evaluating now(node.get());
  const profile::NodeRange range("autograd::engine::evaluate_function: ", node->name(), node->sequence(),
                                 profile::Scope::Function);
  Pending& p = nodes_.find(node.get())->second;
  GradList grads = std::move(p.grads);
  grads.resize(std::max(grads.size(), node->num_inputs()));
  if (const Tensor* const leaf = node->leaf(); leaf && tensor_hooks.leaf) tensor_hooks.leaf(*leaf, grads[0]);
  for (const auto* hooks : {&node->tensor_hooks, &node->retain_hooks})
    for (size_t i = 0; i < hooks->size(); ++i) Ref<PreHook>((*hooks)[i])->call(grads);
  if (!capture(p, grads)) return;
  for (size_t i = 0; i < node->pre_hooks.size(); ++i) Ref<PreHook>(node->pre_hooks[i])->call(grads);
  GradList given;
  if (!node->post_hooks.empty()) given = grads;
  GradList results = [&] {
    const profile::NodeRange running("", node->name(), node->sequence(), profile::Scope::Backward,
                                     TensorList(grads.data(), grads.size()));
    return node->apply(std::move(grads));
  }();
  check_gradients(node->edges, results, node.get());
  // One that came while the node ran sees no gradients.
  for (size_t i = 0; i < node->post_hooks.size(); ++i) {
    given.resize(std::max(given.size(), node->num_inputs()));
    Ref<PostHook>(node->post_hooks[i])->call(results, given);
  }
  if (!request_.keep_graph) node->release_variables();
  if (__builtin_expect(anomaly.enabled, 0) && anomaly.check_nan) {
    const GradModeGuard off(false);
    for (size_t i = 0; i < results.size(); ++i)
      TN_CHECK(!results[i].defined() || !has_nan(results[i]), "Function '", node->name(),
               "' returned nan values in its ", i, "th output.");
  }
  deliver(*node, results);
}

void Run::deliver(const Node& node, GradList& results) {
  for (size_t i = 0; i < node.edges.size(); ++i) {
    const Edge& e = node.edges[i];
    if (!e.node) continue;
    Pending& to = nodes_.find(e.node.get())->second;
    --to.missing;
    if (!to.executes()) continue;
    if (i < results.size()) to.add(e.input, std::move(results[i]));
    if (to.missing == 0) {
      to.queued = true;
      ready_.push({e.node->sequence(), e.node});
    }
  }
}

void Run::evaluate_or_explain(const Ref<Node>& node) {
  try {
    evaluate(node);
  } catch (...) {
    if (anomaly.enabled && anomaly.explain) anomaly.explain(*node);
    throw;
  }
}

bool Run::will_evaluate(const Node* node) const {
  const auto it = nodes_.find(const_cast<Node*>(node));
  if (it == nodes_.end()) return false;
  if (request_.wanted.empty()) return true;
  TN_CHECK(it->second.capture < 0 || !node->edges.empty(),
           "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). This is "
           "currently not supported.");
  return it->second.executes();
}

std::vector<Node*> Run::order() const {
  std::unordered_map<const Node*, uint32_t> missing;
  for (const Node* n : order_)
    for (const Edge& e : n->edges)
      if (e.node) ++missing[e.node.get()];
  const auto before = [](const Node* a, const Node* b) { return a->sequence() < b->sequence(); };
  std::priority_queue<Node*, std::vector<Node*>, decltype(before)> ready(before);
  for (const Edge& root : request_.roots)
    if (root.node && missing.try_emplace(root.node.get(), 0).second) ready.push(root.node.get());
  std::vector<Node*> found;
  while (!ready.empty()) {
    Node* const n = ready.top();
    ready.pop();
    found.push_back(n);
    for (const Edge& e : n->edges)
      if (e.node && nodes_.find(e.node.get())->second.executes() && --missing[e.node.get()] == 0)
        ready.push(e.node.get());
  }
  return found;
}

void Run::give_roots() {
  for (size_t i = 0; i < request_.roots.size(); ++i) {
    const Edge& e = request_.roots[i];
    if (e.node) pending(e.node.get()).add(e.input, request_.grads[i]);
  }
  request_.grads.clear();
  for (const Edge& e : request_.roots) {
    if (!e.node) continue;
    Pending& p = pending(e.node.get());
    if (p.missing != 0 || p.queued || !p.executes()) continue;
    p.queued = true;
    ready_.push({e.node->sequence(), e.node});
  }
}

GradList Run::go() {
  check_gradients(request_.roots, request_.grads, nullptr);
  count();
  if (!request_.wanted.empty()) mark_needed();
  const GradModeGuard mode(request_.create_graph);
  give_roots();
  const ThreadState inside = thread_state;  // what a hook switches ends with its node
  while (!ready_.empty()) {
    const Ref<Node> node = ready_.top().node;
    ready_.pop();
    evaluate_or_explain(node);
    thread_state = inside;
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
bool keeps_graph() { return !Run::current || Run::current->keeps_graph(); }
int64_t run_id() { return Run::current ? Run::current->id() : -1; }
Node* current_node() { return Evaluating::current; }
size_t depth() { return Run::current ? Run::current->depth() : 0; }
Place place() { return {Run::current, Evaluating::current, thread_state}; }
void take_place(const Place& place) {
  Run::current = static_cast<Run*>(place.run);
  Evaluating::current = place.node;
  thread_state = place.state;
}
bool will_evaluate(const Node* node) {
  TN_CHECK(Run::current, "_get_should_execute_nodes should only be called during the backward pass");
  return Run::current->will_evaluate(node);
}
std::vector<Node*> order() {
  TN_CHECK(Run::current, "_current_graph_task_execution_order should only be called during the backward pass");
  return Run::current->order();
}
bool accumulates() { return Run::all_accumulate(); }
void queue_callback(void (*call)(void*), void* data, void (*drop)(void*)) {
  TN_CHECK(Run::current, "Final callbacks can only be installed during backward pass.");
  Run::current->queue({call, data, drop});
}

}  // namespace tn::engine
