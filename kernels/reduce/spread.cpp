#include "kernels/reduce/spread.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/spread.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/common/hwy-compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

// All of it in double, as upstream: a mean near zero keeps its digits.
template <class D>
HWY_INLINE hn::Vec<D> LoadWide(D d, const double* p, size_t n) {
  return n == hn::Lanes(d) ? hn::LoadU(d, p) : LoadUpTo(d, p, n);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadWide(D d, const float* p, size_t n) {
  const hn::Rebind<float, D> narrow;
  return hn::PromoteTo(d, n == hn::Lanes(d) ? hn::LoadU(narrow, p) : LoadUpTo(narrow, p, n));
}

constexpr int64_t kSpreadRun = 2048;

template <class T>
HWY_INLINE reduce::Spread RowSpread(const T* HWY_RESTRICT x, int64_t n) {
  const hn::ScalableTag<double> d;
  const auto width = hn::Lanes(d);
  const auto lanes = static_cast<int64_t>(width);
  const double count = static_cast<double>(n);
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += kSpreadRun) {
    const int64_t end = HWY_MIN(n, begin + kSpreadRun);
    auto a = hn::Zero(d), b = hn::Zero(d);
    int64_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      a = hn::Add(a, LoadWide(d, x + i, width));
      b = hn::Add(b, LoadWide(d, x + i + lanes, width));
    }
    for (; i < end; i += lanes) a = hn::Add(a, LoadWide(d, x + i, static_cast<size_t>(HWY_MIN(lanes, end - i))));
    sum += SumLanes(d, hn::Add(a, b));
  }
  const double center = sum / count;
  const auto m = hn::Set(d, center);
  // The distances' own sum corrects for the rounding of the mean.
  double first = 0, second = 0;
  for (int64_t begin = 0; begin < n; begin += kSpreadRun) {
    const int64_t end = HWY_MIN(n, begin + kSpreadRun);
    auto a = hn::Zero(d), b = hn::Zero(d), e = hn::Zero(d), f = hn::Zero(d);
    int64_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      const auto u = hn::Sub(LoadWide(d, x + i, width), m), v = hn::Sub(LoadWide(d, x + i + lanes, width), m);
      a = hn::Add(a, u);
      e = hn::Add(e, v);
      b = hn::MulAdd(u, u, b);
      f = hn::MulAdd(v, v, f);
    }
    for (; i < end; i += lanes) {
      const auto take = static_cast<size_t>(HWY_MIN(lanes, end - i));
      const auto u = hn::IfThenElseZero(hn::FirstN(d, take), hn::Sub(LoadWide(d, x + i, take), m));
      a = hn::Add(a, u);
      b = hn::MulAdd(u, u, b);
    }
    first += SumLanes(d, hn::Add(a, e));
    second += SumLanes(d, hn::Add(b, f));
  }
  return {center + first / count, second - first * first / count};
}

template <class T>
HWY_INLINE void ColumnSpread(const T* HWY_RESTRICT x, int64_t stride, int64_t n, int64_t cols, reduce::Spread* out) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t kMost = reduce::kSpreadColumns;
  // Padded to whole vectors; lanes behind the columns stay zero.
  HWY_ALIGN double center[kMost] = {}, first[kMost] = {}, second[kMost] = {};
  const auto take = [&](int64_t j) { return static_cast<size_t>(HWY_MIN(lanes, cols - j)); };
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < cols; j += lanes)
      hn::Store(hn::Add(hn::Load(d, first + j), LoadWide(d, x + i * stride + j, take(j))), d, first + j);
  const double count = static_cast<double>(n);
  for (int64_t j = 0; j < cols; ++j) {
    center[j] = first[j] / count;
    first[j] = 0;
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < cols; j += lanes) {
      const auto u = hn::Sub(LoadWide(d, x + i * stride + j, take(j)), hn::Load(d, center + j));
      hn::Store(hn::Add(hn::Load(d, first + j), u), d, first + j);
      hn::Store(hn::MulAdd(u, u, hn::Load(d, second + j)), d, second + j);
    }
  }
  for (int64_t j = 0; j < cols; ++j) out[j] = {center[j] + first[j] / count, second[j] - first[j] * first[j] / count};
}

reduce::Spread SpreadRow32(const float* x, int64_t n) { return RowSpread(x, n); }
reduce::Spread SpreadRow64(const double* x, int64_t n) { return RowSpread(x, n); }
void SpreadColumns32(const float* x, int64_t stride, int64_t n, int64_t cols, reduce::Spread* out) {
  ColumnSpread(x, stride, n, cols, out);
}
void SpreadColumns64(const double* x, int64_t stride, int64_t n, int64_t cols, reduce::Spread* out) {
  ColumnSpread(x, stride, n, cols, out);
}

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
