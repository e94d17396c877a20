// The gradient of a table of rows.
#include "generated/slots/index.h"
#include "kernels/index/lines.h"
#include "kernels/index/numbers.h"

namespace tn::native {

Tensor embedding_dense_backward(const Tensor& grad_output, const Tensor& indices, int64_t num_weights, int64_t padding_idx,
                                bool scale_grad_by_freq) {
  TN_CHECK(index::is_position_dtype(indices.dtype()),
           "Expected tensor for argument #2 'indices' to have one of the following scalar types: Long, Int; but got torch.",
           scalar_type_name(indices.dtype()), "Tensor instead (while checking arguments for embedding_backward)");
  const int64_t width = grad_output.size(-1), rows[] = {num_weights, width};
  Tensor out = empty(rows, grad_output.dtype());
  zero(out);
  const Tensor grad = contiguous(grad_output);
  const std::vector<int64_t> at = index::positions(indices);
  if (at.empty() || out.numel() == 0) return out;
  std::vector<int64_t> counts;
  if (scale_grad_by_freq) {
    counts.assign(static_cast<size_t>(num_weights), 0);
    for (const int64_t i : at)
      if (i >= 0 && i < num_weights) ++counts[static_cast<size_t>(i)];
  }
  index::with_number("embedding_backward", out.dtype(), [&]<class T>() {
    T* to = out.data<T>();
    const T* from = grad.data<T>();
    for (size_t k = 0; k < at.size(); ++k) {
      const int64_t i = at[k];
      if (i == padding_idx || i < 0 || i >= num_weights) continue;  // upstream passes over rows that aren't there
      T* row = to + i * width;
      const T* add = from + static_cast<int64_t>(k) * width;
      if (!scale_grad_by_freq) {
        for (int64_t j = 0; j < width; ++j) row[j] = index::plus(row[j], add[j]);
        continue;
      }
      const T scale = convert<T>(1.0 / static_cast<double>(counts[static_cast<size_t>(i)]));
      for (int64_t j = 0; j < width; ++j) row[j] = index::plus(row[j], index::times(add[j], scale));
    }
  });
  return out;
}

}  // namespace tn::native
