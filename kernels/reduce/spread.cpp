#include "kernels/reduce/spread.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/spread.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/reduce/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

constexpr int64_t kSpreadRun = 512;

template <class T>
HWY_INLINE reduce::Spread RowSpread(const T* HWY_RESTRICT x, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  double sum = 0;
  for (int64_t i = 0; i < n; i += kSpreadRun) sum += static_cast<double>(FoldRun(x + i, HWY_MIN(kSpreadRun, n - i), Plus()));
  const T center = static_cast<T>(sum / static_cast<double>(n));
  const auto m = hn::Set(d, center);
  // The distances' own sum corrects for the rounding of the mean.
  double first = 0, second = 0;
  for (int64_t begin = 0; begin < n; begin += kSpreadRun) {
    const int64_t end = HWY_MIN(n, begin + kSpreadRun);
    auto a = hn::Zero(d), b = hn::Zero(d), e = hn::Zero(d), f = hn::Zero(d);
    int64_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      const auto u = hn::Sub(hn::LoadU(d, x + i), m), v = hn::Sub(hn::LoadU(d, x + i + lanes), m);
      a = hn::Add(a, u);
      e = hn::Add(e, v);
      b = hn::MulAdd(u, u, b);
      f = hn::MulAdd(v, v, f);
    }
    for (; i < end; i += lanes) {
      const auto take = static_cast<size_t>(HWY_MIN(lanes, end - i));
      const auto u = hn::IfThenElseZero(hn::FirstN(d, take), hn::Sub(LoadUpTo(d, x + i, take), m));
      a = hn::Add(a, u);
      b = hn::MulAdd(u, u, b);
    }
    first += static_cast<double>(SumLanes(d, hn::Add(a, e)));
    second += static_cast<double>(SumLanes(d, hn::Add(b, f)));
  }
  const double count = static_cast<double>(n);
  return {static_cast<double>(center) + first / count, second - first * first / count};
}

template <class T>
HWY_INLINE void ColumnSpread(const T* HWY_RESTRICT x, int64_t stride, int64_t n, int64_t cols, reduce::Spread* out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t kMost = reduce::kSpreadColumns, kRows = 32;
  HWY_ALIGN T center[kMost], part[kMost], square[kMost];
  double first[kMost], second[kMost];
  for (int64_t j = 0; j < cols; ++j) first[j] = 0;
  for (int64_t i = 0; i < n; i += kRows) {
    for (int64_t j = 0; j < cols; ++j) part[j] = 0;
    FoldColumns<Plus>(x + i * stride, stride, HWY_MIN(kRows, n - i), cols, part);
    for (int64_t j = 0; j < cols; ++j) first[j] += static_cast<double>(part[j]);
  }
  const double count = static_cast<double>(n);
  for (int64_t j = 0; j < cols; ++j) {
    center[j] = static_cast<T>(first[j] / count);
    first[j] = second[j] = 0;
  }
  for (int64_t begin = 0; begin < n; begin += kRows) {
    for (int64_t j = 0; j < cols; ++j) part[j] = square[j] = 0;
    for (int64_t i = begin; i < HWY_MIN(n, begin + kRows); ++i) {
      const T* row = x + i * stride;
      for (int64_t j = 0; j < cols; j += lanes) {
        const auto take = static_cast<size_t>(HWY_MIN(lanes, cols - j));
        const bool full = static_cast<int64_t>(take) == lanes;
        const auto load = [&](const T* p) HWY_ATTR { return full ? hn::LoadU(d, p) : LoadUpTo(d, p, take); };
        const auto u = hn::Sub(load(row + j), load(center + j));
        const auto a = hn::Add(load(part + j), u), b = hn::MulAdd(u, u, load(square + j));
        if (full) {
          hn::StoreU(a, d, part + j);
          hn::StoreU(b, d, square + j);
        } else {
          StoreUpTo(a, d, part + j, take);
          StoreUpTo(b, d, square + j, take);
        }
      }
    }
    for (int64_t j = 0; j < cols; ++j) {
      first[j] += static_cast<double>(part[j]);
      second[j] += static_cast<double>(square[j]);
    }
  }
  for (int64_t j = 0; j < cols; ++j) out[j] = {static_cast<double>(center[j]) + first[j] / count, second[j] - first[j] * first[j] / count};
}

reduce::Spread SpreadRow32(const float* x, int64_t n) { return RowSpread(x, n); }
reduce::Spread SpreadRow64(const double* x, int64_t n) { return RowSpread(x, n); }
void SpreadColumns32(const float* x, int64_t stride, int64_t n, int64_t cols, reduce::Spread* out) { ColumnSpread(x, stride, n, cols, out); }
void SpreadColumns64(const double* x, int64_t stride, int64_t n, int64_t cols, reduce::Spread* out) { ColumnSpread(x, stride, n, cols, out); }

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
namespace {
HWY_EXPORT(SpreadRow32);
HWY_EXPORT(SpreadRow64);
HWY_EXPORT(SpreadColumns32);
HWY_EXPORT(SpreadColumns64);
}  // namespace
reduce::Spread reduce::spread_of(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(SpreadRow32)(x, n); }
reduce::Spread reduce::spread_of(const double* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(SpreadRow64)(x, n); }
void reduce::spread_of_columns(const float* x, int64_t stride, int64_t n, int64_t cols, Spread* out) {
  HWY_DYNAMIC_DISPATCH(SpreadColumns32)(x, stride, n, cols, out);
}
void reduce::spread_of_columns(const double* x, int64_t stride, int64_t n, int64_t cols, Spread* out) {
  HWY_DYNAMIC_DISPATCH(SpreadColumns64)(x, stride, n, cols, out);
}
}  // namespace tn
#endif
