#include "runtime/observe.h"

#include "runtime/error.h"

namespace tn {

int64_t Recorder::number(const Tensor& t) {
  if (!t.defined()) return -1;
  const auto [it, added] = numbers_.try_emplace(t.impl(), static_cast<int64_t>(seen_.size()));
  if (added) seen_.push_back(t);
  return it->second;
}

int64_t Recorder::number_of(const Tensor& t) const {
  const auto it = numbers_.find(t.impl());
  return it == numbers_.end() ? -1 : it->second;
}

Recorder::Operand Recorder::operand(const Arg& a) {
  Operand o;
  if (a.tag == Tag::Tensor) {
    o.tensors.push_back(number(a.tensor()));
  } else if (a.tag == Tag::TensorList) {
    o.is_list = true;
    for (const Tensor& t : a.tensors()) o.tensors.push_back(number(t));
  } else {
    o.value = Value::copy_of(a);
  }
  return o;
}

void Recorder::enter(const OpRow& op, KeySet /*keys*/, std::span<const Arg> args) {
  if (depth_++ != 0) return;
  // Adopted here so that arguments keep the number they had before the call.
  Call call{const_cast<OpRow*>(&op), {}, {}};
  for (const Arg& a : args) call.args.push_back(operand(a));
  calls_.push_back(std::move(call));
}

void Recorder::leave(const OpRow& /*op*/, std::span<const Value> results) {
  if (--depth_ != 0) return;
  for (const Value& v : results) calls_.back().results.push_back(operand(v.arg()));
}

void Recorder::abandon(const OpRow& /*op*/) noexcept {
  if (--depth_ == 0) calls_.pop_back();
}

void Recorder::around(const char* what) {
  if (around_.empty()) around_ = what;
}

std::vector<Tensor> Recorder::replay(std::span<const std::pair<int64_t, Tensor>> inputs,
                                     std::span<const int64_t> wanted) const {
  TN_CHECK(around_.empty(), "replay: expected a run whose writes all pass the door, got one with ", around_);
  std::vector<Tensor> now(seen_.size());
  const auto known = [&](int64_t n) { return n >= 0 && n < static_cast<int64_t>(seen_.size()); };
  std::vector<bool> made(seen_.size());
  for (const auto& [n, t] : inputs) {
    TN_CHECK(known(n), "replay: expected the number of a recorded tensor, got ", n);
    now[static_cast<size_t>(n)] = t;
    made[static_cast<size_t>(n)] = true;
  }
  // A tensor that no call made and nobody replaced is a constant of the run: weights, for example.
  const auto current = [&](int64_t n) -> const Tensor& {
    static const Tensor undefined;
    if (n < 0) return undefined;
    const auto at = static_cast<size_t>(n);
    return made[at] ? now[at] : seen_[at];
  };
  const auto keep = [&](const Operand& operand, const Arg& result) {
    for (size_t i = 0; i < operand.tensors.size(); ++i) {
      if (operand.tensors[i] < 0) continue;
      const auto at = static_cast<size_t>(operand.tensors[i]);
      now[at] = operand.is_list ? result.tensors()[i] : result.tensor();
      made[at] = true;
    }
  };
  for (const Call& call : calls_) {
    std::vector<std::vector<Tensor>> lists;
    lists.reserve(call.args.size());
    std::vector<Arg> args;
    for (const Operand& o : call.args) {
      if (o.is_list) {
        std::vector<Tensor>& list = lists.emplace_back();
        for (int64_t n : o.tensors) list.push_back(current(n));
        args.push_back(Arg::of(TensorList(list)));
      } else {
        args.push_back(o.tensors.empty() ? o.value.arg() : Arg::of(current(o.tensors[0])));
      }
    }
    std::vector<Value> out(std::max<size_t>(call.op->info->num_returns, 1));
    door::call_boxed(*call.op, args, out.data());
    for (size_t i = 0; i < call.results.size(); ++i) keep(call.results[i], out[i].arg());
  }
  std::vector<Tensor> results;
  for (int64_t n : wanted) {
    TN_CHECK(known(n), "replay: expected the number of a recorded tensor, got ", n);
    results.push_back(current(n));
  }
  return results;
}

void attach_observer(Observer& o) {
  TN_CHECK(observer == nullptr, "attach_observer: expected no observer at the door, got one already");
  observer = &o;
}
void detach_observer(Observer& o) {
  if (observer == &o) observer = nullptr;
}

}  // namespace tn
