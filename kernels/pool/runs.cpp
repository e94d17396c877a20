// Runs of windows in vectors.
#include "kernels/pool/windows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool/runs.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/common/hwy-compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using pool::Run;

// Lanes from + i * stride. `inside`: there is an element behind the last lane's.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadStrided(D d, const T* from, int64_t stride, bool inside) {
  if (stride == 1) return hn::LoadU(d, from);
#if HWY_TARGET != HWY_SCALAR
  if (stride == 2 && inside) return hn::ConcatEven(d, hn::LoadU(d, from + hn::Lanes(d)), hn::LoadU(d, from));
#endif
  (void)inside;
  const hn::RebindToSigned<D> di;
  using I = hn::TFromD<decltype(di)>;
  const auto index = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<I>(stride)));
  return hn::GatherIndex(d, from, index);
}

template <class T>
HWY_INLINE void MaxOne(const Run<T>& run, int64_t i, T* out, int64_t* index) {
  T best = run.x[run.offsets[0] + i * run.lane_stride];
  int64_t at = run.indices[0];
  for (int64_t t = 1; t < run.taps; ++t) {
    const T v = run.x[run.offsets[t] + i * run.lane_stride];
    if (v > best || v != v) best = v, at = run.indices[t];
  }
  out[i] = best;
  index[i] = at + i * run.index_step;
}

// Indices have the lanes' size until they are stored, so planes are smaller than 2^31 elements.
template <class T>
HWY_INLINE void MaxRun(const Run<T>& run, T* HWY_RESTRICT out, int64_t* HWY_RESTRICT index) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  using I = hn::TFromD<decltype(di)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (run.n < lanes || lanes == 1) {
    for (int64_t i = 0; i < run.n; ++i) MaxOne(run, i, out, index);
    return;
  }
  for (int64_t next = 0; next < run.n; next += lanes) {
    const int64_t i = std::min(next, run.n - lanes);  // the last vector overlaps the one before
    const bool inside = i + lanes < run.n;
    const T* const base = run.x + i * run.lane_stride;
    auto best = LoadStrided(d, base + run.offsets[0], run.lane_stride, inside);
    auto at = hn::Set(di, static_cast<I>(run.indices[0]));
    for (int64_t t = 1; t < run.taps; ++t) {
      const auto v = LoadStrided(d, base + run.offsets[t], run.lane_stride, inside);
      const auto better = hn::Or(hn::Gt(v, best), hn::IsNaN(v));
      best = hn::IfThenElse(better, v, best);
      at = hn::IfThenElse(hn::RebindMask(di, better), hn::Set(di, static_cast<I>(run.indices[t])), at);
    }
    hn::StoreU(best, d, out + i);
    HWY_ALIGN I stored[HWY_MAX_BYTES / sizeof(I)];
    hn::Store(at, di, stored);
    for (int64_t k = 0; k < lanes; ++k) index[i + k] = static_cast<int64_t>(stored[k]) + (i + k) * run.index_step;
  }
}

template <class T>
HWY_INLINE void MeanRun(const Run<T>& run, int64_t divisor, T* HWY_RESTRICT out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (run.n < lanes || lanes == 1) {
    for (int64_t i = 0; i < run.n; ++i) {
      T sum = 0;
      for (int64_t t = 0; t < run.taps; ++t) sum += run.x[run.offsets[t] + i * run.lane_stride];
      out[i] = sum / static_cast<T>(divisor);
    }
    return;
  }
  const auto by = hn::Set(d, static_cast<T>(divisor));
  for (int64_t next = 0; next < run.n; next += lanes) {
    const int64_t i = std::min(next, run.n - lanes);
    const bool inside = i + lanes < run.n;
    const T* const base = run.x + i * run.lane_stride;
    auto sum = hn::Zero(d);
    for (int64_t t = 0; t < run.taps; ++t)
      sum = hn::Add(sum, LoadStrided(d, base + run.offsets[t], run.lane_stride, inside));
    hn::StoreU(hn::Div(sum, by), d, out + i);
  }
}

void MaxRunFloat(const Run<float>& run, float* out, int64_t* index) { MaxRun(run, out, index); }
void MaxRunDouble(const Run<double>& run, double* out, int64_t* index) { MaxRun(run, out, index); }
void MeanRunFloat(const Run<float>& run, int64_t divisor, float* out) { MeanRun(run, divisor, out); }
void MeanRunDouble(const Run<double>& run, int64_t divisor, double* out) { MeanRun(run, divisor, out); }

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn::pool {
HWY_EXPORT(MaxRunFloat);
HWY_EXPORT(MaxRunDouble);
HWY_EXPORT(MeanRunFloat);
HWY_EXPORT(MeanRunDouble);

void max_run(const Run<float>& run, float* out, int64_t* index) { HWY_DYNAMIC_DISPATCH(MaxRunFloat)(run, out, index); }
void max_run(const Run<double>& run, double* out, int64_t* index) {
  HWY_DYNAMIC_DISPATCH(MaxRunDouble)(run, out, index);
}
void mean_run(const Run<float>& run, int64_t divisor, float* out) {
  HWY_DYNAMIC_DISPATCH(MeanRunFloat)(run, divisor, out);
}
void mean_run(const Run<double>& run, int64_t divisor, double* out) {
  HWY_DYNAMIC_DISPATCH(MeanRunDouble)(run, divisor, out);
}

}  // namespace tn::pool
#endif
