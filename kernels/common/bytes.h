// Moving elements whatever they mean: by their size in bytes.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tn {

// complex128's place.
struct Bytes16 {
  uint64_t low, high;
};

// Calls f.operator()<T>() with an unsigned type of the size of an element.
template <class F>
decltype(auto) with_bytes(size_t item_size, F&& f) {
  switch (item_size) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    case 8: return f.template operator()<uint64_t>();
    default: return f.template operator()<Bytes16>();
  }
}

}  // namespace tn
