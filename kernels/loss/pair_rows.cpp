#include "kernels/loss/pair_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/loss/pair_rows.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/common/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {
namespace {

template <class S>
using Compute = std::conditional_t<std::is_same_v<S, double>, double, float>;

// ---- losses: f(d, a, b, c, p) --------------------------------------------------------------------------------------

struct MseOp {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b, V, V) const {
    const V t = hn::Sub(a, b);
    return hn::Mul(t, t);
  }
};
struct SmoothL1Op {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b, V, V beta) const {
    const V z = hn::Abs(hn::Sub(a, b)), half = hn::Set(d, hn::TFromD<D>{0.5});
    return hn::IfThenElse(hn::Lt(z, beta), hn::Div(hn::Mul(hn::Mul(half, z), z), beta),
                          hn::Sub(z, hn::Mul(half, beta)));
  }
};
struct HuberOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b, V, V delta) const {
    const V z = hn::Abs(hn::Sub(a, b)), half = hn::Set(d, hn::TFromD<D>{0.5});
    return hn::IfThenElse(hn::Le(z, delta), hn::Mul(hn::Mul(half, z), z),
                          hn::Mul(delta, hn::Sub(z, hn::Mul(half, delta))));
  }
};
struct CrossOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V y, V, V) const {
    // Upstream's floor of logarithms.
    const V one = hn::Set(d, hn::TFromD<D>{1}), floor = hn::Set(d, hn::TFromD<D>{-100});
    const V low = hn::Max(math::Log1p(d, hn::Neg(x)), floor), high = hn::Max(math::Log(d, x), floor);
    return hn::Sub(hn::Mul(hn::Sub(y, one), low), hn::Mul(y, high));
  }
};
struct SoftMarginOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V y, V, V) const {
    return math::Log1p(d, math::Exp(d, hn::Neg(hn::Mul(x, y))));
  }
};
template <bool kPositives>
struct LogitsOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V y, V c, V) const {
    // Compare and select: a NaN stays.
    const V one = hn::Set(d, hn::TFromD<D>{1}), zero = hn::Zero(d);
    const V tail =
        hn::Add(math::Log1p(d, math::Exp(d, hn::Neg(hn::Abs(x)))), hn::IfThenElse(hn::Gt(x, zero), zero, hn::Neg(x)));
    const V linear = hn::Mul(hn::Sub(one, y), x);
    if constexpr (!kPositives) return hn::Add(linear, tail);
    else return hn::MulAdd(hn::MulAdd(hn::Sub(c, one), y, one), tail, linear);
  }
};

// ---- gradients: the same, without the factor grad * scale
// --------------------------------------------------------------

struct MseSlope {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b, V, V) const {
    return hn::Sub(a, b);
  }
};
struct SmoothL1Slope {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b, V, V beta) const {
    const V x = hn::Sub(a, b), one = hn::Set(d, hn::TFromD<D>{1});
    const V inner = hn::IfThenElse(hn::Ge(x, beta), one, hn::Div(x, beta));
    return hn::IfThenElse(hn::Le(x, hn::Neg(beta)), hn::Neg(one), inner);
  }
};
struct HuberSlope {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b, V, V delta) const {
    const V x = hn::Sub(a, b);
    return hn::IfThenElse(hn::Lt(x, hn::Neg(delta)), hn::Neg(delta), hn::IfThenElse(hn::Gt(x, delta), delta, x));
  }
};
struct CrossSlope {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V y, V, V) const {
    const V one = hn::Set(d, hn::TFromD<D>{1}), least = hn::Set(d, static_cast<hn::TFromD<D>>(1e-12));
    const V below = hn::Mul(hn::Sub(one, x), x);
    return hn::Div(hn::Sub(x, y), hn::IfThenElse(hn::Lt(below, least), least, below));
  }
};
struct SoftMarginSlope {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V y, V, V) const {
    const V z = math::Exp(d, hn::Neg(hn::Mul(x, y)));
    return hn::Neg(hn::Div(hn::Mul(y, z), hn::Add(z, hn::Set(d, hn::TFromD<D>{1}))));
  }
};

// ---- rows
// ---------------------------------------------------------------------------------------------------------------

template <class S, class Op>
void Run(const loss::PairRow& row, bool slope) {
  using T = Compute<S>;
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V p = hn::Set(d, static_cast<T>(row.p)), scale = hn::Set(d, static_cast<T>(row.scale));
  const auto at = [](const void* base) { return static_cast<const S*>(base); };
  const auto value = [&](int64_t i, auto load) HWY_ATTR {
    const V a = load(at(row.a) + i), b = load(at(row.b) + i);
    V v = Op()(d, a, b, row.c ? load(at(row.c) + i) : a, p);
    if (row.weight) v = hn::Mul(v, load(at(row.weight) + i));
    if (slope) v = hn::Mul(v, row.grad ? hn::Mul(load(at(row.grad) + i), scale) : scale);
    if constexpr (std::is_same_v<Op, CrossOp>) {
      const auto fits = hn::And(hn::Ge(a, hn::Zero(d)), hn::Le(a, hn::Set(d, T{1})));
      if (HWY_UNLIKELY(!hn::AllTrue(d, fits))) *row.outside = true;
    }
    return v;
  };
  const auto full = [&](const S* from) HWY_ATTR { return LoadAs(d, from); };
  int64_t i = 0;
  if (!row.sum) {
    S* const out = static_cast<S*>(row.out);
    for (; i + lanes <= row.n; i += lanes) StoreAs(value(i, full), d, out + i);
    if (i < row.n) {
      const auto rest = static_cast<size_t>(row.n - i);
      StoreAsUpTo(value(i, [&](const S* from) HWY_ATTR { return LoadAsUpTo(d, from, rest); }), d, out + i, rest);
    }
    return;
  }
  // Four vectors at a time in the elements' precision, their lanes on in double.
  HWY_ALIGN T part[HWY_MAX_BYTES / sizeof(T)];
  double sum = 0;
  for (; i + 4 * lanes <= row.n; i += 4 * lanes) {
    const V left = hn::Add(value(i, full), value(i + lanes, full)),
            right = hn::Add(value(i + 2 * lanes, full), value(i + 3 * lanes, full));
    hn::Store(hn::Add(left, right), d, part);
    for (int64_t k = 0; k < lanes; ++k) sum += static_cast<double>(part[k]);
  }
  for (; i < row.n; i += lanes) {
    const auto rest = static_cast<size_t>(HWY_MIN(lanes, row.n - i));
    hn::Store(value(i, [&](const S* from) HWY_ATTR { return LoadAsUpTo(d, from, rest); }), d, part);
    for (size_t k = 0; k < rest; ++k) sum += static_cast<double>(part[k]);
  }
  *row.sum = sum;
}

template <class S>
void RunOp(loss::PairOp op, const loss::PairRow& row) {
  using loss::PairOp;
  switch (op) {
    case PairOp::Mse: return Run<S, MseOp>(row, false);
    case PairOp::SmoothL1: return Run<S, SmoothL1Op>(row, false);
    case PairOp::Huber: return Run<S, HuberOp>(row, false);
    case PairOp::BinaryCrossEntropy: return Run<S, CrossOp>(row, false);
    case PairOp::SoftMargin: return Run<S, SoftMarginOp>(row, false);
    case PairOp::Logits: return Run<S, LogitsOp<false>>(row, false);
    case PairOp::WeighedLogits: return Run<S, LogitsOp<true>>(row, false);
    case PairOp::MseGradient: return Run<S, MseSlope>(row, true);
    case PairOp::SmoothL1Gradient: return Run<S, SmoothL1Slope>(row, true);
    case PairOp::HuberGradient: return Run<S, HuberSlope>(row, true);
    case PairOp::BinaryCrossEntropyGradient: return Run<S, CrossSlope>(row, true);
    case PairOp::SoftMarginGradient: return Run<S, SoftMarginSlope>(row, true);
  }
}

}  // namespace

void RunPairs(loss::PairOp op, ScalarType dtype, const loss::PairRow& row) {
  switch (dtype) {
    case ScalarType::Float: return RunOp<float>(op, row);
    case ScalarType::Double: return RunOp<double>(op, row);
    case ScalarType::Half: return RunOp<Half>(op, row);
    default: return RunOp<BFloat16>(op, row);
  }
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(RunPairs);
void loss::run_pairs(PairOp op, ScalarType dtype, const PairRow& row) {
  HWY_DYNAMIC_DISPATCH(RunPairs)(op, dtype, row);
}
}  // namespace tn
#endif
