// Random operators under vmap: an error, one draw for each element, or one draw for all, as the caller chose.
#include "generated/ops/clone.h"
#include "generated/ops/copy.h"
#include "generated/ops/expand.h"
#include "generated/ops/select.h"
#include "generated/ops/stack.h"
#include "kernels/vmap/vmap.h"
#include "runtime/schema.h"

#include <optional>

namespace tn::vmap {

namespace {

std::optional<size_t> size_argument(OpRow& op) {
  const auto& arguments = schema_of(op).arguments();
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name == "size") return i;
  return std::nullopt;
}

void wrap_all(const Site& site, Value* out) {
  func::map_results({out, site.op.info->num_returns}, [&](const Tensor& t) { return site.wrap(t); });
}

// No tensor tells the shape: factories.
void different_factory(const Site& site, Value* out) {
  const func::BelowTop below;
  if (const std::optional<size_t> at = size_argument(site.op)) {
    std::vector<Arg> args(site.args.begin(), site.args.end());
    std::vector<int64_t> sizes = args[*at].ints().vec();
    sizes.insert(sizes.begin(), site.batch_size);
    args[*at] = Arg::of(IntArrayRef(sizes));
    door::call_boxed(site.op, args, out);
    return wrap_all(site, out);
  }
  std::vector<Tensor> draws;  // randperm
  for (int64_t b = 0; b < site.batch_size; ++b) {
    Value one;
    door::call_boxed(site.op, site.args, &one);
    draws.push_back(one.take_tensor());
  }
  out[0] = Value(site.wrap(at::stack(draws, 0)));
}

// Every tensor with the batch in front and memory of its own; the operator then draws for all elements at once.
void different(const Site& site, Value* out) {
  const bool writes = site.op.info->is(OpInfo::kInplace);
  TN_CHECK(!writes || site.batched(size_t{0}),
           "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
           "randomness. If this is "
           "necessary for your usage, please file an issue with functorch.");
  const func::BelowTop below;
  int64_t widest = 0;
  func::for_each_tensor(site.args, [&](const Tensor& t) { widest = std::max(widest, t.dim()); });
  bool batched = site.any_batched();
  const func::MappedArgs values(site.args, [&](const Tensor& t) {
    if (site.batched(t)) return site.padded(t, widest);
    if (batched) return t;
    batched = true;
    return at::clone(site.full(t), MemoryFormat::Contiguous);
  });
  door::call_boxed(site.op, values.args(), out);
  if (writes) out[0] = Value(written(site.tensor(0), out[0].arg().tensor()));
  else wrap_all(site, out);
}

void same(const Site& site, Value* out) {
  if (!site.any_batched()) return func::send_on(site.op, site.args, out);
  const std::string_view name(site.op.info->name);
  const bool draws_only = site.op.info->is(OpInfo::kInplace) || name.ends_with("_like");
  size_t tensors = 0;
  func::for_each_tensor(site.args, [&](const Tensor&) { ++tensors; });
  TN_CHECK(draws_only && tensors == 1,
           "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with "
           "functorch");
  const func::BelowTop below;
  const func::Wrapper& w = *site.batched(site.tensor(0));
  std::vector<Arg> args(site.args.begin(), site.args.end());
  const Tensor one = at::select(w.value, w.batch_dim, 0);
  const Tensor own = site.op.info->is(OpInfo::kInplace) ? at::clone(one) : one;
  args[0] = Arg::of(own);
  door::call_boxed(site.op, args, out);
  if (!site.op.info->is(OpInfo::kInplace)) return;
  at::copy_(site.front(0), own);
  out[0] = Value(Tensor(site.tensor(0)));
}

}  // namespace

void run_random(const Site& site, Value* out) {
  TN_CHECK(!func::layers().back().older,
           "vmap: We do not yet support calling random operations inside of vmap. Please perform random operations "
           "outside of vmap as a workaround");
  switch (site.randomness) {
    case func::Randomness::Error:
      fail(ErrorKind::Runtime,
           "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
           "randomness flags on vmap "
           "or perform the randomness operation out of vmap");
    case func::Randomness::Same: return same(site, out);
    case func::Randomness::Different: break;
  }
  bool tensors = false;
  func::for_each_tensor(site.args, [&](const Tensor&) { tensors = true; });
  tensors ? different(site, out) : different_factory(site, out);
}

}  // namespace tn::vmap
