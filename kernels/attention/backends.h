// Which way scaled_dot_product_attention takes, and the user's switches for it.
#pragma once
#include <optional>

#include "runtime/tensor.h"

namespace tn::attention {

// Upstream's SDPBackend.
enum class Backend : int64_t { Error = -1, Math = 0, Flash = 1 };

// torch.backends.cuda.enable_flash_sdp, enable_math_sdp: they also rule the CPU. The bindings write them.
struct Switches {
  bool flash = true;
  bool math = true;
  bool reduced_precision_math = false;  // _set_math_sdp_allow_fp16_bf16_reduction
};
extern constinit Switches switches;

Backend choose_backend(const Tensor& q, const Tensor& k, const Tensor& v, OptionalTensor mask, double dropout_p,
                       bool enable_gqa);

}  // namespace tn::attention
