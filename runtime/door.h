// The door: every operator call passes here. Rows, keys, columns, typed and boxed calls, observers.
//
// A row holds typed function pointers in columns (one a key that matters for speed) and, beside them, boxed kernels for
// any key. A call unions its tensors' keys with the thread's, masks what falls through, and jumps. Everything unusual
// (boxed kernels, fallbacks, refusals) happens in `slow`, out of line.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include "runtime/box.h"
#include "runtime/keyset.h"
#include "runtime/tensor.h"
#include "runtime/value.h"

namespace tn {

// How an operator is served. See docs: claims.
enum class Way : uint8_t {
  Refuse,
  Kernel,
  Raw,
  Compose,
  Python,   // by upstream's own decomposition
  Defined,  // by torch.library: upstream's table knows nothing of it
};

// What upstream says of an operator; constant, generated, in the order of OpId.
struct OpInfo {
  const char* name;      // "aten::add"
  const char* overload;  // "Tensor", or ""
  const char* schema;    // upstream's text
  const char* reason;    // why it is refused; null when served
  uint64_t tags;         // bit i: torch.Tag with value i
  const uint8_t* keys;   // what upstream registers: DispatchKeys, then 0
  uint8_t num_args;
  uint8_t num_returns;
  Way way;
  uint8_t flags;

  static constexpr uint8_t kView = 1;          // returns alias an argument
  static constexpr uint8_t kMutates = 2;       // writes an argument
  static constexpr uint8_t kInplace = 4;       // foo_ form
  static constexpr uint8_t kOut = 8;           // out= form
  static constexpr uint8_t kImplicit = 16;     // upstream registers it CompositeImplicitAutograd
  static constexpr uint8_t kConjAware = 32;    // takes conj and neg bits itself
  static constexpr uint8_t kDerivative = 64;   // derivatives.yaml names it
  static constexpr uint8_t kListReturn = 128;  // returns one list
  bool is(uint8_t flag) const { return (flags & flag) != 0; }
};

// Columns of typed pointers. kOther stays null: every key without a column is looked up in `slow`.
enum Column : uint8_t {
  kColCpu,
  kColMeta,
  kColDense,
  kColAutogradCpu,
  kColAutogradMeta,
  kColAutogradOther,
  kColADInplaceOrView,
  kColAutocastCpu,
  kColBackendSelect,
  kColOther,
  kNumColumns,
};

// A kernel that takes tagged arguments. `args` has the schema's length, defaults filled in; results go to `out`.
class BoxedKernel : public RefCounted {
 public:
  virtual ~BoxedKernel() = default;
  virtual void call(OpRow& op, KeySet keys, std::span<const Arg> args, Value* out) = 0;
  static void destroy(BoxedKernel* k) noexcept { delete k; }
};

struct Registration {
  DispatchKey key;  // runtime, functionality or alias key
  Ref<BoxedKernel> boxed;
  void* typed = nullptr;
  bool fallthrough = false;
};

using AnyFn = void (*)();
// Unpacks arguments, calls a typed function of one signature, packs the results.
using Adapter = void (*)(AnyFn fn, const Arg* args, Value* out);

// One operator at run time. Reads are plain loads; writes go through `register_kernel`, under the registry's lock.
struct OpRow {
  uint64_t live = 0;        // keys that don't fall through
  uint64_t strippable = 0;  // keys dropped when no argument needs a gradient
  AnyFn fn[kNumColumns] = {};
  const OpInfo* info = nullptr;
  Adapter adapter = nullptr;  // null: no typed code
  AnyFn kernel = nullptr;     // the generated kernel, whatever Python registered over it
  AnyFn tracked = nullptr;    // the generated one at ADInplaceOrView
  AnyFn autograd = nullptr;   // the generated one at the autograd keys
  uint8_t kernel_kind = 0;    // KernelRow::Kind of `kernel`
  std::vector<Registration>* registrations = nullptr;
  FunctionSchema* parsed = nullptr;  // on first use; see schema_of
  void* python = nullptr;            // bindings' cache (the OpOverload), owned by them
};

// Watches calls. One pointer, tested once a call. See observe.h.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void enter(const OpRow& op, KeySet keys, std::span<const Arg> args) = 0;
  virtual void leave(const OpRow& op, std::span<const Value> results) = 0;
  virtual void abandon(const OpRow& op) noexcept = 0;
  // A hand-written binding changed a tensor without a call: what was seen can't be run again.
  virtual void around(const char* what) = 0;
};
extern constinit Observer* observer;
inline void tell_written_around(const char* what) {
  if (__builtin_expect(observer != nullptr, 0)) observer->around(what);
}

namespace door {

// Functionality -> column; per-backend ones add the backend's class: CPU, Meta, other.
inline constexpr std::array<uint8_t, 64> kColumnOf = [] {
  std::array<uint8_t, 64> table{};
  for (uint8_t& c : table) c = kColOther;
  table[static_cast<size_t>(DispatchKey::Dense)] = kColCpu;
  table[static_cast<size_t>(DispatchKey::AutogradFunctionality)] = kColAutogradCpu;
  table[static_cast<size_t>(DispatchKey::AutogradOther)] = kColAutogradOther;
  table[static_cast<size_t>(DispatchKey::ADInplaceOrView)] = kColADInplaceOrView;
  table[static_cast<size_t>(DispatchKey::AutocastCPU)] = kColAutocastCpu;
  table[static_cast<size_t>(DispatchKey::BackendSelect)] = kColBackendSelect;
  return table;
}();

// `keys` without kOurs. Without any functionality (no tensor argument) it is the CPU column: factories make their
// result on the device that they are told.
inline Column column(uint64_t keys) {
  const uint64_t functionalities = keys >> kNumBackends;
  if (functionalities == 0) return kColCpu;
  const uint8_t base = kColumnOf[static_cast<size_t>(64 - std::countl_zero(functionalities))];
  if (base != kColCpu && base != kColAutogradCpu) return static_cast<Column>(base);
  const uint64_t backend = keys & KeySet::kBackendMask;
  return static_cast<Column>(base + (backend <= 1 ? 0 : (backend & 0x8000) ? 1 : 2));
}

// The keys that this call has on this row and thread, with fallthrough and needless autograd removed.
inline uint64_t effective(const OpRow& row, uint64_t arg_keys) {
  uint64_t keys = (arg_keys | thread_state.included) & ~thread_state.excluded;
  if ((keys & KeySet::kOurs) == 0) keys &= ~row.strippable;
  return keys & row.live;
}

// Boxed lookup and call for any key set: registered boxed kernels, typed ones through the adapter, fallbacks, refusals.
void call_boxed_at(OpRow& row, KeySet keys, std::span<const Arg> args, Value* out);
// Entry with tagged arguments (bindings, torch.ops, replay): computes the keys, tells the observer.
void call_boxed(OpRow& row, std::span<const Arg> args, Value* out);
// The same for calls that continue below a key.
void redispatch_boxed(OpRow& row, KeySet keys, std::span<const Arg> args, Value* out);
uint64_t keys_of(std::span<const Arg> args);

[[noreturn]] void refuse_key(const OpRow& row, KeySet keys);

template <class R, class... A>
R call_slow(OpRow& row, uint64_t keys, bool observed, A... args) {
  const Arg packed[sizeof...(A) + 1] = {pack<A>(args)...};
  const std::span<const Arg> view(packed, sizeof...(A));
  Value out[results_of<R>()];
  if (observed) call_boxed(row, view, out);
  else call_boxed_at(row, KeySet(keys), view, out);
  const Tensor* const originals[sizeof...(A) + 1] = {original<A>(args)...};
  return unpack_results<R>(out, {originals, sizeof...(A)});
}

// The typed call. A... are the signature's own types, so nothing converts here.
template <class Signature>
struct Call;
template <class R, class... A>
struct Call<R(A...)> {
  using Fn = R (*)(A...);
  [[gnu::noinline]] static R call(OpRow& row, A... args) {
    const uint64_t arg_keys = (uint64_t{0} | ... | key_bits(args));
    if (__builtin_expect(observer != nullptr, 0)) return call_slow<R, A...>(row, 0, true, args...);
    return at(row, effective(row, arg_keys), args...);
  }
  // Continues below a key, as autograd and in-place-or-view kernels do.
  static R below(OpRow& row, DispatchKey key, A... args) {
    const uint64_t arg_keys = (uint64_t{0} | ... | key_bits(args));
    return at(row, effective(row, arg_keys) & KeySet::below(key).raw(), args...);
  }
  static R at(OpRow& row, uint64_t keys, A... args) {
    const AnyFn fn = row.fn[column(keys & ~KeySet::kOurs)];
    if (__builtin_expect(fn != nullptr, 1)) return reinterpret_cast<Fn>(fn)(args...);
    return call_slow<R, A...>(row, keys, false, args...);
  }
  static void adapt(AnyFn fn, const Arg* args, Value* out) {
    adapt_indexed(fn, args, out, std::index_sequence_for<A...>());
  }

 private:
  template <size_t... I>
  static void adapt_indexed(AnyFn fn, [[maybe_unused]] const Arg* args, Value* out, std::index_sequence<I...>) {
    if constexpr (std::is_void_v<R>) {
      reinterpret_cast<Fn>(fn)(unpack<A>(args[I])...);
    } else {
      pack_result<R>(reinterpret_cast<Fn>(fn)(unpack<A>(args[I])...), out);
    }
  }
};

}  // namespace door

// ---- the table -------------------------------------------------------------------------------------------------

// Generated operators first, in OpId order; operators that Python defines are appended.
OpRow& row(size_t id);
size_t num_rows();
// Null if there is none. Name with namespace: "aten::add", overload "Tensor".
OpRow* find_op(std::string_view name, std::string_view overload);
std::vector<OpRow*> find_overloads(std::string_view name);
// Adds an operator (torch.library). The info is kept by the row.
OpRow& define_op(std::string name, std::string overload, std::string schema, uint64_t tags);
void undefine_op(OpRow& op);
// Registers and recomputes the row; later registrations win and come back when the later one is dropped.
void register_kernel(OpRow& op, Registration registration);
void deregister_kernel(OpRow& op, DispatchKey key, const BoxedKernel* kernel);
// A boxed kernel for every operator without one at the key; null restores the default.
void register_fallback(DispatchKey functionality, Ref<BoxedKernel> kernel, bool fallthrough);
// Whether a key has a kernel for operators without one of their own; autocast's is to fall through, as upstream's.
bool has_fallback(DispatchKey functionality);
// What upstream's dispatcher would answer: is there a kernel registered under exactly this key (upstream's table, then
// ours).
bool has_kernel_for_key(const OpRow& op, DispatchKey key);
// Whether an alias key stands for the runtime key: AutogradCPU for Autograd, CPU for CompositeExplicitAutograd...
bool key_in_alias(DispatchKey key, DispatchKey alias);
bool has_computed_kernel_for_key(const OpRow& op, DispatchKey key);
const FunctionSchema& schema_of(OpRow& op);

// Fills the rows from the generated tables; called once, before anything else of the core.
void init_core();

}  // namespace tn
