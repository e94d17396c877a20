#include "kernels/sort/keys.h"

#include <algorithm>
#include <array>

namespace tn::sort {
namespace {

// Radix sort from the lowest byte: stable, and bytes that all keys share cost nothing.
template <class K>
void radix(Item<K>* items, int64_t n, std::vector<Item<K>>* spare) {
  constexpr int kBytes = sizeof(K);
  std::array<std::array<uint32_t, 256>, kBytes> counts{};
  for (int64_t i = 0; i < n; ++i)
    for (int b = 0; b < kBytes; ++b) ++counts[static_cast<size_t>(b)][items[i].key >> (8 * b) & 0xff];
  if (spare->size() < static_cast<size_t>(n)) spare->resize(static_cast<size_t>(n));
  Item<K>*from = items, *to = spare->data();
  for (int b = 0; b < kBytes; ++b) {
    auto& count = counts[static_cast<size_t>(b)];
    if (count[items[0].key >> (8 * b) & 0xff] == static_cast<uint32_t>(n)) continue;
    uint32_t start = 0;
    for (uint32_t& c : count) {
      const uint32_t here = c;
      c = start;
      start += here;
    }
    for (int64_t i = 0; i < n; ++i) to[count[from[i].key >> (8 * b) & 0xff]++] = from[i];
    std::swap(from, to);
  }
  if (from != items) std::copy_n(from, n, items);
}

template <class K>
void any_size(Item<K>* items, int64_t n, std::vector<Item<K>>* spare) {
  constexpr int64_t kFewest = 256, kMost = INT32_MAX;
  if (n < kFewest || n > kMost) std::sort(items, items + n);
  else radix(items, n, spare);
}

}  // namespace

void sort_items(Item<uint32_t>* items, int64_t n, std::vector<Item<uint32_t>>* spare) { any_size(items, n, spare); }
void sort_items(Item<uint64_t>* items, int64_t n, std::vector<Item<uint64_t>>* spare) { any_size(items, n, spare); }

}  // namespace tn::sort
