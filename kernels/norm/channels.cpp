#include "kernels/norm/channels.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm/channels.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/common/hwy-compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {
namespace {

using Wide = hn::ScalableTag<double>;
// Results are computed in the elements' own precision: float for the 16-bit ones.
template <class S>
using Own = std::conditional_t<std::is_same_v<S, double>, double, float>;

template <class S>
HWY_INLINE hn::Vec<Wide> LoadWide(const S* p) {
  const Wide d;
  if constexpr (std::is_same_v<S, double>) return hn::LoadU(d, p);
  else return hn::PromoteTo(d, LoadAs(hn::Rebind<float, Wide>(), p));
}
template <class S>
HWY_INLINE hn::Vec<Wide> LoadWideUpTo(const S* p, size_t n) {
  const Wide d;
  if constexpr (std::is_same_v<S, double>) return LoadUpTo(d, p, n);
  else return hn::PromoteTo(d, LoadAsUpTo(hn::Rebind<float, Wide>(), p, n));
}

// Two sums over a run: term(k, load, s, t) adds the elements at k, where load(p) reads p + k. Four pairs hide the
// latency.
template <class Term>
HWY_INLINE void Fold(int64_t n, const Term& term, double* sums, double* dots) {
  const Wide d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = a, c = a, e = a, p = a, q = a, r = a, s = a;
  int64_t k = 0;
  const auto full = [](const auto* at) HWY_ATTR { return LoadWide(at); };
  const auto all = hn::FirstN(d, static_cast<size_t>(lanes));
  for (; k + 4 * lanes <= n; k += 4 * lanes) {
    term(k, full, all, a, p);
    term(k + lanes, full, all, b, q);
    term(k + 2 * lanes, full, all, c, r);
    term(k + 3 * lanes, full, all, e, s);
  }
  for (; k < n; k += lanes) {
    const auto take = static_cast<size_t>(HWY_MIN(lanes, n - k));
    term(k, [take](const auto* at) HWY_ATTR { return LoadWideUpTo(at, take); }, hn::FirstN(d, take), a, p);
  }
  *sums += SumLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e)));
  if (dots) *dots += SumLanes(d, hn::Add(hn::Add(p, q), hn::Add(r, s)));
}

template <class S>
double RunSum(const void* given, int64_t n) {
  const S* const x = static_cast<const S*>(given);
  double sum = 0;
  Fold(n, [&](int64_t k, auto load, auto, auto& s, auto&) HWY_ATTR { s = hn::Add(s, load(x + k)); }, &sum, nullptr);
  return sum;
}
template <class S>
double RunSquares(const void* given, int64_t n, double mean) {
  const S* const x = static_cast<const S*>(given);
  const auto m = hn::Set(Wide(), mean);
  double sum = 0;
  Fold(
      n,
      [&](int64_t k, auto load, auto mask, auto& s, auto&) HWY_ATTR {
        const auto u = hn::IfThenElseZero(mask, hn::Sub(load(x + k), m));
        s = hn::MulAdd(u, u, s);
      },
      &sum, nullptr);
  return sum;
}
template <class S>
void RunDots(const void* given, const void* slopes, int64_t n, double mean, double sums[2]) {
  const S *const x = static_cast<const S*>(given), *const grad = static_cast<const S*>(slopes);
  const auto m = hn::Set(Wide(), mean);
  Fold(
      n,
      [&](int64_t k, auto load, auto mask, auto& s, auto& t) HWY_ATTR {
        const auto u = hn::IfThenElseZero(mask, hn::Sub(load(x + k), m)), g = load(grad + k);
        s = hn::Add(s, g);
        t = hn::MulAdd(u, g, t);
      },
      &sums[0], &sums[1]);
}

// out[k] = f(k, load), where load reads elements (own precision) at a pointer.
template <class S, class F>
HWY_INLINE void MapRun(int64_t n, S* out, const F& f) {
  const hn::ScalableTag<Own<S>> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t k = 0;
  for (; k + lanes <= n; k += lanes) StoreAs(f(k, [&](const auto* p) HWY_ATTR { return LoadAs(d, p); }), d, out + k);
  if (k < n) {
    const auto rest = static_cast<size_t>(n - k);
    StoreAsUpTo(f(k, [&](const auto* p) HWY_ATTR { return LoadAsUpTo(d, p, rest); }), d, out + k, rest);
  }
}
// What a number loses as a float. A mean far from zero cancels the shift: then the lost parts show, and are added
// again.
HWY_INLINE float Rest(double value) {
  const auto rounded = static_cast<double>(static_cast<float>(value));
  return std::isfinite(rounded) ? static_cast<float>(value - rounded) : 0.0f;
}
template <class D, class V>
HWY_INLINE V Affine(D, V v, V scale, V shift, V low_scale, V low_shift) {
  const V result = hn::MulAdd(v, scale, shift);
  return hn::IfThenElse(hn::IsFinite(result), hn::Add(result, hn::MulAdd(v, low_scale, low_shift)), result);
}
template <class S>
void RunAffine(const void* given, int64_t n, double scale, double shift, void* out) {
  const hn::ScalableTag<Own<S>> d;
  const S* const x = static_cast<const S*>(given);
  const auto a = hn::Set(d, static_cast<Own<S>>(scale)), b = hn::Set(d, static_cast<Own<S>>(shift));
  if constexpr (std::is_same_v<S, float>) {
    const auto low_a = hn::Set(d, Rest(scale)), low_b = hn::Set(d, Rest(shift));
    MapRun(n, static_cast<S*>(out),
           [&](int64_t k, auto load) HWY_ATTR { return Affine(d, load(x + k), a, b, low_a, low_b); });
  } else {
    MapRun(n, static_cast<S*>(out), [&](int64_t k, auto load) HWY_ATTR { return hn::MulAdd(load(x + k), a, b); });
  }
}
template <class S>
void RunGradient(const void* given, const void* slopes, int64_t n, const norm::Slope& s, void* out) {
  using T = Own<S>;
  const hn::ScalableTag<T> d;
  const S *const x = static_cast<const S*>(given), *const grad = static_cast<const S*>(slopes);
  const auto mean = hn::Set(d, static_cast<T>(s.mean)), shared = hn::Set(d, static_cast<T>(s.shared)),
             slope = hn::Set(d, static_cast<T>(s.slope)), scale = hn::Set(d, static_cast<T>(s.scale));
  MapRun(n, static_cast<S*>(out), [&](int64_t k, auto load) HWY_ATTR {
    return hn::NegMulAdd(hn::Sub(load(x + k), mean), slope, hn::MulSub(load(grad + k), scale, shared));
  });
}

// Sums of columns: blocks of four vectors stay in registers while the rows pass.
template <class Term>
HWY_INLINE void FoldColumns(int64_t rows, int64_t channels, double* sums, double* dots, const Term& term) {
  const Wide d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto full = [](const auto* at) HWY_ATTR { return LoadWide(at); };
  const auto add = [&](double* to, auto v) HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(d, to), v), d, to); };
  int64_t c = 0;
  for (; c + 4 * lanes <= channels; c += 4 * lanes) {
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = r * channels + c;
      term(at, c, full, s0, t0);
      term(at + lanes, c + lanes, full, s1, t1);
      term(at + 2 * lanes, c + 2 * lanes, full, s2, t2);
      term(at + 3 * lanes, c + 3 * lanes, full, s3, t3);
    }
    add(sums + c, s0), add(sums + c + lanes, s1), add(sums + c + 2 * lanes, s2), add(sums + c + 3 * lanes, s3);
    if (dots)
      add(dots + c, t0), add(dots + c + lanes, t1), add(dots + c + 2 * lanes, t2), add(dots + c + 3 * lanes, t3);
  }
  for (; c < channels; c += lanes) {
    const auto take = static_cast<size_t>(HWY_MIN(lanes, channels - c));
    auto s = hn::Zero(d), t = s;
    for (int64_t r = 0; r < rows; ++r)
      term(r * channels + c, c, [take](const auto* at) HWY_ATTR { return LoadWideUpTo(at, take); }, s, t);
    StoreUpTo(hn::Add(LoadUpTo(d, sums + c, take), s), d, sums + c, take);
    if (dots) StoreUpTo(hn::Add(LoadUpTo(d, dots + c, take), t), d, dots + c, take);
  }
}
template <class S>
void ColumnSums(const void* given, int64_t rows, int64_t channels, double* sums) {
  const S* const x = static_cast<const S*>(given);
  FoldColumns(rows, channels, sums, nullptr,
              [&](int64_t at, int64_t, auto load, auto& s, auto&) HWY_ATTR { s = hn::Add(s, load(x + at)); });
}
template <class S>
void ColumnSquares(const void* given, int64_t rows, int64_t channels, const double* mean, double* sums) {
  const S* const x = static_cast<const S*>(given);
  FoldColumns(rows, channels, sums, nullptr, [&](int64_t at, int64_t c, auto load, auto& s, auto&) HWY_ATTR {
    const auto u = hn::Sub(load(x + at), load(mean + c));
    s = hn::MulAdd(u, u, s);
  });
}
template <class S>
void ColumnDots(const void* given, const void* slopes, int64_t rows, int64_t channels, const double* mean, double* sums,
                double* dots) {
  const S *const x = static_cast<const S*>(given), *const grad = static_cast<const S*>(slopes);
  FoldColumns(rows, channels, sums, dots, [&](int64_t at, int64_t c, auto load, auto& s, auto& t) HWY_ATTR {
    const auto g = load(grad + at);
    s = hn::Add(s, g);
    t = hn::MulAdd(hn::Sub(load(x + at), load(mean + c)), g, t);
  });
}

// Numbers of channels come as double and are used in the elements' precision: converted once for a strip of channels.
inline constexpr int64_t kStrip = 256;
template <int N, class S, class F>
HWY_INLINE void MapColumns(int64_t rows, int64_t channels, const double* const (&numbers)[N], S* out, const F& f) {
  using T = Own<S>;
  HWY_ALIGN T strip[2 * N][kStrip];  // then what the numbers lose as floats
  for (int64_t c = 0; c < channels; c += kStrip) {
    const int64_t n = HWY_MIN(kStrip, channels - c);
    for (int i = 0; i < N; ++i)
      for (int64_t k = 0; k < n; ++k) {
        strip[i][k] = static_cast<T>(numbers[i][c + k]);
        if constexpr (std::is_same_v<S, float>) strip[N + i][k] = Rest(numbers[i][c + k]);
      }
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = r * channels + c;
      MapRun(n, out + at, [&](int64_t k, auto load) HWY_ATTR {
        return f(at + k, load, [&](int i) HWY_ATTR { return load(strip[i] + k); });
      });
    }
  }
}
template <class S>
void ColumnAffine(const void* given, int64_t rows, int64_t channels, const double* scale, const double* shift,
                  void* out) {
  const S* const x = static_cast<const S*>(given);
  MapColumns<2>(rows, channels, {scale, shift}, static_cast<S*>(out), [&](int64_t at, auto load, auto of) HWY_ATTR {
    const auto v = load(x + at);
    if constexpr (std::is_same_v<S, float>) return Affine(hn::ScalableTag<float>(), v, of(0), of(1), of(2), of(3));
    else return hn::MulAdd(v, of(0), of(1));
  });
}
template <class S>
void ColumnGradient(const void* given, const void* slopes, int64_t rows, int64_t channels, const double* s, void* out) {
  const S *const x = static_cast<const S*>(given), *const grad = static_cast<const S*>(slopes);
  MapColumns<4>(rows, channels, {s, s + channels, s + 2 * channels, s + 3 * channels}, static_cast<S*>(out),
                [&](int64_t at, auto load, auto of) HWY_ATTR {
                  return hn::NegMulAdd(hn::Sub(load(x + at), of(0)), of(2), hn::MulSub(load(grad + at), of(3), of(1)));
                });
}

template <class S>
constexpr norm::ChannelKernels kKernels = {&RunSum<S>,       &RunSquares<S>,    &RunDots<S>,       &RunAffine<S>,
                                           &RunGradient<S>,  &ColumnSums<S>,    &ColumnSquares<S>, &ColumnDots<S>,
                                           &ColumnAffine<S>, &ColumnGradient<S>};

}  // namespace

const norm::ChannelKernels* KernelsOf(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Float: return &kKernels<float>;
    case ScalarType::Double: return &kKernels<double>;
    case ScalarType::Half: return &kKernels<Half>;
    default: return &kKernels<BFloat16>;
  }
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(KernelsOf);
const norm::ChannelKernels& norm::channel_kernels(ScalarType dtype) { return *HWY_DYNAMIC_DISPATCH(KernelsOf)(dtype); }
}  // namespace tn
#endif
