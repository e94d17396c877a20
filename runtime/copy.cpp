#include "runtime/copy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/convert.h"
#include "runtime/shape.h"
#include "runtime/threads.h"

namespace tn {
namespace {

constexpr int64_t kGrain = 32768;

// Two operands over one shape: dimensions of size one dropped, adjacent ones merged, fastest of dst first.
struct Pair {
  int dim = 0;
  int64_t numel = 1;
  std::array<int64_t, kMaxDims> shape;
  std::array<int64_t, kMaxDims> to;    // byte strides of dst
  std::array<int64_t, kMaxDims> from;  // and of src

  void swap(int a, int b) {
    std::swap(shape[a], shape[b]);
    std::swap(to[a], to[b]);
    std::swap(from[a], from[b]);
  }
};

// `src` has been checked to broadcast to dst.
void plan(const Tensor& dst, const Tensor& src, Pair& p) {
  const auto to_size = static_cast<int64_t>(dst.itemsize()), from_size = static_cast<int64_t>(src.itemsize());
  const int64_t missing = dst.dim() - src.dim();
  p.numel = dst.numel();
  int n = 0;
  for (int64_t d = dst.dim(); d-- > 0;) {
    const int64_t size = dst->size(d);
    if (size == 1) continue;
    p.shape[n] = size;
    p.to[n] = dst->stride(d) * to_size;
    p.from[n] = d < missing || src->size(d - missing) == 1 ? 0 : src->stride(d - missing) * from_size;
    ++n;
  }
  for (int i = 1; i < n; ++i)  // by dst's strides; few dimensions, mostly in order
    for (int j = i; j > 0 && std::abs(p.to[j]) < std::abs(p.to[j - 1]); --j) p.swap(j, j - 1);
  int last = 0;
  for (int i = 1; i < n; ++i) {
    if (p.shape[last] * p.to[last] == p.to[i] && p.shape[last] * p.from[last] == p.from[i]) {
      p.shape[last] *= p.shape[i];
    } else if (++last != i) {
      p.shape[last] = p.shape[i];
      p.to[last] = p.to[i];
      p.from[last] = p.from[i];
    }
  }
  p.dim = n == 0 ? 0 : last + 1;
}

// Calls row(src, dst, n) for elements [begin, end) in the order of the plan.
template <class F>
void walk(const Pair& p, const char* src, char* dst, int64_t begin, int64_t end, F&& row) {
  if (p.dim == 0) return row(src, dst, 1);
  std::array<int64_t, kMaxDims> index;
  int64_t rest = begin;
  for (int d = 0; d < p.dim; ++d) {
    index[d] = rest % p.shape[d];
    rest /= p.shape[d];
    src += index[d] * p.from[d];
    dst += index[d] * p.to[d];
  }
  for (int64_t done = begin; done < end;) {
    const int64_t n = std::min(p.shape[0] - index[0], end - done);
    row(src, dst, n);
    done += n;
    if (done >= end) return;
    src -= index[0] * p.from[0];
    dst -= index[0] * p.to[0];
    index[0] = 0;
    for (int d = 1; d < p.dim; ++d) {
      src += p.from[d];
      dst += p.to[d];
      if (++index[d] < p.shape[d]) break;
      src -= p.shape[d] * p.from[d];
      dst -= p.shape[d] * p.to[d];
      index[d] = 0;
    }
  }
}

// ---- transposed copies
// -------------------------------------------------------------------------------------------------

constexpr int64_t kTile = 32;

// dst is dense along dimension 0, src along dimension 1: tiles keep the lines of both in the cache.
template <class T>
void transpose_tile(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    char* to = dst + r * dst_stride;
    const char* from = src + r * static_cast<int64_t>(sizeof(T));
    for (int64_t c = 0; c < columns; ++c)
      std::memcpy(to + c * static_cast<int64_t>(sizeof(T)), from + c * src_stride, sizeof(T));
  }
}

// Whether the plan is a batch of such transposes; moves the dense dimension of src to position 1.
bool make_transposed(Pair& p, int64_t item) {
  if (p.dim < 2 || p.to[0] != item || p.from[0] == item || p.from[0] == 0) return false;
  for (int d = 1; d < p.dim; ++d) {
    if (p.from[d] != item || p.shape[d] < 4) continue;
    for (; d > 1; --d) p.swap(d, d - 1);
    return true;
  }
  return false;
}

template <class T>
void copy_transposed(const Pair& p, const char* src, char* dst) {
  const int64_t tiles = (p.shape[1] + kTile - 1) / kTile;
  const int64_t outer = p.numel / (p.shape[0] * p.shape[1]);
  const int64_t strip = std::max<int64_t>(p.shape[0] * std::min(kTile, p.shape[1]), 1);
  parallel_for(0, outer * tiles, std::max<int64_t>(kGrain / strip, 1), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      int64_t rest = k / tiles;
      const int64_t r0 = k % tiles * kTile;
      const char* from = src + r0 * p.from[1];
      char* to = dst + r0 * p.to[1];
      for (int d = 2; d < p.dim; ++d) {
        const int64_t at = rest % p.shape[d];
        rest /= p.shape[d];
        from += at * p.from[d];
        to += at * p.to[d];
      }
      const int64_t rows = std::min(kTile, p.shape[1] - r0);
      for (int64_t c0 = 0; c0 < p.shape[0]; c0 += kTile)
        transpose_tile<T>(from + c0 * p.from[0], p.from[0], to + c0 * p.to[0], p.to[1], rows,
                          std::min(kTile, p.shape[0] - c0));
    }
  });
}

// ---- conj and neg bits
// ---------------------------------------------------------------------------------------------------

template <class T>
void flip_row(char* at, int64_t stride, int64_t n, bool conj, bool neg) {
  for (int64_t i = 0; i < n; ++i, at += stride) {
    T v;
    std::memcpy(&v, at, sizeof v);
    if constexpr (is_std_complex_v<T>) {
      if (neg) v = -v;
      if (conj) v = std::conj(v);
    } else if constexpr (std::is_same_v<T, ComplexHalf>) {
      if (neg) v.re.bits ^= 0x8000;
      if (neg != conj) v.im.bits ^= 0x8000;
    } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      if (neg) v.bits ^= 0x8000;
    } else if constexpr (std::is_floating_point_v<T>) {
      if (neg) v = -v;
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (neg) v = static_cast<T>(T{0} - v);
    } else if constexpr (is_small_float_v<T>) {
      if (neg) from_float(-to_float(v), &v);
    }
    std::memcpy(at, &v, sizeof v);
  }
}

void flip(ScalarType t, char* at, int64_t stride, int64_t n, bool conj, bool neg) {
  with_element(t, [&]<class T>() { flip_row<T>(at, stride, n, conj, neg); });
}

// ---- copying
// ---------------------------------------------------------------------------------------------------------------

void copy_dense(char* dst, const char* src, size_t item, int64_t n) {
  parallel_for(0, n, std::max<int64_t>((int64_t{1} << 20) / static_cast<int64_t>(item), 1),
               [&](int64_t begin, int64_t end) {
                 std::memmove(dst + begin * static_cast<int64_t>(item), src + begin * static_cast<int64_t>(item),
                              static_cast<size_t>(end - begin) * item);
               });
}

void copy_strided(const Tensor& dst, const Tensor& src, char* to, const char* from, bool conj, bool neg) {
  Pair p;
  plan(dst, src, p);
  const ScalarType out = dst.dtype(), in = src.dtype();
  if (in == out && !conj && !neg && make_transposed(p, static_cast<int64_t>(dst.itemsize()))) {
    switch (dst.itemsize()) {
      case 1: return copy_transposed<uint8_t>(p, from, to);
      case 2: return copy_transposed<uint16_t>(p, from, to);
      case 4: return copy_transposed<uint32_t>(p, from, to);
      case 8: return copy_transposed<uint64_t>(p, from, to);
      default: return copy_transposed<std::complex<double>>(p, from, to);
    }
  }
  const int64_t from_stride = p.dim ? p.from[0] : 0, to_stride = p.dim ? p.to[0] : 0;
  parallel_for(0, p.numel, kGrain, [&](int64_t begin, int64_t end) {
    walk(p, from, to, begin, end, [&](const char* s, char* d, int64_t n) {
      convert_row(in, s, from_stride, out, d, to_stride, n);
      if (conj || neg) flip(out, d, to_stride, n, conj, neg);
    });
  });
}

void check_shapes(const Tensor& dst, const Tensor& src) {
  if (dst.sizes() == src.sizes()) return;
  const DimVector both = infer_size(dst.sizes(), src.sizes());
  TN_CHECK(IntView(both) == dst.sizes(), "output with shape ", dst.sizes(), " doesn't match the broadcast shape ",
           IntView(both));
}

Tensor empty_preserved(const Tensor& self, ScalarType dtype) {
  if (self.is_contiguous()) return empty(self.sizes(), dtype, self.device());
  if (self->is_non_overlapping_and_dense()) return empty_strided(self.sizes(), self.strides(), dtype, self.device());
  return empty_strided(self.sizes(), preserved_strides(self.sizes(), self.strides()), dtype, self.device());
}

}  // namespace

void copy_into(const Tensor& dst, const Tensor& src) {
  if (dst.is_same(src)) return;
  check_shapes(dst, src);
  if (dst.is_meta()) return;
  TN_CHECK_AS(NotImplemented, !src.is_meta(), "Cannot copy out of meta tensor; no data!");
  if (dst.numel() == 0) return;
  bool conj = dst->is_conj() != src->is_conj(), neg = dst->is_neg() != src->is_neg();
  // src's bits must act before an imaginary part is dropped or a sign is lost; dst's act after the conversion.
  if ((src->is_conj() || src->is_neg()) && src.dtype() != dst.dtype()) {
    Tensor plain = empty_preserved(src, src.dtype());
    copy_into(plain, src);
    return copy_into(dst, plain);
  }
  conj = conj && dst.is_complex();
  char* to = static_cast<char*>(dst.data_ptr());
  const char* from = static_cast<const char*>(src.data_ptr());
  const bool same_layout =
      dst.sizes() == src.sizes() && ((dst.is_contiguous() && src.is_contiguous()) ||
                                     (dst.strides() == src.strides() && dst->is_non_overlapping_and_dense()));
  if (!same_layout) return copy_strided(dst, src, to, from, conj, neg);
  const int64_t n = dst.numel();
  const auto in = src.dtype(), out = dst.dtype();
  if (in == out && to != from) copy_dense(to, from, dst.itemsize(), n);
  const auto from_size = static_cast<int64_t>(src.itemsize()), to_size = static_cast<int64_t>(dst.itemsize());
  if (in == out && !conj && !neg) return;
  parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
    if (in != out)
      convert_row(in, from + begin * from_size, from_size, out, to + begin * to_size, to_size, end - begin);
    if (conj || neg) flip(out, to + begin * to_size, to_size, end - begin, conj, neg);
  });
}

Tensor cast(const Tensor& self, ScalarType dtype, bool force) {
  if (self.dtype() == dtype && !force) return self;
  Tensor out = empty_preserved(self, dtype);
  copy_into(out, self);
  return out;
}

Tensor contiguous(const Tensor& self, MemoryFormat format) {
  if (self.is_contiguous(format)) return self;
  return clone(self, format);
}

Tensor clone(const Tensor& self, MemoryFormat format) {
  Tensor out = format == MemoryFormat::Preserve ? empty_preserved(self, self.dtype())
                                                : empty(self.sizes(), self.dtype(), self.device(), format);
  copy_into(out, self);
  return out;
}

Tensor resolve(const Tensor& self) {
  if (!self->is_conj() && !self->is_neg()) return self;
  return clone(self, MemoryFormat::Preserve);
}

// ---- scalars
// -------------------------------------------------------------------------------------------------------------

namespace {

template <class T>
constexpr const char* cpp_name() {
  if constexpr (std::is_same_v<T, uint8_t>) return "uint8_t";
  else if constexpr (std::is_same_v<T, int8_t>) return "int8_t";
  else if constexpr (std::is_same_v<T, int16_t>) return "int16_t";
  else if constexpr (std::is_same_v<T, int32_t>) return "int";
  else if constexpr (std::is_same_v<T, int64_t>) return "int64_t";
  else if constexpr (std::is_same_v<T, uint16_t>) return "uint16_t";
  else if constexpr (std::is_same_v<T, uint32_t>) return "uint32_t";
  else if constexpr (std::is_same_v<T, uint64_t>) return "uint64_t";
  else if constexpr (std::is_same_v<T, float>) return "float";
  else if constexpr (std::is_same_v<T, std::complex<float>>) return "c10::complex<float>";
  else if constexpr (std::is_same_v<T, ComplexHalf>) return "c10::complex<c10::Half>";
  else return "double";
}

// Upstream's rule for numbers that a dtype can't hold: unsigned integers take negative ones of their width, floats may
// become infinite only from infinity, and small floats take anything.
template <class T>
bool holds(const Scalar& s) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::complex<double>>) {
    return true;
  } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, ComplexHalf>) {
    constexpr double kMax =
        std::is_same_v<T, ComplexHalf> ? 65504.0 : static_cast<double>(std::numeric_limits<float>::max());
    const auto fits = [](double v) { return !(std::abs(v) > kMax) || std::isinf(v); };
    return fits(s.to_complex().real()) && fits(s.to_complex().imag());
  } else {
    if (s.is_complex() && s.to_complex().imag() != 0) return false;
    if constexpr (is_small_float_v<T> || std::is_same_v<T, double>) {
      return true;
    } else if constexpr (std::is_same_v<T, float>) {
      const double v = s.to_double();
      return !(std::abs(v) > static_cast<double>(std::numeric_limits<float>::max())) || std::isinf(v);
    } else {
      using Limits = std::numeric_limits<T>;
      if (s.is_floating() || s.is_complex()) {
        const double v = s.to_double();
        return v >= static_cast<double>(Limits::min()) && v <= static_cast<double>(Limits::max());
      }
      if (s.kind() == Scalar::Kind::UInt) return s.to_uint64() <= static_cast<uint64_t>(Limits::max());
      const int64_t v = s.to_int64();
      if constexpr (std::is_unsigned_v<T>)
        return v >= 0 ? static_cast<uint64_t>(v) <= Limits::max()
                      : uint64_t{0} - static_cast<uint64_t>(v) <= Limits::max();
      else return v >= Limits::min() && v <= Limits::max();
    }
  }
}

template <class T>
T number(const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Double: return convert<T>(s.to_double());
    case Scalar::Kind::Complex: return convert<T>(s.to_complex());
    case Scalar::Kind::Bool: return convert<T>(s.to_bool());
    case Scalar::Kind::Int: return convert<T>(s.to_int64());
    case Scalar::Kind::UInt: break;
  }
  return convert<T>(s.to_uint64());
}

}  // namespace

void store_scalar(const Scalar& s, ScalarType dtype, void* out, bool checked) {
  const bool known = with_element(dtype, [&]<class T>() {
    TN_CHECK(!checked || holds<T>(s), "value cannot be converted to type ", cpp_name<T>(), " without overflow");
    const T v = number<T>(s);
    std::memcpy(out, &v, sizeof v);
  });
  TN_CHECK_AS(NotImplemented, known, "\"fill_cpu\" not implemented for '", scalar_type_name(dtype), "'");
}

void fill(const Tensor& self, const Scalar& value) {
  if (self.is_meta()) return;
  alignas(16) char one[16];
  store_scalar(value, self.dtype(), one, true);
  if (self.numel() == 0) return;
  if (self->is_conj() || self->is_neg())
    flip(self.dtype(), one, 0, 1, self->is_conj() && self.is_complex(), self->is_neg());
  const ScalarType t = self.dtype();
  const auto item = static_cast<int64_t>(self.itemsize());
  char* to = static_cast<char*>(self.data_ptr());
  if (self.is_contiguous() || self->is_non_overlapping_and_dense()) {
    const bool zeros = std::all_of(one, one + item, [](char c) { return c == 0; });
    parallel_for(0, self.numel(), kGrain * 4, [&](int64_t begin, int64_t end) {
      if (zeros || item == 1) std::memset(to + begin * item, one[0], static_cast<size_t>((end - begin) * item));
      else convert_row(t, one, 0, t, to + begin * item, item, end - begin);
    });
    return;
  }
  Pair p;
  plan(self, self, p);
  std::fill_n(p.from.begin(), p.dim, 0);
  const int64_t stride = p.dim ? p.to[0] : 0;
  walk(p, one, to, 0, p.numel, [&](const char* s, char* d, int64_t n) { convert_row(t, s, 0, t, d, stride, n); });
}

void zero(const Tensor& self) {
  if (self.is_meta() || self.numel() == 0) return;
  if (self.is_contiguous() || self->is_non_overlapping_and_dense()) {
    char* to = static_cast<char*>(self.data_ptr());
    const auto item = static_cast<int64_t>(self.itemsize());
    parallel_for(0, self.numel() * item, int64_t{1} << 20,
                 [&](int64_t begin, int64_t end) { std::memset(to + begin, 0, static_cast<size_t>(end - begin)); });
    return;
  }
  fill(self, Scalar(int64_t{0}));
}

Scalar item(const Tensor& self) {
  TN_CHECK(self.numel() > 0, "a Tensor with 0 elements cannot be converted to Scalar");
  TN_CHECK_AS(NotImplemented, !self.is_meta(), "Cannot copy out of meta tensor; no data!");
  alignas(16) char one[16];
  std::memcpy(one, self.data_ptr(), self.itemsize());
  if (self->is_conj() || self->is_neg()) flip(self.dtype(), one, 0, 1, self->is_conj(), self->is_neg());
  Scalar out;
  const bool known = with_element(self.dtype(), [&]<class T>() {
    T v;
    std::memcpy(&v, one, sizeof v);
    if constexpr (std::is_same_v<T, bool>) out = Scalar(v);
    else if constexpr (std::is_same_v<T, uint64_t>)
      out = v > static_cast<uint64_t>(INT64_MAX) ? Scalar(v) : Scalar(static_cast<int64_t>(v));
    else if constexpr (std::is_integral_v<T>) out = Scalar(static_cast<int64_t>(v));
    else if constexpr (is_std_complex_v<T> || std::is_same_v<T, ComplexHalf>)
      out = Scalar(convert<std::complex<double>>(v));
    else out = Scalar(convert<double>(v));
  });
  TN_CHECK_AS(NotImplemented, known, "\"_local_scalar_dense_cpu\" not implemented for '",
              scalar_type_name(self.dtype()), "'");
  return out;
}

}  // namespace tn
