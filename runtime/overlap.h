// Whether tensors share memory, as far as upstream looks: exactly for dense ones, not at all for others.
#pragma once
#include "runtime/tensor.h"

namespace tn {

enum class Overlap : uint8_t { No, Partial, Full, Unknown };

// Whether two elements of a window with these sizes and strides may share memory.
bool may_overlap(IntView sizes, IntView strides);
Overlap overlap_of(const Tensor& a, const Tensor& b);
// RuntimeError if elements of a written tensor certainly share memory (an expanded dimension).
void assert_no_internal_overlap(const Tensor& written);
// RuntimeError if the two certainly share some memory, but not all of it in the same order.
void assert_no_partial_overlap(const Tensor& written, const Tensor& read);
// RuntimeError if the two certainly share memory.
void assert_no_overlap(const Tensor& written, const Tensor& read);

}  // namespace tn
