// Batching rules: what an operator does when some arguments stand for a batch of values (torch.func.vmap).
#pragma once
#include <span>
#include <vector>

#include "runtime/door.h"
#include "runtime/func/layers.h"

namespace tn::vmap {

// One call at a vmap layer. Values below are those of the next layer: work with them under func::BelowTop.
class Site {
 public:
  Site(OpRow& op, std::span<const Arg> args);

  OpRow& op;
  std::span<const Arg> args;
  int64_t level, batch_size;
  func::Randomness randomness;

  const func::Wrapper* batched(const Tensor& t) const {
    const func::Wrapper* const w = func::wrapper_at(t, level);
    return w && w->batched() ? w : nullptr;
  }
  bool batched(size_t i) const { return args[i].tag == Tag::Tensor && batched(args[i].tensor()); }
  bool any_batched() const;
  const Tensor& tensor(size_t i) const { return args[i].tensor(); }
  int64_t rank(size_t i) const { return tensor(i).dim(); }  // without the batch
  // The value with the batch in front; unbatched tensors as they are.
  Tensor front(const Tensor& t) const;
  Tensor front(size_t i) const { return front(tensor(i)); }
  // The same, with the batch in front in any case.
  Tensor full(const Tensor& t) const;
  Tensor full(size_t i) const { return full(tensor(i)); }
  // With ones between the batch and the own dimensions, so that it has `rank` of them.
  Tensor padded(const Tensor& t, int64_t rank) const;
  Tensor wrap(const Tensor& t, int64_t batch_dim = 0) const {
    return t.defined() ? func::wrap_batched(t, batch_dim, level) : t;
  }
};

using RuleFn = void (*)(const Site& site, Value* out);
// How an operator is served; exactly one of `pattern`, `spec` and `fn` is set.
struct Rule {
  const char* op;       // "sum.dim_IntList"
  const char* pattern;  // a letter for each argument, see pattern.cpp
  RuleFn fn = nullptr;
  const char* target = nullptr;  // with `spec`: a reduction of everything is `target` along one dimension
  const char* spec = nullptr;
  bool always = false;  // also for calls without a batched tensor
};
// Tables, each ended by a rule without a name.
extern const Rule pattern_rules[], matmul_rules[], special_rules[];

// Null when there is none.
const Rule* find_rule(const OpRow& op);
void run_pattern(const Site& site, const char* pattern, Value* out);
void run_reduction(const Site& site, const Rule& rule, Value* out);
// The operator once for each element, results stacked; upstream's warning once for each operator.
void run_loop(const Site& site, Value* out);
void run_random(const Site& site, Value* out);
OpRow& required(const char* name);  // "sum.dim_IntList"
void fail_unbatched_self(const OpRow& op);
// The batch of a level back as a dimension of its own.
Tensor remove_batch_dim(const Tensor& self, int64_t level, int64_t batch_size, int64_t out_dim);
bool is_random(const OpRow& op);
// An in-place result: the argument itself, standing for `value` from now on.
Tensor written(const Tensor& self, const Tensor& value);

extern constinit bool fallback_enabled, fallback_warns;
// Hands the runtime what serves a call at a vmap layer.
void install();

}  // namespace tn::vmap
