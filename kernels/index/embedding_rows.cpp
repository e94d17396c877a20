#include "kernels/index/embedding_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/index/embedding_rows.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/cache_control.h"
#include "kernels/common/hwy-compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {
namespace {

template <class S>
using RowType = std::conditional_t<std::is_same_v<S, double>, double, float>;

// out[i] = f(load, i), in the precision of T.
template <class T, class Out, class F>
HWY_INLINE void MapRow(int64_t n, Out* out, const F& f) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) StoreAs(f([&](const auto* p) HWY_ATTR { return LoadAs(d, p + i); }), d, out + i);
  if (i < n) {
    const size_t rest = HWY_MIN(static_cast<size_t>(n - i), hn::Lanes(d));
    StoreAsUpTo(f([&](const auto* p) HWY_ATTR { return LoadAsUpTo(d, p + i, rest); }), d, out + i, rest);
  }
}
inline constexpr int64_t kAhead = 16;
template <class S>
void SumRows(const index::RowSum& rows, double factor, void* to) {
  using T = RowType<S>;
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const S* const table = static_cast<const S*>(rows.table);
  S* const out = static_cast<S*>(to);
  const auto f = hn::Set(d, static_cast<T>(factor));
  // Blocks of four vectors stay in registers while the rows pass.
  const auto block = [&](int64_t c, auto load, auto store, auto vectors) HWY_ATTR {
    auto a = hn::Zero(d), b = a, e = a, g = a;
    for (int64_t k = 0; k < rows.n; ++k) {
      if (k + kAhead < rows.known) hwy::Prefetch(table + rows.at[k + kAhead] * rows.width + c);
      if (rows.at[k] == rows.padding) continue;
      const S* const row = table + rows.at[k] * rows.width + c;
      const auto s = hn::Set(d, rows.scales ? static_cast<T>(rows.scales[k]) : T{1});
      a = hn::MulAdd(load(row), s, a);
      if constexpr (vectors() > 1) {
        b = hn::MulAdd(load(row + lanes), s, b);
        e = hn::MulAdd(load(row + 2 * lanes), s, e);
        g = hn::MulAdd(load(row + 3 * lanes), s, g);
      }
    }
    store(hn::Mul(a, f), out + c);
    if constexpr (vectors() > 1) {
      store(hn::Mul(b, f), out + c + lanes);
      store(hn::Mul(e, f), out + c + 2 * lanes);
      store(hn::Mul(g, f), out + c + 3 * lanes);
    }
  };
  const auto load = [&](const S* p) HWY_ATTR { return LoadAs(d, p); };
  const auto store = [&](auto v, S* p) HWY_ATTR { StoreAs(v, d, p); };
  int64_t c = 0;
  for (; c + 4 * lanes <= rows.width; c += 4 * lanes) block(c, load, store, std::integral_constant<int, 4>());
  for (; c + lanes <= rows.width; c += lanes) block(c, load, store, std::integral_constant<int, 1>());
  if (c < rows.width) {
    const size_t rest = HWY_MIN(static_cast<size_t>(rows.width - c), hn::Lanes(d));
    block(
        c, [&](const S* p) HWY_ATTR { return LoadAsUpTo(d, p, rest); },
        [&](auto v, S* p) HWY_ATTR { StoreAsUpTo(v, d, p, rest); }, std::integral_constant<int, 1>());
  }
}
template <class S>
void ScatterRows(const index::RowScatter& rows, int64_t begin, int64_t end) {
  using T = RowType<S>;
  const hn::ScalableTag<T> d;
  const int64_t n = end - begin;
  for (int64_t k = 0; k < rows.n; ++k) {
    const int64_t i = rows.at[k];
    if (i == rows.padding || i < 0 || i >= rows.rows) continue;
    const S* const x = static_cast<const S*>(rows.from) + (rows.source ? rows.source[k] : k) * rows.width + begin;
    S* const to = static_cast<S*>(rows.to) + i * rows.width + begin;
    if (rows.scales) {
      const auto s = hn::Set(d, static_cast<T>(rows.scales[k]));
      MapRow<T>(n, to, [&](auto load) HWY_ATTR { return hn::MulAdd(load(x), s, load(to)); });
    } else {
      MapRow<T>(n, to, [&](auto load) HWY_ATTR { return hn::Add(load(to), load(x)); });
    }
  }
}
template <class S>
double DotRows(const void* left, const void* right, int64_t n) {
  using T = RowType<S>;
  const hn::ScalableTag<T> d;
  const S *const a = static_cast<const S*>(left), *const b = static_cast<const S*>(right);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) sum = hn::MulAdd(LoadAs(d, a + i), LoadAs(d, b + i), sum);
  if (i < n) {
    const size_t rest = HWY_MIN(static_cast<size_t>(n - i), hn::Lanes(d));
    sum = hn::MulAdd(LoadAsUpTo(d, a + i, rest), LoadAsUpTo(d, b + i, rest), sum);
  }
  return static_cast<double>(SumLanes(d, sum));
}
template <class S>
void MaxRow(const void* row, int64_t position, void* out, int64_t* where, int64_t n) {
  using T = RowType<S>;
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const S* const x = static_cast<const S*>(row);
  S* const to = static_cast<S*>(out);
  const hn::RebindToUnsigned<decltype(d)> du;
  HWY_ALIGN hn::TFromD<decltype(du)> marks[HWY_MAX_BYTES / sizeof(T)];
  const auto one = [&](int64_t i, auto load, auto store) HWY_ATTR {
    const auto v = load(x + i), best = load(to + i);
    const auto more = hn::Gt(v, best);
    if (hn::AllFalse(d, more)) return;
    store(hn::IfThenElse(more, v, best), to + i);
    hn::Store(hn::BitCast(du, hn::VecFromMask(d, more)), du, marks);
    for (int64_t k = 0; k < HWY_MIN(lanes, n - i); ++k)
      if (marks[k] != 0) where[i + k] = position;
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    one(i, [&](const S* p) HWY_ATTR { return LoadAs(d, p); }, [&](auto v, S* p) HWY_ATTR { StoreAs(v, d, p); });
  if (i < n) {
    const size_t rest = HWY_MIN(static_cast<size_t>(n - i), hn::Lanes(d));
    one(
        i, [&](const S* p) HWY_ATTR { return LoadAsUpTo(d, p, rest); },
        [&](auto v, S* p) HWY_ATTR { StoreAsUpTo(v, d, p, rest); });
  }
}

struct RowKernels {
  void (*sum)(const index::RowSum&, double, void*);
  void (*scatter)(const index::RowScatter&, int64_t, int64_t);
  void (*max)(const void*, int64_t, void*, int64_t*, int64_t);
  double (*dot)(const void*, const void*, int64_t);
};
template <class S>
constexpr RowKernels kRowKernels = {&SumRows<S>, &ScatterRows<S>, &MaxRow<S>, &DotRows<S>};

const RowKernels& RowKernelsOf(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Float: return kRowKernels<float>;
    case ScalarType::Double: return kRowKernels<double>;
    case ScalarType::Half: return kRowKernels<Half>;
    default: return kRowKernels<BFloat16>;
  }
}

}  // namespace

void EmbeddingSum(ScalarType t, const index::RowSum& rows, double factor, void* out) {
  RowKernelsOf(t).sum(rows, factor, out);
}
void EmbeddingScatter(ScalarType t, const index::RowScatter& rows, int64_t begin, int64_t end) {
  RowKernelsOf(t).scatter(rows, begin, end);
}
void EmbeddingMax(ScalarType t, const void* row, int64_t at, void* out, int64_t* where, int64_t n) {
  RowKernelsOf(t).max(row, at, out, where, n);
}
double EmbeddingDot(ScalarType t, const void* a, const void* b, int64_t n) { return RowKernelsOf(t).dot(a, b, n); }

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(EmbeddingSum);
HWY_EXPORT(EmbeddingScatter);
HWY_EXPORT(EmbeddingMax);
HWY_EXPORT(EmbeddingDot);
namespace index {
void sum_rows(ScalarType t, const RowSum& rows, double factor, void* out) {
  HWY_DYNAMIC_DISPATCH(EmbeddingSum)(t, rows, factor, out);
}
void scatter_rows(ScalarType t, const RowScatter& rows, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(EmbeddingScatter)(t, rows, begin, end);
}
void max_row(ScalarType t, const void* row, int64_t position, void* out, int64_t* where, int64_t n) {
  HWY_DYNAMIC_DISPATCH(EmbeddingMax)(t, row, position, out, where, n);
}
double dot_rows(ScalarType t, const void* a, const void* b, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(EmbeddingDot)(t, a, b, n);
}
}  // namespace index
}  // namespace tn
#endif
