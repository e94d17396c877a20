#include "kernels/index/embedding_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/index/embedding_rows.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
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
template <class S, class Sum>
void AddRow(const void* row, double scale, void* sum, int64_t n) {
  using T = RowType<S>;
  const hn::ScalableTag<T> d;
  const S* const x = static_cast<const S*>(row);
  Sum* const to = static_cast<Sum*>(sum);
  if (scale == 1) {
    MapRow<T>(n, to, [&](auto load) HWY_ATTR { return hn::Add(load(to), load(x)); });
  } else {
    const auto s = hn::Set(d, static_cast<T>(scale));
    MapRow<T>(n, to, [&](auto load) HWY_ATTR { return hn::MulAdd(load(x), s, load(to)); });
  }
}
template <class S>
void StoreRow(const void* sum, double scale, void* out, int64_t n) {
  using T = RowType<S>;
  const hn::ScalableTag<T> d;
  const T* const x = static_cast<const T*>(sum);
  const auto s = hn::Set(d, static_cast<T>(scale));
  MapRow<T>(n, static_cast<S*>(out), [&](auto load) HWY_ATTR { return hn::Mul(load(x), s); });
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
    one(i, [&](const S* p) HWY_ATTR { return LoadAsUpTo(d, p, rest); }, [&](auto v, S* p) HWY_ATTR { StoreAsUpTo(v, d, p, rest); });
  }
}

struct RowKernels {
  void (*add)(const void*, double, void*, int64_t);
  void (*add_wide)(const void*, double, void*, int64_t);
  void (*store)(const void*, double, void*, int64_t);
  void (*max)(const void*, int64_t, void*, int64_t*, int64_t);
  double (*dot)(const void*, const void*, int64_t);
};
template <class S>
constexpr RowKernels kRowKernels = {&AddRow<S, S>, &AddRow<S, RowType<S>>, &StoreRow<S>, &MaxRow<S>, &DotRows<S>};

const RowKernels& RowKernelsOf(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Float: return kRowKernels<float>;
    case ScalarType::Double: return kRowKernels<double>;
    case ScalarType::Half: return kRowKernels<Half>;
    default: return kRowKernels<BFloat16>;
  }
}

}  // namespace

void EmbeddingAdd(ScalarType t, const void* row, double scale, void* sum, int64_t n) { RowKernelsOf(t).add(row, scale, sum, n); }
void EmbeddingAddWide(ScalarType t, const void* row, double scale, void* sum, int64_t n) { RowKernelsOf(t).add_wide(row, scale, sum, n); }
void EmbeddingStore(ScalarType t, const void* sum, double scale, void* out, int64_t n) { RowKernelsOf(t).store(sum, scale, out, n); }
void EmbeddingMax(ScalarType t, const void* row, int64_t at, void* out, int64_t* where, int64_t n) { RowKernelsOf(t).max(row, at, out, where, n); }
double EmbeddingDot(ScalarType t, const void* a, const void* b, int64_t n) { return RowKernelsOf(t).dot(a, b, n); }

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(EmbeddingAdd);
HWY_EXPORT(EmbeddingAddWide);
HWY_EXPORT(EmbeddingStore);
HWY_EXPORT(EmbeddingMax);
HWY_EXPORT(EmbeddingDot);
namespace index {
void add_row(ScalarType t, const void* row, double scale, void* sum, int64_t n) { HWY_DYNAMIC_DISPATCH(EmbeddingAdd)(t, row, scale, sum, n); }
void add_row_wide(ScalarType t, const void* row, double scale, void* sum, int64_t n) { HWY_DYNAMIC_DISPATCH(EmbeddingAddWide)(t, row, scale, sum, n); }
void store_row(ScalarType t, const void* sum, double scale, void* out, int64_t n) { HWY_DYNAMIC_DISPATCH(EmbeddingStore)(t, sum, scale, out, n); }
void max_row(ScalarType t, const void* row, int64_t position, void* out, int64_t* where, int64_t n) {
  HWY_DYNAMIC_DISPATCH(EmbeddingMax)(t, row, position, out, where, n);
}
double dot_rows(ScalarType t, const void* a, const void* b, int64_t n) { return HWY_DYNAMIC_DISPATCH(EmbeddingDot)(t, a, b, n); }
}  // namespace index
}  // namespace tn
#endif
