// One node for the results of an operator over lists: upstream's, around the nodes that the elements made.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "runtime/tensor.h"

namespace tn::foreach {

// Generated from derivatives.yaml; ends with a null name.
struct NodeName {
  uint16_t op;  // OpId
  const char* name;
};
extern const NodeName node_names[];

// The results as they came, with one node over those of the elements where some element needs a gradient.
// `inputs` are the differentiable arguments in order: lists as long as the results, or one tensor that all
// elements share.
std::vector<Tensor> joined(size_t op, std::initializer_list<TensorList> inputs, std::vector<Tensor> results);

}  // namespace tn::foreach
