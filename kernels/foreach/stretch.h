// The work of a list as one stretch of elements, split between threads wherever tensors end.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/iterator.h"
#include "runtime/threads.h"

namespace tn::foreach {

// Calls f(item, begin, end) over all items' elements [0, item.n), each element once. `cost` is in units of an
// addition. In the items' order on one thread where `in_order`, or where the work is small.
template <class Item, class F>
void stretch(const std::vector<Item>& items, int64_t cost, bool in_order, F&& f) {
  int64_t total = 0;
  for (const Item& item : items) total += item.n;
  const int64_t grain = std::max<int64_t>(TensorIterator::kGrain / cost, 1);
  if (in_order || total <= grain || num_threads() == 1) {
    for (const Item& item : items)
      if (item.n > 0) f(item, int64_t{0}, item.n);
    return;
  }
  std::vector<int64_t> ends(items.size());
  int64_t sum = 0;
  for (size_t i = 0; i < items.size(); ++i) ends[i] = sum += items[i].n;
  parallel_for(0, total, grain, [&](int64_t begin, int64_t end) {
    auto i = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
    for (; begin < end; ++i) {
      const int64_t first = ends[i] - items[i].n;
      const int64_t stop = std::min(end, ends[i]);
      if (begin < stop) f(items[i], begin - first, stop - first);
      begin = stop;
    }
  });
}

}  // namespace tn::foreach
