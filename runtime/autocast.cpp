#include "runtime/autocast.h"

#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/autograd_meta.h"
#include "runtime/op_table.h"

namespace tn {

// Order and defaults as in bindings/grad_mode.cpp's devices.
constinit thread_local AutocastState autocast_state{
    {ScalarType::BFloat16, ScalarType::Half, ScalarType::Half, ScalarType::BFloat16, ScalarType::Half, ScalarType::Half,
     ScalarType::BFloat16, ScalarType::BFloat16, ScalarType::Half, ScalarType::Half},
    false,
    0};

namespace {

// Casts of float leaves, so that a parameter used twice is cast once. The leaf is kept: its address is the
// key.
struct CastCache {
  struct Entry {
    Tensor leaf, cast;
  };
  std::mutex mutex;
  std::unordered_map<const TensorImpl*, Entry> entries;
};
CastCache& cache() {
  static CastCache* const one = new CastCache();  // outlives threads that end after main
  return *one;
}

bool eligible(const Tensor& t) {
  return t.defined() && t.is_cpu() && t.is_floating_point() && t.dtype() != ScalarType::Double;
}

Tensor cast_now(const Tensor& t, ScalarType dtype) {
  return door::Call<Tensor(const Tensor&, ScalarType, bool, bool, std::optional<MemoryFormat>)>::call(
      op_rows[kOp_to_dtype], t, dtype, false, false, std::nullopt);
}

Tensor cast_cached(const Tensor& t, ScalarType dtype) {
  const bool keep = !autocast_state.cache_off && dtype == autocast_state.dtypes[kAutocastCpu] &&
                    t.dtype() == ScalarType::Float && t.requires_grad() && is_leaf(t) && !is_view(t);
  if (!keep) return cast_now(t, dtype);
  CastCache& c = cache();
  {
    std::lock_guard lock(c.mutex);
    const auto found = c.entries.find(t.impl());
    if (found != c.entries.end()) return found->second.cast;
  }
  Tensor made = cast_now(t, dtype);
  std::lock_guard lock(c.mutex);
  return c.entries.emplace(t.impl(), CastCache::Entry{t, made}).first->second.cast;
}

// An operator's arguments with its tensors cast; owns the casts.
class CastArguments {
 public:
  CastArguments(std::span<const Arg> args, ScalarType dtype) : args_(args.begin(), args.end()) {
    owned_.reserve(args.size());
    lists_.reserve(args.size());
    for (Arg& a : args_) {
      if (a.tag == Tag::Tensor) {
        const Tensor& t = a.tensor();
        if (!eligible(t) || t.dtype() == dtype) continue;
        a = Arg::of(owned_.emplace_back(cast_cached(t, dtype)));
      } else if (a.tag == Tag::TensorList) {
        std::vector<Tensor>& list = lists_.emplace_back();
        for (const Tensor& t : a.tensors())
          list.push_back(eligible(t) && t.dtype() != dtype ? cast_cached(t, dtype) : t);
        a = Arg::of(TensorList(list));
      }
    }
  }
  std::span<const Arg> get() const { return args_; }

 private:
  std::vector<Arg> args_;
  std::vector<Tensor> owned_;
  std::vector<std::vector<Tensor>> lists_;
};

ScalarType widest(std::span<const Arg> args) {
  ScalarType found = autocast_state.dtypes[kAutocastCpu];
  const ScalarType lower = found;
  const auto see = [&](const Tensor& t) {
    if (!eligible(t)) return;
    if (found == ScalarType::Float || t.dtype() == ScalarType::Float) found = ScalarType::Float;
    else TN_CHECK(t.dtype() == lower, "Unexpected floating ScalarType in at::autocast::prioritize");
  };
  for (const Arg& a : args) {
    if (a.tag == Tag::Tensor) see(a.tensor());
    else if (a.tag == Tag::TensorList)
      for (const Tensor& t : a.tensors()) see(t);
  }
  return found;
}

class AutocastKernel final : public BoxedKernel {
 public:
  explicit AutocastKernel(AutocastPolicy policy) : policy_(policy) {}
  void call(OpRow& op, KeySet, std::span<const Arg> args, Value* out) override {
    const ExcludeGuard outside(KeySet(ThreadState::kAutocastKeys));
    const ScalarType dtype = policy_ == AutocastPolicy::LowerPrecision ? autocast_state.dtypes[kAutocastCpu]
                             : policy_ == AutocastPolicy::Fp32         ? ScalarType::Float
                                                                       : widest(args);
    const CastArguments cast(args, dtype);
    const KeySet below = KeySet(KeySet::below(DispatchKey::AutocastCPU).raw() | KeySet::kNeedsGrad);
    door::redispatch_boxed(op, KeySet(door::effective(op, door::keys_of(cast.get()))) & below, cast.get(), out);
  }

 private:
  AutocastPolicy policy_;
};

}  // namespace

void init_autocast() {
  const Ref<BoxedKernel> kernels[] = {Ref<BoxedKernel>::adopt(new AutocastKernel(AutocastPolicy::LowerPrecision)),
                                      Ref<BoxedKernel>::adopt(new AutocastKernel(AutocastPolicy::Fp32)),
                                      Ref<BoxedKernel>::adopt(new AutocastKernel(AutocastPolicy::Promote))};
  for (const AutocastRow* r = autocast_rows; r->op != AutocastRow::kEnd; ++r)
    register_kernel(op_rows[r->op],
                    {.key = DispatchKey::AutocastCPU, .boxed = kernels[static_cast<size_t>(r->policy)]});
}

void clear_autocast_cache() {
  std::unordered_map<const TensorImpl*, CastCache::Entry> dropped;
  const std::lock_guard lock(cache().mutex);
  dropped.swap(cache().entries);
}

}  // namespace tn
