// Poolings that upstream composes of others.
#pragma once
#include <tuple>

#include "runtime/array_ref.h"
#include "runtime/tensor.h"

namespace tn::composite {

std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& self, IntView kernel, IntView stride, IntView pad,
                                                   IntView dilation, bool ceil);
Tensor max_pool1d(const Tensor& self, IntView kernel, IntView stride, IntView pad, IntView dilation, bool ceil);
Tensor avg_pool1d(const Tensor& self, IntView kernel, IntView stride, IntView pad, bool ceil, bool with_pad);
Tensor adaptive_avg_pool1d(const Tensor& self, IntView output);
Tensor adaptive_avg_pool(int64_t dims, const Tensor& self, IntView output);
std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& self, IntView output);

}  // namespace tn::composite
