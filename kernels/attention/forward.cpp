#include <cmath>

#include "kernels/attention/problem.h"
#include "kernels/attention/softmax_rows.h"
#include "kernels/matmul/checks.h"
#include "runtime/shape.h"
#include "runtime/threads.h"

namespace tn::attention {
namespace {

constexpr int64_t kKeys = 512;  // keys in a block: the scores of a block stay in the second cache

// Queries of a block. Fixed by shape, so that results don't depend on threads.
int64_t rows_of_block(const Problem& p) { return p.q_len >= 768 ? 128 : 64; }

// A block covers positions [position, position + count) of query heads [head, head + heads): many positions of one
// head, or, for short queries (decoding), all heads that share a key head, so that keys are read once.
struct Rows {
  int64_t head, heads, position, count;
  int64_t total() const { return heads * count; }
};

template <class T>
class Worker {
 public:
  Worker(const Problem& p, const Tensor& q, const Tensor& k, const Tensor& v, const Forward& to)
      : p_(p), q_(q), k_(k), v_(v), to_(to), rows_(rows_of_block(p)), keys_(std::min(kKeys, p.kv_len)) {
    const bool merge = p.q_len < rows_ && p.group > 1;
    heads_ = merge ? std::min(p.group, std::max<int64_t>(1, rows_ / p.q_len)) : 1;
    head_blocks_ = (p.group + heads_ - 1) / heads_;
    q_blocks_ = (p.q_len + rows_ - 1) / rows_;
  }

  void run() {
    const int64_t tasks = p_.batch * p_.kv_heads * head_blocks_ * q_blocks_;
    parallel_for(0, tasks, 1, [this](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) run_task(task);
    });
  }

 private:
  void run_task(int64_t task) {
    // Late positions see more keys under a causal mask: they come first, so that threads end together.
    const int64_t q_block = q_blocks_ - 1 - task % q_blocks_, outer = task / q_blocks_;
    const int64_t head_block = outer % head_blocks_, kv_head = outer / head_blocks_ % p_.kv_heads;
    const int64_t b = outer / head_blocks_ / p_.kv_heads;
    Rows rows;
    rows.head = kv_head * p_.group + head_block * heads_;
    rows.heads = std::min(heads_, p_.group - head_block * heads_);
    rows.position = q_block * rows_;
    rows.count = std::min(rows_, p_.q_len - rows.position);
    run_block(b, kv_head, rows);
  }

  void run_block(int64_t b, int64_t kv_head, const Rows& rows) {
    const int64_t m = rows.total(), d = p_.head_size, ld = Room<T>::padded(keys_);
    const bool narrow = p_.dtype != p_.wide;
    Room<T> room(2 * Room<T>::padded(m * d) + m * ld + 3 * Room<T>::padded(m) + ld +
                 (narrow ? Room<T>::padded(keys_ * d) : 0));
    T* const q = room.take(m * d);
    T* const out = room.take(m * d);
    T* const scores = room.take(m * ld);
    T* const largest = room.take(m);
    T* const sum = room.take(m);
    T* const mask = room.take(ld);
    T* const keys = narrow ? room.take(keys_ * d) : nullptr;
    for (int64_t h = 0; h < rows.heads; ++h)
      gather_rows(q_, b, rows.head + h, rows.position, rows.count, q + h * rows.count * d);
    std::fill(largest, largest + m, -std::numeric_limits<T>::infinity());
    std::fill(sum, sum + m, T(0));
    const int64_t seen = p_.visible(rows.position + rows.count - 1);
    for (int64_t from = 0; from < seen; from += keys_) {
      const int64_t n = std::min(keys_, seen - from);
      const Block<T> k = block_of(p_, k_, b, kv_head, from, n, keys);
      gemm::gemm(kWide<T>, m, n, d, {q, d, 1}, {k.data, k.col, k.row}, {scores, ld, 1}, p_.scale, 0);
      for (int64_t r = 0; r < m; ++r)
        update_row(b, rows, r, from, n, scores + r * ld, out + r * d, &largest[r], &sum[r], mask);
      const Block<T> v = block_of(p_, v_, b, kv_head, from, n, keys);
      gemm::gemm(kWide<T>, m, d, n, {scores, ld, 1}, {v.data, v.row, v.col}, {out, d, 1}, 1, from == 0 ? 0 : 1);
    }
    finish(b, rows, out, largest, sum);
  }

  // Turns a row of scores into weights relative to the largest score so far, and what was summed before with them.
  void update_row(int64_t b, const Rows& rows, int64_t r, int64_t from, int64_t n, T* scores, T* out, T* largest,
                  T* sum, T* room) {
    const int64_t head = rows.head + r / rows.count, position = rows.position + r % rows.count;
    const int64_t open = std::clamp<int64_t>(p_.visible(position) - from, 0, n);
    const T* const mask = open > 0 ? mask_row(p_, b, head, position, from, open, room) : nullptr;
    const T before = *largest;
    const T now = std::max(before, open > 0 ? add_mask(scores, mask, open) : before);
    // Nothing is visible so far, unless there is a NaN, which escapes the comparison: then the weights become NaN
    // below.
    if (now == -std::numeric_limits<T>::infinity() && !has_nan(scores, open)) {
      std::fill(scores, scores + n, T(0));
      return;
    }
    const T added = open > 0 ? exp_scores(scores, open, now) : T(0);
    std::fill(scores + open, scores + n, T(0));
    if (from > 0 && before != now) {
      const T factor = std::exp(before - now);
      *sum *= factor;
      scale_row(out, p_.head_size, factor);
    }
    *sum += added;
    *largest = now;
  }

  static bool has_nan(const T* values, int64_t n) {
    return std::any_of(values, values + n, [](T x) { return std::isnan(x); });
  }

  void finish(int64_t b, const Rows& rows, T* out, const T* largest, const T* sum) {
    const int64_t d = p_.head_size;
    for (int64_t r = 0; r < rows.total(); ++r) {
      // A row that sees nothing is zero, and so is its logarithm: upstream's convention.
      const bool none = sum[r] == 0;
      if (none) std::fill(out + r * d, out + (r + 1) * d, T(0));
      else scale_row(out + r * d, d, T(1) / sum[r]);
      const int64_t head = rows.head + r / rows.count, position = rows.position + r % rows.count;
      const Tensor& lse = to_.logsumexp;
      lse.data<T>()[b * lse->stride(0) + head * lse->stride(1) + position * lse->stride(2)] =
          none ? T(0) : largest[r] + std::log(sum[r]);
    }
    for (int64_t h = 0; h < rows.heads; ++h)
      scatter_rows(out + h * rows.count * d, to_.out, b, rows.head + h, rows.position, rows.count);
  }

  const Problem& p_;
  const Tensor &q_, &k_, &v_;
  const Forward& to_;
  int64_t rows_, keys_, heads_, head_blocks_, q_blocks_;
};

Tensor expand_mask(const Tensor& mask, const Problem& p) {
  const auto fits = [&](int64_t dim, int64_t size) { return mask->size(dim) == size || mask->size(dim) == 1; };
  const bool good = mask.dim() == 2 ? fits(0, p.q_len) && fits(1, p.kv_len)
                                    : fits(0, p.batch) && fits(1, p.heads) && fits(2, p.q_len) && fits(3, p.kv_len);
  TN_CHECK(good, "scaled_dot_product_attention_flash_attention: Please use the correct attn_mask shape, got ",
           mask.sizes());
  const int64_t sizes[] = {p.batch, p.heads, p.q_len, p.kv_len};
  return matmul::expanded(mask, IntView(sizes, 4));
}

}  // namespace

#define TN_FLASH "scaled_dot_product_attention_flash_attention: "
Problem make_problem(const Tensor& q, const Tensor& k, const Tensor& v, double dropout_p, bool causal,
                     OptionalTensor mask, std::optional<double> scale, bool any_mask) {
  const ScalarType dtype = q.dtype();
  TN_CHECK(is_floating(dtype) && gemm::supports(dtype),
           TN_FLASH "Expected data type in FP32, FP64, BF16, FP16, but got ", scalar_type_name(dtype), " instead.");
  TN_CHECK(q.dim() == 4 && k.dim() == 4 && v.dim() == 4, TN_FLASH "Accept only 4 dims inputs shape of {B, H, T, K}");
  TN_CHECK(dropout_p == 0.0, TN_FLASH "Currently do not support dropout > 0");
  TN_CHECK(q->size(3) == v->size(3) && k->size(3) == v->size(3), TN_FLASH "Q/K/V should have the same head size");
  TN_CHECK(!mask || any_mask || mask->dtype() == ScalarType::Float || mask->dtype() == dtype,
           TN_FLASH "Attention mask is the same data type as query");
  TN_CHECK(!mask || mask->dim() == 2 || mask->dim() == 4, TN_FLASH "Attention mask dim in {2, 4}");
  for (const Tensor* t : {&k, &v})
    TN_CHECK(t->dtype() == dtype, "expected scalar type ", scalar_type_name(dtype), " but found ",
             scalar_type_name(t->dtype()));
  // Upstream reads out of bounds below.
  TN_CHECK(k->size(0) == q->size(0) && v->size(0) == q->size(0), TN_FLASH "expected one batch size, got ", q->size(0),
           ", ", k->size(0), " and ", v->size(0));
  TN_CHECK(k->size(1) == v->size(1) && k->size(2) == v->size(2), TN_FLASH "expected keys and values of one shape, got ",
           k.sizes(), " and ", v.sizes());
  TN_CHECK(q->size(1) == k->size(1) || (k->size(1) > 0 && q->size(1) % k->size(1) == 0), TN_FLASH "expected ",
           q->size(1), " query heads to be a multiple of the key heads, got ", k->size(1));
  Problem p;
  p.batch = q->size(0), p.heads = q->size(1), p.kv_heads = k->size(1), p.q_len = q->size(2), p.kv_len = k->size(2);
  p.group = p.kv_heads > 0 ? p.heads / p.kv_heads : 1;
  p.head_size = q->size(3);
  p.scale = scale.value_or(1.0 / std::sqrt(static_cast<double>(p.head_size)));
  p.causal = causal;
  p.dtype = dtype;
  p.wide = dtype == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
  if (mask && mask->numel() > 0) p.mask = expand_mask(*mask, p);
  return p;
}
#undef TN_FLASH

Forward run_forward(const Problem& p, const Tensor& q, const Tensor& k, const Tensor& v) {
  Forward to;
  to.out = empty_strided(q.sizes(), preserved_strides(q.sizes(), q.strides()), p.dtype);
  const int64_t sizes[] = {p.batch, p.heads, p.q_len};
  const int64_t strides[] = {p.heads * p.q_len, 1, p.heads};
  to.logsumexp = empty_strided(IntView(sizes, 3), IntView(strides, 3), p.wide);
  if (to.logsumexp.numel() == 0) return to;
  if (p.kv_len == 0 || p.head_size == 0) {
    zero(to.out);
    fill(to.logsumexp, p.kv_len == 0 ? 0.0 : std::log(static_cast<double>(p.kv_len)));
    return to;
  }
  if (p.wide == ScalarType::Double) Worker<double>(p, q, k, v, to).run();
  else Worker<float>(p, q, k, v, to).run();
  return to;
}

}  // namespace tn::attention
