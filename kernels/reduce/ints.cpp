#include "kernels/reduce/ints.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/ints.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/common/hwy-compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

template <class Vector, class Scalar>
HWY_INLINE int64_t FoldInts(const int64_t* HWY_RESTRICT p, int64_t n, int64_t identity, const Vector& both,
                            const Scalar& two) {
  const hn::ScalableTag<int64_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Set(d, identity), b = a, c = a, e = a;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = both(a, hn::LoadU(d, p + i));
    b = both(b, hn::LoadU(d, p + i + lanes));
    c = both(c, hn::LoadU(d, p + i + 2 * lanes));
    e = both(e, hn::LoadU(d, p + i + 3 * lanes));
  }
  HWY_ALIGN int64_t parts[HWY_MAX_BYTES / sizeof(int64_t)];
  hn::Store(both(both(a, b), both(c, e)), d, parts);
  int64_t all = identity;
  for (int64_t k = 0; k < lanes; ++k) all = two(all, parts[k]);
  for (; i < n; ++i) all = two(all, p[i]);
  return all;
}

int64_t SumInts(const int64_t* p, int64_t n) {
  return FoldInts(
      p, n, 0, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); },
      [](int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); });
}
int64_t LargestInts(const int64_t* p, int64_t n) {
  return FoldInts(
      p, n, std::numeric_limits<int64_t>::min(), [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); },
      [](int64_t a, int64_t b) { return a > b ? a : b; });
}
int64_t SmallestInts(const int64_t* p, int64_t n) {
  return FoldInts(
      p, n, std::numeric_limits<int64_t>::max(), [](auto a, auto b) HWY_ATTR { return hn::Min(a, b); },
      [](int64_t a, int64_t b) { return a < b ? a : b; });
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
HWY_EXPORT(SumInts);
HWY_EXPORT(LargestInts);
HWY_EXPORT(SmallestInts);
int64_t reduce::sum_row(const int64_t* p, int64_t n) { return HWY_DYNAMIC_DISPATCH(SumInts)(p, n); }
int64_t reduce::largest_in_row(const int64_t* p, int64_t n) { return HWY_DYNAMIC_DISPATCH(LargestInts)(p, n); }
int64_t reduce::smallest_in_row(const int64_t* p, int64_t n) { return HWY_DYNAMIC_DISPATCH(SmallestInts)(p, n); }
}  // namespace tn
#endif
