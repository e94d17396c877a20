// A profiler: what ran, when, on which thread. It sits at the door as its observer, so that nothing is paid while it is
// off; the autograd engine and named ranges add their own events.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/door.h"

namespace tn::profile {

// Upstream's RecordScope, as far as it occurs here.
enum class Scope : uint8_t { Function = 0, Backward = 1, User = 7 };

struct Options {
  bool shapes = false;
  bool flops = false;
};

// One argument of an event, kept when Options::shapes is on.
struct Input {
  std::vector<std::vector<int64_t>> sizes;  // one for a tensor, several for a list of tensors
  std::vector<std::vector<int64_t>> strides;
  std::string type;  // "float", "Scalar", "ScalarList", "TensorList", or "" where upstream says nothing
  Value number;      // numbers and lists of them
  bool is_list = false;
};

struct Event {
  const OpInfo* op = nullptr;  // null for ranges and nodes
  std::string name;            // of those
  int64_t start = 0, end = 0;  // nanoseconds since the epoch
  uint64_t thread = 0, end_thread = 0;
  uint64_t forward_thread = 0;  // of a node: where its operator ran
  int64_t sequence = -1;        // joins an operator with its node
  uint64_t flops = 0;
  Scope scope = Scope::Function;
  std::vector<Input> inputs;

  std::string_view text() const { return op ? std::string_view(op->name) : std::string_view(name); }
};

// Events of one thread. The lock is free unless the profiler stops meanwhile.
struct Log {
  std::mutex mutex;
  uint64_t thread;
  std::vector<Event> events;
  std::vector<size_t> open;  // calls that have not come back, innermost last; kUnseen for those not recorded
};

struct Result {
  std::vector<Event> events;  // by start
  int64_t start = 0;
  std::string trace_id;
};

// A range of the session that it was opened in; 0 is none.
using Range = uint64_t;

class Session final : public Observer {
 public:
  // RuntimeError if the door has another observer.
  void start(Options options);
  Result stop();

  void enter(const OpRow& op, KeySet keys, std::span<const Arg> args) override;
  void leave(const OpRow& op, std::span<const Value> results) override;
  void abandon(const OpRow& op) noexcept override;
  void around(const char*) override {}

  Range open(std::string name, Scope scope, int64_t sequence = -1, TensorList inputs = {});
  void close(Range range);

 private:
  struct Place {
    Log* log;
    size_t index;
  };
  Log& log();

  Options options_;
  int64_t start_ = 0;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Log>> logs_;
  std::unordered_map<Range, Place> ranges_;
  std::unordered_map<int64_t, uint64_t> forward_threads_;
  Range next_range_ = 1;
};

// Not null while the profiler is on.
extern constinit Session* active;
Session& session();

// Of this thread, counted from 1 as upstream counts.
uint64_t thread_number();
// Arithmetic of an operator, by its arguments; 0 where it isn't counted.
uint64_t flops_of(std::string_view op, std::span<const Arg> args);

// A node that runs, maybe with its gradients: `prefix` is put before its name. Costs a test of one pointer while the
// profiler is off.
class NodeRange {
 public:
  NodeRange(const char* prefix, const char* name, uint64_t sequence, Scope scope, TensorList grads = {}) {
    if (__builtin_expect(active != nullptr, 0)) range_ = begin(prefix, name, sequence, scope, grads);
  }
  ~NodeRange() {
    if (__builtin_expect(range_ != 0, 0)) session().close(range_);
  }
  NodeRange(const NodeRange&) = delete;
  NodeRange& operator=(const NodeRange&) = delete;

 private:
  static Range begin(const char* prefix, const char* name, uint64_t sequence, Scope scope, TensorList grads);
  Range range_ = 0;
};

}  // namespace tn::profile
