// Attention as upstream composes it; these call the door, or the fused kernel directly where nobody could tell.
#pragma once
#include <optional>
#include <tuple>

#include "runtime/tensor.h"

namespace tn::composite {

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    OptionalTensor attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale, bool enable_gqa);
std::tuple<Tensor, Tensor> attention_math(const Tensor& query, const Tensor& key, const Tensor& value,
                                          OptionalTensor attn_mask, double dropout_p, bool is_causal,
                                          OptionalTensor dropout_mask, std::optional<double> scale, bool enable_gqa);

}  // namespace tn::composite
