// Rows of losses and of their gradients, vectorised; 16-bit floats compute in float.
#pragma once
#include <cstdint>

#include "runtime/dtype.h"

namespace tn::loss {

enum class PairOp : uint8_t {
  Mse,
  SmoothL1,
  Huber,
  BinaryCrossEntropy,
  SoftMargin,
  Logits,
  WeighedLogits,
  MseGradient,
  SmoothL1Gradient,
  HuberGradient,
  BinaryCrossEntropyGradient,
  SoftMarginGradient,
};

// n elements, contiguous. What an op does not use is null.
struct PairRow {
  const void *a = nullptr, *b = nullptr;
  const void* c = nullptr;       // WeighedLogits: the positives' weight
  const void* weight = nullptr;  // factor of each element; may be null
  const void* grad = nullptr;    // gradients: may be null, when the scale has it
  void* out = nullptr;           // the elements, unless only their sum is wanted
  double* sum = nullptr;         // the sum, instead of the elements
  bool* outside = nullptr;       // BinaryCrossEntropy: set where an input is no probability
  int64_t n = 0;
  double p = 0;      // beta or delta
  double scale = 1;  // of gradients
};
void run_pairs(PairOp op, ScalarType dtype, const PairRow& row);

}  // namespace tn::loss
