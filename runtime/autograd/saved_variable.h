// A tensor that a node keeps for its backward, with the version it had.
#pragma once
#include <vector>

#include "runtime/autograd/node.h"

namespace tn {

class SavedVariable {
 public:
  SavedVariable() = default;
  // `is_output`: a result of the node that saves it. Its history is the node itself, so only its data is kept here.
  SavedVariable(const Tensor& t, bool is_output);
  SavedVariable(OptionalTensor t, bool is_output) : SavedVariable(t ? *t : Tensor(), is_output) {}

  // The tensor as it was. RuntimeError when it was freed, or changed in place since.
  Tensor unpack(const Node& saved_for) const;
  void reset() {
    data_.reset();
    tangent_.reset();
    released_ = true;
  }
  bool released() const { return released_; }

 private:
  Tensor data_;
  Tensor tangent_;  // of an output; an input still has its own
  uint32_t version_ = 0;
  uint32_t output_nr_ = 0;
  bool is_output_ = false;
  bool needs_grad_ = false;
  bool released_ = false;
};

std::vector<SavedVariable> save_list(TensorList list, bool is_output);
std::vector<Tensor> unpack_list(const std::vector<SavedVariable>& list, const Node& saved_for);
// For saved numbers, after release.
[[noreturn]] void fail_released();

}  // namespace tn
