// A dual tensor taken apart.
#pragma once
#include <tuple>

#include "runtime/tensor.h"

namespace tn::composite {
std::tuple<Tensor, Tensor> unpack_dual(const Tensor& dual, int64_t level);
}
