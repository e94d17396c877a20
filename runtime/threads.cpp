#include "runtime/threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace tn {
namespace {

constexpr int kMaxThreads = 1024;
// Rounds of waiting before a thread sleeps: some ten microseconds, so back-to-back operators find the pool awake, while
// a partner without a core costs no more than that.
constexpr int kSpins = 1500;

inline void pause_core() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // yield is a no-op on most cores
#endif
}

constinit thread_local bool t_in_region = false;

int environment_threads() {
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}) {
    const char* text = std::getenv(name);
    if (text == nullptr) continue;
    const long count = std::strtol(text, nullptr, 10);  // "4,2" is OpenMP's list of nesting levels: the first counts
    if (count >= 1) return static_cast<int>(std::min<long>(count, kMaxThreads));
  }
  return 0;
}

int machine_threads() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int current_core() {
#if defined(__linux__)
  return sched_getcpu();
#else
  return -1;
#endif
}

// Moves the calling thread to any other core that it may use. A kernel that knows of no shared cache (virtual machines)
// wakes a thread on the core that wakes it, and for milliseconds the two then take turns there while another core may
// be idle.
void leave_core([[maybe_unused]] int core) {
#if defined(__linux__)
  cpu_set_t allowed;
  if (core < 0 || core >= CPU_SETSIZE || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof(others), &others) != 0) return;
  sched_setaffinity(0, sizeof(allowed), &allowed);
#endif
}

constinit std::atomic<int> g_num_threads{0};  // 0: not asked yet
constinit std::atomic<int> g_num_interop{0};

// One job at a time. A worker counts itself active before it looks whether the job is open, and the owner closes the
// job before it looks at the count (all sequentially consistent), so either the worker sees a closed job or the owner
// waits.
class Pool {
 public:
  // False if another thread has the pool: the caller then runs the job itself.
  bool run(int64_t begin, int64_t end, int64_t grain, detail::ChunkBody body, void* context, int threads) {
    std::unique_lock<std::mutex> owner(owner_, std::try_to_lock);
    if (!owner.owns_lock()) return false;
    const int64_t chunks = (end - begin + grain - 1) / grain;
    const int helpers = static_cast<int>(std::min<int64_t>(threads - 1, chunks - 1));
    start_workers(helpers);
    begin_ = begin, end_ = end, grain_ = grain, chunks_ = chunks, body_ = body, context_ = context;
    error_ = nullptr;
    next_.store(0, std::memory_order_relaxed);
    seats_.store(helpers, std::memory_order_relaxed);
    owner_core_.store(current_core(), std::memory_order_relaxed);
    open_.store(true);
    epoch_.fetch_add(1);
    if (sleepers_.load() > 0) {
      {
        std::lock_guard<std::mutex> guard(sleep_);
      }
      if (helpers == 1) {
        wake_.notify_one();
      } else {
        wake_.notify_all();
      }
    }
    work();
    open_.store(false);
    wait_for_workers();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return true;
  }

 private:
  void start_workers(int count) {
    if (count <= workers_) return;
    // Signals belong to the threads of the program, not to the pool's.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (; workers_ < count; ++workers_) std::thread([this] { serve(); }).detach();
    } catch (const std::system_error&) {
      // No more threads to be had: the job runs with those that there are.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void serve() {
    t_in_region = true;
    uint64_t seen = 0;
    for (;;) {
      seen = wait_for_epoch(seen);
      if (const int core = owner_core_.load(std::memory_order_relaxed); core >= 0 && core == current_core())
        leave_core(core);
      active_.fetch_add(1);
      if (open_.load() && seats_.fetch_sub(1) > 0) work();
      if (active_.fetch_sub(1) == 1 && owner_sleeps_.load()) {
        {
          std::lock_guard<std::mutex> guard(sleep_);
        }
        done_.notify_one();
      }
    }
  }

  uint64_t wait_for_epoch(uint64_t seen) {
    for (int i = 0; i < kSpins; ++i) {
      if (const uint64_t now = epoch_.load(); now != seen) return now;
      pause_core();
    }
    std::unique_lock<std::mutex> lock(sleep_);
    sleepers_.fetch_add(1);
    wake_.wait(lock, [&] { return epoch_.load() != seen; });
    sleepers_.fetch_sub(1);
    return epoch_.load();
  }

  void work() {
    const bool before = std::exchange(t_in_region, true);
    for (;;) {
      const int64_t chunk = next_.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= chunks_) break;
      const int64_t from = begin_ + chunk * grain_;
      try {
        body_(context_, from, std::min(end_, from + grain_));
      } catch (...) {
        next_.store(chunks_, std::memory_order_relaxed);
        std::lock_guard<std::mutex> guard(error_lock_);
        if (!error_) error_ = std::current_exception();
      }
    }
    t_in_region = before;
  }

  void wait_for_workers() {
    for (int i = 0; i < kSpins; ++i) {
      if (active_.load() == 0) return;
      pause_core();
    }
    std::unique_lock<std::mutex> lock(sleep_);
    owner_sleeps_.store(true);
    done_.wait(lock, [&] { return active_.load() == 0; });
    owner_sleeps_.store(false);
  }

  std::mutex owner_;
  int workers_ = 0;

  int64_t begin_ = 0, end_ = 0, grain_ = 1, chunks_ = 0;
  detail::ChunkBody body_ = nullptr;
  void* context_ = nullptr;
  std::exception_ptr error_;
  std::mutex error_lock_;

  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<uint64_t> epoch_{0};
  alignas(64) std::atomic<int> active_{0};
  std::atomic<int> seats_{0};
  std::atomic<int> owner_core_{-1};
  std::atomic<bool> open_{false};
  std::atomic<bool> owner_sleeps_{false};

  alignas(64) std::atomic<int> sleepers_{0};
  std::mutex sleep_;
  std::condition_variable wake_;
  std::condition_variable done_;
};

constinit std::atomic<Pool*> g_pool{nullptr};

// The child of a fork has none of the pool's threads, and locks in unknown states: it forgets the pool and makes
// another.
void forget_pool() {
  g_pool.store(nullptr);
  t_in_region = false;
}

Pool& pool() {
  Pool* pool = g_pool.load(std::memory_order_acquire);
  if (pool != nullptr) return *pool;
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, forget_pool);
  // Never deleted: its threads run until the process ends.
  Pool* made = new Pool;
  if (g_pool.compare_exchange_strong(pool, made)) return *made;
  delete made;
  return *pool;
}

}  // namespace

int num_threads() {
  int count = g_num_threads.load(std::memory_order_relaxed);
  if (count > 0) return count;
  const int asked = environment_threads();
  int expected = 0;
  count = asked > 0 ? asked : machine_threads();
  return g_num_threads.compare_exchange_strong(expected, count) ? count : expected;
}

void set_num_threads(int count) {
  if (count < 1)
    throw std::invalid_argument("set_num_threads: expected a positive integer, got " + std::to_string(count));
  g_num_threads.store(std::min(count, kMaxThreads), std::memory_order_relaxed);
}

int num_interop_threads() {
  const int count = g_num_interop.load(std::memory_order_relaxed);
  return count > 0 ? count : machine_threads();
}

void set_num_interop_threads(int count) {
  if (count < 1) {
    throw std::invalid_argument("set_num_interop_threads: expected a positive integer, got " + std::to_string(count));
  }
  g_num_interop.store(count, std::memory_order_relaxed);
}

bool in_parallel_region() { return t_in_region; }

SerialScope::SerialScope() noexcept : before_(t_in_region) { t_in_region = true; }
SerialScope::~SerialScope() { t_in_region = before_; }

namespace detail {

void run_chunks(int64_t begin, int64_t end, int64_t grain, ChunkBody body, void* context) {
  const int threads = t_in_region ? 1 : num_threads();
  if (threads > 1 && pool().run(begin, end, grain, body, context, threads)) return;
  for (int64_t from = begin; from < end; from += grain) body(context, from, std::min(end, from + grain));
}

}  // namespace detail
}  // namespace tn
