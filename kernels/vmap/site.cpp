#include "generated/ops/expand.h"
#include "generated/ops/movedim.h"
#include "generated/ops/select.h"
#include "generated/ops/stack.h"
#include "generated/ops/unsqueeze.h"
#include "generated/ops/view.h"
#include "kernels/vmap/vmap.h"
#include "runtime/registry.h"
#include "runtime/schema.h"
#include "runtime/warn.h"

#include <string>
#include <unordered_map>

namespace tn::vmap {

constinit bool fallback_enabled = true, fallback_warns = true;

Site::Site(OpRow& op, std::span<const Arg> args) : op(op), args(args) {
  const func::Layer& layer = func::layers().back();
  level = layer.level;
  batch_size = layer.batch_size;
  randomness = layer.randomness;
}

bool Site::any_batched() const {
  bool any = false;
  func::for_each_tensor(args, [&](const Tensor& t) { any |= batched(t) != nullptr; });
  return any;
}

Tensor Site::front(const Tensor& t) const {
  const func::Wrapper* const w = batched(t);
  if (!w) return t;
  return w->batch_dim == 0 ? w->value : at::movedim(w->value, w->batch_dim, 0);
}

Tensor Site::full(const Tensor& t) const {
  if (!t.defined() || batched(t)) return front(t);
  std::vector<int64_t> sizes = t.sizes().vec();
  sizes.insert(sizes.begin(), batch_size);
  return at::expand(t, sizes);
}

Tensor Site::padded(const Tensor& t, int64_t rank) const {
  Tensor value = front(t);
  if (!batched(t)) return value;
  for (int64_t have = value.dim() - 1; have < rank; ++have) value = at::unsqueeze(value, 1);
  return value;
}

OpRow& required(const char* name) {
  const std::string_view text(name);
  const size_t dot = text.find('.');
  OpRow* const found =
      find_op("aten::" + std::string(text.substr(0, dot)), dot == std::string_view::npos ? "" : text.substr(dot + 1));
  TN_CHECK(found, "vmap: expected an operator named ", name, ", got none");
  return *found;
}

bool is_random(const OpRow& op) { return (op.info->tags >> 13 & 1) != 0; }  // torch.Tag.nondeterministic_seeded

namespace {

constexpr bool has_tag(const OpRow& op, int tag) { return (op.info->tags >> tag & 1) != 0; }
constexpr int kDataDependent = 2, kDynamicShape = 3, kPointwise = 16;  // torch.Tag

std::unordered_map<const OpRow*, const Rule*> make_table() {
  std::unordered_map<const OpRow*, const Rule*> table;
  for (const Rule* rules : {pattern_rules, matmul_rules, special_rules})
    for (const Rule* r = rules; r->op; ++r) {
      OpRow& op = required(r->op);
      TN_CHECK(!r->pattern || std::string_view(r->pattern).size() == op.info->num_args,
               "vmap: expected a letter for each argument of ", r->op, ", got ", r->pattern);
      table[&op] = r;
      // The in-place form takes the same arguments.
      const std::string_view name(r->op);
      const size_t dot = name.find('.');
      OpRow* const inplace = find_op("aten::" + std::string(name.substr(0, dot)) + "_",
                                     dot == std::string_view::npos ? "" : name.substr(dot + 1));
      if (inplace && r->pattern && inplace->info->num_args == op.info->num_args) table.emplace(inplace, r);
    }
  return table;
}

}  // namespace

const Rule* find_rule(const OpRow& op) {
  static const std::unordered_map<const OpRow*, const Rule*> table = make_table();
  const auto found = table.find(&op);
  return found == table.end() ? nullptr : found->second;
}

void fail_unbatched_self(const OpRow& op) {
  const std::string_view full(op.info->name);
  const std::string name(full.substr(full.find("::") + 2));
  fail(ErrorKind::Runtime, "vmap: ", name,
       "(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has ",
       "more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over "
       "in a vmap. Please try to "
       "use out-of-place operators instead of ",
       name,
       ". If said operator is being called inside the PyTorch framework, please file a bug "
       "report instead.");
}

Tensor written(const Tensor& self, const Tensor& value) {
  self->wrapper->value = value;
  self->wrapper->batch_dim = 0;
  func::refresh(self);
  return self;
}

Tensor remove_batch_dim(const Tensor& self, int64_t level, int64_t batch_size, int64_t out_dim) {
  const func::Wrapper* const w = func::wrapper_at(self, level);
  if (w && w->batched()) {
    const int64_t to = wrap_dim(out_dim, w->value.dim());
    return to == w->batch_dim ? w->value : at::movedim(w->value, w->batch_dim, to);
  }
  const int64_t to = wrap_dim(out_dim, self.dim() + 1);
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes.insert(sizes.begin() + to, batch_size);
  return at::expand(at::unsqueeze(self, to), sizes);
}

void run_loop(const Site& site, Value* out) {
  OpRow& op = site.op;
  const OpInfo& info = *op.info;
  TN_CHECK(fallback_enabled, "Batching rule not implemented for ", info.name, *info.overload ? "." : "", info.overload,
           ". The vmap fallback is disabled.");
  TN_CHECK(!info.is(OpInfo::kOut) && !info.is(OpInfo::kView), "Batching rule not implemented for ", info.name,
           *info.overload ? "." : "", info.overload, "; the fallback path doesn't work on out= or view ops.");
  if (info.is(OpInfo::kMutates))
    for (size_t i = 0; i < site.args.size(); ++i)
      if (site.args[i].tag == Tag::Tensor && schema_of(op).arguments()[i].is_write() && !site.batched(i))
        fail_unbatched_self(op);
  TN_CHECK(site.batch_size > 0, "The fallback path does not support vmap over dims of size 0: ", info.name);
  if (fallback_warns)
    warn(str("There is a performance drop because we have not yet implemented the batching rule for ", info.name,
             *info.overload ? "." : "", info.overload,
             ". Please file us an issue on GitHub so that we can prioritize its implementation."));
  std::vector<std::vector<Tensor>> single(info.num_returns);
  std::vector<std::vector<std::vector<Tensor>>> lists(info.num_returns);
  const func::BelowTop below;
  for (int64_t b = 0; b < site.batch_size; ++b) {
    const func::MappedArgs element(site.args, [&](const Tensor& t) {
      const func::Wrapper* const w = site.batched(t);
      return w ? at::select(w->value, w->batch_dim, b) : t;
    });
    std::vector<Value> results(std::max<size_t>(info.num_returns, 1));
    door::call_boxed(op, element.args(), results.data());
    for (size_t r = 0; r < info.num_returns; ++r) {
      if (results[r].tag() == Tag::TensorList) {
        lists[r].push_back(std::move(results[r].tensor_vector()));
      } else {
        TN_CHECK(results[r].tag() == Tag::Tensor || results[r].is_none(), "vmap: ", info.name,
                 " can't be run element by element: it answers no tensor");
        single[r].push_back(results[r].take_tensor());
      }
    }
  }
  if (info.is(OpInfo::kMutates)) {
    for (size_t i = 0, r = 0; i < site.args.size() && r < info.num_returns; ++i)
      if (schema_of(op).arguments()[i].is_write()) out[r++] = Value(Tensor(site.tensor(i)));
    return;
  }
  for (size_t r = 0; r < info.num_returns; ++r) {
    if (!lists[r].empty()) {
      std::vector<Tensor> stacked;
      for (size_t k = 0; k < lists[r][0].size(); ++k) {
        std::vector<Tensor> column;
        for (std::vector<Tensor>& row : lists[r]) column.push_back(row[k]);
        stacked.push_back(site.wrap(at::stack(column, 0)));
      }
      out[r] = Value(std::move(stacked));
    } else if (single[r][0].defined()) {
      out[r] = Value(site.wrap(at::stack(single[r], 0)));
    }
  }
}

namespace {

void call(OpRow& op, std::span<const Arg> args, Value* out) {
  const Site site(op, args);
  const OpInfo& info = *op.info;
  if (is_random(op) && !info.is(OpInfo::kImplicit) && info.way != Way::Compose) return run_random(site, out);
  const Rule* const rule = find_rule(op);
  if (rule && rule->always) return rule->fn(site, out);
  if (!site.any_batched()) return func::send_on(op, args, out);
  if (const Found found = find_kernel_for(op, DispatchKey::FuncTorchBatched); found.boxed && op.registrations) {
    // What Python registered for batched tensors; the key's own fallback is this function.
    for (const Registration& r : *op.registrations)
      if (r.boxed.get() == found.boxed) return found.boxed->call(op, KeySet(door::keys_of(args)), args, out);
  }
  if (rule) {
    if (rule->fn) return rule->fn(site, out);
    return rule->spec ? run_reduction(site, *rule, out) : run_pattern(site, rule->pattern, out);
  }
  TN_CHECK(!has_tag(op, kDynamicShape),
           "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over ",
           info.name, *info.overload ? "." : "", info.overload,
           ". Please voice your support in https://github.com/pytorch/functorch/issues/256");
  TN_CHECK(
      !has_tag(op, kDataDependent),
      "vmap: It looks like you're either (1) calling .item() on a Tensor or (2) attempting to use a Tensor in some "
      "data-dependent control "
      "flow or (3) encountering this error in PyTorch internals. For (1): we don't support vmap over calling .item() "
      "on a Tensor, please "
      "try to rewrite what you're doing with other operations. For (2): If you're doing some control flow instead, we "
      "don't support that "
      "yet, please shout over at https://github.com/pytorch/functorch/issues/257 . For (3): please file an issue.");
  if (has_tag(op, kPointwise) && !info.is(OpInfo::kOut)) return run_pattern(site, nullptr, out);
  if (info.is(OpInfo::kOut)) return run_loop(site, out);  // refuses
  if ((info.is(OpInfo::kImplicit) || info.way == Way::Compose) && op.kernel)
    return op.adapter(op.kernel, args.data(), out);
  if (info.is(OpInfo::kImplicit) && info.way == Way::Python && python_decomposition)
    return python_decomposition->call(op, KeySet(door::keys_of(args)), args, out);
  run_loop(site, out);
}

}  // namespace

void install() { func::vmap_call = call; }

}  // namespace tn::vmap
