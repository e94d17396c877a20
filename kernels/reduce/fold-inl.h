// Folding of contiguous runs of float and double, per target: a functor maps an element and combines two values.
// Include after foreach_target.h.

#if defined(TN_KERNELS_REDUCE_FOLD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TN_KERNELS_REDUCE_FOLD_INL_H_
#undef TN_KERNELS_REDUCE_FOLD_INL_H_
#else
#define TN_KERNELS_REDUCE_FOLD_INL_H_
#endif

#include <limits>
#include <type_traits>

#include "kernels/common/hwy-compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

struct Plus {
  template <class T>
  static constexpr T kIdentity = T{0};
  template <class D, class V>
  HWY_INLINE V Map(D, V v) const {
    return v;
  }
  template <class D, class V>
  HWY_INLINE V Combine(D, V a, V b) const {
    return hn::Add(a, b);
  }
  template <class D, class V>
  HWY_INLINE hn::TFromD<D> Lanes(D d, V v) const {
    return SumLanes(d, v);
  }
};
struct PlusNan : Plus {
  template <class D, class V>
  HWY_INLINE V Map(D, V v) const {
    return hn::IfThenZeroElse(hn::IsNaN(v), v);
  }
};
struct PlusSquares : Plus {
  template <class D, class V>
  HWY_INLINE V Map(D, V v) const {
    return hn::Mul(v, v);
  }
};
struct PlusAbs : Plus {
  template <class D, class V>
  HWY_INLINE V Map(D, V v) const {
    return hn::Abs(v);
  }
};
struct Times {
  template <class T>
  static constexpr T kIdentity = T{1};
  template <class D, class V>
  HWY_INLINE V Map(D, V v) const {
    return v;
  }
  template <class D, class V>
  HWY_INLINE V Combine(D, V a, V b) const {
    return hn::Mul(a, b);
  }
  template <class D, class V>
  HWY_INLINE hn::TFromD<D> Lanes(D d, V v) const {
    HWY_ALIGN hn::TFromD<D> lanes[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
    hn::Store(v, d, lanes);
    hn::TFromD<D> product = lanes[0];
    for (size_t i = 1; i < hn::Lanes(d); ++i) product *= lanes[i];
    return product;
  }
};
// Compare and select, since Max may return either operand for NaN: a stays when it is NaN, and b wins when it is.
struct Larger {
  template <class T>
  static constexpr T kIdentity = -std::numeric_limits<T>::infinity();
  template <class D, class V>
  HWY_INLINE V Map(D, V v) const {
    return v;
  }
  template <class D, class V>
  HWY_INLINE V Combine(D, V a, V b) const {
    return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
  }
  template <class D, class V>
  HWY_INLINE hn::TFromD<D> Lanes(D d, V v) const {
    if (!hn::AllFalse(d, hn::IsNaN(v))) return std::numeric_limits<hn::TFromD<D>>::quiet_NaN();
    return hn::GetLane(hn::MaxOfLanes(d, v));
  }
};
struct Smaller {
  template <class T>
  static constexpr T kIdentity = std::numeric_limits<T>::infinity();
  template <class D, class V>
  HWY_INLINE V Map(D, V v) const {
    return v;
  }
  template <class D, class V>
  HWY_INLINE V Combine(D, V a, V b) const {
    return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
  }
  template <class D, class V>
  HWY_INLINE hn::TFromD<D> Lanes(D d, V v) const {
    if (!hn::AllFalse(d, hn::IsNaN(v))) return std::numeric_limits<hn::TFromD<D>>::quiet_NaN();
    return hn::GetLane(hn::MinOfLanes(d, v));
  }
};
struct LargerAbs : Larger {
  template <class T>
  static constexpr T kIdentity = T{0};
  template <class D, class V>
  HWY_INLINE V Map(D, V v) const {
    return hn::Abs(v);
  }
};
struct SmallerAbs : Smaller {
  template <class D, class V>
  HWY_INLINE V Map(D, V v) const {
    return hn::Abs(v);
  }
};

// At most kFoldRun elements: each of the partial results combines few of them.
inline constexpr int64_t kFoldRun = 2048;
template <class Op, class T>
HWY_INLINE T FoldRun(const T* HWY_RESTRICT p, int64_t n, const Op& op) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto neutral = hn::Set(d, Op::template kIdentity<T>);
  auto a = neutral;
  int64_t i = 0;
  if (n >= 4 * lanes) {
    auto b = neutral, c = neutral, e = neutral;
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      a = op.Combine(d, a, op.Map(d, hn::LoadU(d, p + i)));
      b = op.Combine(d, b, op.Map(d, hn::LoadU(d, p + i + lanes)));
      c = op.Combine(d, c, op.Map(d, hn::LoadU(d, p + i + 2 * lanes)));
      e = op.Combine(d, e, op.Map(d, hn::LoadU(d, p + i + 3 * lanes)));
    }
    a = op.Combine(d, op.Combine(d, a, b), op.Combine(d, c, e));
  }
  for (; i + lanes <= n; i += lanes) a = op.Combine(d, a, op.Map(d, hn::LoadU(d, p + i)));
  if (i < n) {
    const auto rest = static_cast<size_t>(n - i);
    a = op.Combine(d, a, hn::IfThenElse(hn::FirstN(d, rest), op.Map(d, LoadUpTo(d, p + i, rest)), neutral));
  }
  return op.Lanes(d, a);
}

// Extremes of a run: the instruction's own Max beside a mask of NaN is cheaper than compare and select.
template <class T, class Map, class Best>
HWY_INLINE T ExtremeRun(const T* HWY_RESTRICT p, int64_t n, const Map& map, const Best& best, T identity) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Set(d, identity), b = a;
  auto nan = hn::IsNaN(a), nan_b = nan;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto u = map(d, hn::LoadU(d, p + i)), v = map(d, hn::LoadU(d, p + i + lanes));
    nan = hn::Or(nan, hn::IsNaN(u));
    nan_b = hn::Or(nan_b, hn::IsNaN(v));
    a = best(a, u);
    b = best(b, v);
  }
  for (; i < n; i += lanes) {
    const auto take = static_cast<size_t>(HWY_MIN(lanes, n - i));
    const auto u = hn::IfThenElse(hn::FirstN(d, take), map(d, LoadUpTo(d, p + i, take)), hn::Set(d, identity));
    nan = hn::Or(nan, hn::IsNaN(u));
    a = best(a, u);
  }
  if (!hn::AllFalse(d, hn::Or(nan, nan_b))) return std::numeric_limits<T>::quiet_NaN();
  a = best(a, b);
  return identity < T{1} ? hn::GetLane(hn::MaxOfLanes(d, a)) : hn::GetLane(hn::MinOfLanes(d, a));
}

template <class Op, class T>
HWY_INLINE T CombineTwo(T x, T y, const Op& op) {
  const hn::CappedTag<T, 1> d;
  return hn::GetLane(op.Combine(d, hn::Set(d, x), hn::Set(d, y)));
}

template <class Op, class T>
T FoldRow(const T* p, int64_t n) {
  if (n <= kFoldRun) {
    const auto map = [](auto d, auto v) HWY_ATTR { return Op().Map(d, v); };
    if constexpr (std::is_base_of_v<Larger, Op>)
      return ExtremeRun(p, n, map, [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); }, Op::template kIdentity<T>);
    else if constexpr (std::is_base_of_v<Smaller, Op>)
      return ExtremeRun(p, n, map, [](auto a, auto b) HWY_ATTR { return hn::Min(a, b); }, Op::template kIdentity<T>);
    else return FoldRun(p, n, Op());
  }
  const int64_t half = (n / 2 + kFoldRun - 1) / kFoldRun * kFoldRun;
  return CombineTwo(FoldRow<Op, T>(p, half), FoldRow<Op, T>(p + half, n - half), Op());
}

template <class Op, class T>
void FoldColumns(const T* HWY_RESTRICT p, int64_t stride, int64_t rows, int64_t cols, T* HWY_RESTRICT acc) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Op op;
  const auto four = [&](const T* r, int64_t j, auto load) HWY_ATTR {
    const auto x = op.Combine(d, op.Map(d, load(r + j)), op.Map(d, load(r + stride + j)));
    const auto y = op.Combine(d, op.Map(d, load(r + 2 * stride + j)), op.Map(d, load(r + 3 * stride + j)));
    return op.Combine(d, x, y);
  };
  // Narrow blocks: strips of four vectors that stay in registers. Wide ones read whole rows, as memory likes it.
  constexpr int64_t kNarrow = 256;
  if (cols <= kNarrow) {
    for (; cols >= 4 * lanes; cols -= 4 * lanes, p += 4 * lanes, acc += 4 * lanes) {
      auto a = hn::LoadU(d, acc), b = hn::LoadU(d, acc + lanes), c = hn::LoadU(d, acc + 2 * lanes),
           e = hn::LoadU(d, acc + 3 * lanes);
      const T* row = p;
      for (int64_t i = 0; i < rows; ++i, row += stride) {
        a = op.Combine(d, a, op.Map(d, hn::LoadU(d, row)));
        b = op.Combine(d, b, op.Map(d, hn::LoadU(d, row + lanes)));
        c = op.Combine(d, c, op.Map(d, hn::LoadU(d, row + 2 * lanes)));
        e = op.Combine(d, e, op.Map(d, hn::LoadU(d, row + 3 * lanes)));
      }
      hn::StoreU(a, d, acc);
      hn::StoreU(b, d, acc + lanes);
      hn::StoreU(c, d, acc + 2 * lanes);
      hn::StoreU(e, d, acc + 3 * lanes);
    }
    if (cols == 0) return;
  }
  const int64_t whole = cols / lanes * lanes;
  const auto rest = static_cast<size_t>(cols - whole);
  const auto some = [&](const T* q) HWY_ATTR { return LoadUpTo(d, q, rest); };
  const auto full = [&](const T* q) HWY_ATTR { return hn::LoadU(d, q); };
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4, p += 4 * stride) {
    for (int64_t j = 0; j < whole; j += lanes)
      hn::StoreU(op.Combine(d, hn::LoadU(d, acc + j), four(p, j, full)), d, acc + j);
    if (rest) StoreUpTo(op.Combine(d, some(acc + whole), four(p, whole, some)), d, acc + whole, rest);
  }
  for (; i < rows; ++i, p += stride) {
    for (int64_t j = 0; j < whole; j += lanes)
      hn::StoreU(op.Combine(d, hn::LoadU(d, acc + j), op.Map(d, hn::LoadU(d, p + j))), d, acc + j);
    if (rest) StoreUpTo(op.Combine(d, some(acc + whole), op.Map(d, some(p + whole))), d, acc + whole, rest);
  }
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
