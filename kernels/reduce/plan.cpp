#include "kernels/reduce/plan.h"

#include <utility>

#include "runtime/error.h"

namespace tn::reduce {
namespace {

void add_reduced(Plan* plan, int64_t size, int64_t stride) {
  auto i = static_cast<size_t>(plan->num_reduced++);
  for (; i > 0 && plan->reduced[i - 1].in > stride; --i) plan->reduced[i] = plan->reduced[i - 1];
  plan->reduced[i] = {size, stride, 0};
}

void merge_reduced(Plan* plan) {
  int kept = 0;
  for (int i = 1; i < plan->num_reduced; ++i) {
    Dim& inner = plan->reduced[static_cast<size_t>(kept)];
    const Dim& next = plan->reduced[static_cast<size_t>(i)];
    if (next.in == inner.in * inner.size) inner.size *= next.size;
    else plan->reduced[static_cast<size_t>(++kept)] = next;
  }
  plan->num_reduced = kept + 1;
}

}  // namespace

void make_plan(const Tensor& self, uint64_t mask, Plan* plan) {
  int64_t out_stride = 1;
  for (int64_t d = self.dim() - 1; d >= 0; --d) {
    const int64_t size = self->size(d), stride = self->stride(d);
    if (mask >> d & 1) {
      plan->count *= size;
      if (size != 1) add_reduced(plan, size, stride);
      continue;
    }
    plan->outputs *= size;
    if (size == 1) continue;
    const Dim dim{size, stride, out_stride};
    out_stride *= size;
    if (plan->num_kept > 0) {
      Dim& inner = plan->kept[static_cast<size_t>(plan->num_kept - 1)];
      if (dim.in == inner.in * inner.size && dim.out == inner.out * inner.size) {
        inner.size *= size;
        continue;
      }
    }
    plan->kept[static_cast<size_t>(plan->num_kept++)] = dim;
  }
  if (plan->num_reduced == 0) plan->reduced[static_cast<size_t>(plan->num_reduced++)] = {1, 1, 0};
  else merge_reduced(plan);
  if (plan->reduced[0].in == 1 && plan->reduced[0].size > 1) return;
  for (int k = 0; k < plan->num_kept; ++k) {
    if (plan->kept[static_cast<size_t>(k)].in != 1) continue;
    std::swap(plan->kept[0], plan->kept[static_cast<size_t>(k)]);
    plan->columns = true;
    return;
  }
}

DimVector reduced_sizes(IntView sizes, uint64_t mask, bool keepdim) {
  DimVector out;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!(mask >> d & 1)) out.push_back(sizes[d]);
    else if (keepdim) out.push_back(1);
  }
  return out;
}

void check_not_empty(const char* name, const Tensor& self, uint64_t mask, bool dims_given) {
  if (self.numel() != 0) return;
  TN_CHECK_AS(Index, dims_given, name,
              "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
              "'dim' argument.");
  for (int64_t d = 0; d < self.dim(); ++d)
    TN_CHECK_AS(Index, !(mask >> d & 1) || self->size(d) != 0, name, "(): Expected reduction dim ", d,
                " to have non-zero size.");
}

}  // namespace tn::reduce
