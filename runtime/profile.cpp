#include "runtime/profile.h"

#include <algorithm>
#include <atomic>

#include "runtime/autograd/node.h"
#include "runtime/error.h"
#include "runtime/observe.h"

namespace tn::profile {

constinit Session* active = nullptr;

namespace {

// Upstream's name of a dtype in profiles: C++'s, for the ordinary ones.
std::string type_name(ScalarType t) {
  const bool ordinary = (is_integral(t, true) && !is_barebones_unsigned(t)) || is_complex(t) || is_reduced_float(t) ||
                        t == ScalarType::Float || t == ScalarType::Double;
  return ordinary ? element_type_name(t) : std::string();
}

// The clock never steps back within a run, but shows the time of day.
int64_t now() {
  using std::chrono::duration_cast, std::chrono::nanoseconds;
  static const int64_t offset =
      duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count() -
      duration_cast<nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
  return offset + duration_cast<nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr size_t kUnseen = SIZE_MAX;
constinit thread_local Log* thread_log = nullptr;

void add_tensor(const Tensor& t, Input& input) {
  if (!t.defined()) return;
  const IntView sizes = t.sizes(), strides = t.strides();
  input.sizes.emplace_back(sizes.begin(), sizes.end());
  input.strides.emplace_back(strides.begin(), strides.end());
}

Input input_of(const Arg& a) {
  Input input;
  switch (a.tag) {
    case Tag::Tensor:
      add_tensor(a.tensor(), input);
      if (a.tensor().defined()) input.type = type_name(a.tensor().dtype());
      break;
    case Tag::TensorList:
      for (const Tensor& t : a.tensors()) add_tensor(t, input);
      input.type = "TensorList";
      input.is_list = true;
      break;
    case Tag::Int:
    case Tag::Double:
    case Tag::Bool:
    case Tag::Complex:
      input.number = Value::copy_of(a);
      input.type = "Scalar";
      break;
    case Tag::IntList:
    case Tag::DoubleList:
    case Tag::BoolList:
    case Tag::ScalarList:
      input.number = Value::copy_of(a);
      input.type = "ScalarList";
      break;
    default: break;
  }
  return input;
}

}  // namespace

uint64_t thread_number() {
  static constinit std::atomic<uint64_t> count{0};
  static constinit thread_local uint64_t mine = 0;
  if (mine == 0) mine = ++count;
  return mine;
}

uint64_t flops_of(std::string_view op, std::span<const Arg> args) {
  const auto tensor = [&](size_t i) -> const Tensor* {
    return i < args.size() && args[i].tag == Tag::Tensor && args[i].tensor().defined() ? &args[i].tensor() : nullptr;
  };
  // Multiplications and additions of a product of matrices whose operands are the i-th and the next argument.
  const auto product = [&](size_t i, int64_t dim) -> uint64_t {
    const Tensor *a = tensor(i), *b = tensor(i + 1);
    if (!a || !b || a->dim() != dim || b->dim() != dim) return 0;
    return 2 * static_cast<uint64_t>(a->numel()) * static_cast<uint64_t>(b->size(dim - 1));
  };
  if (op == "aten::mm") return product(0, 2);
  if (op == "aten::addmm") return product(1, 2);
  if (op == "aten::bmm") return product(0, 3);
  if (op == "aten::baddbmm") return product(1, 3);
  if ((op == "aten::mul" || op == "aten::add") && tensor(0)) return static_cast<uint64_t>(tensor(0)->numel());
  return 0;
}

Session& session() {
  static Session* const only = new Session();  // threads may still hold its logs when the process ends
  return *only;
}

Log& Session::log() {
  if (__builtin_expect(thread_log != nullptr, 1)) return *thread_log;
  const std::lock_guard lock(mutex_);
  thread_log = logs_.emplace_back(std::make_unique<Log>()).get();
  thread_log->thread = thread_number();
  return *thread_log;
}

void Session::start(Options options) {
  TN_CHECK(active == nullptr, "Profiler is already enabled on this thread");
  options_ = options;
  start_ = now();
  attach_observer(*this);
  active = this;
}

Result Session::stop() {
  TN_CHECK(active != nullptr, "Can't disable Kineto profiler when it's not running");
  active = nullptr;
  detach_observer(*this);
  Result result;
  result.start = start_;
  const int64_t end = now();
  const std::lock_guard lock(mutex_);
  for (const auto& log : logs_) {
    const std::lock_guard guard(log->mutex);
    for (Event& e : log->events) {
      if (e.end == 0) {
        e.end = end;
        e.end_thread = e.thread;
      }
      result.events.push_back(std::move(e));
    }
    log->events.clear();
    log->open.clear();
  }
  ranges_.clear();
  for (Event& e : result.events) {
    if (e.op || e.scope == Scope::User) continue;
    const auto found = forward_threads_.find(e.sequence);
    e.forward_thread = found == forward_threads_.end() ? 0 : found->second;
  }
  forward_threads_.clear();
  std::stable_sort(result.events.begin(), result.events.end(),
                   [](const Event& a, const Event& b) { return a.start < b.start; });
  return result;
}

void Session::enter(const OpRow& op, KeySet keys, std::span<const Arg> args) {
  Log& l = log();
  if (std::string_view(op.info->name).starts_with("profiler::")) {  // the profiler's own
    const std::lock_guard lock(l.mutex);
    l.open.push_back(kUnseen);
    return;
  }
  Event e;
  e.op = op.info;
  e.thread = l.thread;
  if (grad_mode() && (keys.raw() & KeySet::kNeedsGrad) && keys.has(DispatchKey::AutogradFunctionality)) {
    e.sequence = static_cast<int64_t>(Node::peek_sequence());
    const std::lock_guard lock(mutex_);
    forward_threads_[e.sequence] = l.thread;
  }
  if (options_.shapes) {
    e.inputs.reserve(args.size());
    for (const Arg& a : args) e.inputs.push_back(input_of(a));
  }
  if (options_.flops) e.flops = flops_of(op.info->name, args);
  const std::lock_guard lock(l.mutex);
  l.open.push_back(l.events.size());
  e.start = now();
  l.events.push_back(std::move(e));
}

void Session::leave(const OpRow& op, std::span<const Value>) { abandon(op); }

void Session::abandon(const OpRow&) noexcept {
  Log& l = log();
  const std::lock_guard lock(l.mutex);
  if (l.open.empty()) return;  // entered before the start
  const size_t at = l.open.back();
  l.open.pop_back();
  if (at == kUnseen) return;
  Event& e = l.events[at];
  e.end = now();
  e.end_thread = l.thread;
}

Range Session::open(std::string name, Scope scope, int64_t sequence, TensorList inputs) {
  Log& l = log();
  Event e;
  e.name = std::move(name);
  e.scope = scope;
  e.sequence = sequence;
  e.thread = l.thread;
  if (options_.shapes)
    for (const Tensor& t : inputs) e.inputs.push_back(input_of(Arg::of(t)));
  const std::lock_guard lock(mutex_);
  const std::lock_guard guard(l.mutex);
  const Range range = next_range_++;
  ranges_[range] = {&l, l.events.size()};
  e.start = now();
  l.events.push_back(std::move(e));
  return range;
}

void Session::close(Range range) {
  const uint64_t here = thread_number();
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.find(range);
  if (found == ranges_.end()) return;  // of an earlier session, or closed already
  Log& l = *found->second.log;
  const std::lock_guard guard(l.mutex);
  Event& e = l.events[found->second.index];
  e.end = now();
  e.end_thread = here;
  ranges_.erase(found);
}

Range NodeRange::begin(const char* prefix, const char* name, uint64_t sequence, Scope scope, TensorList grads) {
  Session* const s = active;
  if (!s) return 0;
  // Leaves have a number beyond all others, by which they run first.
  const bool leaf = sequence == UINT64_MAX;
  return s->open(str(prefix, name), scope, leaf ? -1 : static_cast<int64_t>(sequence), grads);
}

}  // namespace tn::profile
