// Weighted sums of rows in vectors; where a row is one element, a row of outputs gathers.
#include "kernels/resize/resample.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/resize/apply.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/common/hwy-compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using resize::Map;

// out[i] = sum of weight[k] * x[index[k] * inner + i].
template <class T>
HWY_INLINE void RowSum(const T* x, const int32_t* index, const T* weight, int64_t count, int64_t inner,
                       T* HWY_RESTRICT out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= inner; i += lanes) {
    auto sum = hn::Zero(d);
    for (int64_t k = 0; k < count; ++k)
      sum = hn::MulAdd(hn::Set(d, weight[k]), hn::LoadU(d, x + index[k] * inner + i), sum);
    hn::StoreU(sum, d, out + i);
  }
  if (i < inner) {
    const auto rest = static_cast<size_t>(inner - i);
    auto sum = hn::Zero(d);
    for (int64_t k = 0; k < count; ++k)
      sum = hn::MulAdd(hn::Set(d, weight[k]), LoadUpTo(d, x + index[k] * inner + i, rest), sum);
    StoreUpTo(sum, d, out + i, rest);
  }
}

template <class T>
HWY_INLINE void Apply(const Map<T>& map, const T* x, int64_t inner, int64_t from, int64_t to, T* out) {
  for (int64_t row = from; row < to; ++row) {
    const int64_t b = row / map.outputs, o = row % map.outputs;
    const auto begin = static_cast<size_t>(map.start[static_cast<size_t>(o)]),
               end = static_cast<size_t>(map.start[static_cast<size_t>(o) + 1]);
    const T* const base = x + b * map.inputs * inner;
    if (inner > 1) {
      RowSum(base, map.index.data() + begin, map.weight.data() + begin, static_cast<int64_t>(end - begin), inner,
             out + row * inner);
      continue;
    }
    T sum = 0;
    for (size_t k = begin; k < end; ++k) sum += map.weight[k] * base[map.index[k]];
    out[row] = sum;
  }
}

void ApplyFloat(const Map<float>& map, const float* x, int64_t inner, int64_t from, int64_t to, float* out) {
  Apply(map, x, inner, from, to, out);
}
void ApplyDouble(const Map<double>& map, const double* x, int64_t inner, int64_t from, int64_t to, double* out) {
  Apply(map, x, inner, from, to, out);
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn::resize {
HWY_EXPORT(ApplyFloat);
HWY_EXPORT(ApplyDouble);

void apply(const Map<float>& map, const float* x, int64_t inner, int64_t from, int64_t to, float* out) {
  HWY_DYNAMIC_DISPATCH(ApplyFloat)(map, x, inner, from, to, out);
}
void apply(const Map<double>& map, const double* x, int64_t inner, int64_t from, int64_t to, double* out) {
  HWY_DYNAMIC_DISPATCH(ApplyDouble)(map, x, inner, from, to, out);
}

}  // namespace tn::resize
#endif
