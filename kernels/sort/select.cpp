// Selection by rank: topk, kthvalue, medians, mode.
#include <algorithm>
#include <cmath>
#include <tuple>
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

// The k smallest items of a line, sorted. Candidates gather in a buffer of twice k; each time it is full, the bar
// sinks.
template <class S, class K>
void smallest(const S* x, int64_t step, int64_t n, int64_t k, bool largest, std::vector<Item<K>>* kept) {
  kept->clear();
  const auto most = static_cast<size_t>(std::min(n, std::max<int64_t>(2 * k, 64)));
  kept->reserve(most);
  K bar = ~K{0};
  bool barred = false;
  const auto shrink = [&] {
    std::nth_element(kept->begin(), kept->begin() + (k - 1), kept->end());
    kept->resize(static_cast<size_t>(k));
    bar = (*kept)[static_cast<size_t>(k - 1)].key;
    barred = true;
  };
  for (int64_t i = 0; i < n; ++i) {
    const K key = sort::key_of(x[i * step]), mine = largest ? static_cast<K>(~key) : key;
    // A later equal one never comes before the kept.
    if (barred && mine >= bar) continue;
    kept->push_back({mine, static_cast<decltype(Item<K>::place)>(i)});
    if (kept->size() == most && i + 1 < n) shrink();
  }
  if (static_cast<int64_t>(kept->size()) > k) shrink();
  std::sort(kept->begin(), kept->end());
}

// For each line one element, by a rank function: place(line pointer, step) of an element.
template <class F>
void choose(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& places, F&& f) {
  const int64_t n = self.dim() == 0 ? 1 : self->size(dim);
  const Lines<3> lines(dim, {&self, &values, &places});
  sort::visit_ordered(self.dtype(), [&]<class S>() {
    const S* x = static_cast<const S*>(self.data_ptr());
    S* out = static_cast<S*>(values.data_ptr());
    int64_t* at = places.data<int64_t>();
    parallel_for(0, lines.count(), std::max<int64_t>(1, 4096 / n), [&](int64_t begin, int64_t end) {
      std::vector<Item<sort::KeyOf<S>>> items(static_cast<size_t>(n));
      for (int64_t i = begin; i < end; ++i) {
        const auto start = lines.begin(i);
        const S* line = x + start[0];
        const int64_t step = lines.step(0);
        for (int64_t k = 0; k < n; ++k)
          items[static_cast<size_t>(k)] = {sort::key_of(line[k * step]), static_cast<decltype(items[0].place)>(k)};
        const int64_t place = f(items);
        out[start[1]] = line[place * step];
        at[start[2]] = place;
      }
    });
  });
}

template <class Items>
int64_t place_at(Items& items, int64_t rank) {
  std::nth_element(items.begin(), items.begin() + rank, items.end());
  return static_cast<int64_t>(items[static_cast<size_t>(rank)].place);
}
template <class Items>
constexpr auto nan_key(const Items& items) {
  return static_cast<decltype(items[0].key)>(~decltype(items[0].key){0});
}

struct Chosen {
  Tensor values, places;  // with the dimension
  int64_t dim;
};
Chosen make_chosen(const char* name, const Tensor& self, int64_t dim, bool empty_allowed = false) {
  const int64_t d = wrap_dim(dim, self.dim());
  TN_CHECK_AS(NotImplemented, !is_complex(self.dtype()), "\"", name, "\" not implemented for '",
              scalar_type_name(self.dtype()), "'");
  TN_CHECK_AS(Index, empty_allowed || self.dim() == 0 || self->size(d) != 0, name, "(): Expected reduction dim ", d,
              " to have non-zero size.");
  DimVector sizes(self.sizes());
  if (self.dim() > 0) sizes[static_cast<size_t>(d)] = 1;
  return {empty(sizes, self.dtype(), self.device()), empty(sizes, ScalarType::Long, self.device()), d};
}
std::tuple<Tensor, Tensor> finish(const Chosen& c, bool keepdim) {
  if (keepdim || c.values.dim() == 0) return {c.values, c.places};
  DimVector sizes(c.values.sizes()), strides(c.values.strides());
  sizes.erase(static_cast<size_t>(c.dim));
  strides.erase(static_cast<size_t>(c.dim));
  c.values->set_geometry(sizes, strides, 0);
  c.places->set_geometry(sizes, strides, 0);
  return {c.values, c.places};
}

template <bool kIgnoreNan>
int64_t median_place(auto& items, bool floating) {
  const auto n = static_cast<int64_t>(items.size());
  int64_t nans = 0;
  if (floating) {
    for (const auto& item : items) {
      if (item.key != nan_key(items)) continue;
      if (!kIgnoreNan) return static_cast<int64_t>(item.place);
      ++nans;
    }
  }
  return place_at(items, std::max<int64_t>(n - nans - 1, 0) / 2);
}
template <bool kIgnoreNan>
std::tuple<Tensor, Tensor> median_along(const char* name, const Tensor& self, int64_t dim, bool keepdim) {
  const Chosen c = make_chosen(name, self, dim);
  if (c.values.numel() > 0 && self.numel() > 0)
    choose(self, c.dim, c.values, c.places,
           [&](auto& items) { return median_place<kIgnoreNan>(items, is_floating(self.dtype())); });
  return finish(c, keepdim);
}
template <bool kIgnoreNan>
Tensor median_of_all(const char* name, const Tensor& self) {
  TN_CHECK_AS(NotImplemented, !is_complex(self.dtype()), "\"", name, "\" not implemented for '",
              scalar_type_name(self.dtype()), "'");
  if (self.numel() == 0) {
    const Tensor out = empty({}, self.dtype());
    fill(out, is_floating(self.dtype()) ? Scalar(std::nan(""))
                                        : Scalar(is_integral(self.dtype(), false) ? INT64_MIN : int64_t{0}));
    return out;
  }
  const Tensor x = contiguous(self), flat = alias_with_geometry(x, {x.numel()}, {1}, x.storage_offset());
  return std::get<0>(median_along<kIgnoreNan>(name, flat, 0, false));
}

}  // namespace

namespace slots {

void topk_meta(Outputs& outs, const Tensor& self, int64_t k, int64_t dim, bool, bool) {
  const int64_t d = wrap_dim(dim, self.dim());
  TN_CHECK(self.dtype() != ScalarType::Bool || !self.is_cpu(), "topk does not support bool dtypes on CPU");
  TN_CHECK(k >= 0 && k <= (self.dim() > 0 ? self->size(d) : 1), "selected index k out of range");
  DimVector sizes(self.sizes());
  if (self.dim() > 0) sizes[static_cast<size_t>(d)] = k;
  outs.set(0, sizes, self.dtype(), self.device());
  outs.set(1, sizes, ScalarType::Long, self.device());
}
void topk_cpu(Outputs& outs, const Tensor& self, int64_t k, int64_t dim, bool largest, bool) {
  if (outs[0].numel() == 0 || k == 0) return;
  const int64_t d = wrap_dim(dim, self.dim()), n = self.dim() == 0 ? 1 : self->size(d);
  const Lines<3> lines(d, {&self, &outs[0], &outs[1]});
  sort::visit_ordered(self.dtype(), [&]<class S>() {
    const S* x = static_cast<const S*>(self.data_ptr());
    S* values = static_cast<S*>(outs[0].data_ptr());
    int64_t* places = outs[1].data<int64_t>();
    parallel_for(0, lines.count(), std::max<int64_t>(1, 8192 / n), [&](int64_t begin, int64_t end) {
      std::vector<Item<sort::KeyOf<S>>> kept;
      for (int64_t i = begin; i < end; ++i) {
        const auto start = lines.begin(i);
        smallest(x + start[0], lines.step(0), n, k, largest, &kept);
        for (int64_t r = 0; r < k; ++r) {
          const auto place = static_cast<int64_t>(kept[static_cast<size_t>(r)].place);
          values[start[1] + r * lines.step(1)] = x[start[0] + place * lines.step(0)];
          places[start[2] + r * lines.step(2)] = place;
        }
      }
    });
  });
}

}  // namespace slots

namespace native {

std::tuple<Tensor, Tensor> kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  const int64_t d = wrap_dim(dim, self.dim()), n = self.dim() == 0 ? 1 : self->size(d);
  const Chosen c = make_chosen("kthvalue", self, dim, true);
  TN_CHECK(k >= 1 && k <= n, "kthvalue(): selected number k out of range for dimension ", d);
  if (self.numel() > 0) choose(self, d, c.values, c.places, [&](auto& items) { return place_at(items, k - 1); });
  return finish(c, keepdim);
}

Tensor median(const Tensor& self) { return median_of_all<false>("median", self); }
Tensor nanmedian(const Tensor& self) { return median_of_all<true>("nanmedian", self); }
std::tuple<Tensor, Tensor> median_dim(const Tensor& self, int64_t dim, bool keepdim) {
  return median_along<false>("median", self, dim, keepdim);
}
std::tuple<Tensor, Tensor> nanmedian_dim(const Tensor& self, int64_t dim, bool keepdim) {
  return median_along<true>("nanmedian", self, dim, keepdim);
}

std::tuple<Tensor, Tensor> mode(const Tensor& self, int64_t dim, bool keepdim) {
  const Chosen c = make_chosen("mode", self, dim);
  if (c.values.numel() == 0 || self.numel() == 0) return finish(c, keepdim);
  choose(self, c.dim, c.values, c.places, [](auto& items) -> int64_t {
    std::sort(items.begin(), items.end());
    size_t best = 0, longest = 0, length = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      ++length;
      if (i + 1 < items.size() && items[i].key == items[i + 1].key) continue;
      if (length > longest) {
        longest = length;
        best = i;  // the last place of the smallest most frequent value
      }
      length = 0;
    }
    return static_cast<int64_t>(items[best].place);
  });
  return finish(c, keepdim);
}

}  // namespace native
}  // namespace tn
