#include "runtime/storage.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "runtime/error.h"
#include "runtime/memory.h"
#include "runtime/tensor.h"

namespace tn {
namespace {

TEST(Storage, AlignedAtEverySize) {
  for (const size_t n : {1, 63, 64, 65, 255, 256, 257, 4096, 1 << 20, (1 << 20) + 1, 5 << 20}) {
    const Storage s = Storage::allocate(n);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(s->data()) % kAlignment, 0u) << n;
    EXPECT_EQ(s->nbytes(), n);
    std::memset(s->data(), 0xab, n);
  }
  EXPECT_EQ(Storage::allocate(0)->data(), nullptr);
}

TEST(Storage, ZeroedIsZeroAlsoWhenRecycled) {
  for (const size_t n : {40, 300, 3 << 20}) {
    std::memset(Storage::allocate(n)->data(), 0xff, n);
    const Storage s = Storage::allocate_zeroed(n);
    const auto* p = static_cast<const char*>(s->data());
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(p[i], 0);
  }
}

TEST(Storage, ResizeKeepsContents) {
  const Storage s = Storage::allocate(64);
  std::memset(s->data(), 7, 64);
  for (const size_t n : {100, 300, 2 << 20, 10}) {
    s->resize(n);
    EXPECT_EQ(s->nbytes(), n);
    for (size_t i = 0; i < std::min<size_t>(n, 64); ++i) ASSERT_EQ(static_cast<char*>(s->data())[i], 7);
  }
  s->resize(0);
  EXPECT_EQ(s->nbytes(), 0u);
  s->resize(8);
  EXPECT_NE(s->data(), nullptr);
}

TEST(Storage, BorrowedIsReleasedOnceAndNotResizable) {
  int released = 0;
  char memory[16];
  {
    const Storage s = Storage::borrow(memory, 16, [](void* c) { ++*static_cast<int*>(c); }, &released);
    EXPECT_THROW(s->resize(32), Error);
    s->set_resizable(true);
    s->resize(32);
    EXPECT_EQ(released, 1);
  }
  EXPECT_EQ(released, 1);
  {
    const Storage again = Storage::borrow(memory, 16, nullptr, nullptr);
  }
}

TEST(Storage, SwapMovesInlineDataOut) {
  const Storage a = Storage::allocate(8), b = Storage::allocate(1000);
  std::memset(a->data(), 1, 8);
  std::memset(b->data(), 2, 1000);
  a->swap_contents(*b.get());
  EXPECT_EQ(a->nbytes(), 1000u);
  EXPECT_EQ(static_cast<char*>(a->data())[999], 2);
  EXPECT_EQ(static_cast<char*>(b->data())[7], 1);
}

TEST(Storage, FailedAllocationLeavesNothingBehind) {
  memory::trim();
  memory::set_failing_size(1 << 10);
  for (const size_t n : {size_t{2} << 10, size_t{8} << 20}) {
    try {
      Storage::allocate(n);
      ADD_FAILURE() << "expected an error";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::OutOfMemory);
      EXPECT_NE(e.message().find("DefaultCPUAllocator: can't allocate memory: you tried to allocate " +
                                 std::to_string(n) + " bytes."),
                std::string::npos);
    }
  }
  const Storage s = Storage::allocate(512);
  std::memset(s->data(), 3, 512);
  EXPECT_THROW(s->resize(4096), Error);
  EXPECT_EQ(s->nbytes(), 512u);
  EXPECT_EQ(static_cast<char*>(s->data())[511], 3);
  EXPECT_THROW(empty({1 << 20}, ScalarType::Float), Error);
  memory::set_failing_size(SIZE_MAX);
  EXPECT_THROW(Storage::allocate(size_t{1} << 46), Error);
}

TEST(Memory, LargeBlocksAreCachedBoundedAndTrimmed) {
  memory::trim();
  const auto before = memory::stats();
  EXPECT_EQ(before.cached_bytes, 0u);
  void* first;
  {
    const Storage s = Storage::allocate(8 << 20);
    first = s->data();
  }
  EXPECT_EQ(memory::stats().cached_blocks, 1u);
  {
    const Storage s = Storage::allocate((8 << 20) - 100);
    EXPECT_EQ(s->data(), first);
    EXPECT_EQ(memory::stats().hits, before.hits + 1);
  }
  memory::set_cache_limit(10 << 20);
  {
    const Storage a = Storage::allocate(6 << 20), b = Storage::allocate(6 << 20);
  }
  EXPECT_LE(memory::stats().cached_bytes, size_t{10} << 20);
  memory::trim();
  EXPECT_EQ(memory::stats().cached_bytes, 0u);
  EXPECT_EQ(memory::stats().mapped_bytes, before.mapped_bytes);
  memory::set_cache_limit(size_t{1} << 30);
}

TEST(Memory, BlocksMayDieOnOtherThreadsAndAfterThem) {
  std::vector<Tensor> made;
  std::thread([&] {
    for (int i = 0; i < 2000; ++i) made.push_back(empty({4, 4}, ScalarType::Float));
  }).join();
  std::thread([&] { made.clear(); }).join();
  for (int i = 0; i < 2000; ++i) made.push_back(empty({4, 4}, ScalarType::Float));
  // A tensor that outlives the thread's own cache: freed by a later thread_local destructor.
  std::thread([] {
    thread_local Tensor late;
    late = empty({4, 4}, ScalarType::Float);
    {
      const Tensor warm = empty({4, 4}, ScalarType::Float);
    }
  }).join();
}

}  // namespace
}  // namespace tn
