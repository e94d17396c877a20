#include "generated/slots/binary.h"
#include "kernels/common/scalars.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/binary/arithmetic.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/common/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tn::HWY_NAMESPACE {

// a + alpha * b. alpha is 1 in nearly every call; then no product is formed, since 1 * inf may raise flags but not change bits.
template <class T>
HWY_INLINE void AddBlock(const Block<T>& block) {
  const T alpha = static_cast<T>(block.params[0].number());
  if (alpha == T{1}) return MapBlock<2>(block, [](auto, auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
  MapBlock<2>(block, [alpha](auto d, auto a, auto b) HWY_ATTR { return hn::MulAdd(b, hn::Set(d, alpha), a); });
}
void Add32(const Block<float>& block) { AddBlock(block); }
void Add64(const Block<double>& block) { AddBlock(block); }

}  // namespace tn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tn {
namespace {

// Wraps around on overflow, as two's complement does.
template <class T>
constexpr T wrap_add(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
}

}  // namespace

HWY_EXPORT(Add32);
HWY_EXPORT(Add64);

const PointwiseSlot slots::add_Tensor = {.row = [](const Row& row) {
  if (map_floats<2>(row, HWY_DYNAMIC_DISPATCH(Add32), HWY_DYNAMIC_DISPATCH(Add64))) return;
  const Scalar alpha = row.params[0].scalar();
  if (row.dtype == ScalarType::Bool) {
    const bool on = alpha.to_bool();
    return map_scalars<bool, bool, bool>(row, [on](bool a, bool b) { return a || (on && b); });
  }
  if (visit_complex(row.dtype, [&]<class T>() {
        const T factor = alpha.to<T>();
        map_scalars<T, T, T>(row, [factor](T a, T b) { return a + factor * b; });
      }))
    return;
  visit_integral(row.dtype, [&]<class T>() {
    const T factor = alpha.to<T>();
    using U = std::make_unsigned_t<T>;
    map_scalars<T, T, T>(row, [factor](T a, T b) {
      return wrap_add<T>(a, static_cast<T>(static_cast<U>(static_cast<U>(factor) * static_cast<U>(b))));
    });
  });
}};

}  // namespace tn
#endif
