// Elements as unsigned keys in upstream's order: NaN is above all numbers, both zeros are equal.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/common/scalars.h"
#include "runtime/convert.h"

namespace tn::sort {

template <class S>
using KeyOf = std::conditional_t<(sizeof(S) == 8), uint64_t, uint32_t>;

template <class S>
KeyOf<S> key_of(S v) {
  if constexpr (is_small_float_v<S>) {
    return key_of(to_float(v));
  } else if constexpr (std::is_floating_point_v<S>) {
    using K = KeyOf<S>;
    constexpr K kSign = K{1} << (sizeof(K) * 8 - 1);
    if (std::isnan(v)) return ~K{0};
    const K bits = std::bit_cast<K>(v + S{0});  // -0 becomes 0
    return bits & kSign ? ~bits : bits | kSign;
  } else if constexpr (std::is_signed_v<S>) {
    using K = KeyOf<S>;
    return static_cast<K>(static_cast<std::conditional_t<sizeof(K) == 8, int64_t, int32_t>>(v)) ^
           (K{1} << (sizeof(K) * 8 - 1));
  } else {
    return static_cast<KeyOf<S>>(v);
  }
}

// A key and where it came from. Ties go by place, so every order of these is the stable one.
template <class K>
struct Item {
  K key;
  std::conditional_t<sizeof(K) == 8, uint64_t, uint32_t> place;
  friend bool operator<(const Item& a, const Item& b) { return a.key < b.key || (a.key == b.key && a.place < b.place); }
};

// Sorts items whose places ascend. `spare` grows to their number.
void sort_items(Item<uint32_t>* items, int64_t n, std::vector<Item<uint32_t>>* spare);
void sort_items(Item<uint64_t>* items, int64_t n, std::vector<Item<uint64_t>>* spare);

// f.operator()<S>() for dtypes that have an order. bool comes as uint8_t.
template <class F>
bool visit_ordered(ScalarType dtype, F&& f) {
  switch (dtype) {
    case ScalarType::Float: f.template operator()<float>(); return true;
    case ScalarType::Double: f.template operator()<double>(); return true;
    case ScalarType::Half: f.template operator()<Half>(); return true;
    case ScalarType::BFloat16: f.template operator()<BFloat16>(); return true;
    case ScalarType::Bool: f.template operator()<uint8_t>(); return true;
    default: return visit_integral(dtype, f);
  }
}

}  // namespace tn::sort
