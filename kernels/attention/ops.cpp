#include <tuple>

#include "generated/slots/attention.h"
#include "kernels/attention/backends.h"
#include "kernels/attention/problem.h"
#include "runtime/warn.h"

namespace tn {

constinit attention::Switches attention::switches;

namespace {

bool heads_fit(const Tensor& q, const Tensor& k, const Tensor& v, bool enable_gqa) {
  if (q->size(0) != k->size(0) || q->size(0) != v->size(0)) return false;
  const int64_t heads = q->size(1), keys = k->size(1), values = v->size(1);
  if (!enable_gqa) return heads == keys && heads == values;
  return keys == values && keys > 0 && heads % keys == 0;
}

bool mask_fits(const Tensor& q, const Tensor& k, OptionalTensor mask) {
  if (!mask) return true;
  const Tensor& m = *mask;
  if (m.requires_grad()) return false;
  if ((m.size(-2) != q->size(2) && m.size(-2) != 1) || (m.size(-1) != k->size(2) && m.size(-1) != 1)) return false;
  if (m.dim() == 2) return true;
  return m.dim() == 4 && (m->size(0) == 1 || m->size(0) == q->size(0)) && (m->size(1) == 1 || m->size(1) == q->size(1));
}

bool flash_fits(const Tensor& q, const Tensor& k, const Tensor& v, OptionalTensor mask, double dropout_p,
                bool enable_gqa) {
  if (!attention::switches.flash || dropout_p > 0) return false;
  if (q.dim() != 4 || k.dim() != 4 || v.dim() != 4) return false;
  if (!heads_fit(q, k, v, enable_gqa) || !mask_fits(q, k, mask)) return false;
  if (q->size(3) != k->size(3) || q->size(3) != v->size(3)) return false;
  if (q->size(2) == 0 || k->size(2) == 0) return false;
  if (q->stride(3) != 1 || k->stride(3) != 1 || v->stride(3) != 1) return false;
  if (mask && mask->stride(-1) != 1) return false;
  const ScalarType t = q.dtype();
  return t == k.dtype() && t == v.dtype() &&
         (t == ScalarType::Float || t == ScalarType::Double || t == ScalarType::BFloat16 || t == ScalarType::Half);
}

}  // namespace

attention::Backend attention::choose_backend(const Tensor& q, const Tensor& k, const Tensor& v, OptionalTensor mask,
                                             double dropout_p, bool enable_gqa) {
  if (!switches.math && !switches.flash) return Backend::Error;
  if (flash_fits(q, k, v, mask, dropout_p, enable_gqa)) return Backend::Flash;
  if (switches.math) return Backend::Math;
  warn("Flash attention kernel not used because:");
  fail(ErrorKind::Runtime, "No available kernel. Aborting execution.");
}

int64_t native::_fused_sdp_choice(const Tensor& query, const Tensor& key, const Tensor& value, OptionalTensor attn_mask,
                                  double dropout_p, bool /*is_causal*/, std::optional<double> /*scale*/,
                                  bool enable_gqa) {
  const auto choice = attention::choose_backend(query, key, value, attn_mask, dropout_p, enable_gqa);
  TN_CHECK(choice != attention::Backend::Error, "No viable backend for scaled_dot_product_attention was found. ",
           "This is likely due to turning off both the math kernel and the fused kernels.");
  return static_cast<int64_t>(choice);
}

std::tuple<Tensor, Tensor> native::_scaled_dot_product_flash_attention_for_cpu(const Tensor& query, const Tensor& key,
                                                                               const Tensor& value, double dropout_p,
                                                                               bool is_causal, OptionalTensor attn_mask,
                                                                               std::optional<double> scale) {
  const auto problem = attention::make_problem(query, key, value, dropout_p, is_causal, attn_mask, scale, false);
  auto result = attention::run_forward(problem, query, key, value);
  return {std::move(result.out), std::move(result.logsumexp)};
}

}  // namespace tn
