// A tensor that a node keeps for its backward, with the version it had.
#pragma once
#include <vector>

#include "runtime/autograd/node.h"

namespace tn {

// A tensor that saved_tensors_hooks packed: what it unpacks to, and where its gradients go.
class PackedTensor : public RefCounted {
 public:
  virtual ~PackedTensor() = default;
  virtual Tensor unpack() = 0;
  static void destroy(PackedTensor* p) noexcept { delete p; }

  Edge edge;
};
// This thread's innermost hooks; null without. Bindings set it.
using Packer = Ref<PackedTensor> (*)(const Tensor& t);
extern constinit thread_local Packer saved_tensor_packer;

class CopySlices;

class SavedVariable {
 public:
  SavedVariable() = default;
  // `is_output`: a result of the node that saves it. Its history is the node itself, so only its data is kept here.
  // `written_by`: that node, where it wrote to the tensor in place.
  SavedVariable(const Tensor& t, bool is_output, const Node* written_by = nullptr);
  SavedVariable(OptionalTensor t, bool is_output) : SavedVariable(t ? *t : Tensor(), is_output) {}

  // The tensor as it was. RuntimeError when it was freed, or changed in place since.
  Tensor unpack(const Node& saved_for) const;
  // Another thread's backward may unpack meanwhile: it gets the whole value, or the error.
  void reset();
  // Packs what is kept with hooks of its own. RuntimeError when hooks packed it already, or it was freed.
  void set_packer(Packer packer);
  const Tensor& data() const { return data_; }
  PackedTensor* packed() const { return packed_.get(); }  // null unless hooks packed it
  bool released() const { return released_; }

 private:
  void pack(const Tensor& t, Packer packer);
  Tensor unpacked(PackedTensor& packed, const Node& saved_for) const;
  // Of a result: the node that saves it; where it wrote to a view, what the view has as history since.
  Edge history(const Node& saved_for) const;

  Tensor data_;
  Tensor tangent_;                // of an output; an input still has its own
  Ref<PackedTensor> packed_;      // instead of data_
  CopySlices* slices_ = nullptr;  // owns the node that saves this, which wrote to a view
  uint32_t version_ = 0;
  uint32_t output_nr_ = 0;
  bool is_output_ = false;
  bool needs_grad_ = false;
  bool released_ = false;
  mutable uint8_t busy_ = 0;  // a lock, for the moment in which references are copied
};

std::vector<SavedVariable> save_list(TensorList list, bool is_output);
std::vector<Tensor> unpack_list(const std::vector<SavedVariable>& list, const Node& saved_for);
// For saved numbers, after release.
[[noreturn]] void fail_released();

}  // namespace tn
