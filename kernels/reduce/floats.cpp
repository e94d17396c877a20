#include "kernels/reduce/floats.h"

#include <array>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/floats.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/reduce/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

template <class T>
struct Bodies {
  T (*row)(const T*, int64_t);
  void (*columns)(const T*, int64_t, int64_t, int64_t, T*);
};
template <class T>
constexpr std::array<Bodies<T>, reduce::kNumKinds> kBodies = {{
    {FoldRow<Plus, T>, FoldColumns<Plus, T>},
    {FoldRow<PlusNan, T>, FoldColumns<PlusNan, T>},
    {FoldRow<PlusSquares, T>, FoldColumns<PlusSquares, T>},
    {FoldRow<PlusAbs, T>, FoldColumns<PlusAbs, T>},
    {FoldRow<Times, T>, FoldColumns<Times, T>},
    {FoldRow<Larger, T>, FoldColumns<Larger, T>},
    {FoldRow<Smaller, T>, FoldColumns<Smaller, T>},
    {FoldRow<LargerAbs, T>, FoldColumns<LargerAbs, T>},
    {FoldRow<SmallerAbs, T>, FoldColumns<SmallerAbs, T>},
}};
// Partial results combine as plain values.
template <class T>
auto Merge(reduce::Kind kind, const reduce::Operation<T>*) {
  switch (kind) {
    case reduce::Kind::Prod: return FoldColumns<Times, T>;
    case reduce::Kind::Max:
    case reduce::Kind::MaxAbs: return FoldColumns<Larger, T>;
    case reduce::Kind::Min:
    case reduce::Kind::MinAbs: return FoldColumns<Smaller, T>;
    default: return FoldColumns<Plus, T>;
  }
}
void Find32(int kind, reduce::Operation<float>* op) {
  const auto& body = kBodies<float>[static_cast<size_t>(kind)];
  op->row = body.row;
  op->columns = body.columns;
  op->merge = Merge(static_cast<reduce::Kind>(kind), op);
}
void Find64(int kind, reduce::Operation<double>* op) {
  const auto& body = kBodies<double>[static_cast<size_t>(kind)];
  op->row = body.row;
  op->columns = body.columns;
  op->merge = Merge(static_cast<reduce::Kind>(kind), op);
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn::reduce {
namespace {

template <class T>
T add(T a, T b) {
  return a + b;
}
template <class T>
T multiply(T a, T b) {
  return a * b;
}
template <class T>
T larger(T a, T b) {
  return a > b || std::isnan(a) ? a : b;
}
template <class T>
T smaller(T a, T b) {
  return a < b || std::isnan(a) ? a : b;
}

template <class T>
Operation<T> scalar_part(Kind kind) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  switch (kind) {
    case Kind::Prod: return {T{1}, nullptr, nullptr, multiply<T>, nullptr};
    case Kind::Max: return {-kInfinity, nullptr, nullptr, larger<T>, nullptr};
    case Kind::MaxAbs: return {T{0}, nullptr, nullptr, larger<T>, nullptr};
    case Kind::Min:
    case Kind::MinAbs: return {kInfinity, nullptr, nullptr, smaller<T>, nullptr};
    default: return {T{0}, nullptr, nullptr, add<T>, nullptr};
  }
}

}  // namespace

HWY_EXPORT(Find32);
HWY_EXPORT(Find64);

template <>
Operation<float> float_operation<float>(Kind kind) {
  auto op = scalar_part<float>(kind);
  HWY_DYNAMIC_DISPATCH(Find32)(static_cast<int>(kind), &op);
  return op;
}
template <>
Operation<double> float_operation<double>(Kind kind) {
  auto op = scalar_part<double>(kind);
  HWY_DYNAMIC_DISPATCH(Find64)(static_cast<int>(kind), &op);
  return op;
}

}  // namespace tn::reduce
#endif
