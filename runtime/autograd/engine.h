// Runs the backward graph.
#pragma once
#include <vector>

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
// The run that this thread is in: whether it keeps the graph; whether there is one.
bool running();
bool keeps_graph();
// Whether every run that this thread is in accumulates into leaves (re-entrant checkpoints need it).
bool accumulates();
// Called once this thread's innermost run is done.
void queue_callback(void (*call)(void*), void* data, void (*drop)(void*));

// What bindings add: hooks that Python keeps on a tensor's object. Null without Python.
struct TensorHooks {
  void (*leaf)(const Tensor& leaf, Tensor& grad);
  void (*accumulated)(const Tensor& leaf);
};
extern constinit TensorHooks tensor_hooks;
// Anomaly mode.
struct Anomaly {
  bool enabled = false;
  bool check_nan = true;
};
extern constinit Anomaly anomaly;

}  // namespace tn::engine
