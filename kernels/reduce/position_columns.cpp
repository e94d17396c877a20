#include "kernels/reduce/positions.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/position_columns.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/common/hwy-compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

template <bool kLargest, class T, class I>
HWY_INLINE void Walk(const T* HWY_RESTRICT p, int64_t stride, int64_t rows, int64_t cols, T* HWY_RESTRICT values,
                     I* HWY_RESTRICT places) {
  const hn::ScalableTag<T> d;
  const hn::ScalableTag<I> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < cols; j += lanes) {
    const auto n = static_cast<size_t>(HWY_MIN(lanes, cols - j));
    for (size_t k = 0; k < n; ++k) {
      values[static_cast<size_t>(j) + k] = p[static_cast<size_t>(j) + k];
      places[static_cast<size_t>(j) + k] = 0;
    }
  }
  const auto step = [&](const T* row, int64_t j, hn::Vec<decltype(di)> at, auto load, auto load_i, auto store,
                        auto store_i) HWY_ATTR {
    const auto v = load(row + j), best = load(values + j);
    const auto better = kLargest ? hn::Gt(v, best) : hn::Lt(v, best);
    // NaN beats numbers, and the first NaN later ones.
    const auto take = hn::AndNot(hn::IsNaN(best), hn::Or(better, hn::IsNaN(v)));
    store(hn::IfThenElse(take, v, best), values + j);
    store_i(hn::IfThenElse(hn::RebindMask(di, take), at, load_i(places + j)), places + j);
  };
  for (int64_t i = 1; i < rows; ++i) {
    p += stride;
    const auto at = hn::Set(di, static_cast<I>(i));
    int64_t j = 0;
    for (; j + lanes <= cols; j += lanes)
      step(
          p, j, at, [&](const T* q) HWY_ATTR { return hn::LoadU(d, q); },
          [&](const I* q) HWY_ATTR { return hn::LoadU(di, q); }, [&](auto v, T* q) HWY_ATTR { hn::StoreU(v, d, q); },
          [&](auto v, I* q) HWY_ATTR { hn::StoreU(v, di, q); });
    if (j < cols) {
      const auto n = static_cast<size_t>(cols - j);
      step(
          p, j, at, [&](const T* q) HWY_ATTR { return LoadUpTo(d, q, n); },
          [&](const I* q) HWY_ATTR { return LoadUpTo(di, q, n); },
          [&](auto v, T* q) HWY_ATTR { StoreUpTo(v, d, q, n); },
          [&](auto v, I* q) HWY_ATTR { StoreUpTo(v, di, q, n); });
    }
  }
}
void Walk32(const float* p, int64_t stride, int64_t rows, int64_t cols, bool largest, float* values, int32_t* places) {
  if (largest) Walk<true>(p, stride, rows, cols, values, places);
  else Walk<false>(p, stride, rows, cols, values, places);
}
void Walk64(const double* p, int64_t stride, int64_t rows, int64_t cols, bool largest, double* values,
            int64_t* places) {
  if (largest) Walk<true>(p, stride, rows, cols, values, places);
  else Walk<false>(p, stride, rows, cols, values, places);
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(Walk32);
HWY_EXPORT(Walk64);
void reduce::extreme_columns(const float* p, int64_t stride, int64_t rows, int64_t cols, bool largest, float* values,
                             int32_t* places) {
  HWY_DYNAMIC_DISPATCH(Walk32)(p, stride, rows, cols, largest, values, places);
}
void reduce::extreme_columns(const double* p, int64_t stride, int64_t rows, int64_t cols, bool largest, double* values,
                             int64_t* places) {
  HWY_DYNAMIC_DISPATCH(Walk64)(p, stride, rows, cols, largest, values, places);
}
}  // namespace tn
#endif
