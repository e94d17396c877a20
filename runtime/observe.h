// Recording a run at the door, so that it can be looked at and run again.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/door.h"

namespace tn {

// Records the calls at depth 0 as operators over numbered tensors. Keeps every tensor that it saw alive.
class Recorder : public Observer {
 public:
  // An argument: the numbers of its tensors (-1: none there), or a kept value where it has none.
  struct Operand {
    std::vector<int64_t> tensors;
    bool is_list = false;
    Value value;
  };
  struct Call {
    OpRow* op;
    std::vector<Operand> args;
    std::vector<Operand> results;
  };

  void enter(const OpRow& op, KeySet keys, std::span<const Arg> args) override;
  void leave(const OpRow& op, std::span<const Value> results) override;
  void abandon(const OpRow& op) noexcept override;
  void around(const char* what) override;

  const std::vector<Call>& calls() const { return calls_; }
  // The number under which a tensor was seen, or -1.
  int64_t number_of(const Tensor& t) const;
  // Runs the calls again, with other tensors in place of some that the run did not make, and gives the wanted ones
  // back. RuntimeError if something was written without passing the door, or a number was never seen.
  std::vector<Tensor> replay(std::span<const std::pair<int64_t, Tensor>> inputs, std::span<const int64_t> wanted) const;

 private:
  int64_t number(const Tensor& t);
  Operand operand(const Arg& a);

  std::vector<Call> calls_;
  std::unordered_map<const TensorImpl*, int64_t> numbers_;
  std::vector<Tensor> seen_;
  std::string around_;
  int depth_ = 0;
};

// The door tells one observer at a time; a second one is a RuntimeError.
void attach_observer(Observer& o);
void detach_observer(Observer& o);

}  // namespace tn
