// Anomaly mode: nodes remember where they were made, so that an error in the backward can say so.
#pragma once

namespace tn {

class Node;

namespace engine {

struct Anomaly {
  bool enabled = false;
  bool check_nan = true;
  // What bindings add; null without Python. `made` keeps the trace of a new node, `explain` warns with the trace of a
  // node that failed.
  void (*made)(Node& node) = nullptr;
  void (*explain)(const Node& node) = nullptr;
};
extern constinit Anomaly anomaly;

}  // namespace engine
}  // namespace tn
