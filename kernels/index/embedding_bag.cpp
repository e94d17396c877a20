// Bags of embeddings: rows of a table, summed, averaged or compared within each bag.
#include <algorithm>
#include <cstring>

#include "generated/ops/_embedding_bag_dense_backward.h"
#include "generated/slots/index.h"
#include "kernels/index/embedding_rows.h"
#include "kernels/index/lines.h"
#include "runtime/op_table.h"
#include "runtime/refuse.h"
#include "runtime/threads.h"

namespace tn {
namespace {

using namespace index;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;
constexpr int64_t kSum = 0, kMean = 1, kMax = 2;

struct Bags {
  std::vector<int64_t> at, starts;  // positions in the table; where each bag begins, and the end of the last
  int64_t count = 0;
  int64_t end(int64_t bag) const { return starts[static_cast<size_t>(bag + 1)]; }
  int64_t begin(int64_t bag) const { return starts[static_cast<size_t>(bag)]; }
};

void check_table(const char* op, const Tensor& weight) {
  TN_CHECK(weight.dim() == 2, "Expected 2-dimensional tensor, but got ", weight.dim(),
           "-dimensional tensor for argument #1 'weight' (while checking arguments for ", op, ")");
  TN_CHECK(is_floating(weight.dtype()) && !is_float8(weight.dtype()),
           "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, Float, "
           "Double; "
           "but got ",
           scalar_type_name(weight.dtype()), " instead (while checking arguments for ", op, ")");
}
void check_positions(const char* op, const Tensor& t, const char* name, int number) {
  TN_CHECK(is_position_dtype(t.dtype()), "Expected tensor for argument #", number, " '", name,
           "' to have one of the following scalar types: Long, Int; but got ", scalar_type_name(t.dtype()),
           " instead (while checking arguments for ", op, ")");
  TN_CHECK(t.dim() == 1, "Expected 1-dimensional tensor, but got ", t.dim(), "-dimensional tensor for argument #",
           number, " '", name, "' (while checking arguments for ", op, ")");
}

Bags bags_of(const char* op, const Tensor& indices, const Tensor& offsets, bool last_offset) {
  check_positions(op, indices, "indices", 1);
  check_positions(op, offsets, "offsets", 1);
  Bags b{positions(indices), positions(offsets), offsets.numel()};
  const int64_t n = indices.numel();
  if (last_offset) {
    TN_CHECK(b.count >= 1, "include_last_offset: numBags should be at least 1");
    --b.count;
  }
  if (!b.starts.empty()) {
    TN_CHECK(b.starts[0] == 0,
             "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
             "However, got ",
             b.starts[0]);
    TN_CHECK(b.starts.back() <= n, "offsets[-1] can not be greater than input's length ", n, " but got offsets[-1] of ",
             b.starts.back());
  }
  if (!last_offset) b.starts.push_back(n);
  for (int64_t k = 0; k < b.count; ++k)
    TN_CHECK(b.begin(k) >= 0 && b.begin(k) <= b.end(k), op, ": expected offsets that don't decrease, got ", b.begin(k),
             " before ", b.end(k));
  return b;
}

Four forward(const Tensor& weight, const Tensor& indices, const Tensor& offsets, int64_t mode, OptionalTensor factors,
             bool last_offset, int64_t padding) {
  check_table("embedding_bag", weight);
  TN_CHECK(mode >= kSum && mode <= kMax, "embedding_bag: expected mode 0, 1 or 2, got ", mode);
  const Bags b = bags_of("embedding_bag", indices, offsets, last_offset);
  Tensor scales;
  if (factors) {
    TN_CHECK(mode == kSum,
             "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
             "mode='",
             mode == kMean ? "mean" : "max", "'). Please open a feature request on GitHub.");
    TN_CHECK(factors->dtype() == weight.dtype(),
             "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
             "'per_sample_weights'; but type torch.",
             scalar_type_name(weight.dtype()), "Tensor does not equal torch.", scalar_type_name(factors->dtype()),
             "Tensor (while checking arguments for embedding_bag)");
    TN_CHECK(factors->dim() == 1 && factors->numel() == indices.numel(),
             "embedding_bag: expected per_sample_weights of indices' shape ", indices.sizes(), ", got ",
             factors->sizes());
    scales = cast(contiguous(*factors), ScalarType::Double);
  }
  const int64_t rows = weight->size(0), width = weight->size(1), n = indices.numel();
  for (const int64_t i : b.at)
    TN_CHECK(i >= 0 && i < rows, "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be ", i);
  const ScalarType dtype = weight.dtype();
  const ScalarType positions_dtype =
      indices.dtype() == ScalarType::Int && offsets.dtype() == ScalarType::Int ? ScalarType::Int : ScalarType::Long;
  const int64_t sizes[] = {b.count, width};
  const Tensor table = contiguous(weight), out = empty(IntView(sizes, 2), dtype),
               bag_size = empty({b.count}, ScalarType::Long);
  const Tensor largest = mode == kMax ? empty(IntView(sizes, 2), ScalarType::Long) : Tensor();
  // Upstream's quick ways need no map from positions to bags, and give none.
  const bool quick = mode == kSum && padding < 0 && dtype != ScalarType::Double && weight->stride(1) == 1;
  const Tensor bag_of = empty({quick ? 0 : n}, ScalarType::Long);
  const auto item = static_cast<int64_t>(item_size(dtype));
  const int64_t average = std::max<int64_t>(1, n / std::max<int64_t>(b.count, 1));
  parallel_for(
      0, b.count, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, average * width)), [&](int64_t begin, int64_t end) {
        for (int64_t bag = begin; bag < end; ++bag) {
          char* const to = static_cast<char*>(out->raw_data()) + bag * width * item;
          const int64_t* const at = b.at.data() + b.begin(bag);
          const int64_t count = b.end(bag) - b.begin(bag),
                        used = count - (padding < 0 ? 0 : std::count(at, at + count, padding));
          if (!quick) std::fill_n(bag_of.data<int64_t>() + b.begin(bag), count, bag);
          bag_size.data<int64_t>()[bag] = used;
          if (mode != kMax) {
            sum_rows(dtype,
                     {table->raw_data(), width, at, scales.defined() ? scales.data<double>() + b.begin(bag) : nullptr,
                      count, padding, n - b.begin(bag)},
                     mode == kMean && used > 0 ? 1.0 / static_cast<double>(used) : 1, to);
            continue;
          }
          int64_t* const where = largest.data<int64_t>() + bag * width;
          if (used == 0) {
            std::memset(to, 0, static_cast<size_t>(width * item));
            std::fill_n(where, width, 0);
          }
          bool first = true;
          for (int64_t k = 0; k < count; ++k) {
            if (at[k] == padding) continue;
            const char* const row = static_cast<const char*>(table->raw_data()) + at[k] * width * item;
            if (first) {
              std::memcpy(to, row, static_cast<size_t>(width * item));
              std::fill_n(where, width, at[k]);
            } else {
              max_row(dtype, row, at[k], to, where, width);
            }
            first = false;
          }
        }
      });
  // Positions behind the last bag belong to none; upstream counts them on.
  if (!quick)
    for (int64_t k = b.count > 0 ? b.end(b.count - 1) : 0; k < n; ++k) bag_of.data<int64_t>()[k] = b.count;
  const Tensor sizes_out = cast(bag_size, positions_dtype);
  return {out, cast(bag_of, positions_dtype), sizes_out,
          mode == kMax ? cast(largest, positions_dtype) : cast(bag_size, positions_dtype, true)};
}

// The bag of each position: given, or from the offsets.
std::vector<int64_t> bag_of_each(const Tensor& indices, const Tensor& offsets, const Tensor& given) {
  if (given.numel() > 0 || indices.numel() == 0) return positions(given);
  const std::vector<int64_t> starts = positions(offsets);
  std::vector<int64_t> bags(static_cast<size_t>(indices.numel()));
  for (size_t k = 0; k < bags.size(); ++k)
    bags[k] = std::upper_bound(starts.begin(), starts.end(), static_cast<int64_t>(k)) - starts.begin() - 1;
  return bags;
}

}  // namespace

namespace native {

Four _embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool, int64_t mode, bool,
                    OptionalTensor per_sample_weights, bool include_last_offset, int64_t padding_idx) {
  return forward(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx);
}
Four _embedding_bag_forward_only(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool, int64_t mode,
                                 bool, OptionalTensor per_sample_weights, bool include_last_offset,
                                 int64_t padding_idx) {
  return forward(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx);
}

Tensor _embedding_bag_backward(const Tensor& grad, const Tensor& indices, const Tensor& offsets,
                               const Tensor& offset2bag, const Tensor& bag_size, const Tensor& maximum_indices,
                               int64_t num_weights, bool scale_grad_by_freq, int64_t mode, bool sparse,
                               OptionalTensor per_sample_weights, int64_t padding_idx) {
  check_positions("embedding_bag", indices, "indices", 1);
  check_positions("embedding_bag", offsets, "offsets", 1);
  if (sparse) refuse("aten::_embedding_bag_backward", "sparse", "sparse layouts are not served yet");
  Tensor bags = offset2bag;
  if (indices.numel() > 0 && offset2bag.numel() == 0) {
    const std::vector<int64_t> each = bag_of_each(indices, offsets, offset2bag);
    bags = empty(indices.sizes(), ScalarType::Long);
    std::copy(each.begin(), each.end(), bags.data<int64_t>());
    bags = cast(bags, offsets.dtype());
  }
  return at::_embedding_bag_dense_backward(grad, indices, bags, bag_size, maximum_indices, num_weights,
                                           scale_grad_by_freq, mode, per_sample_weights, padding_idx);
}

Tensor _embedding_bag_dense_backward(const Tensor& grad_, const Tensor& indices_, const Tensor& offset2bag,
                                     const Tensor& bag_size, const Tensor& maximum_indices, int64_t num_weights,
                                     bool scale_grad_by_freq, int64_t mode, OptionalTensor per_sample_weights,
                                     int64_t padding_idx) {
  check_table("embedding_bag_backward", grad_);
  const Tensor grad = contiguous(grad_);
  const int64_t width = grad->size(1), sizes[] = {num_weights, width};
  const ScalarType dtype = grad.dtype();
  const Tensor out = empty(IntView(sizes, 2), dtype);
  zero(out);
  if (out.numel() == 0 || grad.numel() == 0) return out;
  const std::vector<int64_t> at = positions(indices_), bags = positions(offset2bag), used = positions(bag_size);
  if (mode == kMax) {
    const std::vector<int64_t> where = positions(maximum_indices);
    const Tensor whole = cast(grad, ScalarType::Double), sums = empty(IntView(sizes, 2), ScalarType::Double);
    zero(sums);
    for (int64_t bag = 0; bag < grad->size(0); ++bag) {
      if (used[static_cast<size_t>(bag)] == 0) continue;
      for (int64_t j = 0; j < width; ++j) {
        const int64_t row = where[static_cast<size_t>(bag * width + j)];
        TN_CHECK(row >= 0 && row < num_weights,
                 "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be ", row);
        sums.data<double>()[row * width + j] += whole.data<double>()[bag * width + j];
      }
    }
    return cast(sums, dtype);
  }
  std::vector<int64_t> counts;
  if (scale_grad_by_freq) counts.assign(static_cast<size_t>(num_weights), 0);
  for (const int64_t i : at) {
    TN_CHECK(i >= 0 && i < num_weights, "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be ",
             i);
    if (scale_grad_by_freq) ++counts[static_cast<size_t>(i)];
  }
  std::vector<double> scales;
  if (per_sample_weights || scale_grad_by_freq || mode == kMean) {
    const Tensor factors = per_sample_weights ? cast(contiguous(*per_sample_weights), ScalarType::Double) : Tensor();
    scales.resize(at.size());
    for (size_t k = 0; k < at.size(); ++k) {
      scales[k] = factors.defined() ? factors.data<double>()[k] : 1;
      if (scale_grad_by_freq) scales[k] /= static_cast<double>(counts[static_cast<size_t>(at[k])]);
      if (mode == kMean && bags[k] < grad->size(0))
        scales[k] /= static_cast<double>(used[static_cast<size_t>(bags[k])]);
    }
  }
  // Positions behind the last bag belong to none.
  const auto n = static_cast<int64_t>(std::lower_bound(bags.begin(), bags.end(), grad->size(0)) - bags.begin());
  const RowScatter rows{
      grad->raw_data(), out->raw_data(), width, at.data(), bags.data(), scales.empty() ? nullptr : scales.data(), n,
      padding_idx,      num_weights};
  // Strips of columns: each thread sees all positions in their order and no other's elements.
  parallel_for(0, width, std::max<int64_t>(256, 65536 / std::max<int64_t>(1, n)),
               [&](int64_t begin, int64_t end) { scatter_rows(dtype, rows, begin, end); });
  return out;
}

Tensor _embedding_bag_per_sample_weights_backward(const Tensor& grad_, const Tensor& weight_, const Tensor& indices,
                                                  const Tensor& offsets, const Tensor& offset2bag, int64_t mode,
                                                  int64_t padding_idx) {
  TN_CHECK(mode == kSum, "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
  check_table("embedding_bag_backward", weight_);
  TN_CHECK(grad_.dim() == 2 && grad_->size(1) == weight_->size(1) && grad_.dtype() == weight_.dtype(),
           "_embedding_bag_per_sample_weights_backward: expected a gradient like the weight, got ", grad_.sizes(),
           " and ", weight_.sizes());
  const Tensor grad = contiguous(grad_), weight = contiguous(weight_), out = empty({indices.numel()}, grad.dtype());
  const std::vector<int64_t> at = positions(indices), bags = bag_of_each(indices, offsets, offset2bag);
  const int64_t width = grad->size(1);
  const auto item = static_cast<int64_t>(grad.itemsize());
  const ScalarType dtype = grad.dtype();
  parallel_for(0, out.numel(), std::max<int64_t>(1, 16384 / std::max<int64_t>(width, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t k = begin; k < end; ++k) {
                   const int64_t i = at[static_cast<size_t>(k)], bag = bags[static_cast<size_t>(k)];
                   TN_CHECK(i >= 0 && i < weight->size(0),
                            "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be ", i);
                   double dot = 0;
                   if (i != padding_idx && bag < grad->size(0))
                     dot = dot_rows(dtype, static_cast<const char*>(grad->raw_data()) + bag * width * item,
                                    static_cast<const char*>(weight->raw_data()) + i * width * item, width);
                   convert_row(ScalarType::Double, reinterpret_cast<const char*>(&dot), 8, dtype,
                               static_cast<char*>(out->raw_data()) + k * item, item, 1);
                 }
               });
  return out;
}

}  // namespace native
}  // namespace tn
