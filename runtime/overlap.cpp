#include "runtime/overlap.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/error.h"

namespace tn {

Overlap overlap_of(const Tensor& a, const Tensor& b) {
  if (a.is_same(b)) return Overlap::Full;
  if (!(a.storage() == b.storage()) && a.storage()->data() != b.storage()->data()) return Overlap::No;
  if (a.numel() == 0 || b.numel() == 0 || a.is_meta()) return Overlap::No;
  if (!a->is_non_overlapping_and_dense() || !b->is_non_overlapping_and_dense()) return Overlap::Unknown;
  const char* a0 = static_cast<const char*>(a->raw_data());
  const char* b0 = static_cast<const char*>(b->raw_data());
  const char* a1 = a0 + a.numel() * static_cast<int64_t>(a.itemsize());
  const char* b1 = b0 + b.numel() * static_cast<int64_t>(b.itemsize());
  if (a0 == b0 && a1 == b1) return a.strides() == b.strides() ? Overlap::Full : Overlap::Partial;
  return a0 < b1 && b0 < a1 ? Overlap::Partial : Overlap::No;
}

bool may_overlap(IntView sizes, IntView strides) {
  std::vector<std::pair<int64_t, int64_t>> order;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1) order.emplace_back(strides[d], sizes[d]);
  std::sort(order.begin(), order.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : order) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

void assert_no_internal_overlap(const Tensor& t) {
  if (t.is_contiguous() || t->is_non_overlapping_and_dense()) return;
  for (int64_t d = 0; d < t.dim(); ++d)
    TN_CHECK(t->stride(d) != 0 || t->size(d) <= 1,
             "unsupported operation: more than one element of the written-to tensor refers to a single memory "
             "location. Please "
             "clone() the tensor before performing the operation.");
}

namespace {

[[noreturn, gnu::cold]] void shared_memory() {
  fail(ErrorKind::Runtime,
       "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
       "location. "
       "Please clone() the tensor before performing the operation.");
}

}  // namespace

void assert_no_partial_overlap(const Tensor& written, const Tensor& read) {
  if (overlap_of(written, read) == Overlap::Partial) shared_memory();
}

void assert_no_overlap(const Tensor& written, const Tensor& read) {
  const Overlap o = overlap_of(written, read);
  if (o == Overlap::Partial || o == Overlap::Full) shared_memory();
}

}  // namespace tn
