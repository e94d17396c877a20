#include "runtime/registry.h"

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "runtime/error.h"
#include "runtime/autocast.h"
#include "runtime/fallbacks.h"
#include "runtime/func/layers.h"
#include "runtime/op_table.h"
#include "runtime/schema.h"
#include "runtime/schema_parser.h"

namespace tn {

constinit OpRow op_rows[kNumNativeOps];
constinit Ref<BoxedKernel> python_decomposition;

namespace {

// An operator that Python defined; keeps the strings that its info points to.
struct DefinedOp {
  std::string name, overload, schema;
  OpInfo info{};
  OpRow row;
};

struct Registry {
  std::recursive_mutex mutex;
  std::unordered_multimap<std::string_view, OpRow*> by_name;
  std::deque<std::unique_ptr<DefinedOp>> defined;
  Ref<BoxedKernel> fallbacks[kNumFunctionalities];
  uint64_t always_live = 0;  // backend functionalities, and those with a fallback
};

Registry& registry() {
  static Registry r;  // made by init_core, before any thread
  return r;
}

bool is_backend_key(DispatchKey key) {
  if (key == DispatchKey::Undefined) return true;
  const DispatchKey f = key_parts(key).functionality;
  return f == DispatchKey::Dense || f == DispatchKey::Quantized || f == DispatchKey::Sparse ||
         f == DispatchKey::SparseCsr || f == DispatchKey::NestedTensor || f == DispatchKey::MkldnnCPU ||
         f == DispatchKey::FPGA || f == DispatchKey::Vulkan || f == DispatchKey::Metal ||
         f == DispatchKey::CustomRNGKeyId;
}
bool is_autograd_key(DispatchKey key) {
  const DispatchKey f = key_parts(key).functionality;
  return f == DispatchKey::AutogradFunctionality || f == DispatchKey::AutogradOther ||
         f == DispatchKey::AutogradNestedTensor;
}

const Registration* registered(const OpRow& row, DispatchKey key) {
  if (!row.registrations) return nullptr;
  for (auto it = row.registrations->rbegin(); it != row.registrations->rend(); ++it)
    if (it->key == key) return &*it;
  return nullptr;
}

Found of(const Registration& r) { return {r.boxed.get(), reinterpret_cast<AnyFn>(r.typed), r.fallthrough}; }

bool upstream_registers(const OpRow& row, DispatchKey key) {
  if (!row.info->keys) return false;
  for (const uint8_t* k = row.info->keys; *k; ++k)
    if (*k == static_cast<uint8_t>(key)) return true;
  return false;
}

bool has_registration(const OpRow& row, DispatchKey key) { return registered(row, key) != nullptr; }

constexpr uint64_t functionality_bit(DispatchKey f) { return uint64_t{1} << (kNumBackends + static_cast<int>(f) - 1); }

constexpr uint64_t kAutogradBits = functionality_bit(DispatchKey::AutogradFunctionality) |
                                   functionality_bit(DispatchKey::AutogradOther) |
                                   functionality_bit(DispatchKey::AutogradNestedTensor);

// Recomputes what the hot path reads, after any registration. Backend keys are always live: they refuse, they don't
// fall through.
void recompute(OpRow& row) {
  Registry& reg = registry();
  uint64_t live = KeySet::kBackendMask | KeySet::kOurs | reg.always_live;
  uint64_t removed = 0;
  bool python_autograd = false, python_implicit = false;
  for (const Registration& r : row.registrations ? *row.registrations : std::vector<Registration>()) {
    if (r.key == DispatchKey::Autograd) {
      live |= kAutogradBits;
      python_autograd = true;
    } else if (r.key == DispatchKey::CompositeImplicitAutograd) {
      live |= kAutogradBits;
      python_implicit = true;
    } else if (static_cast<int>(r.key) < static_cast<int>(DispatchKey::Autograd)) {
      const DispatchKey f = key_parts(r.key).functionality;
      if (f == DispatchKey::Undefined || is_backend_key(f)) continue;
      (r.fallthrough ? removed : live) |= functionality_bit(f);
      python_autograd |= is_autograd_key(f);
    }
  }
  const bool implicit = row.info->is(OpInfo::kImplicit);
  if ((implicit && row.kernel) || row.autograd || (!implicit && row.info->is(OpInfo::kDerivative)))
    live |= kAutogradBits;
  if (row.tracked) live |= functionality_bit(DispatchKey::ADInplaceOrView);
  live &= ~removed;
  if (row.info->is(OpInfo::kConjAware))
    live &= ~(functionality_bit(DispatchKey::Conjugate) | functionality_bit(DispatchKey::Negative));
  row.live = live;
  // A composite must decompose before Python's key sees it, and a Python autograd kernel must always run.
  // So must what makes a tangent from tensors that have none.
  const bool makes_dual = row.info == &op_infos[kOp__make_dual];
  row.strippable = implicit || python_autograd || python_implicit || makes_dual ? 0 : kAutogradBits;
}

// Typed pointers of columns give way to a Python registration at the same key, and come back when it goes.
struct ColumnKey {
  Column column;
  DispatchKey key;
};
constexpr ColumnKey kColumnKeys[] = {{kColCpu, DispatchKey::CPU},
                                     {kColMeta, DispatchKey::Meta},
                                     {kColAutogradCpu, DispatchKey::AutogradCPU},
                                     {kColAutogradMeta, DispatchKey::AutogradMeta},
                                     {kColAutogradOther, DispatchKey::AutogradOther},
                                     {kColADInplaceOrView, DispatchKey::ADInplaceOrView},
                                     {kColAutocastCpu, DispatchKey::AutocastCPU},
                                     {kColBackendSelect, DispatchKey::BackendSelect}};

AnyFn generated_kernel(const OpRow& row, Column column) {
  switch (column) {
    case kColCpu: return row.kernel;
    case kColMeta: return row.kernel_kind == KernelRow::kBackend ? nullptr : row.kernel;
    case kColADInplaceOrView: return row.tracked;
    case kColAutocastCpu:
    case kColBackendSelect: return nullptr;
    case kColAutogradCpu:
    case kColAutogradMeta:
    case kColAutogradOther:
      if (row.autograd) return row.autograd;
      [[fallthrough]];
    default: return row.kernel_kind == KernelRow::kImplicit ? row.kernel : nullptr;
  }
}

void restore_columns(OpRow& row) {
  for (const ColumnKey& c : kColumnKeys) {
    bool overridden = has_registration(row, c.key);
    const bool autograd = is_autograd_key(c.key);
    if (autograd) overridden |= has_registration(row, DispatchKey::Autograd);
    if (row.info->is(OpInfo::kImplicit)) overridden |= has_registration(row, DispatchKey::CompositeImplicitAutograd);
    row.fn[c.column] = overridden ? nullptr : generated_kernel(row, c.column);
  }
}

}  // namespace

Found find_kernel_for(const OpRow& row, DispatchKey key) {
  if (const Registration* r = registered(row, key)) return of(*r);
  const bool backend = is_backend_key(key);
  const bool autograd = is_autograd_key(key);
  if (backend) {
    for (DispatchKey alias :
         {DispatchKey::CompositeExplicitAutogradNonFunctional, DispatchKey::CompositeExplicitAutograd})
      if (const Registration* r = registered(row, alias)) return of(*r);
    const int b = key_parts(key).backend;
    if (key == DispatchKey::Undefined || b == 1) {
      if (AnyFn fn = row.fn[kColCpu]) return {nullptr, fn, false};
    }
    if (key == DispatchKey::Meta && row.fn[kColMeta]) return {nullptr, row.fn[kColMeta], false};
    if (row.info->way == Way::Python && python_decomposition) return {python_decomposition.get(), nullptr, false};
  }
  if (backend || autograd) {
    if (const Registration* r = registered(row, DispatchKey::CompositeImplicitAutograd)) {
      // A backend kernel of its own, or an explicit composite, turns the implicit one off at autograd.
      const bool covered =
          autograd && (registered(row, runtime_key(DispatchKey::Dense, std::max(1, key_parts(key).backend))) ||
                       registered(row, DispatchKey::CompositeExplicitAutograd));
      if (!covered) return of(*r);
    }
    if (row.info->is(OpInfo::kImplicit) && row.fn[kColCpu]) return {nullptr, row.fn[kColCpu], false};
  }
  if (autograd) {
    if (const Registration* r = registered(row, DispatchKey::Autograd)) return of(*r);
    if (row.autograd) return {nullptr, row.autograd, false};
    static const Ref<BoxedKernel> marker = make_graph_marker();
    if (row.info->is(OpInfo::kDerivative) && !row.info->is(OpInfo::kImplicit)) return {marker.get(), nullptr, false};
  }
  if (key == DispatchKey::ADInplaceOrView && row.fn[kColADInplaceOrView])
    return {nullptr, row.fn[kColADInplaceOrView], false};
  const DispatchKey f = key_parts(key).functionality;
  Registry& reg = registry();
  const auto i = static_cast<size_t>(f);
  if (i < kNumFunctionalities && reg.fallbacks[i]) return {reg.fallbacks[i].get(), nullptr, false};
  return {};
}

Found find_kernel(const OpRow& row, KeySet keys) { return find_kernel_for(row, keys.highest()); }

OpRow& row(size_t id) { return id < kNumNativeOps ? op_rows[id] : registry().defined[id - kNumNativeOps]->row; }
size_t num_rows() { return kNumNativeOps + registry().defined.size(); }

OpRow* find_op(std::string_view name, std::string_view overload) {
  Registry& reg = registry();
  std::lock_guard lock(reg.mutex);
  auto [it, end] = reg.by_name.equal_range(name);
  for (; it != end; ++it)
    if (overload == it->second->info->overload) return it->second;
  return nullptr;
}

std::vector<OpRow*> find_overloads(std::string_view name) {
  Registry& reg = registry();
  std::lock_guard lock(reg.mutex);
  std::vector<OpRow*> found;
  for (auto [it, end] = reg.by_name.equal_range(name); it != end; ++it) found.push_back(it->second);
  return found;
}

// Adds a row for a schema; `reason` is null for operators that Python will serve.
static OpRow& add_op(std::string name, std::string overload, std::string schema, uint64_t tags, const char* reason) {
  Registry& reg = registry();
  SchemaRef parsed = parse_schema(schema);
  auto op = std::make_unique<DefinedOp>();
  op->name = std::move(name);
  op->overload = std::move(overload);
  op->schema = std::move(schema);
  uint8_t flags = parsed->is_mutable() ? OpInfo::kMutates : 0;
  if (parsed->returns().size() == 1 && parsed->returns()[0].type->kind() == TypeKind::kList)
    flags |= OpInfo::kListReturn;
  op->info = OpInfo{.name = op->name.c_str(),
                    .overload = op->overload.c_str(),
                    .schema = op->schema.c_str(),
                    .reason = reason,
                    .tags = tags,
                    .keys = nullptr,
                    .num_args = static_cast<uint8_t>(parsed->arguments().size()),
                    .num_returns = static_cast<uint8_t>(parsed->returns().size()),
                    .way = reason ? Way::Refuse : Way::Defined,
                    .flags = flags};
  OpRow& row = op->row;
  row.info = &op->info;
  row.parsed = parsed.release();
  recompute(row);
  reg.by_name.emplace(op->name, &row);
  reg.defined.push_back(std::move(op));
  return row;
}

OpRow& define_op(std::string name, std::string overload, std::string schema, uint64_t tags) {
  std::lock_guard lock(registry().mutex);
  return add_op(std::move(name), std::move(overload), std::move(schema), tags, nullptr);
}

void undefine_op(OpRow& op) {
  Registry& reg = registry();
  std::lock_guard lock(reg.mutex);
  for (auto [it, end] = reg.by_name.equal_range(op.info->name); it != end; ++it)
    if (it->second == &op) {
      reg.by_name.erase(it);
      return;  // the row itself stays: someone may still hold it
    }
}

void register_kernel(OpRow& op, Registration registration) {
  std::lock_guard lock(registry().mutex);
  if (!op.registrations) op.registrations = new std::vector<Registration>();
  op.registrations->push_back(std::move(registration));
  restore_columns(op);
  recompute(op);
}

void deregister_kernel(OpRow& op, DispatchKey key, const BoxedKernel* kernel) {
  std::lock_guard lock(registry().mutex);
  if (!op.registrations) return;
  auto& list = *op.registrations;
  for (size_t i = list.size(); i-- > 0;)
    if (list[i].key == key && list[i].boxed.get() == kernel) {
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  restore_columns(op);
  recompute(op);
}

void register_fallback(DispatchKey functionality, Ref<BoxedKernel> kernel, bool fallthrough) {
  Registry& reg = registry();
  std::lock_guard lock(reg.mutex);
  const auto i = static_cast<size_t>(functionality);
  reg.fallbacks[i] = std::move(kernel);
  const uint64_t bit = functionality_bit(functionality);
  if (reg.fallbacks[i] && !fallthrough) reg.always_live |= bit;
  else reg.always_live &= ~bit;
  for (size_t id = 0; id < num_rows(); ++id)
    if (row(id).info) recompute(row(id));
}

bool has_fallback(DispatchKey key) {
  const DispatchKey f = key_parts(key).functionality;
  return !is_backend_key(key) &&
         (registry().fallbacks[static_cast<size_t>(f)] || (KeySet(f).raw() & ThreadState::kAutocastKeys) ||
          is_autograd_key(key) || f == DispatchKey::ADInplaceOrView || f == DispatchKey::BackendSelect);
}

bool has_kernel_for_key(const OpRow& op, DispatchKey key) {
  if (has_registration(op, key)) return true;
  if (upstream_registers(op, key)) return true;
  const DispatchKey f = key_parts(key).functionality;
  const bool native = op.info->way != Way::Defined;
  if (native && (key == DispatchKey::Autograd || f == DispatchKey::AutogradFunctionality))
    return !upstream_registers(op, DispatchKey::CompositeImplicitAutograd) && key == DispatchKey::Autograd;
  if (native && key == DispatchKey::ADInplaceOrView)
    return !op.info->is(OpInfo::kImplicit) && (op.info->is(OpInfo::kMutates) || op.info->is(OpInfo::kView));
  return false;
}

bool key_in_alias(DispatchKey key, DispatchKey alias) {
  switch (alias) {
    case DispatchKey::Autograd: return is_autograd_key(key);
    case DispatchKey::CompositeImplicitAutograd: return is_backend_key(key) || is_autograd_key(key);
    case DispatchKey::CompositeExplicitAutograd: return is_backend_key(key);
    case DispatchKey::CompositeExplicitAutogradNonFunctional:
      return is_backend_key(key) && key_parts(key).functionality == DispatchKey::Dense;
    case DispatchKey::CompositeImplicitAutogradNestedTensor:
      return key_parts(key).functionality == DispatchKey::NestedTensor;
    case DispatchKey::FuncTorchBatchedDecomposition: return key == DispatchKey::FuncTorchBatched;
    default: return key == alias;
  }
}

bool has_computed_kernel_for_key(const OpRow& op, DispatchKey key) {
  if (has_kernel_for_key(op, key)) return true;
  const Found found = find_kernel_for(op, key);
  if (found.boxed || found.typed) return true;
  if (is_backend_key(key))
    return upstream_registers(op, DispatchKey::CompositeExplicitAutograd) ||
           upstream_registers(op, DispatchKey::CompositeExplicitAutogradNonFunctional) ||
           upstream_registers(op, DispatchKey::CompositeImplicitAutograd);
  return is_autograd_key(key);
}

const FunctionSchema& schema_of(OpRow& op) {
  if (!op.parsed) {
    std::lock_guard lock(registry().mutex);
    if (!op.parsed) op.parsed = parse_schema(op.info->schema).release();
  }
  return *op.parsed;
}

// Upstream gives each of TorchScript's own operators the tag pt2_compliant_tag.
static uint64_t extra_tags(std::string_view name) {
  constexpr int kPt2Compliant = 17;
  return name.starts_with("aten::") || name.starts_with("prim::") ? uint64_t{1} << kPt2Compliant : 0;
}

void init_core() {
  Registry& reg = registry();
  if (!reg.by_name.empty()) return;
  init_kernels();
  reg.by_name.reserve(8192);
  for (int f = 1; f < kNumFunctionalities; ++f)
    if (is_backend_key(static_cast<DispatchKey>(f))) reg.always_live |= functionality_bit(static_cast<DispatchKey>(f));
  for (DispatchKey f : {DispatchKey::Conjugate, DispatchKey::Negative}) {
    reg.fallbacks[static_cast<size_t>(f)] = make_resolve_fallback();
    reg.always_live |= functionality_bit(f);
  }
  func::register_keys();
  // Modes without an operator's kernel must refuse rather than be skipped.
  for (DispatchKey f : {DispatchKey::Python, DispatchKey::Functionalize, DispatchKey::ZeroTensor, DispatchKey::Fake})
    reg.always_live |= functionality_bit(f);
  for (const KernelRow* const* table = kernel_tables; *table; ++table)
    for (const KernelRow* k = *table; k->kind != KernelRow::kEnd; ++k) {
      OpRow& row = op_rows[k->op];
      row.adapter = *k->adapter;
      if (k->kind == KernelRow::kTracked) {
        row.tracked = k->fn;
      } else if (k->kind == KernelRow::kAutograd) {
        row.autograd = k->fn;
      } else {
        row.kernel = k->fn;
        row.kernel_kind = k->kind;
      }
    }
  for (size_t id = 0; id < kNumNativeOps; ++id) {
    OpRow& row = op_rows[id];
    row.info = &op_infos[id];
    reg.by_name.emplace(row.info->name, &row);
    if (row.kernel || row.tracked || row.autograd) restore_columns(row);
    recompute(row);
  }
  init_autocast();
  for (const ExtraOp* op = extra_ops; op->name; ++op)
    add_op(op->name, op->overload, op->schema, extra_tags(op->name), op->reason);
}

}  // namespace tn
