// Function transforms: the thread's stack of layers, and the tensors that stand for others at one level of it.
//
// A layer is one running grad, jvp or vmap. While there are any, the keys DynamicLayerFrontMode and
// DynamicLayerBackMode are included: a call first meets the innermost layer, and leaves it for the next one at the back
// key or in a batching rule.
#pragma once
#include <utility>
#include <vector>

#include "runtime/intrusive.h"
#include "runtime/tensor.h"
#include "runtime/value.h"

namespace tn::func {

enum class Transform : uint8_t {
  Torch = 0,
  Vmap = 1,
  Grad = 2,
  Jvp = 3,
  Functionalize = 4
};  // torch._C._functorch.TransformType
enum class Randomness : uint8_t { Error = 0, Same = 1, Different = 2 };  // RandomnessType

// Whether the layer that made a tensor still runs.
class Life : public RefCounted {
 public:
  bool alive = true;
  static void destroy(Life* l) noexcept { delete l; }
};

struct Layer {
  Transform transform = Transform::Torch;
  int64_t level = 0;
  int64_t batch_size = 0;
  Randomness randomness = Randomness::Error;
  bool previous_grad_mode = true;
  bool previous_fw_grad_mode = true;
  Ref<Life> life;
  uint64_t included = 0, excluded = 0;  // the thread's keys when a call met this layer
  // Of torch._vmap_internals: calls without a batched tensor pass it by, so that they build graphs and carry tangents.
  bool older = false;
};

// The value that a tensor stands for at a level. With `batch_dim` >= 0, one element of it along that dimension.
struct Wrapper {
  Tensor value;
  int64_t level = 0;
  int64_t batch_dim = -1;
  Ref<Life> life;
  bool batched() const { return batch_dim >= 0; }
};
void destroy_wrapper(Wrapper* w) noexcept;
Wrapper* copy_wrapper(const Wrapper& w);

std::vector<Layer>& layers();
inline bool active();  // any layer on this thread
// Begins a layer and answers its level; ends the innermost one, whose tensors are dead then.
int64_t begin(Transform transform, int64_t batch_size = 0, Randomness randomness = Randomness::Error);
Layer end(Transform expected);
// For Python's way through the layers: off the stack and on it again, still alive.
Layer take_off();
void put_on(Layer layer);

Tensor wrap_for_grad(const Tensor& value, const Layer& layer);
Tensor wrap_batched(const Tensor& value, int64_t batch_dim, int64_t level);
inline const Wrapper* wrapper_at(const Tensor& t, int64_t level) {
  const Wrapper* const w = t.defined() ? t->wrapper : nullptr;
  return w && w->level == level ? w : nullptr;
}
inline bool is_dead(const Tensor& t) { return t.defined() && t->wrapper && !t->wrapper->life->alive; }
Tensor unwrap_dead(Tensor t);
// Whether a tensor stands for several values at any level: its own geometry then tells nothing of memory.
bool holds_batch(const Tensor& t);
// Takes the geometry anew from the value, after a write that may have changed it.
void refresh(const Tensor& wrapper);
// What a tensor made without a call is inside a transform: its value at every grad layer that runs.
Tensor lift(Tensor t);

// Leaves the innermost layer while it lives: calls then meet the next one, with the keys that held outside.
class BelowTop {
 public:
  BelowTop();
  ~BelowTop();
  BelowTop(const BelowTop&) = delete;
  BelowTop& operator=(const BelowTop&) = delete;
  const Layer& layer() const { return layer_; }

 private:
  Layer layer_;
  uint64_t included_, excluded_;
  bool grad_mode_, fw_grad_mode_;
};

// Owned arguments of a call whose tensors a function replaced.
class MappedArgs {
 public:
  template <class F>
  MappedArgs(std::span<const Arg> args, F&& map) : args_(args.begin(), args.end()) {
    lists_.reserve(args.size());
    for (Arg& a : args_) {
      if (a.tag == Tag::Tensor) {
        owned_.push_back(map(a.tensor()));
        a = Arg::of(owned_.back());
      } else if (a.tag == Tag::TensorList) {
        std::vector<Tensor>& list = lists_.emplace_back();
        for (const Tensor& t : a.tensors()) list.push_back(t.defined() ? map(t) : t);
        a = Arg::of(TensorList(list));
      }
    }
  }
  std::span<const Arg> args() const { return args_; }
  std::vector<Arg>& mutable_args() { return args_; }

 private:
  std::vector<Arg> args_;
  std::vector<Tensor> owned_;
  std::vector<std::vector<Tensor>> lists_;
};
// Calls f with each defined tensor among the arguments.
template <class F>
void for_each_tensor(std::span<const Arg> args, F&& f) {
  for (const Arg& a : args) {
    if (a.tag == Tag::Tensor) f(a.tensor());
    else if (a.tag == Tag::TensorList)
      for (const Tensor& t : a.tensors())
        if (t.defined()) f(t);
  }
}
// Replaces each tensor among results.
template <class F>
void map_results(std::span<Value> results, F&& f) {
  for (Value& v : results) {
    if (v.tag() == Tag::Tensor) v = Value(f(v.arg().tensor()));
    else if (v.tag() == Tag::TensorList)
      for (Tensor& t : v.tensor_vector())
        if (t.defined()) t = f(t);
  }
}

namespace keys {
inline constexpr KeySet kFront = DispatchKey::FuncTorchDynamicLayerFrontMode;
inline constexpr KeySet kBack = DispatchKey::FuncTorchDynamicLayerBackMode;
inline constexpr KeySet kGradWrapper = DispatchKey::FuncTorchGradWrapper;
inline constexpr KeySet kBatched = DispatchKey::FuncTorchBatched;
inline constexpr KeySet kVmapMode = DispatchKey::FuncTorchVmapMode;
inline constexpr KeySet kAutograd = KeySet(DispatchKey::AutogradFunctionality) | KeySet(DispatchKey::AutogradOther) |
                                    KeySet(DispatchKey::AutogradNestedTensor) | KeySet(DispatchKey::ADInplaceOrView);
}  // namespace keys

inline bool active() { return (thread_state.included & keys::kFront.raw()) != 0; }

// Kernels of the keys above; called once by the registry.
void register_keys();
// One call at the innermost layer, a vmap: batching rules (kernels/vmap). Set at start.
using VmapCall = void (*)(OpRow& op, std::span<const Arg> args, Value* out);
extern constinit VmapCall vmap_call;
// Sends a call to the next layer as it is.
void send_on(OpRow& op, std::span<const Arg> args, Value* out);

}  // namespace tn::func
