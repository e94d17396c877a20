// The table of row conversions for all pairs of dtypes.
#include "runtime/convert.h"

#include <cstring>

#include "runtime/copy.h"
#include "runtime/error.h"

namespace tn {
namespace {

using RowFn = void (*)(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t n);

// Pairs that models convert between: their contiguous loop is compiled apart, so that it vectorises.
template <class From, class To>
constexpr bool hot() {
  const auto common = []<class T>(std::type_identity<T>) {
    return std::is_same_v<T, float> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> || std::is_same_v<T, double> ||
           std::is_same_v<T, int64_t> || std::is_same_v<T, int32_t> || std::is_same_v<T, uint8_t> || std::is_same_v<T, bool>;
  };
  return common(std::type_identity<From>()) && common(std::type_identity<To>());
}

template <class From, class To>
[[gnu::optimize("O3")]] void dense_row(const From* __restrict src, To* __restrict dst, int64_t n) {
  for (int64_t i = 0; i < n; ++i) dst[i] = convert<To>(src[i]);
}

// Foreign memory may start anywhere.
template <class T>
bool aligned(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % alignof(T) == 0;
}

template <class From, class To>
void convert_strided(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t n) {
  if constexpr (hot<From, To>())
    if (src_stride == sizeof(From) && dst_stride == sizeof(To) && aligned<From>(src) && aligned<To>(dst))
      return dense_row(reinterpret_cast<const From*>(src), reinterpret_cast<To*>(dst), n);
  for (int64_t i = 0; i < n; ++i) {
    From v;
    std::memcpy(&v, src, sizeof v);
    const To out = convert<To>(v);
    std::memcpy(dst, &out, sizeof out);
    src += src_stride;
    dst += dst_stride;
  }
}

// The bytes of one element are moved as they are; also for dtypes without conversions.
template <size_t kBytes>
void move_strided(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t n) {
  if (src_stride == kBytes && dst_stride == kBytes) {
    std::memmove(dst, src, static_cast<size_t>(n) * kBytes);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(dst, src, kBytes);
    src += src_stride;
    dst += dst_stride;
  }
}

RowFn mover(size_t bytes) {
  switch (bytes) {
    case 1: return move_strided<1>;
    case 2: return move_strided<2>;
    case 4: return move_strided<4>;
    case 8: return move_strided<8>;
    default: return move_strided<16>;
  }
}

template <class From>
RowFn converter_from(ScalarType to) {
  RowFn fn = nullptr;
  with_element(to, [&]<class To>() { fn = convert_strided<From, To>; });
  return fn;
}

// The dtypes that upstream copies only to themselves, without or with ("bits") a kernel of that.
constexpr bool moves_only(ScalarType t) {
  return (t >= ScalarType::Bits1x8 && t <= ScalarType::Bits16) || is_quantized(t) || t == ScalarType::Float4_e2m1fn_x2 ||
         (t >= ScalarType::UInt1 && t <= ScalarType::Int7);
}

}  // namespace

void convert_row(ScalarType from, const char* src, int64_t src_stride, ScalarType to, char* dst, int64_t dst_stride, int64_t n) {
  if (from == to) return mover(item_size(from))(src, src_stride, dst, dst_stride, n);
  RowFn fn = nullptr;
  with_element(from, [&]<class From>() { fn = converter_from<From>(to); });
  TN_CHECK_AS(NotImplemented, fn != nullptr, "\"copy_\" not implemented for '", scalar_type_name(moves_only(to) ? to : from), "'");
  fn(src, src_stride, dst, dst_stride, n);
}

}  // namespace tn
