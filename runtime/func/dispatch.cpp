// The kernels of the transforms' keys: into the innermost layer at the front, out of it at the back.
#include <string_view>

#include "runtime/door.h"
#include "runtime/error.h"
#include "runtime/func/layers.h"
#include "runtime/schema.h"

namespace tn::func {

namespace {

constexpr uint64_t kAll = keys::kFront.raw() | keys::kGradWrapper.raw() | keys::kBatched.raw() | keys::kVmapMode.raw() |
                          keys::kAutograd.raw();
// Backend bits belong to no functionality alone.
constexpr uint64_t bits(uint64_t raw) { return raw & ~KeySet::kBackendMask; }

// The keys that hold inside a layer; what held outside is kept by the layer and put back at the end.
class Inside {
 public:
  explicit Inside(Transform transform)
      : index_(layers().size() - 1), included_(thread_state.included), excluded_(thread_state.excluded) {
    Layer& layer = layers()[index_];
    before_included_ = std::exchange(layer.included, included_);
    before_excluded_ = std::exchange(layer.excluded, excluded_);
    const uint64_t entering =
        bits(transform == Transform::Vmap ? keys::kBatched.raw() | keys::kVmapMode.raw() : keys::kAutograd.raw());
    thread_state.excluded = (excluded_ | bits(kAll)) & ~entering;
    if (transform == Transform::Vmap) thread_state.included |= keys::kVmapMode.raw();
  }
  ~Inside() {
    thread_state.included = included_;
    thread_state.excluded = (excluded_ & ~KeySet::kOurs) | (thread_state.excluded & KeySet::kOurs);
    if (index_ >= layers().size()) return;
    layers()[index_].included = before_included_;
    layers()[index_].excluded = before_excluded_;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  size_t index_;
  uint64_t included_, excluded_, before_included_, before_excluded_;
};

bool writes(OpRow& op, size_t argument) {
  const auto& arguments = schema_of(op).arguments();
  return argument < arguments.size() && arguments[argument].alias && arguments[argument].alias->is_write;
}

void check_captures(OpRow& op, std::span<const Arg> args, const Layer& layer) {
  if (!op.info->is(OpInfo::kMutates)) return;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].tag != Tag::Tensor || wrapper_at(args[i].tensor(), layer.level) || !writes(op, i)) continue;
    fail(ErrorKind::Runtime,
         "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation (",
         op.info->name, *op.info->overload ? "." : "", op.info->overload,
         ") that would mutate a captured Tensor. This is not supported; please rewrite the function being transformed "
         "to explicitly accept "
         "the mutated Tensor(s) as inputs.");
  }
}

bool passes_by(const OpRow& op, std::span<const Arg> args) {
  const Layer& layer = layers().back();
  const std::string_view name = op.info->name;
  if (!layer.older || name.ends_with("_batch_dim")) return false;
  if (name == "aten::_make_dual") return true;  // a tangent may hold a batch where its value doesn't
  bool batched = false;
  for_each_tensor(args, [&](const Tensor& t) { batched |= wrapper_at(t, layer.level) != nullptr; });
  return !batched;
}

class FrontKey final : public BoxedKernel {
 public:
  void call(OpRow& op, KeySet keys, std::span<const Arg> given, Value* out) override {
    TN_CHECK(!layers().empty(), op.info->name, ": expected a running function transform, got none");
    if (passes_by(op, given)) {
      constexpr KeySet kBelow = KeySet::below(DispatchKey::FuncTorchDynamicLayerFrontMode);
      return door::redispatch_boxed(op, (keys & kBelow).remove(DispatchKey::FuncTorchBatched), given, out);
    }
    bool dead = false;
    for_each_tensor(given, [&](const Tensor& t) { dead |= is_dead(t); });
    if (!dead) return enter(op, given, out);
    const MappedArgs alive(given, [](const Tensor& t) { return unwrap_dead(t); });
    enter(op, alive.args(), out);
  }

 private:
  static void enter(OpRow& op, std::span<const Arg> args, Value* out) {
    const Layer layer = layers().back();
    const Inside inside(layer.transform);
    if (layer.transform == Transform::Vmap) return vmap_call(op, args, out);
    check_captures(op, args, layer);
    const MappedArgs lifted(args,
                            [&](const Tensor& t) { return wrapper_at(t, layer.level) ? t : wrap_for_grad(t, layer); });
    door::call_boxed(op, lifted.args(), out);
  }
};

class BackKey final : public BoxedKernel {
 public:
  void call(OpRow& op, KeySet keys, std::span<const Arg> args, Value* out) override {
    const bool entered = (thread_state.excluded & bits(keys::kFront.raw())) != 0;
    if (entered || !passes_by(op, args)) return send_on(op, args, out);
    constexpr KeySet kBelow = KeySet::below(DispatchKey::FuncTorchDynamicLayerBackMode);
    door::redispatch_boxed(op, keys & kBelow, args, out);
  }
};

class VmapModeKey final : public BoxedKernel {
 public:
  void call(OpRow& op, KeySet, std::span<const Arg> args, Value* out) override { vmap_call(op, args, out); }
};

// Outside of its layer a tensor is what it stood for; inside (with the layers disabled) it passes.
class GradWrapperKey final : public BoxedKernel {
 public:
  void call(OpRow& op, KeySet keys, std::span<const Arg> args, Value* out) override {
    bool dead = false;
    for_each_tensor(args, [&](const Tensor& t) { dead |= is_dead(t); });
    if (!dead) return door::redispatch_boxed(op, keys & KeySet::below(DispatchKey::FuncTorchGradWrapper), args, out);
    const MappedArgs alive(args, [](const Tensor& t) { return unwrap_dead(t); });
    door::call_boxed(op, alive.args(), out);
  }
};

class BatchedKey final : public BoxedKernel {
 public:
  void call(OpRow& op, KeySet, std::span<const Arg> args, Value* out) override {
    TN_CHECK(!layers().empty() && layers().back().transform == Transform::Vmap, op.info->name,
             ": expected tensors of the running vmap, got a batched tensor that escaped from one");
    vmap_call(op, args, out);
  }
};

}  // namespace

void send_on(OpRow& op, std::span<const Arg> args, Value* out) {
  const Layer layer = layers().back();
  const bool wraps = layer.transform == Transform::Grad || layer.transform == Transform::Jvp;
  const MappedArgs values(args, [&](const Tensor& t) {
    const Wrapper* const w = wrapper_at(t, layer.level);
    return w && !w->batched() ? w->value : t;
  });
  {
    const BelowTop below;
    door::call_boxed(op, values.args(), out);
  }
  if (!wraps) return;
  if (op.info->is(OpInfo::kMutates))
    for_each_tensor(args, [&](const Tensor& t) {
      if (wrapper_at(t, layer.level)) refresh(t);
    });
  map_results({out, op.info->num_returns}, [&](const Tensor& result) {
    Tensor same;
    for_each_tensor(args, [&](const Tensor& t) {
      const Wrapper* const w = wrapper_at(t, layer.level);
      if (w && w->value.is_same(result)) same = t;
    });
    return same.defined() ? same : wrap_for_grad(result, layer);
  });
}

void register_keys() {
  register_fallback(DispatchKey::FuncTorchDynamicLayerFrontMode, Ref<BoxedKernel>::adopt(new FrontKey()), false);
  register_fallback(DispatchKey::FuncTorchDynamicLayerBackMode, Ref<BoxedKernel>::adopt(new BackKey()), false);
  register_fallback(DispatchKey::FuncTorchGradWrapper, Ref<BoxedKernel>::adopt(new GradWrapperKey()), false);
  register_fallback(DispatchKey::FuncTorchBatched, Ref<BoxedKernel>::adopt(new BatchedKey()), false);
  register_fallback(DispatchKey::FuncTorchVmapMode, Ref<BoxedKernel>::adopt(new VmapModeKey()), false);
}

}  // namespace tn::func
