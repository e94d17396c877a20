// Where memory comes from: recycled small blocks for each thread, the heap, and a bounded cache of large mapped blocks.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tn::memory {

// ---- small blocks: headers of tensors and storages, with room for little data -------------------------------------
// A thread keeps the blocks that it frees, up to a bound; any thread may free any block.
enum class Small : uint8_t { Header, Data64, Data256 };
inline constexpr int kNumSmall = 3;
inline constexpr size_t kSmallBytes[kNumSmall] = {256, 192, 384};

void* take_small(Small kind);
void give_small(void* block, Small kind) noexcept;

// ---- blocks of any size, 64-byte aligned ----------------------------------------------------------------------------
inline constexpr size_t kLargeBlock = size_t{1} << 20;

// `*capacity` is what was really set aside; it is what release needs. OutOfMemory when there is none. With `zeroed`,
// the first `bytes` are zero.
void* take_block(size_t bytes, size_t* capacity, bool zeroed = false);
void give_block(void* block, size_t capacity) noexcept;

// ---- the cache of large blocks ------------------------------------------------------------------------------------
struct Stats {
  size_t cached_bytes;  // kept for reuse now
  size_t cached_blocks;
  size_t mapped_bytes;  // large blocks in use and cached
  uint64_t hits;
  uint64_t misses;
};
Stats stats() noexcept;
// Gives cached blocks back to the system until at most `keep` bytes stay.
void trim(size_t keep = 0) noexcept;
// The most bytes that the cache keeps; trims at once.
void set_cache_limit(size_t bytes) noexcept;

// For tests: blocks above this size can't be had. SIZE_MAX: no limit.
void set_failing_size(size_t bytes) noexcept;

}  // namespace tn::memory
