#include "kernels/norm/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm/rows.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/reduce/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

// Sum of (x - mean)^2 over at most kFoldRun elements.
template <class T>
HWY_INLINE T SquaresRun(const T* HWY_RESTRICT x, int64_t n, T mean) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto m = hn::Set(d, mean);
  auto a = hn::Zero(d), b = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto u = hn::Sub(hn::LoadU(d, x + i), m), v = hn::Sub(hn::LoadU(d, x + i + lanes), m);
    a = hn::MulAdd(u, u, a);
    b = hn::MulAdd(v, v, b);
  }
  for (; i < n; i += lanes) {
    const auto take = static_cast<size_t>(HWY_MIN(lanes, n - i));
    const auto u = hn::IfThenElseZero(hn::FirstN(d, take), hn::Sub(LoadUpTo(d, x + i, take), m));
    a = hn::MulAdd(u, u, a);
  }
  return SumLanes(d, hn::Add(a, b));
}
template <class T>
HWY_INLINE T Squares(const T* x, int64_t n, T mean) {
  T total = 0;
  for (int64_t i = 0; i < n; i += kFoldRun) total += SquaresRun(x + i, HWY_MIN(kFoldRun, n - i), mean);
  return total;
}

template <bool kWeight, bool kBias, class T>
HWY_INLINE void AffineRow(const T* x, int64_t n, T mean, T scale, const T* weight, const T* bias, T* out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto m = hn::Set(d, mean), s = hn::Set(d, scale);
  const auto one = [&](int64_t i, auto load) HWY_ATTR {
    auto v = hn::Mul(hn::Sub(load(x + i), m), s);
    if constexpr (kWeight && kBias) v = hn::MulAdd(v, load(weight + i), load(bias + i));
    else if constexpr (kWeight) v = hn::Mul(v, load(weight + i));
    else if constexpr (kBias) v = hn::Add(v, load(bias + i));
    return v;
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(one(i, [&](const T* p) HWY_ATTR { return hn::LoadU(d, p); }), d, out + i);
  if (i < n) {
    const auto rest = static_cast<size_t>(n - i);
    StoreUpTo(one(i, [&](const T* p) HWY_ATTR { return LoadUpTo(d, p, rest); }), d, out + i, rest);
  }
}
template <class T>
HWY_INLINE void Affine(const T* x, int64_t n, T mean, T scale, const T* weight, const T* bias, T* out) {
  if (weight && bias) AffineRow<true, true>(x, n, mean, scale, weight, bias, out);
  else if (weight) AffineRow<true, false>(x, n, mean, scale, weight, bias, out);
  else if (bias) AffineRow<false, true>(x, n, mean, scale, weight, bias, out);
  else AffineRow<false, false>(x, n, mean, scale, weight, bias, out);
}

// Sums over a row: grad * weight, and that times the normalised x; the parameters' gradients are added to on the way.
template <bool kWeight, bool kParameters, class T>
HWY_INLINE void GradientRow(const norm::GradientRow<T>& row) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto mean = hn::Set(d, row.mean), rstd = hn::Set(d, row.rstd);
  double total = 0, along = 0;
  for (int64_t start = 0; start < row.n; start += kFoldRun) {
    const int64_t end = HWY_MIN(row.n, start + kFoldRun);
    auto s0 = hn::Zero(d), s1 = s0, t0 = s0, t1 = s0;
    const auto one = [&](int64_t i, auto load, auto store, auto& s, auto& t) HWY_ATTR {
      const auto g = load(row.grad + i), u = hn::Mul(hn::Sub(load(row.x + i), mean), rstd);
      auto up = g;
      if constexpr (kWeight) up = hn::Mul(g, load(row.weight + i));
      s = hn::Add(s, up);
      t = hn::MulAdd(up, u, t);
      if constexpr (kParameters) {
        store(hn::MulAdd(g, u, load(row.weight_grad + i)), row.weight_grad + i);
        store(hn::Add(g, load(row.bias_grad + i)), row.bias_grad + i);
      }
    };
    const auto load = [&](const T* p) HWY_ATTR { return hn::LoadU(d, p); };
    const auto store = [&](auto v, T* p) HWY_ATTR { hn::StoreU(v, d, p); };
    int64_t i = start;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      one(i, load, store, s0, t0);
      one(i + lanes, load, store, s1, t1);
    }
    for (; i < end; i += lanes) {
      const auto rest = static_cast<size_t>(HWY_MIN(lanes, end - i));
      one(
          i, [&](const T* p) HWY_ATTR { return LoadUpTo(d, p, rest); },
          [&](auto v, T* p) HWY_ATTR { StoreUpTo(v, d, p, rest); }, s0, t0);
    }
    total += static_cast<double>(SumLanes(d, hn::Add(s0, s1)));
    along += static_cast<double>(SumLanes(d, hn::Add(t0, t1)));
  }
  if (!row.out) return;
  const auto share = static_cast<double>(row.n);
  const auto b = hn::Set(d, static_cast<T>(total / share)), a = hn::Set(d, static_cast<T>(along / share));
  const auto one = [&](int64_t i, auto load) HWY_ATTR {
    const auto u = hn::Mul(hn::Sub(load(row.x + i), mean), rstd);
    auto up = load(row.grad + i);
    if constexpr (kWeight) up = hn::Mul(up, load(row.weight + i));
    return hn::Mul(rstd, hn::NegMulAdd(u, a, hn::Sub(up, b)));
  };
  int64_t i = 0;
  for (; i + lanes <= row.n; i += lanes)
    hn::StoreU(one(i, [&](const T* p) HWY_ATTR { return hn::LoadU(d, p); }), d, row.out + i);
  if (i < row.n) {
    const auto rest = static_cast<size_t>(row.n - i);
    StoreUpTo(one(i, [&](const T* p) HWY_ATTR { return LoadUpTo(d, p, rest); }), d, row.out + i, rest);
  }
}
template <class T>
HWY_INLINE void Gradient(const norm::GradientRow<T>& row) {
  if (row.weight && row.weight_grad) GradientRow<true, true>(row);
  else if (row.weight) GradientRow<true, false>(row);
  else if (row.weight_grad) GradientRow<false, true>(row);
  else GradientRow<false, false>(row);
}
void Gradient32(const norm::GradientRow<float>& row) { Gradient(row); }
void Gradient64(const norm::GradientRow<double>& row) { Gradient(row); }
float Squares32(const float* x, int64_t n) { return FoldRow<PlusSquares>(x, n); }
double Squares64(const double* x, int64_t n) { return FoldRow<PlusSquares>(x, n); }

void Moments32(const float* x, int64_t n, float* mean, float* squares) {
  *mean = FoldRow<Plus>(x, n) / static_cast<float>(n);
  *squares = Squares(x, n, *mean);
}
void Moments64(const double* x, int64_t n, double* mean, double* squares) {
  *mean = FoldRow<Plus>(x, n) / static_cast<double>(n);
  *squares = Squares(x, n, *mean);
}
void Affine32(const float* x, int64_t n, float mean, float scale, const float* weight, const float* bias, float* out) {
  Affine(x, n, mean, scale, weight, bias, out);
}
void Affine64(const double* x, int64_t n, double mean, double scale, const double* weight, const double* bias,
              double* out) {
  Affine(x, n, mean, scale, weight, bias, out);
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(Moments32);
HWY_EXPORT(Moments64);
HWY_EXPORT(Gradient32);
HWY_EXPORT(Gradient64);
HWY_EXPORT(Squares32);
HWY_EXPORT(Squares64);
HWY_EXPORT(Affine32);
HWY_EXPORT(Affine64);
namespace norm {
template <>
void moments<float>(const float* x, int64_t n, float* mean, float* squares) {
  HWY_DYNAMIC_DISPATCH(Moments32)(x, n, mean, squares);
}
template <>
void moments<double>(const double* x, int64_t n, double* mean, double* squares) {
  HWY_DYNAMIC_DISPATCH(Moments64)(x, n, mean, squares);
}
void gradient(const GradientRow<float>& row) { HWY_DYNAMIC_DISPATCH(Gradient32)(row); }
void gradient(const GradientRow<double>& row) { HWY_DYNAMIC_DISPATCH(Gradient64)(row); }
float squares(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(Squares32)(x, n); }
double squares(const double* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(Squares64)(x, n); }
template <>
void affine<float>(const float* x, int64_t n, float mean, float scale, const float* weight, const float* bias,
                   float* out) {
  HWY_DYNAMIC_DISPATCH(Affine32)(x, n, mean, scale, weight, bias, out);
}
template <>
void affine<double>(const double* x, int64_t n, double mean, double scale, const double* weight, const double* bias,
                    double* out) {
  HWY_DYNAMIC_DISPATCH(Affine64)(x, n, mean, scale, weight, bias, out);
}
}  // namespace norm
}  // namespace tn
#endif
