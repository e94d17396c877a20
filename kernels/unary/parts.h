// Rows of operators with two results: one slot for each.
#pragma once
#include "runtime/slots.h"

namespace tn::parts {

extern const PointwiseSlot log_sigmoid_buffer;     // x
extern const PointwiseSlot log_sigmoid;            // x
extern const PointwiseSlot prelu_input_gradient;   // gradient, x, weight
extern const PointwiseSlot prelu_weight_gradient;  // gradient, x

}  // namespace tn::parts
