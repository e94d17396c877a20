#pragma once

// The one way to use more than one core. Work is split by shape, never by thread: the body sees the chunks
// [begin, begin + grain), [begin + grain, begin + 2 * grain), ... whatever the number of threads, also with one. So a
// body that keeps one partial result for each chunk (index: (chunk_begin - begin) / grain) gives the same bits on any
// machine.

#include <cstdint>
#include <memory>
#include <type_traits>

namespace tn {

int num_threads();
void set_num_threads(int count);
int num_interop_threads();
void set_num_interop_threads(int count);
bool in_parallel_region();

// While one lives, parallel_for on this thread runs inline.
class SerialScope {
 public:
  SerialScope() noexcept;
  ~SerialScope();
  SerialScope(const SerialScope&) = delete;
  SerialScope& operator=(const SerialScope&) = delete;

 private:
  bool before_;
};

namespace detail {

using ChunkBody = void (*)(void* context, int64_t begin, int64_t end);

void run_chunks(int64_t begin, int64_t end, int64_t grain, ChunkBody body, void* context);

}  // namespace detail

// Calls f(chunk_begin, chunk_end) for each chunk of `grain` of [begin, end), in any order, and returns when all are
// done. An exception of f is rethrown here; chunks not begun by then are left out. Nested calls, and calls while
// another thread has the pool, run on the calling thread.
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& f) {
  if (begin >= end) return;
  if (grain < 1) grain = 1;
  if (end - begin <= grain) {
    f(begin, end);
    return;
  }
  using Body = std::remove_reference_t<F>;
  detail::run_chunks(
      begin, end, grain, [](void* context, int64_t b, int64_t e) { (*static_cast<Body*>(context))(b, e); },
      const_cast<void*>(static_cast<const void*>(std::addressof(f))));
}

}  // namespace tn
