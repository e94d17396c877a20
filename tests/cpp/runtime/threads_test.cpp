#include "runtime/threads.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace tn {
namespace {

std::set<std::pair<int64_t, int64_t>> chunks_of(int64_t begin, int64_t end, int64_t grain) {
  std::set<std::pair<int64_t, int64_t>> chunks;
  std::mutex lock;
  parallel_for(begin, end, grain, [&](int64_t b, int64_t e) {
    std::lock_guard<std::mutex> guard(lock);
    EXPECT_TRUE(chunks.insert({b, e}).second);
  });
  return chunks;
}

class Threads : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_num_threads(GetParam()); }
};

TEST_P(Threads, ChunksDependOnTheGrainAlone) {
  using Chunks = std::set<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(chunks_of(0, 0, 4), Chunks{});
  EXPECT_EQ(chunks_of(5, 3, 4), Chunks{});
  EXPECT_EQ(chunks_of(2, 6, 4), (Chunks{{2, 6}}));
  EXPECT_EQ(chunks_of(-3, 7, 4), (Chunks{{-3, 1}, {1, 5}, {5, 7}}));
  EXPECT_EQ(chunks_of(0, 3, 0), (Chunks{{0, 1}, {1, 2}, {2, 3}}));
}

TEST_P(Threads, EachIndexOnce) {
  for (int round = 0; round < 300; ++round) {
    std::vector<std::atomic<int>> seen(1000);
    parallel_for(0, 1000, 7, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) seen[static_cast<size_t>(i)].fetch_add(1);
    });
    for (auto& count : seen) ASSERT_EQ(count.load(), 1);
  }
}

TEST_P(Threads, NestedCallsRunOnTheirThread) {
  std::atomic<int> total{0};
  parallel_for(0, 8, 1, [&](int64_t, int64_t) {
    const auto outer = std::this_thread::get_id();
    parallel_for(0, 8, 1, [&](int64_t b, int64_t e) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      total += static_cast<int>(e - b);
    });
  });
  EXPECT_EQ(total.load(), 64);
  EXPECT_FALSE(in_parallel_region());
}

TEST_P(Threads, ExceptionsReachTheCaller) {
  for (int round = 0; round < 50; ++round) {
    EXPECT_THROW(parallel_for(0, 64, 1,
                              [](int64_t b, int64_t) {
                                if (b % 8 == 5) throw std::out_of_range("chunk");
                              }),
                 std::out_of_range);
    EXPECT_FALSE(in_parallel_region());
  }
  EXPECT_EQ(chunks_of(0, 4, 2).size(), 2U);
}

TEST_P(Threads, SeveralCallersAtOnce) {
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        parallel_for(0, 100, 3, [&](int64_t b, int64_t e) { total += e - b; });
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(total.load(), 4 * 200 * 100);
}

TEST_P(Threads, SleepingWorkersWake) {
  for (int round = 0; round < 5; ++round) {
    usleep(3000);
    EXPECT_EQ(chunks_of(0, 64, 1).size(), 64U);
  }
}

TEST_P(Threads, AForkedChildHasAPool) {
  chunks_of(0, 64, 1);
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> total{0};
    parallel_for(0, 64, 1, [&](int64_t b, int64_t e) { total += static_cast<int>(e - b); });
    _exit(total.load() == 64 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_P(Threads, SerialScopeStaysOnTheThread) {
  SerialScope serial;
  const auto here = std::this_thread::get_id();
  parallel_for(0, 64, 1, [&](int64_t, int64_t) { EXPECT_EQ(std::this_thread::get_id(), here); });
}

INSTANTIATE_TEST_SUITE_P(Counts, Threads, ::testing::Values(1, 2, 3, 8));

// With a rendezvous in the body, only two threads that run at the same time can finish.
TEST(ThreadsPool, TwoThreadsRunAtOnce) {
  set_num_threads(2);
  std::atomic<int> arrived{0};
  parallel_for(0, 2, 1, [&](int64_t, int64_t) {
    arrived.fetch_add(1);
    for (int i = 0; i < 5000 && arrived.load() < 2; ++i) usleep(1000);
    EXPECT_EQ(arrived.load(), 2);
  });
}

TEST(ThreadsPool, RefusesNonsense) {
  EXPECT_THROW(set_num_threads(0), std::invalid_argument);
  EXPECT_THROW(set_num_interop_threads(-1), std::invalid_argument);
  set_num_threads(3);
  EXPECT_EQ(num_threads(), 3);
}

}  // namespace
}  // namespace tn
