#include "kernels/attention/composites.h"

#include <cmath>
#include <limits>

#include "generated/ops/_scaled_dot_product_attention_math.h"
#include "generated/ops/_scaled_dot_product_flash_attention_for_cpu.h"
#include "generated/ops/_to_copy.h"
#include "generated/ops/expand.h"
#include "generated/ops/matmul.h"
#include "generated/ops/ones.h"
#include "generated/ops/reshape.h"
#include "generated/ops/scalar_tensor.h"
#include "generated/ops/transpose.h"
#include "generated/ops/unsqueeze.h"
#include "kernels/attention/backends.h"
#include "kernels/attention/problem.h"
#include "kernels/matmul/calls.h"
#include "kernels/matmul/checks.h"
#include "kernels/matmul/fast.h"
#include "runtime/shape.h"
#include "runtime/warn.h"

namespace tn::composite {
namespace {

using attention::Backend;

void check_inputs(const Tensor& q, const Tensor& k, const Tensor& v, OptionalTensor mask) {
  TN_CHECK(q.dtype() == k.dtype() && q.dtype() == v.dtype(),
           "Expected query, key, and value to have the same dtype, but got query.dtype: ", element_type_name(q.dtype()),
           " key.dtype: ", element_type_name(k.dtype()), " and value.dtype: ", element_type_name(v.dtype()),
           " instead.");
  TN_CHECK(q.device() == k.device() && q.device() == v.device(),
           "Expected query, key, and value to have the same device type, but got query.device: ", q.device().str(),
           " key.device: ", k.device().str(), " and value.device: ", v.device().str(), " instead.");
  TN_CHECK(q.dim() >= 2 && k.dim() >= 2 && v.dim() >= 2,
           "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: ", q.dim(),
           " key.dim: ", k.dim(), " and value.dim: ", v.dim(), " instead.");
  if (!mask) return;
  const ScalarType t = mask->dtype();
  TN_CHECK(t == ScalarType::Bool || t == ScalarType::Float || t == q.dtype(),
           "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: ",
           element_type_name(t), " and  query.dtype: ", element_type_name(q.dtype()), " instead.");
}

// 0 where the mask lets through, -inf elsewhere.
Tensor number_mask(const Tensor& mask, ScalarType dtype) {
  const Tensor closed =
      at::scalar_tensor(-std::numeric_limits<double>::infinity(), dtype, std::nullopt, mask.device(), std::nullopt);
  const Tensor open = at::scalar_tensor(0.0, dtype, std::nullopt, mask.device(), std::nullopt);
  return call::where(mask, open, closed);
}

// Heads of keys and values repeated for the query heads that share them.
Tensor repeat_heads(const Tensor& t, int64_t times) {
  if (times == 1) return t;
  const Tensor wide = at::unsqueeze(t, t.dim() - 2);
  DimVector sizes(wide.sizes());
  sizes[sizes.size() - 3] = times;
  DimVector merged(t.sizes());
  merged[merged.size() - 3] *= times;
  return at::reshape(at::expand(wide, sizes), merged);
}

Tensor to_dtype(const Tensor& t, ScalarType dtype) { return t.dtype() == dtype ? t : at::_to_copy(t, dtype); }

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    OptionalTensor attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale, bool enable_gqa) {
  check_inputs(query, key, value, attn_mask);
  Backend backend = Backend::Math;
  if (query.is_cpu() || query.is_meta())
    backend = attention::choose_backend(query, key, value, attn_mask, dropout_p, enable_gqa);
  const Tensor& mask_keys = attn_mask ? *attn_mask : query;
  if (backend == Backend::Flash && query.is_cpu() &&
      matmul::may_skip_door({&query, &key, &value, &mask_keys}, {kOp__scaled_dot_product_flash_attention_for_cpu})) {
    const auto problem = attention::make_problem(query, key, value, dropout_p, is_causal, attn_mask, scale, true);
    return attention::run_forward(problem, query, key, value).out;
  }
  Tensor numbers;
  OptionalTensor mask = attn_mask;
  if (attn_mask && attn_mask->dtype() == ScalarType::Bool) {
    numbers = number_mask(*attn_mask, query.dtype());
    mask = OptionalTensor(numbers);
  }
  switch (backend) {
    case Backend::Flash:
      return std::get<0>(
          at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p, is_causal, mask, scale));
    case Backend::Math:
      return std::get<0>(at::_scaled_dot_product_attention_math(query, key, value, mask, dropout_p, is_causal,
                                                                std::nullopt, scale, enable_gqa));
    case Backend::Error: break;
  }
  fail(ErrorKind::Runtime, "No viable backend for scaled_dot_product_attention was found.");
}

std::tuple<Tensor, Tensor> attention_math(const Tensor& query, const Tensor& key, const Tensor& value,
                                          OptionalTensor attn_mask, double dropout_p, bool is_causal,
                                          OptionalTensor dropout_mask, std::optional<double> scale, bool enable_gqa) {
  // Half precision is computed in float, unless the user allows otherwise.
  const ScalarType dtype = query.dtype();
  const bool widen =
      (dtype == ScalarType::Half || dtype == ScalarType::BFloat16) && !attention::switches.reduced_precision_math;
  const ScalarType inner = widen ? ScalarType::Float : dtype;
  const Tensor q = to_dtype(query, inner), k = to_dtype(key, inner), v = to_dtype(value, inner);
  // Both operands are scaled by the root, which keeps the products of large numbers in range.
  const bool negative = scale.has_value() && *scale < 0;
  const double whole = scale ? std::abs(*scale) : 1.0 / std::sqrt(static_cast<double>(query.size(-1)));
  const double root = std::sqrt(whole);
  const Tensor scaled = call::mul(q, negative ? -root : root);
  Tensor made;
  OptionalTensor mask = attn_mask;
  if (is_causal) {
    TN_CHECK(!attn_mask, "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
    const int64_t sizes[] = {scaled.size(-2), key.size(-2)};
    const Tensor all = at::ones(IntView(sizes, 2), ScalarType::Bool, std::nullopt, query.device(), std::nullopt);
    made = number_mask(call::tril(all), inner);
    mask = OptionalTensor(made);
  }
  Tensor keys = k, values = v;
  if (enable_gqa) {
    const int64_t heads = query.size(-3), of_keys = key.size(-3), of_values = value.size(-3);
    TN_CHECK(of_keys > 0 && of_values > 0 && heads % of_keys == 0 && heads % of_values == 0,
             "Number of heads in key and value must divide the number of heads in ");
    keys = repeat_heads(k, heads / of_keys);
    values = repeat_heads(v, heads / of_values);
  }
  Tensor weights = at::matmul(scaled, call::mul(at::transpose(keys, -2, -1), root));
  if (mask) {
    if (weights->python_dispatch || (*mask)->python_dispatch) weights = call::add(weights, *mask);
    else call::add_(weights, *mask);
  }
  weights = call::safe_softmax(weights, -1);
  if (dropout_p > 0) {
    if (dropout_mask) {
      warn("Dropout mask should only be used for testing purposes.");
      weights = call::masked_fill(weights, call::logical_not(*dropout_mask), 0.0);
      const Tensor out = at::matmul(weights, call::mul(values, 1.0 / (1 - dropout_p)));
      return {to_dtype(out, dtype), to_dtype(weights, dtype)};
    }
    weights = call::dropout(weights, dropout_p, true);
  }
  const Tensor out = at::matmul(weights, values);
  return {to_dtype(out, dtype), to_dtype(weights, dtype)};
}

}  // namespace tn::composite
