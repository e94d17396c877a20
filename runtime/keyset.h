// Dispatch keys with upstream's names, values and order, sets of them, and the thread's part in dispatch.
#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/device.h"

namespace tn {

// Values are upstream's. Functionality keys (1..46) make up a KeySet together with backend bits; the per-backend
// runtime keys (49..149) and the alias keys (150..155) only name rows in the operator table.
enum class DispatchKey : uint16_t {
  Undefined = 0,
  Dense = 1,
  FPGA = 2,
  Vulkan = 3,
  Metal = 4,
  Quantized = 5,
  CustomRNGKeyId = 6,
  MkldnnCPU = 7,
  Sparse = 8,
  SparseCsr = 9,
  NestedTensor = 10,
  BackendSelect = 11,
  Fake = 12,
  Python = 13,
  FuncTorchDynamicLayerBackMode = 14,
  Functionalize = 15,
  Conjugate = 16,
  Negative = 17,
  ZeroTensor = 18,
  ADInplaceOrView = 19,
  AutogradOther = 20,
  AutogradFunctionality = 21,
  AutogradNestedTensor = 22,
  Tracer = 23,
  AutocastCPU = 24,
  AutocastMTIA = 25,
  AutocastMAIA = 26,
  AutocastXPU = 27,
  AutocastIPU = 28,
  AutocastHPU = 29,
  AutocastXLA = 30,
  AutocastMPS = 31,
  AutocastCUDA = 32,
  AutocastPrivateUse1 = 33,
  FuncTorchBatched = 34,
  BatchedNestedTensor = 35,
  FuncTorchVmapMode = 36,
  Batched = 37,
  VmapMode = 38,
  FuncTorchGradWrapper = 39,
  DeferredInit = 40,
  PythonTLSSnapshot = 41,
  FuncTorchDynamicLayerFrontMode = 42,
  TESTING_ONLY_GenericWrapper = 43,
  TESTING_ONLY_GenericMode = 44,
  PreDispatch = 45,
  PythonDispatcher = 46,
  EndOfFunctionalityKeys = 47,
  StartOfDenseBackends = 48,
  CPU = 49,
  CUDA = 50,
  Meta = 64,
  StartOfQuantizedBackends = 65,
  QuantizedCPU = 66,
  StartOfSparseBackends = 82,
  SparseCPU = 83,
  SparseMeta = 98,
  StartOfSparseCsrBackends = 99,
  SparseCsrCPU = 100,
  SparseCsrMeta = 115,
  StartOfNestedTensorBackends = 116,
  NestedTensorCPU = 117,
  StartOfAutogradFunctionalityBackends = 133,
  AutogradCPU = 134,
  AutogradCUDA = 135,
  AutogradMeta = 149,
  Autograd = 150,
  CompositeImplicitAutograd = 151,
  FuncTorchBatchedDecomposition = 152,
  CompositeImplicitAutogradNestedTensor = 153,
  CompositeExplicitAutograd = 154,
  CompositeExplicitAutogradNonFunctional = 155,
};

inline constexpr int kNumBackends = 16;
inline constexpr int kNumFunctionalities = 47;

// Upstream's spelling of a key, e.g. "AutogradCPU"; parse gives Undefined for unknown names.
std::string_view key_name(DispatchKey key);
bool parse_key(std::string_view name, DispatchKey* key);
// Functionality and backend index (1..16, 0 none) of a runtime key; e.g. AutogradCPU is {AutogradFunctionality, 1}.
struct KeyParts {
  DispatchKey functionality;
  int backend;
};
KeyParts key_parts(DispatchKey runtime_key);
constexpr bool is_per_backend(DispatchKey f) {
  return f == DispatchKey::Dense || f == DispatchKey::Quantized || f == DispatchKey::Sparse ||
         f == DispatchKey::SparseCsr || f == DispatchKey::NestedTensor || f == DispatchKey::AutogradFunctionality;
}
// The runtime key of a functionality on a backend, e.g. {Dense, 1} is CPU.
DispatchKey runtime_key(DispatchKey functionality, int backend);

// A set of functionalities and backends in upstream's 64-bit layout: 16 backend bits, then one bit a functionality.
// Bits 62 and 63 are ours: some argument is dual (has a tangent), some argument needs gradients. They never reach
// Python.
class KeySet {
 public:
  constexpr KeySet() = default;
  constexpr explicit KeySet(uint64_t raw) : bits_(raw) {}
  constexpr KeySet(DispatchKey key) : bits_(bits_of(key)) {}  // NOLINT: a key is a set of one

  constexpr uint64_t raw() const { return bits_; }
  constexpr bool has(DispatchKey key) const {
    const uint64_t want = bits_of(key);
    return (bits_ & want) == want && want != 0;
  }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr KeySet operator|(KeySet o) const { return KeySet(bits_ | o.bits_); }
  constexpr KeySet operator&(KeySet o) const { return KeySet(bits_ & o.bits_); }
  constexpr KeySet without(KeySet o) const { return KeySet(bits_ & ~o.bits_); }
  // Drops functionalities only: removing AutogradCPU must not drop the CPU backend bit.
  constexpr KeySet remove(DispatchKey key) const { return KeySet(bits_ & ~(bits_of(key) & ~kBackendMask)); }
  friend constexpr bool operator==(KeySet, KeySet) = default;

  constexpr DispatchKey highest_functionality() const {
    const uint64_t f = (bits_ & ~kOurs) >> kNumBackends;
    return f == 0 ? DispatchKey::Undefined : static_cast<DispatchKey>(64 - std::countl_zero(f));
  }
  constexpr int highest_backend() const {
    const uint64_t b = bits_ & kBackendMask;
    return b == 0 ? 0 : 64 - std::countl_zero(b);
  }
  // The highest key as a runtime key: CPU for {Dense, CPU bit}.
  DispatchKey highest() const {
    const DispatchKey f = highest_functionality();
    return is_per_backend(f) ? runtime_key(f, highest_backend()) : f;
  }
  // All keys strictly below the functionality.
  static constexpr KeySet below(DispatchKey functionality) {
    return KeySet((uint64_t{1} << (kNumBackends + static_cast<int>(functionality) - 1)) - 1);
  }

  static constexpr uint64_t kBackendMask = (uint64_t{1} << kNumBackends) - 1;
  static constexpr uint64_t kNeedsGrad = uint64_t{1} << 63;
  static constexpr uint64_t kDual = uint64_t{1} << 62;
  static constexpr uint64_t kOurs = kNeedsGrad | kDual;

 private:
  static constexpr uint64_t bits_of(DispatchKey key) {
    const int k = static_cast<int>(key);
    if (k == 0) return 0;
    if (k < kNumFunctionalities) return uint64_t{1} << (kNumBackends + k - 1);
    constexpr struct {
      int start;
      DispatchKey functionality;
    } kRanges[] = {{48, DispatchKey::Dense},         {65, DispatchKey::Quantized},
                   {82, DispatchKey::Sparse},        {99, DispatchKey::SparseCsr},
                   {116, DispatchKey::NestedTensor}, {133, DispatchKey::AutogradFunctionality}};
    for (const auto& r : kRanges)
      if (k > r.start && k <= r.start + kNumBackends)
        return (uint64_t{1} << (k - r.start - 1)) | bits_of(r.functionality);
    return 0;  // alias keys are no set
  }
  uint64_t bits_ = 0;
};

// The thread's include and exclude sets, its modes and its grad mode. One plain struct: reads are plain loads.
struct ThreadState {
  uint64_t included = KeySet(DispatchKey::ADInplaceOrView).raw() | KeySet(DispatchKey::BackendSelect).raw();
  uint64_t excluded = kAutocastKeys;
  bool grad_mode = true;
  bool inference_mode = false;
  bool fw_grad_mode = true;
  bool view_replay = false;
  bool multithreading = true;

  static constexpr uint64_t kAutocastKeys = [] {
    uint64_t raw = 0;
    for (int k = static_cast<int>(DispatchKey::AutocastCPU); k <= static_cast<int>(DispatchKey::AutocastPrivateUse1);
         ++k)
      raw |= KeySet(static_cast<DispatchKey>(k)).raw();
    return raw;
  }();
};
extern constinit thread_local ThreadState thread_state;

inline bool grad_mode() { return thread_state.grad_mode; }
// Also keeps the exclude set's own bit, which is how the door sees no_grad without a branch.
inline void set_grad_mode(bool on) {
  thread_state.grad_mode = on;
  thread_state.excluded = on ? thread_state.excluded & ~KeySet::kNeedsGrad : thread_state.excluded | KeySet::kNeedsGrad;
}

// The same for forward mode.
inline void set_fw_grad_mode(bool on) {
  thread_state.fw_grad_mode = on;
  thread_state.excluded = on ? thread_state.excluded & ~KeySet::kDual : thread_state.excluded | KeySet::kDual;
}

class GradModeGuard {
 public:
  explicit GradModeGuard(bool on) : previous_(grad_mode()) { set_grad_mode(on); }
  ~GradModeGuard() { set_grad_mode(previous_); }
  GradModeGuard(const GradModeGuard&) = delete;
  GradModeGuard& operator=(const GradModeGuard&) = delete;

 private:
  bool previous_;
};

class ExcludeGuard {
 public:
  explicit ExcludeGuard(KeySet keys) : added_(keys.raw() & ~thread_state.excluded) { thread_state.excluded |= added_; }
  ~ExcludeGuard() { thread_state.excluded &= ~added_; }
  ExcludeGuard(const ExcludeGuard&) = delete;
  ExcludeGuard& operator=(const ExcludeGuard&) = delete;

 private:
  uint64_t added_;
};

class IncludeGuard {
 public:
  explicit IncludeGuard(KeySet keys) : added_(keys.raw() & ~thread_state.included) { thread_state.included |= added_; }
  ~IncludeGuard() { thread_state.included &= ~added_; }
  IncludeGuard(const IncludeGuard&) = delete;
  IncludeGuard& operator=(const IncludeGuard&) = delete;

 private:
  uint64_t added_;
};

}  // namespace tn
