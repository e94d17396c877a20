// The gradient of a table of rows, and the renormalisation of its rows.
#include <algorithm>
#include <cmath>

#include "generated/slots/index.h"
#include "kernels/index/embedding_rows.h"
#include "kernels/index/lines.h"
#include "kernels/index/numbers.h"
#include "runtime/threads.h"

namespace tn::native {

Tensor embedding_dense_backward(const Tensor& grad_output, const Tensor& indices, int64_t num_weights,
                                int64_t padding_idx, bool scale_grad_by_freq) {
  TN_CHECK(
      index::is_position_dtype(indices.dtype()),
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
  const ScalarType dtype = out.dtype();
  if (is_floating(dtype) && !is_float8(dtype)) {
    std::vector<double> scales;
    if (scale_grad_by_freq) {
      scales.resize(at.size(), 1);
      for (size_t k = 0; k < at.size(); ++k)
        if (at[k] >= 0 && at[k] < num_weights)
          scales[k] = 1.0 / static_cast<double>(counts[static_cast<size_t>(at[k])]);
    }
    const auto n = static_cast<int64_t>(at.size());
    const index::RowScatter rows{
        grad->raw_data(), out->raw_data(), width, at.data(), nullptr, scales.empty() ? nullptr : scales.data(), n,
        padding_idx,      num_weights};
    // Strips of columns: each thread sees all positions in their order and no other's elements.
    parallel_for(0, width, std::max<int64_t>(256, 65536 / n),
                 [&](int64_t begin, int64_t end) { index::scatter_rows(dtype, rows, begin, end); });
    return out;
  }
  index::with_number("embedding_backward", dtype, [&]<class T>() {
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

const Tensor& embedding_renorm_(const Tensor& self, const Tensor& indices, double max_norm, double norm_type) {
  TN_CHECK(self.dim() == 2, "Expected 2-dimensional tensor, but got ", self.dim(),
           "-dimensional tensor for argument #1 'self' (while checking arguments for embedding_renorm_)");
  TN_CHECK(index::is_position_dtype(indices.dtype()),
           "Expected tensor for argument #2 'indices' to have one of the following scalar types: Long, Int; but got ",
           scalar_type_name(indices.dtype()), " instead (while checking arguments for embedding_renorm_)");
  std::vector<int64_t> at = index::positions(indices);
  std::sort(at.begin(), at.end());
  at.erase(std::unique(at.begin(), at.end()), at.end());
  const int64_t width = self->size(1);
  parallel_for(0, static_cast<int64_t>(at.size()), std::max<int64_t>(1, 8192 / std::max<int64_t>(width, 1)),
               [&](int64_t begin, int64_t end) {
                 std::vector<double> row(static_cast<size_t>(width));
                 const auto item = static_cast<int64_t>(self.itemsize());
                 for (int64_t k = begin; k < end; ++k) {
                   const int64_t i = at[static_cast<size_t>(k)];
                   TN_CHECK_AS(Index, i >= 0 && i < self->size(0), "embedding_renorm_: expected indices in [0, ",
                               self->size(0), "), got ", i);
                   char* const to = static_cast<char*>(self->raw_data()) + i * self->stride(0) * item;
                   convert_row(self.dtype(), to, self->stride(1) * item, ScalarType::Double,
                               reinterpret_cast<char*>(row.data()), sizeof(double), width);
                   double norm = 0;
                   if (norm_type == 2) {
                     for (const double v : row) norm += v * v;
                     norm = std::sqrt(norm);
                   } else if (norm_type == 1) {
                     for (const double v : row) norm += std::abs(v);
                   } else if (std::isinf(norm_type)) {
                     for (const double v : row) norm = std::max(norm, std::abs(v));
                   } else {
                     for (const double v : row) norm += std::pow(std::abs(v), norm_type);
                     norm = std::pow(norm, 1 / norm_type);
                   }
                   if (norm <= max_norm) continue;
                   const double scale = max_norm / (norm + 1e-7);
                   for (double& v : row) v *= scale;
                   convert_row(ScalarType::Double, reinterpret_cast<const char*>(row.data()), sizeof(double),
                               self.dtype(), to, self->stride(1) * item, width);
                 }
               });
  return self;
}

}  // namespace tn::native
