#include "kernels/attention/softmax_rows.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/softmax_rows.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// Second, since it needs the target's own Highway.
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
T AddMask(T* scores, const T* mask, int64_t n) {
  constexpr T kLow = -std::numeric_limits<T>::infinity();
  const int64_t padded = (n + attention::kPad - 1) / attention::kPad * attention::kPad;
  for (int64_t i = n; i < padded; ++i) scores[i] = kLow;
  const hn::CappedTag<T, attention::kPad> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (mask != nullptr) {
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
      hn::Store(hn::Add(hn::Load(d, scores + i), hn::LoadU(d, mask + i)), d, scores + i);
    for (; i < n; ++i) scores[i] += mask[i];
  }
  auto largest = hn::Set(d, kLow);
  for (int64_t i = 0; i < padded; i += lanes) largest = hn::Max(largest, hn::Load(d, scores + i));
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

template <class T>
T ExpScores(T* scores, int64_t n, T shift) {
  const int64_t padded = (n + attention::kPad - 1) / attention::kPad * attention::kPad;
  const hn::CappedTag<T, attention::kPad> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto by = hn::Set(d, shift);
  auto sum = hn::Zero(d);
  for (int64_t i = 0; i < padded; i += lanes) {
    const auto x = hn::Sub(hn::Load(d, scores + i), by);
    // Highway's Exp takes NaN for a number below its range; upstream keeps it.
    const auto e = hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
    hn::Store(e, d, scores + i);
    sum = hn::Add(sum, e);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

template <class T>
void ScaleRow(T* values, int64_t n, T factor) {
  const hn::CappedTag<T, attention::kPad> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto by = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, values + i), by), d, values + i);
  for (; i < n; ++i) values[i] *= factor;
}

float AddMaskF32(float* s, const float* m, int64_t n) { return AddMask(s, m, n); }
double AddMaskF64(double* s, const double* m, int64_t n) { return AddMask(s, m, n); }
float ExpScoresF32(float* s, int64_t n, float shift) { return ExpScores(s, n, shift); }
double ExpScoresF64(double* s, int64_t n, double shift) { return ExpScores(s, n, shift); }
void ScaleRowF32(float* v, int64_t n, float f) { ScaleRow(v, n, f); }
void ScaleRowF64(double* v, int64_t n, double f) { ScaleRow(v, n, f); }

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(AddMaskF32);
HWY_EXPORT(AddMaskF64);
HWY_EXPORT(ExpScoresF32);
HWY_EXPORT(ExpScoresF64);
HWY_EXPORT(ScaleRowF32);
HWY_EXPORT(ScaleRowF64);

namespace attention {
float add_mask(float* s, const float* m, int64_t n) { return HWY_DYNAMIC_DISPATCH(AddMaskF32)(s, m, n); }
double add_mask(double* s, const double* m, int64_t n) { return HWY_DYNAMIC_DISPATCH(AddMaskF64)(s, m, n); }
float exp_scores(float* s, int64_t n, float shift) { return HWY_DYNAMIC_DISPATCH(ExpScoresF32)(s, n, shift); }
double exp_scores(double* s, int64_t n, double shift) { return HWY_DYNAMIC_DISPATCH(ExpScoresF64)(s, n, shift); }
void scale_row(float* v, int64_t n, float f) { HWY_DYNAMIC_DISPATCH(ScaleRowF32)(v, n, f); }
void scale_row(double* v, int64_t n, double f) { HWY_DYNAMIC_DISPATCH(ScaleRowF64)(v, n, f); }
}  // namespace attention
}  // namespace tn
#endif
