#include "runtime/autograd/saved_variable.h"

#include <atomic>
#include <thread>

#include "generated/ops/detach.h"
#include "runtime/autograd/copy_slices.h"
#include "runtime/autograd/engine.h"
#include "runtime/autograd/names.h"
#include "runtime/autograd_meta.h"
#include "runtime/keyset.h"

namespace tn {

constinit thread_local Packer saved_tensor_packer = nullptr;

void fail_released() {
  fail(ErrorKind::Runtime,
       "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
       "been freed). Saved "
       "intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
       "retain_graph=True if you need to "
       "backward through the graph a second time or if you need to access saved tensors after calling backward.");
}

namespace {

// The same data under a header of its own. What lies behind a tensor of Python's only its class knows.
Tensor without_history(const Tensor& t) {
  if (t->python_dispatch) {
    const GradModeGuard no_grad(false);
    return at::detach(t);
  }
  Tensor alias = alias_with_geometry(t, t.sizes(), t.strides(), t.storage_offset());
  alias->share_version(*t.impl());
  return alias;
}

class Lock {
 public:
  explicit Lock(uint8_t& busy) : busy_(busy) {
    while (busy_.exchange(1, std::memory_order_acquire) != 0) std::this_thread::yield();
  }
  ~Lock() { busy_.store(0, std::memory_order_release); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  std::atomic_ref<uint8_t> busy_;
};

}  // namespace

void SavedVariable::reset() {
  Tensor data, tangent;  // die after the lock
  Ref<PackedTensor> packed;
  const Lock lock(busy_);
  std::swap(data, data_);
  std::swap(tangent, tangent_);
  std::swap(packed, packed_);
  released_ = true;
}

SavedVariable::SavedVariable(const Tensor& t, bool is_output, const Node* written_by) {
  if (!t.defined()) return;
  TN_CHECK(!t->is_inference(),
           "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
           "computation tracked by "
           "autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use "
           "`torch.no_grad()` "
           "instead of `torch.inference_mode()`.");
  version_ = t->version();
  needs_grad_ = t.requires_grad();
  is_output_ = is_output;
  if (is_output) output_nr_ = t->autograd ? t->autograd->output_nr : 0;
  if (written_by && is_view(t)) slices_ = CopySlices::around(*written_by, t);
  if (__builtin_expect(saved_tensor_packer != nullptr, 0) && !t->is_wrapped_number()) {
    pack(t, saved_tensor_packer);
    return;
  }
  if (!is_output) {
    data_ = t;
    return;
  }
  // Keeping the result itself would close a cycle through its history.
  data_ = without_history(t);
  tangent_ = forward::tangent_of(t);
}

void SavedVariable::set_packer(Packer packer) {
  TN_CHECK(!packed_,
           "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks "
           "is allowed at a time.");
  TN_CHECK(!released_,
           "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph "
           "are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward "
           "through the graph a second time or if you need to access saved variables after calling backward.");
  TN_CHECK(data_.defined(), "Calling register_hooks on a saved tensor with value None is forbidden");
  const Tensor data = std::move(data_);
  data_ = Tensor();
  pack(data, packer);
}

void SavedVariable::pack(const Tensor& t, Packer packer) {
  // A result's history is this very node, which the hook must not see.
  const Tensor given = is_output_ ? alias_with_geometry(t, t.sizes(), t.strides(), t.storage_offset()) : t;
  const GradModeGuard no_grad(false);
  packed_ = packer(given);
  if (!is_output_ && needs_grad_) packed_->edge = gradient_edge(t);
}

Tensor SavedVariable::unpacked(PackedTensor& packed, const Node& saved_for) const {
  const Tensor given = packed.unpack();
  if (!needs_grad_ || !(given.is_floating_point() || given.is_complex())) return given;
  Tensor t = alias_with_geometry(given, given.sizes(), given.strides(), given.storage_offset());
  AutogradMeta& meta = autograd_meta(t);
  const Edge from = is_output_ ? history(saved_for) : packed.edge;
  meta.grad_fn = from.node;
  meta.output_nr = from.input;
  meta.attr_version = t->version();
  t->set_requires_grad_bit(true);
  return t;
}

Edge SavedVariable::history(const Node& saved_for) const {
  if (slices_) return {slices_->history_of_view(), 0};
  return {Ref<Node>::share(const_cast<Node*>(&saved_for)), output_nr_};
}

Tensor SavedVariable::unpack(const Node& saved_for) const {
  Tensor data, tangent;
  Ref<PackedTensor> packed;
  {
    const Lock lock(busy_);
    data = data_;
    tangent = tangent_;
    packed = packed_;
  }
  if (packed) return unpacked(*packed, saved_for);
  if (!data.defined()) {
    if (released_) fail_released();
    return {};
  }
  if (data->version() != version_) {
    const Ref<Node>& fn = is_output_ ? Ref<Node>::share(const_cast<Node*>(&saved_for)) : grad_fn_of(data);
    const uint32_t nr = is_output_ ? output_nr_ : data->autograd ? data->autograd->output_nr : 0;
    const std::string from = fn ? str(", which is output ", nr, " of ", forward_name(*fn), ",") : std::string();
    fail(ErrorKind::Runtime,
         "one of the variables needed for gradient computation has been modified by an inplace operation: [torch.",
         scalar_type_name(data.dtype()), "Tensor ", data.sizes(), "]", from, " is at version ", data->version(),
         "; expected version ", version_,
         engine::anomaly.enabled
             ? " instead. Hint: the backtrace further above shows the operation that failed to compute its gradient. "
               "The variable in question was changed in there or anywhere later. Good luck!"
             : " instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, "
               "with torch.autograd.set_detect_anomaly(True, check_nan=False).");
  }
  if (!is_output_) return data;
  Tensor t = without_history(data);
  // A result without a derivative has no history.
  if (needs_grad_ && (t.is_floating_point() || t.is_complex())) {
    AutogradMeta& meta = autograd_meta(t);
    const Edge from = history(saved_for);
    meta.grad_fn = from.node;
    meta.output_nr = from.input;
    meta.attr_version = t->version();
    t->set_requires_grad_bit(true);
    if (tangent.defined()) forward::set_tangent(t, tangent, false);
  }
  return t;
}

std::vector<SavedVariable> save_list(TensorList list, bool is_output) {
  std::vector<SavedVariable> saved;
  saved.reserve(list.size());
  for (const Tensor& t : list) saved.emplace_back(t, is_output);
  return saved;
}
std::vector<Tensor> unpack_list(const std::vector<SavedVariable>& list, const Node& saved_for) {
  std::vector<Tensor> out;
  out.reserve(list.size());
  for (const SavedVariable& s : list) out.push_back(s.unpack(saved_for));
  return out;
}

}  // namespace tn
