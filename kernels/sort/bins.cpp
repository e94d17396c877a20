// Places in sorted sequences, and counts in bins.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "generated/slots/sort.h"
#include "kernels/sort/keys.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/promote.h"
#include "runtime/threads.h"

namespace tn {
namespace {

// Where v belongs in the n sorted elements, seen through `order` if there is one. NaN goes behind all numbers.
template <class K, class Get>
int64_t place_of(K key, int64_t n, bool right, const Get& at) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (right ? !(at(middle) > key) : at(middle) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

Tensor search(const Tensor& sequence, const Tensor& values, bool out_int32, bool right, OptionalTensor sorter) {
  if (sequence.dtype() != values.dtype()) {
    const ScalarType common = result_type(sequence, values);
    return search(cast(sequence, common), cast(values, common), out_int32, right, sorter);
  }
  const Tensor out = empty(values.sizes(), out_int32 ? ScalarType::Int : ScalarType::Long);
  if (values.numel() == 0) return out;
  const Tensor s = contiguous(sequence), v = contiguous(values), order = sorter ? contiguous(*sorter) : Tensor();
  const bool one = s.dim() == 1;
  const int64_t n = s.dim() ? s->size(s.dim() - 1) : 1,
                per_row = one || v.dim() == 0 ? v.numel() : v->size(v.dim() - 1);
  if (s.numel() == 0) {
    zero(out);
    return out;
  }
  sort::visit_ordered(v.dtype(), [&]<class S>() {
    const S *edges = static_cast<const S*>(s.data_ptr()), *x = static_cast<const S*>(v.data_ptr());
    parallel_for(0, v.numel(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t start = one ? 0 : i / per_row * n;
        const auto at = [&](int64_t k) {
          return sort::key_of(edges[start + (order.defined() ? order.data<int64_t>()[start + k] : k)]);
        };
        const int64_t place = place_of(sort::key_of(x[i]), n, right, at);
        if (out_int32) out.data<int32_t>()[i] = static_cast<int32_t>(place);
        else out.data<int64_t>()[i] = place;
      }
    });
  });
  return out;
}

bool to_the_right(bool right, const std::optional<std::string_view>& side) {
  TN_CHECK(!side || *side == "left" || *side == "right",
           "torch.searchsorted(): side can only be 'left' or 'right' but got ", side.value_or(""));
  TN_CHECK(!side || !right || *side == "right",
           "torch.searchsorted(): side and right can't be set to opposites, got side of ", side.value_or(""),
           " while right was True");
  return right || (side && *side == "right");
}
void check_sequence(const Tensor& sequence, const Tensor& values, OptionalTensor sorter) {
  if (sorter) {
    TN_CHECK(sorter->sizes() == sequence.sizes(),
             "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor ",
             sequence.sizes(), "and got sorter tensor ", sorter->sizes());
    TN_CHECK(sorter->dtype() == ScalarType::Long,
             "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype ",
             scalar_type_name(sorter->dtype()));
  }
  TN_CHECK(values.dim() > 0 || sequence.dim() == 1,
           "torch.searchsorted(): input value can be a scalar only when boundary tensor dimension is 1, but we got "
           "boundary tensor dim(",
           sequence.dim(), ") and input value's dim(", values.dim(), ") numel(", values.numel(), ")");
  TN_CHECK(sequence.dim() != 0,
           "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
  const bool rows_fit = sequence.dim() == values.dim() && sequence.dim() > 0 &&
                        sequence.sizes().slice(0, static_cast<size_t>(sequence.dim() - 1)) ==
                            values.sizes().slice(0, static_cast<size_t>(values.dim() - 1));
  TN_CHECK(sequence.dim() == 1 || rows_fit,
           "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
           "tensor and input value tensor "
           "must match, but we got boundaries tensor ",
           sequence.sizes(), " and input value tensor ", values.sizes());
}
void check_boundaries(const Tensor& boundaries) {
  TN_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
}

}  // namespace

namespace native {

Tensor searchsorted_Tensor(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                           std::optional<std::string_view> side, OptionalTensor sorter) {
  check_sequence(sorted_sequence, self, sorter);
  return search(sorted_sequence, self, out_int32, to_the_right(right, side), sorter);
}
Tensor searchsorted_Scalar(const Tensor& sorted_sequence, const Scalar& self, bool out_int32, bool right,
                           std::optional<std::string_view> side, OptionalTensor sorter) {
  return searchsorted_Tensor(sorted_sequence, scalar_tensor(self, sorted_sequence.dtype()), out_int32, right, side,
                             sorter);
}
Tensor bucketize_Tensor(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  check_boundaries(boundaries);
  return search(boundaries, self, out_int32, right, {});
}
Tensor bucketize_Scalar(const Scalar& self, const Tensor& boundaries, bool out_int32, bool right) {
  check_boundaries(boundaries);
  return search(boundaries, scalar_tensor(self, boundaries.dtype()), out_int32, right, {});
}

Tensor bincount(const Tensor& self, OptionalTensor weights, int64_t minlength) {
  TN_CHECK(minlength >= 0, "minlength should be >= 0");
  TN_CHECK_AS(NotImplemented, is_integral(self.dtype(), false), "\"bincount_cpu\" not implemented for '",
              scalar_type_name(self.dtype()), "'");
  TN_CHECK(self.dim() == 1 || self.numel() == 0, "bincount only supports 1-d non-negative integral inputs.");
  const Tensor x = contiguous(cast(self, ScalarType::Long));
  const int64_t n = x.numel();
  int64_t size = minlength;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t v = x.data<int64_t>()[i];
    TN_CHECK(v >= 0, "bincount only supports 1-d non-negative integral inputs.");
    size = std::max(size, v + 1);
  }
  TN_CHECK(!weights || (weights->dim() == 1 && weights->numel() == n),
           "weights should be 1-d and have the same length as input");
  const ScalarType dtype = !weights                                ? ScalarType::Long
                           : weights->dtype() == ScalarType::Float ? ScalarType::Float
                                                                   : ScalarType::Double;
  const Tensor out = empty({size}, dtype);
  zero(out);
  if (n == 0) return out;
  const int64_t* at = x.data<int64_t>();
  if (!weights) {
    for (int64_t i = 0; i < n; ++i) ++out.data<int64_t>()[at[i]];
    return out;
  }
  const Tensor w = contiguous(cast(*weights, dtype));
  if (dtype == ScalarType::Float)
    for (int64_t i = 0; i < n; ++i) out.data<float>()[at[i]] += w.data<float>()[i];
  else
    for (int64_t i = 0; i < n; ++i) out.data<double>()[at[i]] += w.data<double>()[i];
  return out;
}

Tensor histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  TN_CHECK_AS(NotImplemented, is_floating(self.dtype()), "\"histogram_cpu\" not implemented for '",
              scalar_type_name(self.dtype()), "'");
  TN_CHECK(bins > 0, "torch.histc(): bins must be > 0, but got ", bins);
  const Tensor x = contiguous(cast(self, ScalarType::Double));
  const int64_t n = x.numel();
  double low = min.to_double(), high = max.to_double();
  if (low == high && n > 0) {
    const auto [smallest, largest] = std::minmax_element(x.data<double>(), x.data<double>() + n);
    low = *smallest;
    high = *largest;
  }
  if (low == high) {
    low -= 1;
    high += 1;
  }
  TN_CHECK(std::isfinite(low) && std::isfinite(high), "torch.histogram: range of [", low, ", ", high,
           "] is not finite");
  TN_CHECK(low < high, "torch.histogram: min should not exceed max");
  const Tensor counts = empty({bins}, ScalarType::Double);
  zero(counts);
  for (int64_t i = 0; i < n; ++i) {
    const double v = x.data<double>()[i];
    if (!(v >= low && v <= high)) continue;
    const auto bin = static_cast<int64_t>((v - low) * static_cast<double>(bins) / (high - low));
    ++counts.data<double>()[std::min(bin, bins - 1)];
  }
  return cast(counts, self.dtype());
}

}  // namespace native
}  // namespace tn
