// The walk of a reduction, for any operation and storage type. An operation sees short runs of its own type T: rows to
// fold into one value, or rows to fold into as many columns. Partial results combine in a tree that the shape alone
// determines.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>

#include "kernels/reduce/plan.h"
#include "runtime/threads.h"

namespace tn::reduce {

inline constexpr int64_t kBuffer = 512;   // elements of a converted run; columns of a block
inline constexpr int64_t kRun = 32768;    // elements of a run that is read in place, and of a thread's share
inline constexpr int64_t kLeafRows = 32;  // rows that are folded one after the other

// An associative operation with a neutral element.
template <class T>
struct Operation {
  T identity;
  T (*row)(const T* p, int64_t n);
  // acc[j] = acc[j] op p[i * stride + j] for all i; at most kLeafRows rows and kBuffer columns.
  void (*columns)(const T* p, int64_t stride, int64_t rows, int64_t cols, T* acc);
  T (*combine)(T a, T b);
  // acc[j] = acc[j] op p[j], of partial results: what `columns` does to one row, without what it does to an element
  // first.
  void (*merge)(const T* p, int64_t stride, int64_t rows, int64_t cols, T* acc);
};

// Storage to T: n elements, stride in bytes.
template <class T>
using Load = void (*)(const char* from, int64_t stride, T* to, int64_t n);
// T to storage, once for each result.
template <class T>
using Store = void (*)(T value, char* to, double parameter);

template <class T>
struct Job {
  const Plan& plan;
  const Operation<T>& op;
  const char* in;
  int64_t in_item;
  char* out;
  int64_t out_item;
  Load<T> load;
  bool direct;  // the storage type is T
  Store<T> store;
  double parameter;
};

namespace detail {

// One result: its runs, numbered.
template <class T>
class Runs {
 public:
  Runs(const Job<T>& job)
      : job_(job), inner_(job.plan.reduced[0]), direct_(job.direct && (inner_.in == 1 || inner_.size == 1)) {
    run_ = direct_ ? kRun : kBuffer;
    per_row_ = (inner_.size + run_ - 1) / run_;
    total_ = job.plan.count == 0 ? 0 : job.plan.count / inner_.size * per_row_;
  }
  int64_t total() const { return total_; }
  T fold(const char* base, int64_t begin, int64_t end) const {
    if (end - begin == 1) return one(base, begin);
    if (begin == end) return job_.op.identity;
    const int64_t middle = begin + (end - begin) / 2;
    const T left = fold(base, begin, middle);
    return job_.op.combine(left, fold(base, middle, end));
  }

 private:
  T one(const char* base, int64_t i) const {
    const char* p = base;
    int64_t start = 0;
    if (total_ > 1) {
      start = i % per_row_ * run_;
      int64_t rest = i / per_row_;
      for (int d = 1; d < job_.plan.num_reduced; ++d) {
        const Dim& r = job_.plan.reduced[static_cast<size_t>(d)];
        p += rest % r.size * r.in * job_.in_item;
        rest /= r.size;
      }
      p += start * inner_.in * job_.in_item;
    }
    const int64_t n = std::min(run_, inner_.size - start);
    if (direct_) return job_.op.row(reinterpret_cast<const T*>(p), n);
    alignas(64) T buffer[kBuffer];
    job_.load(p, inner_.in * job_.in_item, buffer, n);
    return job_.op.row(buffer, n);
  }

  const Job<T>& job_;
  const Dim inner_;
  const bool direct_;
  int64_t run_, per_row_, total_;
};

template <class T>
void rows(const Job<T>& job) {
  const Plan& plan = job.plan;
  const Runs<T> runs(job);
  const auto finish = [&](int64_t out, T value) { job.store(value, job.out + out * job.out_item, job.parameter); };
  const auto some = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t in, out;
      plan.locate(i, &in, &out);
      finish(out, runs.fold(job.in + in * job.in_item, 0, runs.total()));
    }
  };
  const int64_t work = plan.outputs * std::max<int64_t>(plan.count, 1);
  if (work <= kRun) return some(0, plan.outputs);
  // Long rows are cut, few or many: parts of about kRun elements.
  const int64_t parts = std::min(runs.total(), plan.count / kRun);
  if (parts < 4 || plan.outputs >= 64)
    return parallel_for(0, plan.outputs, std::max<int64_t>(1, kRun / std::max<int64_t>(plan.count, 1)), some);
  const auto partial = std::make_unique<T[]>(static_cast<size_t>(plan.outputs * parts));
  parallel_for(0, plan.outputs * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t part = i % parts;
      int64_t in, out;
      plan.locate(i / parts, &in, &out);
      partial[static_cast<size_t>(i)] =
          runs.fold(job.in + in * job.in_item, runs.total() * part / parts, runs.total() * (part + 1) / parts);
    }
  });
  const auto tree = [&](const auto& self, const T* p, int64_t n) -> T {
    return n == 1 ? p[0] : job.op.combine(self(self, p, n / 2), self(self, p + n / 2, n - n / 2));
  };
  for (int64_t i = 0; i < plan.outputs; ++i) {
    int64_t in, out;
    plan.locate(i, &in, &out);
    finish(out, tree(tree, &partial[static_cast<size_t>(i * parts)], parts));
  }
}

// Blocks of columns: rows numbered over all reduced dimensions.
template <class T>
class Columns {
 public:
  explicit Columns(const Job<T>& job) : job_(job), inner_(job.plan.reduced[0]) {}
  // acc[0, cols) is overwritten.
  void fold(const char* base, int64_t cols, int64_t begin, int64_t end, T* acc) const {
    if (end - begin > kLeafRows) {
      alignas(64) T right[kBuffer];
      // Halves of whole leaves.
      const int64_t leaves = (end - begin + kLeafRows - 1) / kLeafRows, middle = begin + leaves / 2 * kLeafRows;
      fold(base, cols, begin, middle, acc);
      fold(base, cols, middle, end, right);
      job_.op.merge(right, cols, 1, cols, acc);
      return;
    }
    std::fill_n(acc, cols, job_.op.identity);
    for (int64_t i = begin; i < end;) {
      const char* p = base + i % inner_.size * inner_.in * job_.in_item;
      int64_t rest = i / inner_.size;
      for (int d = 1; d < job_.plan.num_reduced; ++d) {
        const Dim& r = job_.plan.reduced[static_cast<size_t>(d)];
        p += rest % r.size * r.in * job_.in_item;
        rest /= r.size;
      }
      const int64_t n = std::min(end - i, inner_.size - i % inner_.size);
      leaf(p, n, cols, acc);
      i += n;
    }
  }

 private:
  void leaf(const char* p, int64_t n, int64_t cols, T* acc) const {
    if (job_.direct) return job_.op.columns(reinterpret_cast<const T*>(p), inner_.in, n, cols, acc);
    constexpr int64_t kRows = 4;
    alignas(64) T buffer[kRows * kBuffer];
    for (int64_t i = 0; i < n; i += kRows) {
      const int64_t take = std::min(kRows, n - i);
      for (int64_t k = 0; k < take; ++k)
        job_.load(p + (i + k) * inner_.in * job_.in_item, job_.in_item, buffer + k * kBuffer, cols);
      job_.op.columns(buffer, kBuffer, take, cols, acc);
    }
  }

  const Job<T>& job_;
  const Dim inner_;
};

template <class T>
void columns(const Job<T>& job) {
  const Plan& plan = job.plan;
  const Columns<T> walk(job);
  const Dim first = plan.kept[0];
  const int64_t blocks = (first.size + kBuffer - 1) / kBuffer, tasks = plan.outputs / first.size * blocks;
  const int64_t block_work = std::min(first.size, kBuffer) * plan.count;
  const int64_t parts = tasks >= 64 ? 1 : std::clamp<int64_t>(block_work / kRun, 1, 64);
  const int64_t leaves = (plan.count + kLeafRows - 1) / kLeafRows;
  const auto place = [&](int64_t task, int64_t* cols, const char** base, char** out) {
    const int64_t start = task % blocks * kBuffer;
    int64_t in_at, out_at;
    plan.locate(task / blocks * first.size + start, &in_at, &out_at);
    *cols = std::min(kBuffer, first.size - start);
    *base = job.in + in_at * job.in_item;
    *out = job.out + out_at * job.out_item;
  };
  const auto finish = [&](const T* acc, int64_t cols, char* out) {
    for (int64_t j = 0; j < cols; ++j) job.store(acc[j], out + j * first.out * job.out_item, job.parameter);
  };
  if (parts == 1) {
    parallel_for(0, tasks, std::max<int64_t>(1, kRun / std::max<int64_t>(block_work, 1)),
                 [&](int64_t begin, int64_t end) {
                   alignas(64) T acc[kBuffer];
                   for (int64_t t = begin; t < end; ++t) {
                     int64_t cols;
                     const char* base;
                     char* out;
                     place(t, &cols, &base, &out);
                     walk.fold(base, cols, 0, plan.count, acc);
                     finish(acc, cols, out);
                   }
                 });
    return;
  }
  const auto partial = std::make_unique<T[]>(static_cast<size_t>(tasks * parts * kBuffer));
  parallel_for(0, tasks * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t cols;
      const char* base;
      char* out;
      place(i / parts, &cols, &base, &out);
      const int64_t from = leaves * (i % parts) / parts * kLeafRows, to = leaves * (i % parts + 1) / parts * kLeafRows;
      walk.fold(base, cols, from, std::min(to, plan.count), &partial[static_cast<size_t>(i * kBuffer)]);
    }
  });
  for (int64_t t = 0; t < tasks; ++t) {
    int64_t cols;
    const char* base;
    char* out;
    place(t, &cols, &base, &out);
    T* acc = &partial[static_cast<size_t>(t * parts * kBuffer)];
    for (int64_t k = 1; k < parts; ++k) job.op.merge(acc + k * kBuffer, cols, 1, cols, acc);
    finish(acc, cols, out);
  }
}

}  // namespace detail

template <class T>
void run(const Job<T>& job) {
  if (job.plan.outputs == 0) return;
  if (job.plan.columns && job.plan.count > 1) return detail::columns(job);
  detail::rows(job);
}

}  // namespace tn::reduce
