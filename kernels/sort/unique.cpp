// Distinct values, of all elements or of slices along a dimension.
#include <algorithm>
#include <tuple>
#include <vector>

#include "generated/slots/sort.h"
#include "kernels/sort/keys.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/shape.h"

namespace tn {
namespace {

using sort::Item;
using Three = std::tuple<Tensor, Tensor, Tensor>;

Tensor longs(const std::vector<int64_t>& v) {
  const Tensor out = empty({static_cast<int64_t>(v.size())}, ScalarType::Long);
  if (!v.empty()) std::copy(v.begin(), v.end(), out.data<int64_t>());
  return out;
}
Tensor no_longs() { return empty({0}, ScalarType::Long); }

// Groups of equal neighbours in an order of n things. same(a, b) compares two of them; places are given in that order.
struct Groups {
  std::vector<int64_t> first;  // one member of each group
  std::vector<int64_t> counts;
  std::vector<int64_t> group_of;  // by thing
};
template <class Same>
Groups group(const std::vector<int64_t>& order, const Same& same) {
  Groups g;
  g.group_of.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || !same(order[i - 1], order[i])) {
      g.first.push_back(order[i]);
      g.counts.push_back(0);
    }
    ++g.counts.back();
    g.group_of[static_cast<size_t>(order[i])] = static_cast<int64_t>(g.first.size()) - 1;
  }
  return g;
}

void check_ordered(const char* name, const Tensor& self) {
  TN_CHECK_AS(NotImplemented, !is_complex(self.dtype()) && !is_float8(self.dtype()), "\"", name,
              "\" not implemented for '", scalar_type_name(self.dtype()), "'");
}

Three of_elements(const char* name, const Tensor& self, bool sorted, bool with_inverse, bool with_counts) {
  check_ordered(name, self);
  const Tensor x = contiguous(self);
  Tensor values, inverse = no_longs(), counts = no_longs();
  sort::visit_ordered(self.dtype(), [&]<class S>() {
    const int64_t n = x.numel();
    const S* p = n ? static_cast<const S*>(x.data_ptr()) : nullptr;
    std::vector<int64_t> order(static_cast<size_t>(n));
    if (sorted) {
      using K = sort::KeyOf<S>;
      std::vector<Item<K>> items(static_cast<size_t>(n)), spare;
      for (int64_t i = 0; i < n; ++i)
        items[static_cast<size_t>(i)] = {sort::key_of(p[i]), static_cast<decltype(Item<K>::place)>(i)};
      if (n) sort::sort_items(items.data(), n, &spare);
      for (size_t i = 0; i < items.size(); ++i) order[i] = static_cast<int64_t>(items[i].place);
    } else {
      for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = i;
    }
    // NaN equals nothing, itself included.
    const Groups g = group(order, [&](int64_t a, int64_t b) {
      if constexpr (is_small_float_v<S>) return to_float(p[a]) == to_float(p[b]);
      else return p[a] == p[b];
    });
    values = empty({static_cast<int64_t>(g.first.size())}, self.dtype());
    for (size_t i = 0; i < g.first.size(); ++i) static_cast<S*>(values.data_ptr())[i] = p[g.first[i]];
    if (with_inverse) {
      inverse = longs(g.group_of);
      inverse->set_sizes_contiguous(self.sizes());
    }
    if (with_counts) counts = longs(g.counts);
  });
  return {values, inverse, counts};
}

Three of_slices(const char* name, const Tensor& self, int64_t dim, bool sorted, bool with_inverse, bool with_counts) {
  check_ordered(name, self);
  const int64_t d = wrap_dim(dim, self.dim()), n = self.dim() ? self->size(d) : 1;
  if (self.numel() == 0) {
    for (int64_t k = 0; k < self.dim(); ++k)
      TN_CHECK(n == 0 || self->size(k) != 0 || k == d,
               "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
    return {empty(self.sizes(), self.dtype()), no_longs(), no_longs()};
  }
  // Slices as rows.
  DimVector sizes(self.sizes()), strides(self.strides());
  if (self.dim() > 0) {
    sizes.erase(static_cast<size_t>(d));
    strides.erase(static_cast<size_t>(d));
    sizes.insert(0, n);
    strides.insert(0, self->stride(d));
  }
  const Tensor rows = contiguous(alias_with_geometry(self, sizes, strides, self.storage_offset()));
  const int64_t width = rows.numel() / n;
  Tensor values, inverse = no_longs(), counts = no_longs();
  sort::visit_ordered(self.dtype(), [&]<class S>() {
    const S* p = static_cast<const S*>(rows.data_ptr());
    std::vector<int64_t> order(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = i;
    const auto compare = [&](int64_t a, int64_t b) {
      for (int64_t k = 0; k < width; ++k) {
        const auto u = sort::key_of(p[a * width + k]), v = sort::key_of(p[b * width + k]);
        if (u != v) return u < v ? -1 : 1;
      }
      return 0;
    };
    if (sorted) std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
    const Groups g = group(order, [&](int64_t a, int64_t b) { return compare(a, b) == 0; });
    sizes[0] = static_cast<int64_t>(g.first.size());
    const Tensor packed = empty(sizes, self.dtype());
    for (size_t i = 0; i < g.first.size(); ++i)
      std::copy_n(p + g.first[i] * width, width, static_cast<S*>(packed.data_ptr()) + static_cast<int64_t>(i) * width);
    // Back to where the dimension was: upstream's result is a transposed view.
    DimVector out_sizes(packed.sizes()), out_strides(packed.strides());
    if (self.dim() > 0) {
      out_sizes.erase(0);
      out_strides.erase(0);
      out_sizes.insert(static_cast<size_t>(d), packed->size(0));
      out_strides.insert(static_cast<size_t>(d), packed->stride(0));
    }
    values = alias_with_geometry(packed, out_sizes, out_strides, 0);
    inverse = with_inverse ? longs(g.group_of) : inverse;
    counts = with_counts ? longs(g.counts) : counts;
  });
  return {values, inverse, counts};
}

}  // namespace

namespace native {

std::tuple<Tensor, Tensor> _unique(const Tensor& self, bool, bool return_inverse) {
  auto [values, inverse, counts] = of_elements("unique", self, true, return_inverse, false);
  return {values, inverse};
}
Three _unique2(const Tensor& self, bool, bool return_inverse, bool return_counts) {
  return of_elements("unique", self, true, return_inverse, return_counts);
}
Three unique_consecutive(const Tensor& self, bool return_inverse, bool return_counts, std::optional<int64_t> dim) {
  if (dim && !(self.dim() == 1 && wrap_dim(*dim, 1) == 0))
    return of_slices("unique_dim", self, *dim, false, return_inverse, return_counts);
  return of_elements("unique", self, false, return_inverse, return_counts);
}
Three unique_dim(const Tensor& self, int64_t dim, bool, bool return_inverse, bool return_counts) {
  return of_slices("unique_dim", self, dim, true, return_inverse, return_counts);
}
Three unique_dim_consecutive(const Tensor& self, int64_t dim, bool return_inverse, bool return_counts) {
  return of_slices("unique_dim", self, dim, false, return_inverse, return_counts);
}

}  // namespace native
}  // namespace tn
