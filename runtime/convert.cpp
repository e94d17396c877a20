// The table of row conversions for all pairs of dtypes.
#include "runtime/convert.h"

#include <algorithm>
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
    return std::is_same_v<T, float> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> ||
           std::is_same_v<T, double> || std::is_same_v<T, int64_t> || std::is_same_v<T, int32_t> ||
           std::is_same_v<T, uint8_t> || std::is_same_v<T, bool>;
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
  return (t >= ScalarType::Bits1x8 && t <= ScalarType::Bits16) || is_quantized(t) ||
         t == ScalarType::Float4_e2m1fn_x2 || (t >= ScalarType::UInt1 && t <= ScalarType::Int7);
}

// Dense runs with a 16-bit float on a side pass through blocks of floats: they mean the same by way of float.
void convert_by_floats(ScalarType from, const char* src, ScalarType to, char* dst, int64_t n) {
  constexpr int64_t kBlock = 1024;
  alignas(64) float block[kBlock];
  const auto from_size = static_cast<int64_t>(item_size(from)), to_size = static_cast<int64_t>(item_size(to));
  const auto bytes = static_cast<int64_t>(sizeof(float));
  for (int64_t done = 0; done < n; done += kBlock) {
    const int64_t count = std::min(kBlock, n - done);
    const auto size = static_cast<size_t>(count);
    const char* s = src + done * from_size;
    char* d = dst + done * to_size;
    const float* floats = from == ScalarType::Float ? reinterpret_cast<const float*>(s) : block;
    float* target = to == ScalarType::Float ? reinterpret_cast<float*>(d) : block;
    if (is_reduced_float(from)) {
      half_runs.widen(from, reinterpret_cast<const uint16_t*>(s), target, size);
      floats = target;
    } else if (from != ScalarType::Float) {
      convert_row(from, s, from_size, ScalarType::Float, reinterpret_cast<char*>(block), bytes, count);
    }
    if (is_reduced_float(to)) half_runs.shorten(to, floats, reinterpret_cast<uint16_t*>(d), size);
    else if (to != ScalarType::Float)
      convert_row(ScalarType::Float, reinterpret_cast<const char*>(floats), bytes, to, d, to_size, count);
  }
}

bool by_floats(ScalarType from, const char* src, int64_t src_stride, ScalarType to, const char* dst,
               int64_t dst_stride) {
  const auto fits = [](ScalarType t, const char* p, int64_t stride) {
    return stride == static_cast<int64_t>(item_size(t)) &&
           reinterpret_cast<uintptr_t>(p) % std::min<size_t>(item_size(t), 8) == 0;
  };
  return half_runs.widen && (is_reduced_float(from) || is_reduced_float(to)) && fits(from, src, src_stride) &&
         fits(to, dst, dst_stride);
}

}  // namespace

constinit HalfRuns half_runs;

void convert_row(ScalarType from, const char* src, int64_t src_stride, ScalarType to, char* dst, int64_t dst_stride,
                 int64_t n) {
  if (from == to) return mover(item_size(from))(src, src_stride, dst, dst_stride, n);
  RowFn fn = nullptr;
  with_element(from, [&]<class From>() { fn = converter_from<From>(to); });
  if (fn && n > 8 && by_floats(from, src, src_stride, to, dst, dst_stride))
    return convert_by_floats(from, src, to, dst, n);
  TN_CHECK_AS(NotImplemented, fn != nullptr, "\"copy_\" not implemented for '",
              scalar_type_name(moves_only(to) ? to : from), "'");
  fn(src, src_stride, dst, dst_stride, n);
}

}  // namespace tn
