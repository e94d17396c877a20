// Products of floats: how the work is cut, and which kernel gets it. Every choice follows from shapes and strides; the
// number of threads only decides how C is tiled, which never changes an element's bits.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/matmul/gemm_job.h"
#include "runtime/threads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/gemm_float.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/matmul/gemm_dot-inl.h"
#include "kernels/matmul/gemm_micro-inl.h"
#include "kernels/matmul/gemm_pack-inl.h"
#include "kernels/matmul/gemm_pairs-inl.h"
#include "kernels/matmul/gemm_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ---- blocks in registers ----

// Steps of k at a time: a panel of A (14 rows) then takes half of an L1 cache. 16-bit types go further, since their
// sums would have to wait in float between the blocks.
template <class T, class S>
inline constexpr int64_t kBlockK = std::is_same_v<T, S> ? 1536 / static_cast<int64_t>(sizeof(T)) : 1024;
// Rows [i0, i1) x columns [j0, j1) of C.
template <class T, class S>
void BlockTile(const Product<T, S>& x, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  constexpr int64_t kN = kLanes<T>;
  constexpr bool kSame = std::is_same_v<T, S>;
  const int64_t rows = i1 - i0;
  const int64_t panels = CeilDiv(rows, kMaxRows);
  const int64_t tallest = CeilDiv(rows, panels);
  const int64_t width = (tallest <= kMaxWideRows ? 4 : 2) * kN;
  const int64_t k_blocks = std::max<int64_t>(1, CeilDiv(x.k, kBlockK<T, S>));
  const int64_t k_block = CeilDiv(x.k, k_blocks);
  const bool read_a = kSame && (x.a_rs == 1 || (x.a_cs == 1 && (x.k <= 4 * kN || !Crowded(x.a_rs * sizeof(T)))));
  const bool read_b =
      kSame && x.b_cs == 1 && (rows <= 3 * kMaxRows || (x.k * (j1 - j0) <= 8192 && !Crowded(x.b_rs * sizeof(T))));
  const bool keep_sums = !kSame && k_blocks > 1;
  const Epilogue<T, S> later{x.epilogue.alpha, T{1}, nullptr, 0, 0};
  const bool plain = kSame && x.c_cs == 1 && x.epilogue.alpha == T{1};
  const bool plain_first = plain && x.epilogue.bias == nullptr && (x.epilogue.beta == T{0} || x.epilogue.beta == T{1});

  for (int64_t jc = j0; jc < j1; jc += kBlockCols) {
    const int64_t cols = std::min(kBlockCols, j1 - jc);
    const int64_t padded = CeilDiv(cols, width) * width;
    T* const sums = keep_sums ? Scratch<T>(kSlotSums, rows * padded) : nullptr;
    for (int64_t kb = 0; kb < k_blocks; ++kb) {
      const int64_t p0 = kb * k_block, depth = std::min(k_block, x.k - p0);
      const S* const b_block = x.b + p0 * x.b_rs + jc * x.b_cs;
      // With B read in place, only a last panel that doesn't fill its vectors is packed.
      T* const packed_b = Scratch<T>(kSlotB, depth * (read_b ? width : padded));
      const int64_t whole = cols / width * width;
      const int64_t tail_vecs = CeilDiv(cols - whole, kN) == 3 ? 4 : CeilDiv(cols - whole, kN);
      const bool mask_tail = read_b && HasMaskedMicro() && plain_first && cols - whole < kN;
      const bool pack_tail = (tail_vecs * kN != cols - whole && !mask_tail) || !read_b;
      if (!read_b) {
        for (int64_t j = 0; j < whole; j += width) {
          Pack(b_block + j * x.b_cs, x.b_cs, x.b_rs, width, depth, packed_b + j * depth, width);
        }
      }
      if (tail_vecs > 0 && pack_tail) {
        Pack(b_block + whole * x.b_cs, x.b_cs, x.b_rs, cols - whole, depth, packed_b + (read_b ? 0 : whole * depth),
             tail_vecs * kN);
      }
      for (int64_t i = i0, panel = 0; i < i1; ++panel) {
        const int64_t take = CeilDiv(i1 - i, panels - panel);
        const S* const a_block = x.a + i * x.a_rs + p0 * x.a_cs;
        const T* left;
        int64_t left_stride;
        if constexpr (kSame) left = a_block;
        if (!read_a) {
          T* const packed_a = Scratch<T>(kSlotA, kMaxRows * depth);
          Pack(a_block, x.a_rs, x.a_cs, take, depth, packed_a, take);
          left = packed_a, left_stride = take;
        } else {
          left_stride = x.a_rs == 1 ? x.a_cs : x.a_rs;
        }
        const bool by_rows = read_a && x.a_rs != 1;
        for (int64_t j = 0; j < cols; j += width) {
          const bool is_tail = j == whole;
          const int64_t vecs = is_tail ? tail_vecs : width / kN;
          const int64_t here = std::min(cols - j, width);
          const T* right;
          int64_t right_stride;
          if constexpr (kSame) right = b_block + j, right_stride = x.b_rs;
          if (!read_b || (is_tail && pack_tail)) {
            right = packed_b + (read_b ? 0 : j * depth), right_stride = vecs * kN;
          }
          if constexpr (kSame && HasMaskedMicro()) {
            if (is_tail && mask_tail && (kb == 0 ? plain_first : plain)) {
              const auto kernel =
                  by_rows ? FindMaskedMicro<T, Left::kRows>(take) : FindMaskedMicro<T, Left::kColumns>(take);
              kernel(depth, left, left_stride, right, right_stride, x.c + i * x.c_rs + jc + j, x.c_rs,
                     kb > 0 || x.epilogue.beta == T{1}, here);
              continue;
            }
          }
          const auto kernel =
              by_rows ? FindMicro<T, Left::kRows>(take, vecs) : FindMicro<T, Left::kColumns>(take, vecs);
          if (keep_sums) {
            kernel(depth, left, left_stride, right, right_stride, sums + (i - i0) * padded + j, padded, kb > 0);
            continue;
          }
          S* const to = x.c + i * x.c_rs + (jc + j) * x.c_cs;
          if constexpr (kSame) {
            if ((kb == 0 ? plain_first : plain) && here == vecs * kN) {
              kernel(depth, left, left_stride, right, right_stride, to, x.c_rs, kb > 0 || x.epilogue.beta == T{1});
              continue;
            }
          }
          alignas(64) T tile[std::max(kMaxRows * 2, kMaxWideRows * 4) * kN];
          kernel(depth, left, left_stride, right, right_stride, tile, vecs * kN, false);
          (kb == 0 ? x.epilogue : later).Apply(tile, vecs * kN, to, x.c_rs, x.c_cs, i, jc + j, take, here);
        }
        i += take;
      }
    }
    if (keep_sums) {
      x.epilogue.Apply(sums, padded, x.c + i0 * x.c_rs + jc * x.c_cs, x.c_rs, x.c_cs, i0, jc, rows, cols);
    }
  }
}

// ---- dot products ----

inline constexpr int64_t kMaxDotProductRows = 24;
inline constexpr int64_t kDotCols = 64;
// From this size on B is taken to come from memory. Columns longer than a page are a stream each, and best taken
// together.
inline constexpr int64_t kStreamBytes = int64_t{1} << 23, kPageBytes = 4096;

// All rows of A with adjacent elements of type T: A itself, or a copy that lives until this thread's next product.
template <class R, class T, class S>
const R* ContiguousRows(const Product<T, S>& x, int64_t* stride) {
  if constexpr (std::is_same_v<R, S>) {
    if (x.a_cs == 1) {
      *stride = x.a_rs;
      return x.a;
    }
  }
  *stride = x.k;
  R* const copy = Scratch<R>(kSlotRows, x.m * x.k);
  for (int64_t i = 0; i < x.m; ++i) {
    const S* const row = x.a + i * x.a_rs;
    if constexpr (std::is_same_v<R, S>) {
      for (int64_t p = 0; p < x.k; ++p) copy[i * x.k + p] = row[p * x.a_cs];
    } else {
      Pack(row, x.a_cs, int64_t{1}, x.k, int64_t{1}, copy + i * x.k, x.k);
    }
  }
  return copy;
}

// R: the type in which A's rows lie ready.
template <class R, class T, class S>
void DotCols(const Product<T, S>& x, const R* a, int64_t a_stride, int64_t j0, int64_t j1) {
  alignas(64) T tile[kMaxDotProductRows * kDotCols];
  const int64_t column = x.k * static_cast<int64_t>(sizeof(S));
  const bool stream = x.m == 1 && column < kPageBytes && x.n * column >= kStreamBytes;
  for (int64_t j = j0; j < j1; j += kDotCols) {
    const int64_t cols = std::min(kDotCols, j1 - j);
    if constexpr (std::is_same_v<R, BFloat16>) {
      bf16_pairs::dots(x.m, cols, x.k, a, a_stride, x.b + j * x.b_cs, x.b_cs, tile, kDotCols, stream);
    } else {
      DotBlock(x.m, cols, x.k, a, a_stride, x.b + j * x.b_cs, x.b_cs, tile, kDotCols, stream);
    }
    x.epilogue.Apply(tile, kDotCols, x.c + j * x.c_cs, x.c_rs, x.c_cs, 0, j, x.m, cols);
  }
}

template <class T, class S>
bool IsDot(const Product<T, S>& x) {
  return x.b_rs == 1 && x.m <= kMaxDotProductRows && x.k > 1;
}

// ---- few elements, long sums ----

inline constexpr int64_t kLongSum = 16384;
inline constexpr int64_t kSumChunk = 8192;

// Partial sums of fixed chunks of k, then a fixed tree of additions.
template <class T>
void LongSums(const Product<T, T>& x) {
  const int64_t chunks = CeilDiv(x.k, kSumChunk), size = x.m * x.n;
  T* const partials = Scratch<T>(kSlotPartials, chunks * size);
  parallel_for(0, chunks, std::max<int64_t>(1, kSumChunk * 4 / (kSumChunk * size)), [&](int64_t from, int64_t to) {
    for (int64_t chunk = from; chunk < to; ++chunk) {
      const int64_t p = chunk * kSumChunk;
      Product<T, T> part = x;
      part.k = std::min(kSumChunk, x.k - p);
      part.a += p * x.a_cs, part.b += p * x.b_rs;
      part.c = partials + chunk * size, part.c_rs = x.n, part.c_cs = 1;
      part.epilogue = {T{1}, T{0}, nullptr, 0, 0};
      if (x.m == 1 && x.n == 1 && x.a_cs == 1 && x.b_rs == 1) {
        *part.c = LongDot(part.k, part.a, part.b);
      } else {
        BlockTile(part, 0, x.m, 0, x.n);
      }
    }
  });
  for (int64_t step = 1; step < chunks; step *= 2) {
    for (int64_t chunk = 0; chunk + step < chunks; chunk += 2 * step) {
      for (int64_t i = 0; i < size; ++i) partials[chunk * size + i] += partials[(chunk + step) * size + i];
    }
  }
  x.epilogue.Apply(partials, x.n, x.c, x.c_rs, x.c_cs, 0, 0, x.m, x.n);
}

// ---- cutting the work ----

inline constexpr double kTaskFlops = 5e5;  // below some five microseconds a second core costs more than it brings

struct Grid {
  int64_t rows, cols;  // of a tile
};

// Tiles for the threads at hand. Each tile packs its own panels, so they should be few and near square.
inline Grid MakeGrid(int64_t m, int64_t n, double flops, int64_t batch) {
  const int64_t threads = in_parallel_region() ? 1 : num_threads();
  const auto wanted = static_cast<int64_t>(
      std::min<double>(static_cast<double>(CeilDiv(flops > 2e7 ? 2 * threads : threads, batch)), flops / kTaskFlops));
  if (threads == 1 || wanted <= 1) return {m, n};
  Grid best{m, n};
  double least = 1e300;
  for (int64_t down = 1; down <= wanted; ++down) {
    const int64_t across = CeilDiv(wanted, down);
    const int64_t rows = CeilDiv(CeilDiv(m, down), kMaxRows) * kMaxRows, cols = CeilDiv(CeilDiv(n, across), 32) * 32;
    const int64_t tiles = CeilDiv(m, rows) * CeilDiv(n, cols);
    const double edge = static_cast<double>(std::min(m, rows) + std::min(n, cols));
    const double cost = edge * (tiles < threads ? 1e3 / static_cast<double>(tiles) : 1.0);
    if (cost < least) least = cost, best = {rows, cols};
  }
  return best;
}

template <class R, class T, class S>
void RunDots(const Job& job, const Product<T, S>& first) {
  if (job.batch == 1) {
    int64_t stride;
    const R* const a = ContiguousRows<R>(first, &stride);
    const int64_t chunk = std::max<int64_t>(1, (int64_t{1} << 17) / (job.k * static_cast<int64_t>(sizeof(S)) * 8)) * 8;
    parallel_for(0, job.n, chunk, [&](int64_t from, int64_t to) { DotCols(first, a, stride, from, to); });
    return;
  }
  const double flops = 2.0 * static_cast<double>(job.m) * static_cast<double>(job.n) * static_cast<double>(job.k);
  parallel_for(0, job.batch, static_cast<int64_t>(kTaskFlops / (flops + 100.0)) + 1, [&](int64_t from, int64_t to) {
    for (int64_t batch = from; batch < to; ++batch) {
      const Product<T, S> x = MakeProduct<T, S>(job, batch);
      int64_t stride;
      const R* const a = ContiguousRows<R>(x, &stride);
      DotCols(x, a, stride, 0, x.n);
    }
  });
}

template <class T, class S>
void Run(const Job& given) {
  // The kernels want rows of C contiguous, and a single row rather than a single column.
  const bool flip = (given.n == 1 && given.m > 1) || (given.m != 1 && given.c_cs != 1 && given.c_rs == 1);
  const Job job = flip ? gemm::transposed(given) : given;
  const Product<T, S> first = MakeProduct<T, S>(job, 0);
  const double flops = 2.0 * static_cast<double>(job.m) * static_cast<double>(job.n) * static_cast<double>(job.k);
  if constexpr (std::is_same_v<T, S>) {
    if (job.batch == 1 && job.k >= kLongSum && job.m * job.n <= 1024) return LongSums(first);
  }
  if (IsDot(first)) {
    if constexpr (std::is_same_v<S, BFloat16>) {
      if (UsePairs()) return RunDots<S>(job, first);
    }
    return RunDots<T>(job, first);
  }
  const Grid grid = MakeGrid(job.m, job.n, flops, job.batch);
  const int64_t down = CeilDiv(job.m, grid.rows), across = CeilDiv(job.n, grid.cols), tiles = down * across;
  const auto grain = static_cast<int64_t>(kTaskFlops / (flops / static_cast<double>(tiles) + 100.0)) + 1;
  parallel_for(0, job.batch * tiles, tiles > 1 ? 1 : grain, [&](int64_t from, int64_t to) {
    for (int64_t index = from; index < to; ++index) {
      const Product<T, S> x = MakeProduct<T, S>(job, index / tiles);
      const int64_t i = index % tiles / across * grid.rows, j = index % tiles % across * grid.cols;
      const int64_t i1 = std::min(x.m, i + grid.rows), j1 = std::min(x.n, j + grid.cols);
      if constexpr (std::is_same_v<S, BFloat16>) {
        if (UsePairs()) {
          PairTile(x, i, i1, j, j1);
          continue;
        }
      }
      BlockTile(x, i, i1, j, j1);
    }
  });
}

void RunFloat(const Job& job) { Run<float, float>(job); }
void RunDouble(const Job& job) { Run<double, double>(job); }
void RunBFloat16(const Job& job) { Run<float, BFloat16>(job); }
void RunHalf(const Job& job) { Run<float, Half>(job); }

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(RunFloat);
HWY_EXPORT(RunDouble);
HWY_EXPORT(RunBFloat16);
HWY_EXPORT(RunHalf);

void gemm::run_float(ScalarType dtype, const Job& job) {
  switch (dtype) {
    case ScalarType::Float: return HWY_DYNAMIC_DISPATCH(RunFloat)(job);
    case ScalarType::Double: return HWY_DYNAMIC_DISPATCH(RunDouble)(job);
    case ScalarType::BFloat16: return HWY_DYNAMIC_DISPATCH(RunBFloat16)(job);
    default: return HWY_DYNAMIC_DISPATCH(RunHalf)(job);
  }
}
}  // namespace tn
#endif
