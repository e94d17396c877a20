#include "kernels/softmax/rows.h"

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax/rows.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/reduce/fold-inl.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

// e^x within 1 ULP for x <= 0; below the smallest normal result 0, NaN stays.
HWY_INLINE hn::Vec<hn::ScalableTag<float>> ExpNegative(hn::ScalableTag<float> d, hn::Vec<hn::ScalableTag<float>> x) {
  const auto low = hn::Set(d, -87.33654f);
  const auto in_range = hn::IfThenElse(hn::Lt(x, low), low, x);  // keeps NaN
  const auto k = hn::Round(hn::Mul(in_range, hn::Set(d, 1.44269504088896341f)));
  auto r = hn::NegMulAdd(k, hn::Set(d, 0.693359375f), in_range);
  r = hn::NegMulAdd(k, hn::Set(d, -2.12194440e-4f), r);
  auto p = hn::Set(d, 1.9875691500e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  p = hn::Add(hn::MulAdd(hn::Mul(r, r), p, r), hn::Set(d, 1.0f));
  const hn::RebindToSigned<decltype(d)> di;
  // The conversion of NaN is no number, but NaN times any power of two is NaN.
  const auto power = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, k), hn::Set(di, 127))));
  return hn::IfThenZeroElse(hn::Lt(x, low), hn::Mul(p, hn::IfThenElse(hn::IsNaN(x), x, power)));
}
HWY_INLINE hn::Vec<hn::ScalableTag<double>> ExpNegative(hn::ScalableTag<double> d, hn::Vec<hn::ScalableTag<double>> x) {
  const auto e = hn::Exp(d, hn::IfThenZeroElse(hn::IsNaN(x), x));
  return hn::IfThenElse(hn::IsNaN(x), x, e);
}

template <class T>
HWY_INLINE void SoftmaxRow(const T* x, int64_t n, bool log, T* out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T max = FoldRow<Larger>(x, n);
  const auto top = hn::Set(d, max);
  const auto rest = static_cast<size_t>(n % lanes);
  const int64_t whole = n - static_cast<int64_t>(rest);
  // Sums of a few thousand elements each, so that long rows lose nothing.
  T total = 0;
  for (int64_t begin = 0; begin < n; begin += 8192) {
    const int64_t end = HWY_MIN(begin + 8192, whole);
    auto a = hn::Zero(d), b = hn::Zero(d);
    int64_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      const auto e = ExpNegative(d, hn::Sub(hn::LoadU(d, x + i), top)),
                 f = ExpNegative(d, hn::Sub(hn::LoadU(d, x + i + lanes), top));
      if (!log) {
        hn::StoreU(e, d, out + i);
        hn::StoreU(f, d, out + i + lanes);
      }
      a = hn::Add(a, e);
      b = hn::Add(b, f);
    }
    for (; i < end; i += lanes) {
      const auto e = ExpNegative(d, hn::Sub(hn::LoadU(d, x + i), top));
      if (!log) hn::StoreU(e, d, out + i);
      a = hn::Add(a, e);
    }
    if (i < n && i == whole) {
      const auto e = hn::IfThenElseZero(hn::FirstN(d, rest), ExpNegative(d, hn::Sub(LoadUpTo(d, x + i, rest), top)));
      if (!log) StoreUpTo(e, d, out + i, rest);
      a = hn::Add(a, e);
      total += SumLanes(d, hn::Add(a, b));
      break;
    }
    total += SumLanes(d, hn::Add(a, b));
  }
  if (log) {
    const auto shift = hn::Set(d, std::log(total));
    for (int64_t i = 0; i < whole; i += lanes)
      hn::StoreU(hn::Sub(hn::Sub(hn::LoadU(d, x + i), top), shift), d, out + i);
    if (rest) StoreUpTo(hn::Sub(hn::Sub(LoadUpTo(d, x + whole, rest), top), shift), d, out + whole, rest);
    return;
  }
  const auto scale = hn::Set(d, T{1} / total);
  for (int64_t i = 0; i < whole; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, out + i), scale), d, out + i);
  if (rest) StoreUpTo(hn::Mul(LoadUpTo(d, out + whole, rest), scale), d, out + whole, rest);
}

template <class T>
HWY_INLINE void SoftmaxColumns(const T* x, int64_t stride, int64_t n, int64_t cols, bool log, T* out,
                               int64_t out_stride) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN T top[softmax::kColumns], sum[softmax::kColumns], part[softmax::kColumns];
  for (int64_t j = 0; j < cols; ++j) {
    top[j] = -std::numeric_limits<T>::infinity();
    sum[j] = 0;
  }
  FoldColumns<Larger>(x, stride, n, cols, top);
  const auto each = [&](auto&& f) HWY_ATTR {
    int64_t j = 0;
    for (; j + lanes <= cols; j += lanes)
      f(
          j, [&](const T* p) HWY_ATTR { return hn::LoadU(d, p + j); },
          [&](auto v, T* p) HWY_ATTR { hn::StoreU(v, d, p + j); });
    const auto rest = static_cast<size_t>(cols - j);
    if (rest)
      f(
          j, [&](const T* p) HWY_ATTR { return LoadUpTo(d, p + j, rest); },
          [&](auto v, T* p) HWY_ATTR { StoreUpTo(v, d, p + j, rest); });
  };
  for (int64_t begin = 0; begin < n; begin += 64) {
    for (int64_t j = 0; j < cols; ++j) part[j] = 0;
    for (int64_t i = begin; i < HWY_MIN(n, begin + 64); ++i) {
      const T* from = x + i * stride;
      T* to = out + i * out_stride;
      each([&](int64_t, auto load, auto store) HWY_ATTR {
        const auto e = ExpNegative(d, hn::Sub(load(from), load(top)));
        if (!log) store(e, to);
        store(hn::Add(load(part), e), part);
      });
    }
    for (int64_t j = 0; j < cols; ++j) sum[j] += part[j];
  }
  for (int64_t j = 0; j < cols; ++j) sum[j] = log ? std::log(sum[j]) : T{1} / sum[j];
  for (int64_t i = 0; i < n; ++i) {
    const T* from = x + i * stride;
    T* to = out + i * out_stride;
    if (log)
      each([&](int64_t, auto load, auto store)
               HWY_ATTR { store(hn::Sub(hn::Sub(load(from), load(top)), load(sum)), to); });
    else each([&](int64_t, auto load, auto store) HWY_ATTR { store(hn::Mul(load(to), load(sum)), to); });
  }
}

// Infinite extremes are left out of the exponent, so that the sum tells what they are.
template <class T>
HWY_INLINE T FiniteOrZero(T v) {
  return std::isinf(v) ? T{0} : v;
}
// Also for positive x, which stand beside an infinite extreme only.
template <class D, class V>
HWY_INLINE V ExpAny(D d, V x) {
  return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, ExpNegative(d, x));
}
template <class T>
HWY_INLINE T LogSum(const T* x, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T max = FiniteOrZero(FoldRow<Larger>(x, n));
  const auto top = hn::Set(d, max);
  T total = 0;
  for (int64_t begin = 0; begin < n; begin += 8192) {
    const int64_t end = HWY_MIN(n, begin + 8192);
    auto a = hn::Zero(d), b = hn::Zero(d);
    int64_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      a = hn::Add(a, ExpAny(d, hn::Sub(hn::LoadU(d, x + i), top)));
      b = hn::Add(b, ExpAny(d, hn::Sub(hn::LoadU(d, x + i + lanes), top)));
    }
    for (; i < end; i += lanes) {
      const auto take = static_cast<size_t>(HWY_MIN(lanes, end - i));
      a = hn::Add(a, hn::IfThenElseZero(hn::FirstN(d, take), ExpAny(d, hn::Sub(LoadUpTo(d, x + i, take), top))));
    }
    total += SumLanes(d, hn::Add(a, b));
  }
  return std::log(total) + max;
}
template <class T>
HWY_INLINE void LogSumColumns(const T* x, int64_t stride, int64_t n, int64_t cols, T* out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN T top[softmax::kColumns], sum[softmax::kColumns], part[softmax::kColumns];
  for (int64_t j = 0; j < cols; ++j) {
    top[j] = -std::numeric_limits<T>::infinity();
    sum[j] = 0;
  }
  FoldColumns<Larger>(x, stride, n, cols, top);
  for (int64_t j = 0; j < cols; ++j) top[j] = FiniteOrZero(top[j]);
  for (int64_t begin = 0; begin < n; begin += 64) {
    for (int64_t j = 0; j < cols; ++j) part[j] = 0;
    for (int64_t i = begin; i < HWY_MIN(n, begin + 64); ++i) {
      const T* from = x + i * stride;
      int64_t j = 0;
      for (; j + lanes <= cols; j += lanes)
        hn::StoreU(hn::Add(hn::LoadU(d, part + j), ExpAny(d, hn::Sub(hn::LoadU(d, from + j), hn::LoadU(d, top + j)))),
                   d, part + j);
      const auto rest = static_cast<size_t>(cols - j);
      if (rest)
        StoreUpTo(hn::Add(LoadUpTo(d, part + j, rest),
                          ExpAny(d, hn::Sub(LoadUpTo(d, from + j, rest), LoadUpTo(d, top + j, rest)))),
                  d, part + j, rest);
    }
    for (int64_t j = 0; j < cols; ++j) sum[j] += part[j];
  }
  for (int64_t j = 0; j < cols; ++j) out[j] = std::log(sum[j]) + top[j];
}

float LogSum32(const float* x, int64_t n) { return LogSum(x, n); }
double LogSum64(const double* x, int64_t n) { return LogSum(x, n); }
void LogSumColumns32(const float* x, int64_t stride, int64_t n, int64_t cols, float* out) {
  LogSumColumns(x, stride, n, cols, out);
}
void LogSumColumns64(const double* x, int64_t stride, int64_t n, int64_t cols, double* out) {
  LogSumColumns(x, stride, n, cols, out);
}
void SoftmaxRow32(const float* x, int64_t n, bool log, float* out) { SoftmaxRow(x, n, log, out); }
void SoftmaxRow64(const double* x, int64_t n, bool log, double* out) { SoftmaxRow(x, n, log, out); }
void SoftmaxColumns32(const float* x, int64_t stride, int64_t n, int64_t cols, bool log, float* out,
                      int64_t out_stride) {
  SoftmaxColumns(x, stride, n, cols, log, out, out_stride);
}
void SoftmaxColumns64(const double* x, int64_t stride, int64_t n, int64_t cols, bool log, double* out,
                      int64_t out_stride) {
  SoftmaxColumns(x, stride, n, cols, log, out, out_stride);
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(SoftmaxRow32);
HWY_EXPORT(SoftmaxRow64);
HWY_EXPORT(SoftmaxColumns32);
HWY_EXPORT(SoftmaxColumns64);
HWY_EXPORT(LogSum32);
HWY_EXPORT(LogSum64);
HWY_EXPORT(LogSumColumns32);
HWY_EXPORT(LogSumColumns64);
namespace softmax {
template <>
void row<float>(const float* x, int64_t n, bool log, float* out) {
  HWY_DYNAMIC_DISPATCH(SoftmaxRow32)(x, n, log, out);
}
template <>
void row<double>(const double* x, int64_t n, bool log, double* out) {
  HWY_DYNAMIC_DISPATCH(SoftmaxRow64)(x, n, log, out);
}
template <>
void columns<float>(const float* x, int64_t stride, int64_t n, int64_t cols, bool log, float* out, int64_t out_stride) {
  HWY_DYNAMIC_DISPATCH(SoftmaxColumns32)(x, stride, n, cols, log, out, out_stride);
}
template <>
void columns<double>(const double* x, int64_t stride, int64_t n, int64_t cols, bool log, double* out,
                     int64_t out_stride) {
  HWY_DYNAMIC_DISPATCH(SoftmaxColumns64)(x, stride, n, cols, log, out, out_stride);
}
template <>
float log_sum<float>(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(LogSum32)(x, n);
}
template <>
double log_sum<double>(const double* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(LogSum64)(x, n);
}
template <>
void log_sum_columns<float>(const float* x, int64_t stride, int64_t n, int64_t cols, float* out) {
  HWY_DYNAMIC_DISPATCH(LogSumColumns32)(x, stride, n, cols, out);
}
template <>
void log_sum_columns<double>(const double* x, int64_t stride, int64_t n, int64_t cols, double* out) {
  HWY_DYNAMIC_DISPATCH(LogSumColumns64)(x, stride, n, cols, out);
}
}  // namespace softmax
}  // namespace tn
#endif
