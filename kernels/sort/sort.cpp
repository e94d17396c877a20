#include <algorithm>
#include <vector>

#include "generated/slots/sort.h"
#include "kernels/sort/keys.h"
#include "kernels/sort/lines.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/shape.h"
#include "runtime/threads.h"

namespace tn {
namespace {

using sort::Item;
using sort::Lines;

void set_sorted(Outputs& outs, const Tensor& self, int64_t dim) {
  TN_CHECK(!is_complex(self.dtype()), " Sort does not support complex dtypes on CPU");
  wrap_dim(dim, self.dim());
  const DimVector strides = self->is_non_overlapping_and_dense() ? DimVector(self.strides())
                                                                 : preserved_strides(self.sizes(), self.strides());
  outs.set_strided(0, self.sizes(), strides, self.dtype(), self.device());
  outs.set_strided(1, self.sizes(), strides, ScalarType::Long, self.device());
}

template <class S>
void sort_lines(const Tensor& self, int64_t n, const Lines<3>& lines, bool descending, const Tensor& values,
                const Tensor& places) {
  using K = sort::KeyOf<S>;
  const S* x = static_cast<const S*>(self.data_ptr());
  S* out = static_cast<S*>(values.data_ptr());
  int64_t* at = places.data<int64_t>();
  parallel_for(0, lines.count(), std::max<int64_t>(1, 4096 / n), [&](int64_t begin, int64_t end) {
    std::vector<Item<K>> items(static_cast<size_t>(n)), spare;
    std::vector<S> line(static_cast<size_t>(n));  // the result may be the input
    for (int64_t i = begin; i < end; ++i) {
      const auto start = lines.begin(i);
      const S* from = x + start[0];
      for (int64_t k = 0; k < n; ++k) {
        const S v = line[static_cast<size_t>(k)] = from[k * lines.step(0)];
        const K key = sort::key_of(v);
        items[static_cast<size_t>(k)] = {descending ? static_cast<K>(~key) : key,
                                         static_cast<decltype(Item<K>::place)>(k)};
      }
      sort::sort_items(items.data(), n, &spare);
      for (int64_t k = 0; k < n; ++k) {
        const auto place = items[static_cast<size_t>(k)].place;
        out[start[1] + k * lines.step(1)] = line[place];
        at[start[2] + k * lines.step(2)] = static_cast<int64_t>(place);
      }
    }
  });
}

void run(Outputs& outs, const Tensor& self, int64_t dim, bool descending) {
  if (self.numel() == 0) return;
  const int64_t d = wrap_dim(dim, self.dim()), n = self.dim() == 0 ? 1 : self->size(d);
  const Lines<3> lines(d, {&self, &outs[0], &outs[1]});
  sort::visit_ordered(self.dtype(), [&]<class S>() { sort_lines<S>(self, n, lines, descending, outs[0], outs[1]); });
}

}  // namespace

namespace slots {

void sort_stable_meta(Outputs& outs, const Tensor& self, std::optional<bool>, int64_t dim, bool) {
  set_sorted(outs, self, dim);
}
void sort_stable_cpu(Outputs& outs, const Tensor& self, std::optional<bool>, int64_t dim, bool descending) {
  run(outs, self, dim, descending);
}
void sort_meta(Outputs& outs, const Tensor& self, int64_t dim, bool) { set_sorted(outs, self, dim); }
void sort_cpu(Outputs& outs, const Tensor& self, int64_t dim, bool descending) { run(outs, self, dim, descending); }

}  // namespace slots
}  // namespace tn
