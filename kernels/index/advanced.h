// Indexing by tensors: what index, index_put and their relatives have in common.
#pragma once
#include <vector>

#include "runtime/shape.h"
#include "runtime/tensor.h"

namespace tn::index {

// self[indices] as a result of three groups of dimensions: those before the index, the index's own, those behind it.
struct Selection {
  Tensor self;         // its dimensions reordered: before, after (the indexed ones are gone)
  int64_t before = 0;  // how many of them stand before the index
  DimVector index_sizes;
  std::vector<int64_t> offsets;  // for each position of the index, row-major: elements to add
  DimVector sizes;               // of the result
  std::vector<Tensor> tensors;   // the index tensors as given, masks excepted: their strides shape the result's
};

Selection select(const Tensor& self, TensorList indices, bool allow_masks = true);

}  // namespace tn::index
