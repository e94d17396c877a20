// Runs the backward graph.
#pragma once
#include <vector>

#include "runtime/autograd/anomaly.h"
#include "runtime/autograd/node.h"

namespace tn::engine {

struct Request {
  std::vector<Edge> roots;
  GradList grads;            // one a root
  std::vector<Edge> wanted;  // empty: accumulate into leaves
  bool keep_graph = false;
  bool create_graph = false;
  bool accumulate = true;  // with `wanted`: accumulate into these leaves rather than answer
};

// Gradients for `wanted`, undefined where there is none. Runs on the calling thread; calls nest.
GradList run(Request request);

// For formulas: whether this run needs the gradient that goes along the edge.
bool needs(const Edge& edge);

// ---- what hooks may ask of the run that this thread is in ---------------------------------------------------------
bool running();
// Whether the run keeps the graph; true outside of runs, as upstream.
bool keeps_graph();
// Whether every run that this thread is in accumulates into leaves (re-entrant checkpoints need it).
bool accumulates();
// Counts runs; -1 outside.
int64_t run_id();
// The node that is being evaluated, hooks included; null outside.
Node* current_node();
// Whether the run will evaluate (or has evaluated) this node. RuntimeError for a leaf that only gets its gradient read.
bool will_evaluate(const Node* node);
// The nodes of the run in the order of their evaluation.
std::vector<Node*> order();
// Called once this thread's innermost run is done.
void queue_callback(void (*call)(void*), void* data, void (*drop)(void*));

// Gradients fit what the forward gave: broadcast dimensions are summed away, the dtype is the result's. Errors start
// with what `who` did ("Function MulBackward0 returned an "), or with nothing where it is null.
void check_gradients(const std::vector<Edge>& edges, GradList& grads, const Node* who);

// What bindings add: hooks that Python keeps on a tensor's object. Null without Python.
struct TensorHooks {
  void (*leaf)(const Tensor& leaf, Tensor& grad);  // the gradient may be undefined
  void (*accumulated)(const Tensor& leaf);
};
extern constinit TensorHooks tensor_hooks;

}  // namespace tn::engine
