// Observers that come with the core: counting calls, and recording a run so that it can be replayed.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/door.h"

namespace tn {

// Records calls at depth 0 as operators over numbered tensors. Replaying gives the same bits for the same inputs.
class Recorder : public Observer {
 public:
  // An argument of a recorded call: a number of an earlier tensor, or a kept value.
  struct Slot {
    int64_t tensor = -1;                // id of a tensor, -1: not one
    std::vector<int64_t> tensors;       // ids of a list's tensors (-1: None)
    bool is_list = false;
    Value value;
  };
  struct Call {
    OpRow* op;
    std::vector<Slot> args;
    std::vector<std::vector<int64_t>> results;  // one a return; several ids for a list
  };

  void enter(const OpRow& op, KeySet keys, std::span<const Arg> args) override;
  void leave(const OpRow& op, std::span<const Value> results) override;
  void abandon(const OpRow& op) noexcept override;

  const std::vector<Call>& calls() const { return calls_; }
  // The id under which a tensor was seen, or -1.
  int64_t id_of(const Tensor& t) const;
  // Runs the calls again with other tensors in place of the given ids; returns the tensors of `wanted`.
  std::vector<Tensor> replay(std::span<const std::pair<int64_t, Tensor>> inputs, std::span<const int64_t> wanted) const;

 private:
  int64_t number(const Tensor& t);

  std::vector<Call> calls_;
  std::unordered_map<const TensorImpl*, int64_t> ids_;
  std::vector<Tensor> seen_;  // keeps each tensor alive, so that an address stays its id
  int depth_ = 0;
};

// Sets the observer for a scope. One at a time: a second one is a RuntimeError.
class ObserverGuard {
 public:
  explicit ObserverGuard(Observer* o);
  ~ObserverGuard();
  ObserverGuard(const ObserverGuard&) = delete;
  ObserverGuard& operator=(const ObserverGuard&) = delete;
};

}  // namespace tn
