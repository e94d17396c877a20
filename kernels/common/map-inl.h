// Vector loops over blocks, per target: a functor takes the tag and vectors, and knows no memory.
// Include after foreach_target.h.

#if defined(TN_KERNELS_COMMON_MAP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TN_KERNELS_COMMON_MAP_INL_H_
#undef TN_KERNELS_COMMON_MAP_INL_H_
#else
#define TN_KERNELS_COMMON_MAP_INL_H_
#endif

#include "kernels/common/blocks.h"
#include "kernels/common/hwy-compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

// out[i] = op(d, in0[i], in1[i], ...). The last, partial vector is loaded and stored under a mask.
template <int N, class T, class Op>
HWY_INLINE void MapBlock(const Block<T>& block, const Op& op) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  const auto apply = [&](auto&& load) HWY_ATTR {
    if constexpr (N == 1) return op(d, load(block.in[0]));
    else if constexpr (N == 2) return op(d, load(block.in[0]), load(block.in[1]));
    else if constexpr (N == 3) return op(d, load(block.in[0]), load(block.in[1]), load(block.in[2]));
    else return op(d, load(block.in[0]), load(block.in[1]), load(block.in[2]), load(block.in[3]));
  };
  for (; i + lanes <= block.n; i += lanes)
    hn::StoreU(apply([&](const T* p) HWY_ATTR { return hn::LoadU(d, p + i); }), d, block.out + i);
  if (i < block.n) {
    const size_t rest = block.n - i;
    StoreUpTo(apply([&](const T* p) HWY_ATTR { return LoadUpTo(d, p + i, rest); }), d, block.out + i, rest);
  }
}

// out[i] = op(d, ...) ? 1 : 0, where op gives a mask.
template <int N, class T, class Op>
HWY_INLINE void MapBlockToBool(const Block<T, uint8_t>& block, const Op& op) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  const auto apply = [&](auto&& load) HWY_ATTR {
    if constexpr (N == 1) return op(d, load(block.in[0]));
    else return op(d, load(block.in[0]), load(block.in[1]));
  };
  const auto store = [&](auto mask, size_t at, size_t count) HWY_ATTR {
    uint8_t bits[HWY_MAX_BYTES / 8 + 8] = {};
    hn::StoreMaskBits(d, mask, bits);
    for (size_t k = 0; k < count; ++k) block.out[at + k] = (bits[k >> 3] >> (k & 7)) & 1;
  };
  size_t i = 0;
  for (; i + lanes <= block.n; i += lanes) {
    const auto mask = apply([&](const T* p) HWY_ATTR { return hn::LoadU(d, p + i); });
    if constexpr (sizeof(T) == 4) {
      const hn::RebindToSigned<decltype(d)> di;
      const hn::Rebind<uint8_t, decltype(d)> d8;
      const auto ones = hn::And(hn::BitCast(di, hn::VecFromMask(d, mask)), hn::Set(di, 1));
      hn::StoreU(hn::DemoteTo(d8, ones), d8, block.out + i);
    } else {
      store(mask, i, lanes);
    }
  }
  if (i < block.n) {
    const size_t rest = block.n - i;
    store(apply([&](const T* p) HWY_ATTR { return LoadUpTo(d, p + i, rest); }), i, rest);
  }
}

// Table entries: `Bodies<1>(lambda)` for a functor that captures nothing, `BodiesWith<1>(lambda)` for one made of the
// operator's parameters, as in [](const Arg* p) { return [x = p[0].number()](auto d, auto v) HWY_ATTR {...}; }.
template <int N, class T, class Op>
void RunBlock(const Block<T>& block) {
  MapBlock<N>(block, Op{});
}
template <int N, class Op>
constexpr FloatBodies Bodies(Op) {
  return {&RunBlock<N, float, Op>, &RunBlock<N, double, Op>};
}
template <int N, class T, class Make>
void RunBlockWith(const Block<T>& block) {
  MapBlock<N>(block, Make{}(block.params));
}
template <int N, class Make>
constexpr FloatBodies BodiesWith(Make) {
  return {&RunBlockWith<N, float, Make>, &RunBlockWith<N, double, Make>};
}
template <int N, class T, class Op>
void RunTest(const Block<T, uint8_t>& block) {
  MapBlockToBool<N>(block, Op{});
}
template <int N, class Op>
constexpr TestBodies Tests(Op) {
  return {&RunTest<N, float, Op>, &RunTest<N, double, Op>};
}

// A number as a vector of the tag's type.
template <class D>
HWY_INLINE hn::Vec<D> SetNumber(D d, double value) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(value));
}

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
