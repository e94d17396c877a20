// Rules that a line of letters says, one for each argument:
//   p P  tensor(s), batch in front, own dimensions aligned at the right as broadcasting does
//   f    tensor, batch in front     e E  tensor(s), batched in any case, batch in front
//   q    tensor, batch in front, as many own dimensions as the next size list has
//   d    dimension      u  dimension of the result, which has one more    o  dimension, or None for all elements
//   D    dimensions     A  dimensions; None or none of them: all          m  a permutation
//   s    sizes of the result: the batch goes before them                  z  the same, and dimensions count in it
//   t    repetitions    .  as it is
#include "generated/ops/expand.h"
#include "generated/ops/reshape.h"
#include "generated/ops/squeeze.h"
#include "generated/ops/to.h"
#include "generated/ops/unsqueeze.h"
#include "kernels/vmap/vmap.h"
#include "runtime/promote.h"

#include <cstring>
#include <deque>
#include <string>

namespace tn::vmap {

namespace {

bool is_tensor_letter(char c) { return std::strchr("pPfeEq", c) != nullptr; }

int category(ScalarType t) { return is_complex(t) ? 3 : is_floating(t) ? 2 : t == ScalarType::Bool ? 0 : 1; }

// A batch of numbers counts as a tensor with dimensions once the batch is one: it is given the dtype that it would have
// yielded to.
struct Promotion {
  ScalarType dims = ScalarType::Undefined;
  void see(const Tensor& t) {
    if (t.dim() > 0) dims = dims == ScalarType::Undefined ? t.dtype() : promote_types(dims, t.dtype());
  }
  Tensor apply(Tensor value, const Tensor& logical) const {
    const ScalarType own = logical.dtype();
    if (logical.dim() > 0 || dims == ScalarType::Undefined || own == dims || own == ScalarType::Bool ||
        category(own) > category(dims))
      return value;
    return at::to(value, dims);
  }
};

class Builder {
 public:
  Builder(const Site& site, const char* pattern) : site_(site), pattern_(pattern) {
    for (size_t i = 0; i < site.args.size(); ++i) look(site.args[i], letter(i));
    for (size_t i = 0; i < site.args.size(); ++i) {
      if (!is_tensor_letter(letter(i)) || !rank_known(site.args[i])) continue;
      break;
    }
    for (size_t i = 0; i < site.args.size(); ++i)
      if (letter(i) == 'z') rank_ = static_cast<int64_t>(site.args[i].ints().size());
    if (rank_ == 0 && pattern)
      for (const char* c = pattern; *c; ++c) extra_ |= std::strchr("dDAo", *c) != nullptr;
    if (extra_) rank_ = 1;
    for (size_t i = 0; i < site.args.size(); ++i) args_.push_back(convert(site.args[i], letter(i), i));
  }
  std::span<const Arg> args() const { return args_; }
  // Whether a dimension was added to numbers, for operators that want one.
  bool extra() const { return extra_; }

 private:
  char letter(size_t i) const {
    if (pattern_) return pattern_[i];
    const Tag tag = site_.args[i].tag;
    return tag == Tag::Tensor ? 'p' : tag == Tag::TensorList ? 'P' : '.';
  }
  bool rank_known(const Arg& a) {
    if (a.tag == Tag::Tensor) rank_ = a.tensor().dim();
    else if (a.tag == Tag::TensorList && a.size > 0 && a.tensors()[0].defined()) rank_ = a.tensors()[0].dim();
    else return false;
    return true;
  }
  void look(const Arg& a, char c) {
    if (c != 'p' && c != 'P') return;
    const auto see = [&](const Tensor& t) {
      widest_ = std::max(widest_, t.dim());
      if (!t->is_wrapped_number()) promotion_.see(t);
    };
    if (a.tag == Tag::Tensor) see(a.tensor());
    else if (a.tag == Tag::TensorList)
      for (const Tensor& t : a.tensors())
        if (t.defined()) see(t);
  }
  Arg hold(Tensor t) { return Arg::of(tensors_.emplace_back(std::move(t))); }
  Arg hold(std::vector<int64_t> v) { return Arg::of(IntArrayRef(ints_.emplace_back(std::move(v)))); }
  Tensor convert(const Tensor& t, char c, size_t i) {
    switch (c) {
      case 'p':
      case 'P': return site_.batched(t) ? promotion_.apply(site_.padded(t, widest_), t) : t;
      case 'f': return with_extra(site_.front(t), t);
      case 'q': {
        int64_t wanted = t.dim();
        for (size_t k = i + 1; k < site_.args.size(); ++k)
          if (std::strchr("stz", letter(k))) {
            wanted = std::max(wanted, static_cast<int64_t>(site_.args[k].ints().size()));
            break;
          }
        return site_.padded(t, wanted);
      }
      default: return with_extra(site_.full(t), t);
    }
  }
  Tensor with_extra(Tensor value, const Tensor& logical) {
    return extra_ && logical.dim() == 0 ? at::unsqueeze(value, -1) : value;
  }
  int64_t dim(int64_t d, int64_t rank) { return wrap_dim(d, rank) + 1; }
  std::vector<int64_t> dims(IntArrayRef given) {
    std::vector<int64_t> moved;
    for (const int64_t d : given) moved.push_back(dim(d, rank_));
    return moved;
  }
  Arg convert(const Arg& a, char c, size_t i) {
    if (is_tensor_letter(c)) {
      if (a.tag == Tag::Tensor) return hold(convert(a.tensor(), c, i));
      if (a.tag != Tag::TensorList) return a;
      std::vector<Tensor>& list = lists_.emplace_back();
      for (const Tensor& t : a.tensors()) list.push_back(t.defined() ? convert(t, c, i) : t);
      return Arg::of(TensorList(list));
    }
    switch (c) {
      case 'd': return a.is_none() ? a : Arg::of(dim(a.i, rank_));
      case 'u': return Arg::of(dim(a.i, rank_ + 1));
      case 'o': {
        if (!a.is_none()) return Arg::of(dim(a.i, rank_));
        for (Arg& before : args_)
          if (before.tag == Tag::Tensor) before = hold(at::reshape(before.tensor(), {site_.batch_size, -1}));
        return Arg::of(int64_t{1});
      }
      case 'D': return hold(dims(a.ints()));
      case 'A': {
        if (!a.is_none() && a.size > 0) return hold(dims(a.ints()));
        std::vector<int64_t> all;
        for (int64_t d = 1; d <= rank_; ++d) all.push_back(d);
        return hold(std::move(all));
      }
      case 'm': {
        std::vector<int64_t> order = dims(a.ints());
        order.insert(order.begin(), 0);
        return hold(std::move(order));
      }
      case 's':
      case 'z': {
        std::vector<int64_t> sizes = a.ints().vec();
        sizes.insert(sizes.begin(), site_.batch_size);
        return hold(std::move(sizes));
      }
      case 't': {
        std::vector<int64_t> times = a.ints().vec();
        times.insert(times.begin(), 1);
        return hold(std::move(times));
      }
      default: return a;
    }
  }

  const Site& site_;
  const char* pattern_;
  int64_t rank_ = 0, widest_ = 0;
  bool extra_ = false;
  Promotion promotion_;
  std::vector<Arg> args_;
  std::deque<Tensor> tensors_;
  std::deque<std::vector<int64_t>> ints_;
  std::deque<std::vector<Tensor>> lists_;
};

}  // namespace

void run_pattern(const Site& site, const char* pattern, Value* out) {
  const OpInfo& info = *site.op.info;
  const bool writes = info.is(OpInfo::kInplace);
  if (writes && !site.batched(0)) fail_unbatched_self(site.op);
  TN_CHECK(writes || !info.is(OpInfo::kMutates), "vmap: ", info.name, " has no batching rule");
  const func::BelowTop below;
  const Builder builder(site, pattern);
  if (writes && !pattern) {
    int64_t widest = 0;
    func::for_each_tensor(site.args, [&](const Tensor& t) { widest = std::max(widest, t.dim()); });
    TN_CHECK(widest <= site.rank(0), info.name, ": expected other tensors to broadcast to self ",
             site.tensor(0).sizes(), ", got one with ", widest, " dimensions");
  }
  door::call_boxed(site.op, builder.args(), out);
  if (writes) {
    Tensor value = out[0].arg().tensor();
    if (builder.extra() && value.dim() == 2) value = at::squeeze(value, 1);
    out[0] = Value(written(site.tensor(0), value));
    return;
  }
  func::map_results({out, info.num_returns}, [&](const Tensor& t) {
    return site.wrap(builder.extra() && t.dim() == 2 ? at::squeeze(t, 1) : t);
  });
}

// Letters of `spec`, the target's arguments: F all elements in one dimension, i that dimension, l a list of it, n
// false, a digit: the argument of that number.
void run_reduction(const Site& site, const Rule& rule, Value* out) {
  static const int64_t one = 1;
  OpRow& target = required(rule.target);
  const func::BelowTop below;
  const Tensor flat = at::reshape(site.front(0), {site.batch_size, -1});
  std::vector<Arg> args;
  for (const char* c = rule.spec; *c; ++c) {
    switch (*c) {
      case 'F': args.push_back(Arg::of(flat)); break;
      case 'i': args.push_back(Arg::of(one)); break;
      case 'l': args.push_back(Arg::of(IntArrayRef(&one, 1))); break;
      case 'n': args.push_back(Arg::of(false)); break;
      default: args.push_back(site.args[static_cast<size_t>(*c - '0')]);
    }
  }
  std::vector<Value> results(target.info->num_returns);
  door::call_boxed(target, args, results.data());
  for (size_t r = 0; r < site.op.info->num_returns; ++r) out[r] = Value(site.wrap(results[r].take_tensor()));
}

}  // namespace tn::vmap
