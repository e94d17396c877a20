// Batching rules that are neither a line of letters nor a product: whole reductions, views with their own geometry,
// copies, indexing.
#include "generated/ops/_local_scalar_dense.h"
#include "generated/ops/_new_zeros_with_same_feature_meta.h"
#include "generated/ops/alias.h"
#include "generated/ops/arange.h"
#include "generated/ops/as_strided.h"
#include "generated/ops/copy.h"
#include "generated/ops/diagonal.h"
#include "generated/ops/embedding.h"
#include "generated/ops/expand.h"
#include "generated/ops/gather.h"
#include "generated/ops/index.h"
#include "generated/ops/index_select.h"
#include "generated/ops/new_empty_strided.h"
#include "generated/ops/new_zeros.h"
#include "generated/ops/reshape.h"
#include "generated/ops/roll.h"
#include "generated/ops/squeeze.h"
#include "generated/ops/sum.h"
#include "generated/ops/transpose.h"
#include "generated/ops/unsqueeze.h"
#include "generated/ops/view.h"
#include "kernels/vmap/vmap.h"

namespace tn::vmap {

namespace {

void put(const Site& s, Value* out, const Tensor& t) { out[0] = Value(s.wrap(t)); }
void put_view(const Site& s, Value* out, const Tensor& t) {
  if (s.op.info->is(OpInfo::kInplace)) out[0] = Value(written(s.tensor(0), t));
  else put(s, out, t);
}

void squeeze(const Site& s, Value* out) {
  const func::BelowTop below;
  std::vector<int64_t> ones;
  for (int64_t d = 0; d < s.rank(0); ++d)
    if (s.tensor(0).size(d) == 1) ones.push_back(d + 1);
  const Tensor front = s.front(0);
  put_view(s, out, ones.empty() ? at::alias(front) : at::squeeze(front, IntArrayRef(ones)));
}
void t(const Site& s, Value* out) {
  const func::BelowTop below;
  TN_CHECK(s.rank(0) <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", s.rank(0), "D");
  const Tensor front = s.front(0);
  put_view(s, out, s.rank(0) < 2 ? at::alias(front) : at::transpose(front, 1, 2));
}
void as_strided(const Site& s, Value* out) {
  const func::Wrapper& w = *s.batched(s.tensor(0));
  const func::BelowTop below;
  std::vector<int64_t> sizes = s.args[1].ints().vec(), strides = s.args[2].ints().vec();
  sizes.insert(sizes.begin(), s.batch_size);
  strides.insert(strides.begin(), w.value.stride(w.batch_dim));
  const std::optional<int64_t> offset = s.args[3].is_none() ? std::nullopt : std::optional(s.args[3].i);
  put(s, out, at::as_strided(w.value, sizes, strides, offset));
}
void reshape_alias(const Site& s, Value* out) {
  const func::BelowTop below;
  std::vector<int64_t> sizes = s.args[1].ints().vec();
  sizes.insert(sizes.begin(), s.batch_size);
  put(s, out, at::reshape(s.front(0), sizes));
}
void new_empty_strided(const Site& s, Value* out) {
  const func::BelowTop below;
  std::vector<int64_t> sizes = s.args[1].ints().vec(), strides = s.args[2].ints().vec();
  int64_t span = 1;
  for (size_t d = 0; d < sizes.size(); ++d) span += sizes[d] > 0 ? (sizes[d] - 1) * strides[d] : 0;
  sizes.insert(sizes.begin(), s.batch_size);
  strides.insert(strides.begin(), span);
  std::vector<Arg> args(s.args.begin(), s.args.end());
  const Tensor self = s.front(0);
  args[0] = Arg::of(self);
  args[1] = Arg::of(IntArrayRef(sizes));
  args[2] = Arg::of(IntArrayRef(strides));
  door::call_boxed(s.op, args, out);
  put(s, out, out[0].take_tensor());
}
// The batch of self is one of tensors like other; other's own batch is part of what it looks like.
void new_zeros_with_same_feature_meta(const Site& s, Value* out) {
  const bool own = s.batched(0), others = s.batched(1);
  TN_CHECK(own || s.args[2].i == 0,
           "_new_zeros_with_same_feature_meta: expected batch dimensions of a batched tensor, got an unbatched one");
  const func::BelowTop below;
  const Tensor made = at::_new_zeros_with_same_feature_meta(s.front(0), s.front(1), s.args[2].i + (own && !others));
  put(s, out, made);
}
void roll(const Site& s, Value* out) {
  const func::BelowTop below;
  const IntArrayRef shifts = s.args[1].ints();
  const Tensor front = s.front(0);
  if (s.args[2].size == 0) {
    const Tensor flat = at::roll(at::reshape(front, {s.batch_size, -1}), shifts, IntArrayRef({1}));
    return put(s, out, at::reshape(flat, front.sizes()));
  }
  std::vector<int64_t> dims;
  for (const int64_t d : s.args[2].ints()) dims.push_back(wrap_dim(d, s.rank(0)) + 1);
  put(s, out, at::roll(front, shifts, dims));
}
void trace(const Site& s, Value* out) {
  const func::BelowTop below;
  put(s, out, at::sum(at::diagonal(s.front(0), 0, -2, -1), IntArrayRef({-1})));
}

// Also fill_ with a tensor, which may be another number for each element.
void copy_(const Site& s, Value* out) {
  if (!s.batched(size_t{0})) fail_unbatched_self(s.op);
  const func::BelowTop below;
  const Tensor self = s.front(0);
  at::copy_(self, s.padded(s.tensor(1), s.rank(0)));
  out[0] = Value(written(s.tensor(0), self));
}

// Along a dimension by a list of places that may differ from element to element.
void index_select(const Site& s, Value* out) {
  const func::BelowTop below;
  const Tensor index = s.front(2);
  if (!s.batched(size_t{2})) {
    const bool number = s.rank(0) == 0;
    const Tensor self = number ? at::unsqueeze(s.front(0), -1) : s.front(0);
    const Tensor made = at::index_select(self, wrap_dim(s.args[1].i, s.rank(0)) + 1, index);
    return put(s, out, number ? at::squeeze(made, -1) : made);
  }
  const bool number = s.rank(0) == 0;
  const Tensor self = number ? at::unsqueeze(s.full(0), -1) : s.full(0);
  const int64_t dim = wrap_dim(s.args[1].i, s.rank(0)) + 1;
  Tensor places = s.rank(2) == 0 ? at::unsqueeze(index, -1) : index;
  const int64_t count = places.size(1);
  std::vector<int64_t> shape(static_cast<size_t>(self.dim()), 1), wide = self.sizes().vec();
  shape[0] = s.batch_size;
  shape[static_cast<size_t>(dim)] = count;
  wide[static_cast<size_t>(dim)] = count;
  const Tensor made = at::gather(self, dim, at::expand(at::reshape(places, shape), wide));
  put(s, out, number ? at::squeeze(made, -1) : made);
}

void embedding(const Site& s, Value* out) {
  const func::BelowTop below;
  if (!s.batched(size_t{0})) {
    return put(s, out, at::embedding(s.tensor(0), s.front(1), s.args[2].i, s.args[3].i != 0, s.args[4].i != 0));
  }
  // All tables below each other; indices of the b-th count from its first row.
  const Tensor weight = s.front(0);
  const int64_t rows = weight.size(1);
  const Tensor table = at::reshape(weight, {s.batch_size * rows, weight.size(2)});
  Tensor first = at::arange(Scalar(int64_t{0}), Scalar(s.batch_size * rows), Scalar(rows));
  for (int64_t d = 0; d < s.rank(1); ++d) first = at::unsqueeze(first, -1);
  OpRow& add = required("add.Tensor");
  const Tensor indices = s.full(1);
  const Arg args[] = {Arg::of(indices), Arg::of(first), Arg::of(int64_t{1})};
  Value sum;
  door::call_boxed(add, args, &sum);
  put(s, out, at::embedding(table, sum.arg().tensor()));
}

// Advanced indexing. The batch becomes a further index where some index has it, else a leading full slice.
struct Indices {
  std::vector<Tensor> list;
  int64_t moved = -1;  // where the batch is in the result
  bool supported = true;
};
bool plain_index(const Tensor& t) { return t.dtype() == ScalarType::Long || t.dtype() == ScalarType::Int; }
Indices batch_indices(const Site& s, TensorList given) {
  Indices made;
  bool any = false;
  int64_t widest = 0, first = -1, last = -1, count = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    const Tensor& t = given[i];
    if (!t.defined()) continue;
    if (!plain_index(t)) made.supported &= !s.batched(t);
    any |= s.batched(t) != nullptr;
    widest = std::max(widest, t.dim());
    if (first < 0) first = static_cast<int64_t>(i);
    last = static_cast<int64_t>(i);
    ++count;
  }
  if (!made.supported) return made;
  if (!any) {
    made.list.emplace_back();
    for (const Tensor& t : given) made.list.push_back(t);
    // The indices' place in the result: at the first of them when they stand together, else in front of everything.
    const bool together = count == last - first + 1;
    made.moved = together ? 0 : widest;
    for (const Tensor& t : given)
      if (t.defined() && !plain_index(t)) made.supported &= together;
    return made;
  }
  for (const Tensor& t : given)
    if (t.defined() && !plain_index(t)) made.supported = false;
  Tensor batch = at::arange(Scalar(s.batch_size));
  for (int64_t d = 0; d < widest; ++d) batch = at::unsqueeze(batch, -1);
  made.list.push_back(batch);
  for (const Tensor& t : given) made.list.push_back(t.defined() ? s.padded(t, widest) : t);
  const bool together = count == last - first + 1;
  // With a slice between the batch and the others, numpy's rule puts the indexed dimensions first; the own ones belong
  // elsewhere.
  made.supported = !together || first == 0 || widest == 0;
  made.moved = 0;
  return made;
}
void index(const Site& s, Value* out) {
  {
    const func::BelowTop below;
    const Indices indices = batch_indices(s, s.args[1].tensors());
    if (indices.supported) {
      const Tensor self = s.full(0);
      std::vector<Arg> args = {Arg::of(self), Arg::of(TensorList(indices.list))};
      door::call_boxed(s.op, args, out);
      out[0] = Value(s.wrap(out[0].take_tensor(), indices.moved));
      return;
    }
  }
  run_loop(s, out);
}

// What the older vmap calls.
void add_batch_dim(const Site& s, Value* out) {
  const Tensor& self = s.tensor(0);
  const int64_t dim = wrap_dim(s.args[1].i, self.dim());
  for (func::Layer& layer : func::layers())
    if (layer.level == s.args[2].i) layer.batch_size = self.size(dim);
  out[0] = Value(func::wrap_batched(self, dim, s.args[2].i));
}
void remove_batch_dim(const Site& s, Value* out) {
  const func::BelowTop below;
  out[0] = Value(vmap::remove_batch_dim(s.tensor(0), s.args[1].i, s.args[2].i, s.args[3].i));
}

void no_item(const Site&, Value*) {
  fail(ErrorKind::Runtime,
       "vmap: It looks like you're either (1) calling .item() on a Tensor or (2) attempting to use a Tensor in some "
       "data-dependent control flow "
       "or (3) encountering this error in PyTorch internals. For (1): we don't support vmap over calling .item() on a "
       "Tensor, please try to "
       "rewrite what you're doing with other operations. For (2): If you're doing some control flow instead, we don't "
       "support that yet, please "
       "shout over at https://github.com/pytorch/functorch/issues/257 . For (3): please file an issue.");
}

}  // namespace

const Rule special_rules[] = {
    {"sum", nullptr, nullptr, "sum.dim_IntList", "Fln1"},
    {"mean", nullptr, nullptr, "mean.dim", "Fln1"},
    {"prod", nullptr, nullptr, "prod.dim_int", "Fin1"},
    {"max", nullptr, nullptr, "amax", "Fln"},
    {"min", nullptr, nullptr, "amin", "Fln"},
    {"any", nullptr, nullptr, "any.dim", "Fin"},
    {"all", nullptr, nullptr, "all.dim", "Fin"},
    {"median", nullptr, nullptr, "median.dim", "Fin"},
    {"nanmedian", nullptr, nullptr, "nanmedian.dim", "Fin"},
    {"norm.Scalar", nullptr, nullptr, "norm.ScalarOpt_dim", "F1ln"},
    {"count_nonzero", nullptr, nullptr, "count_nonzero.dim_IntList", "Fl"},
    {"squeeze", nullptr, squeeze},
    {"squeeze_", nullptr, squeeze},
    {"t", nullptr, t},
    {"t_", nullptr, t},
    {"as_strided", nullptr, as_strided},
    {"_reshape_alias", nullptr, reshape_alias},
    {"new_empty_strided", nullptr, new_empty_strided},
    {"_new_zeros_with_same_feature_meta", nullptr, new_zeros_with_same_feature_meta},
    {"roll", nullptr, roll},
    {"trace", nullptr, trace},
    {"copy_", nullptr, copy_},
    {"fill_.Tensor", nullptr, copy_},
    {"index_select", nullptr, index_select},
    {"embedding", nullptr, embedding},
    {"index.Tensor", nullptr, index},
    {"_unsafe_index.Tensor", nullptr, index},
    {"_local_scalar_dense", nullptr, no_item},
    {"is_nonzero", nullptr, no_item},
    {"item", nullptr, no_item},
    {"_add_batch_dim", nullptr, add_batch_dim, nullptr, nullptr, true},
    {"_remove_batch_dim", nullptr, remove_batch_dim, nullptr, nullptr, true},
    {nullptr, nullptr},
};

}  // namespace tn::vmap
