#include "runtime/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "runtime/error.h"
#include "runtime/storage.h"

namespace tn::memory {
namespace {

constinit std::atomic<size_t> failing_size{SIZE_MAX};

[[noreturn, gnu::cold]] void out_of_memory(size_t bytes) {
  fail(ErrorKind::OutOfMemory, "DefaultCPUAllocator: can't allocate memory: you tried to allocate ", bytes,
       " bytes. Error code 12 (Cannot allocate memory)");
}

void* heap_block(size_t bytes) {
  if (bytes > failing_size.load(std::memory_order_relaxed)) return nullptr;
  void* p = nullptr;
  return posix_memalign(&p, kAlignment, bytes) == 0 ? p : nullptr;
}

// ---- small blocks ------------------------------------------------------------------------------------------------

constexpr int kMaxKept = 512;

// Trivial, so that reaching it costs no guard; the reaper below empties it when the thread ends.
struct SmallCache {
  void* free_list[kNumSmall];
  int count[kNumSmall];
  enum State : uint8_t { kFresh, kWatched, kEnded } state;
};
constinit thread_local SmallCache cache{};

struct Reaper {
  ~Reaper() {
    cache.state = SmallCache::kEnded;  // objects that die later on this thread go straight to the heap
    for (int k = 0; k < kNumSmall; ++k) {
      while (void* p = cache.free_list[k]) {
        std::memcpy(&cache.free_list[k], p, sizeof(void*));
        std::free(p);
      }
      cache.count[k] = 0;
    }
  }
};

[[gnu::cold, gnu::noinline]] void watch_thread() {
  thread_local Reaper reaper;
  (void)reaper;
  cache.state = SmallCache::kWatched;
}

// ---- large blocks --------------------------------------------------------------------------------------------------

constexpr size_t kMaxBlocks = 64;
constexpr uint64_t kMaxAge = 512;  // in large allocations of the process
constexpr size_t kHugePage = size_t{2} << 20;

struct CachedBlock {
  void* data;
  size_t bytes;
  uint64_t born;
};

struct LargeCache {
  std::mutex mutex;
  CachedBlock blocks[kMaxBlocks]{};
  size_t num_blocks = 0;
  size_t cached_bytes = 0;
  size_t mapped_bytes = 0;
  size_t limit = 0;  // 0: not yet asked
  uint64_t clock = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;

  void unmap(void* data, size_t bytes) noexcept {
    mapped_bytes -= bytes;
    munmap(data, bytes);
  }
  void remove(size_t i) noexcept {
    cached_bytes -= blocks[i].bytes;
    blocks[i] = blocks[--num_blocks];
  }
  void drop_oldest() noexcept {
    size_t oldest = 0;
    for (size_t i = 1; i < num_blocks; ++i)
      if (blocks[i].born < blocks[oldest].born) oldest = i;
    const CachedBlock b = blocks[oldest];
    remove(oldest);
    unmap(b.data, b.bytes);
  }
  void trim(size_t keep) noexcept {
    while (num_blocks > 0 && cached_bytes > keep) drop_oldest();
  }
};
constinit LargeCache large;

// An eighth of the machine's memory, at most 1 GiB.
size_t default_limit() noexcept {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  const size_t total = pages > 0 && page > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(page) : size_t{1} << 30;
  return std::min(total / 8, size_t{1} << 30);
}

// Sizes in eighths of an octave, so that near sizes share blocks.
size_t rounded(size_t bytes) noexcept {
  const size_t step = std::max(size_t{1} << 16, (size_t{1} << (63 - __builtin_clzll(bytes))) / 8);
  return (bytes + step - 1) / step * step;
}

void* map_block(size_t bytes) noexcept {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
#ifdef MADV_HUGEPAGE
  if (bytes >= 2 * kHugePage) madvise(p, bytes, MADV_HUGEPAGE);
#endif
  return p;
}

void* take_large(size_t bytes, size_t* capacity, bool zeroed) {
  if (bytes > SIZE_MAX / 2 || bytes > failing_size.load(std::memory_order_relaxed)) out_of_memory(bytes);
  const size_t size = rounded(bytes);
  {
    const std::lock_guard lock(large.mutex);
    ++large.clock;
    size_t best = kMaxBlocks;
    for (size_t i = 0; i < large.num_blocks; ++i) {
      const size_t b = large.blocks[i].bytes;
      if (b >= size && b <= size + size / 4 && (best == kMaxBlocks || b < large.blocks[best].bytes)) best = i;
    }
    while (best == kMaxBlocks && large.num_blocks > 0) {  // old blocks leave while the cache doesn't help
      size_t i = 0;
      while (i < large.num_blocks && large.clock - large.blocks[i].born <= kMaxAge) ++i;
      if (i == large.num_blocks) break;
      const CachedBlock old = large.blocks[i];
      large.remove(i);
      large.unmap(old.data, old.bytes);
    }
    if (best != kMaxBlocks) {
      const CachedBlock b = large.blocks[best];
      large.remove(best);
      ++large.hits;
      *capacity = b.bytes;
      if (zeroed) std::memset(b.data, 0, bytes);
      return b.data;
    }
    ++large.misses;
    large.mapped_bytes += size;
  }
  void* p = map_block(size);
  if (!p) {
    trim();
    p = map_block(size);
  }
  if (!p) {
    const std::lock_guard lock(large.mutex);
    large.mapped_bytes -= size;
  }
  if (!p) out_of_memory(bytes);
  *capacity = size;
  return p;
}

}  // namespace

void* take_small(Small kind) {
  const int k = static_cast<int>(kind);
  if (void* p = cache.free_list[k]) {
    std::memcpy(&cache.free_list[k], p, sizeof(void*));
    --cache.count[k];
    return p;
  }
  void* p = heap_block(kSmallBytes[k]);
  if (!p) out_of_memory(kSmallBytes[k]);
  return p;
}

void give_small(void* block, Small kind) noexcept {
  const int k = static_cast<int>(kind);
  if (__builtin_expect(cache.state != SmallCache::kWatched, 0)) {
    if (cache.state == SmallCache::kEnded) return std::free(block);
    watch_thread();
  }
  if (cache.count[k] >= kMaxKept) return std::free(block);
  std::memcpy(block, &cache.free_list[k], sizeof(void*));
  cache.free_list[k] = block;
  ++cache.count[k];
}

void* take_block(size_t bytes, size_t* capacity, bool zeroed) {
  if (bytes >= kLargeBlock) return take_large(bytes, capacity, zeroed);
  const size_t size = (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  void* p = heap_block(size);
  if (!p) {
    trim();
    p = heap_block(size);
  }
  if (!p) out_of_memory(bytes);
  if (zeroed) std::memset(p, 0, bytes);
  *capacity = size;
  return p;
}

void give_block(void* block, size_t capacity) noexcept {
  if (capacity < kLargeBlock) return std::free(block);
  const std::lock_guard lock(large.mutex);
  if (large.limit == 0) large.limit = default_limit();
  if (capacity > large.limit) return large.unmap(block, capacity);
  while (large.num_blocks > 0 && (large.num_blocks == kMaxBlocks || large.cached_bytes + capacity > large.limit))
    large.drop_oldest();
  large.blocks[large.num_blocks++] = {block, capacity, large.clock};
  large.cached_bytes += capacity;
}

Stats stats() noexcept {
  const std::lock_guard lock(large.mutex);
  return {large.cached_bytes, large.num_blocks, large.mapped_bytes, large.hits, large.misses};
}

void trim(size_t keep) noexcept {
  const std::lock_guard lock(large.mutex);
  large.trim(keep);
}

void set_cache_limit(size_t bytes) noexcept {
  const std::lock_guard lock(large.mutex);
  large.limit = std::max<size_t>(bytes, 1);  // 1 keeps nothing; 0 stands for "not set"
  large.trim(bytes);
}

void set_failing_size(size_t bytes) noexcept { failing_size.store(bytes, std::memory_order_relaxed); }

}  // namespace tn::memory
