#include "kernels/softmax/gradient_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax/gradient_rows.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/common/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {
namespace {

template <class S>
using Own = std::conditional_t<std::is_same_v<S, double>, double, float>;
// At most so many elements go into a sum in the elements' precision.
inline constexpr int64_t kRun = 2048;

template <bool kLog, class D, class V>
HWY_INLINE V Term(D, V g, V y) {
  if constexpr (kLog) return g;
  else return hn::Mul(g, y);
}
template <bool kLog, class D, class V>
HWY_INLINE V Result(D d, V g, V y, V sum) {
  if constexpr (kLog) return hn::NegMulAdd(math::Exp(d, y), sum, g);
  else return hn::Mul(hn::Sub(g, sum), y);
}

template <bool kLog, class S>
void Rows(const void* grads, const void* ys, int64_t rows, int64_t n, void* outs) {
  using T = Own<S>;
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; ++r) {
    const S *const g = static_cast<const S*>(grads) + r * n, *const y = static_cast<const S*>(ys) + r * n;
    S* const out = static_cast<S*>(outs) + r * n;
    const auto at = [&](int64_t i) HWY_ATTR { return Term<kLog>(d, LoadAs(d, g + i), LoadAs(d, y + i)); };
    double total = 0;
    int64_t i = 0;
    while (i + 4 * lanes <= n) {
      const int64_t end = HWY_MIN(n, i + kRun);
      auto a = hn::Zero(d), b = a, c = a, e = a;
      for (; i + 4 * lanes <= end; i += 4 * lanes) {
        a = hn::Add(a, at(i));
        b = hn::Add(b, at(i + lanes));
        c = hn::Add(c, at(i + 2 * lanes));
        e = hn::Add(e, at(i + 3 * lanes));
      }
      total += static_cast<double>(SumLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
    }
    for (; i < n; i += lanes) {
      const size_t take = HWY_MIN(hn::Lanes(d), static_cast<size_t>(n - i));
      total += static_cast<double>(SumLanes(d, Term<kLog>(d, LoadAsUpTo(d, g + i, take), LoadAsUpTo(d, y + i, take))));
    }
    const auto sum = hn::Set(d, static_cast<T>(total));
    for (i = 0; i + lanes <= n; i += lanes)
      StoreAs(Result<kLog>(d, LoadAs(d, g + i), LoadAs(d, y + i), sum), d, out + i);
    if (i < n) {
      const size_t take = HWY_MIN(hn::Lanes(d), static_cast<size_t>(n - i));
      StoreAsUpTo(Result<kLog>(d, LoadAsUpTo(d, g + i, take), LoadAsUpTo(d, y + i, take), sum), d, out + i, take);
    }
  }
}

template <bool kLog, class S>
void Columns(const void* grads, const void* ys, int64_t n, int64_t inner, int64_t first, int64_t count, void* outs) {
  using T = Own<S>;
  const hn::ScalableTag<T> d;
  const S *const g = static_cast<const S*>(grads) + first, *const y = static_cast<const S*>(ys) + first;
  S* const out = static_cast<S*>(outs) + first;
  for (int64_t c = 0; c < count;) {
    const size_t take = HWY_MIN(hn::Lanes(d), static_cast<size_t>(count - c));
    const bool full = take == hn::Lanes(d);
    const auto load = [&](const S* p) HWY_ATTR { return full ? LoadAs(d, p) : LoadAsUpTo(d, p, take); };
    auto sum = hn::Zero(d);
    for (int64_t k = 0; k < n; ++k) sum = hn::Add(sum, Term<kLog>(d, load(g + k * inner + c), load(y + k * inner + c)));
    for (int64_t k = 0; k < n; ++k) {
      const auto v = Result<kLog>(d, load(g + k * inner + c), load(y + k * inner + c), sum);
      if (full) StoreAs(v, d, out + k * inner + c);
      else StoreAsUpTo(v, d, out + k * inner + c, take);
    }
    c += static_cast<int64_t>(take);
  }
}

template <class F>
HWY_INLINE void Visit(ScalarType dtype, const F& f) {
  switch (dtype) {
    case ScalarType::Float: return f(float{});
    case ScalarType::Double: return f(double{});
    case ScalarType::Half: return f(Half{});
    default: return f(BFloat16{});
  }
}

}  // namespace

void SoftmaxGradientRows(ScalarType dtype, bool log, const void* g, const void* y, int64_t rows, int64_t n, void* out) {
  Visit(dtype, [&](auto s) {
    log ? Rows<true, decltype(s)>(g, y, rows, n, out) : Rows<false, decltype(s)>(g, y, rows, n, out);
  });
}
void SoftmaxGradientColumns(ScalarType dtype, bool log, const void* g, const void* y, int64_t n, int64_t inner,
                            int64_t first, int64_t count, void* out) {
  Visit(dtype, [&](auto s) {
    log ? Columns<true, decltype(s)>(g, y, n, inner, first, count, out)
        : Columns<false, decltype(s)>(g, y, n, inner, first, count, out);
  });
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(SoftmaxGradientRows);
HWY_EXPORT(SoftmaxGradientColumns);
namespace softmax {
void gradient_rows(ScalarType dtype, bool log, const void* g, const void* y, int64_t rows, int64_t n, void* out) {
  HWY_DYNAMIC_DISPATCH(SoftmaxGradientRows)(dtype, log, g, y, rows, n, out);
}
void gradient_columns(ScalarType dtype, bool log, const void* g, const void* y, int64_t n, int64_t inner, int64_t first,
                      int64_t count, void* out) {
  HWY_DYNAMIC_DISPATCH(SoftmaxGradientColumns)(dtype, log, g, y, n, inner, first, count, out);
}
}  // namespace softmax
}  // namespace tn
#endif
