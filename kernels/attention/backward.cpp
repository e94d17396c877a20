// Gradients of attention, from the saved output and the logarithms of the rows' sums: the weights are computed again,
// block by block, in float (double for double).
#include <algorithm>
#include <cmath>
#include <tuple>

#include "generated/slots/attention.h"
#include "kernels/attention/problem.h"
#include "kernels/attention/softmax_rows.h"
#include "runtime/threads.h"

namespace tn {
namespace attention {
namespace {

constexpr int64_t kQueries = 64, kKeys = 512;

struct Operands {
  const Tensor &grad, &q, &k, &v, &out, &lse;
  Tensor grad_q, grad_k, grad_v;
};

// One key head with the query heads that share it. Dense copies in T of everything that the head needs.
template <class T>
void run_head(const Problem& p, Operands& o, int64_t b, int64_t kv_head) {
  const int64_t d = p.head_size, keys = std::min(kKeys, p.kv_len), ld = Room<T>::padded(keys),
                rows = std::min(kQueries, p.q_len);
  const auto part = [](int64_t n) { return Room<T>::padded(n); };
  Room<T> room(4 * part(p.kv_len * d) + 4 * part(p.q_len * d) + part(p.q_len) + 2 * rows * ld + ld);
  T* const k = room.take(p.kv_len * d);
  T* const v = room.take(p.kv_len * d);
  T* const grad_k = room.take(p.kv_len * d);
  T* const grad_v = room.take(p.kv_len * d);
  T* const q = room.take(p.q_len * d);
  T* const out = room.take(p.q_len * d);
  T* const grad = room.take(p.q_len * d);
  T* const grad_q = room.take(p.q_len * d);
  T* const delta = room.take(p.q_len);
  T* const weights = room.take(rows * ld);
  T* const slopes = room.take(rows * ld);
  T* const mask = room.take(ld);
  gather_rows(o.k, b, kv_head, 0, p.kv_len, k);
  gather_rows(o.v, b, kv_head, 0, p.kv_len, v);
  std::fill(grad_k, grad_k + p.kv_len * d, T(0));
  std::fill(grad_v, grad_v + p.kv_len * d, T(0));
  for (int64_t h = kv_head * p.group; h < (kv_head + 1) * p.group; ++h) {
    gather_rows(o.q, b, h, 0, p.q_len, q);
    gather_rows(o.out, b, h, 0, p.q_len, out);
    gather_rows(o.grad, b, h, 0, p.q_len, grad);
    std::fill(grad_q, grad_q + p.q_len * d, T(0));
    // How much of a row's slope the softmax takes back.
    for (int64_t i = 0; i < p.q_len; ++i) {
      T sum = 0;
      for (int64_t j = 0; j < d; ++j) sum += grad[i * d + j] * out[i * d + j];
      delta[i] = sum;
    }
    for (int64_t i = 0; i < p.q_len; i += rows) {
      const int64_t m = std::min(rows, p.q_len - i), seen = p.visible(i + m - 1);
      for (int64_t j = 0; j < seen; j += keys) {
        const int64_t n = std::min(keys, seen - j);
        gemm::gemm(kWide<T>, m, n, d, {q + i * d, d, 1}, {k + j * d, 1, d}, {weights, ld, 1}, p.scale, 0);
        for (int64_t r = 0; r < m; ++r) {
          T* const row = weights + r * ld;
          const int64_t open = std::clamp<int64_t>(p.visible(i + r) - j, 0, n);
          const T lse = o.lse.data<T>()[b * o.lse->stride(0) + h * o.lse->stride(1) + (i + r) * o.lse->stride(2)];
          if (open > 0) {
            add_mask(row, mask_row(p, b, h, i + r, j, open, mask), open);
            exp_scores(row, open, lse);
          }
          std::fill(row + open, row + n, T(0));
        }
        gemm::gemm(kWide<T>, n, d, m, {weights, 1, ld}, {grad + i * d, d, 1}, {grad_v + j * d, d, 1}, 1, 1);
        gemm::gemm(kWide<T>, m, n, d, {grad + i * d, d, 1}, {v + j * d, 1, d}, {slopes, ld, 1});
        for (int64_t r = 0; r < m; ++r)
          for (int64_t c = 0; c < n; ++c)
            slopes[r * ld + c] = weights[r * ld + c] * (slopes[r * ld + c] - delta[i + r]);
        gemm::gemm(kWide<T>, m, d, n, {slopes, ld, 1}, {k + j * d, d, 1}, {grad_q + i * d, d, 1}, p.scale, 1);
        gemm::gemm(kWide<T>, n, d, m, {slopes, 1, ld}, {q + i * d, d, 1}, {grad_k + j * d, d, 1}, p.scale, 1);
      }
    }
    scatter_rows(grad_q, o.grad_q, b, h, 0, p.q_len);
  }
  scatter_rows(grad_k, o.grad_k, b, kv_head, 0, p.kv_len);
  scatter_rows(grad_v, o.grad_v, b, kv_head, 0, p.kv_len);
}

// Dense as [batch, length, heads, size], with the middle dimensions swapped: upstream's layout of these gradients.
Tensor empty_gradient(const Tensor& like) {
  const int64_t heads = like->size(1), length = like->size(2), d = like->size(3);
  const int64_t strides[] = {length * heads * d, d, heads * d, 1};
  return empty_strided(like.sizes(), IntView(strides, 4), like.dtype());
}

}  // namespace
}  // namespace attention

std::tuple<Tensor, Tensor, Tensor> native::_scaled_dot_product_flash_attention_for_cpu_backward(
    const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& out,
    const Tensor& logsumexp, double dropout_p, bool is_causal, OptionalTensor attn_mask, std::optional<double> scale) {
  using namespace attention;
  Operands o{
      grad_out, query, key, value, out, logsumexp, empty_gradient(query), empty_gradient(key), empty_gradient(value)};
  const Problem p = make_problem(query, key, value, dropout_p, is_causal, attn_mask, scale, false);
  TN_CHECK(grad_out.sizes() == query.sizes() && out.sizes() == query.sizes() && grad_out.dtype() == p.dtype &&
               out.dtype() == p.dtype,
           "scaled_dot_product_attention_flash_attention: expected an output and its gradient like the query, got ",
           out.sizes(), " and ", grad_out.sizes());
  TN_CHECK(logsumexp.dtype() == p.wide && logsumexp.sizes() == query.sizes().slice(0, 3),
           "scaled_dot_product_attention_flash_attention: expected logsumexp of shape ", query.sizes().slice(0, 3),
           ", got ", logsumexp.sizes());
  if (query.numel() == 0 || key.numel() == 0) {
    for (const Tensor* t : {&o.grad_q, &o.grad_k, &o.grad_v}) zero(*t);
  } else {
    parallel_for(0, p.batch * p.kv_heads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (p.wide == ScalarType::Double) run_head<double>(p, o, i / p.kv_heads, i % p.kv_heads);
        else run_head<float>(p, o, i / p.kv_heads, i % p.kv_heads);
      }
    });
  }
  return {std::move(o.grad_q), std::move(o.grad_k), std::move(o.grad_v)};
}

}  // namespace tn
