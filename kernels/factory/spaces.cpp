// linspace and logspace: from both ends towards the middle, so that the last value is exact.
#include <cmath>
#include <complex>

#include "generated/slots/factory.h"
#include "kernels/common/options.h"
#include "kernels/factory/dense.h"
#include "runtime/convert.h"
#include "runtime/threads.h"

namespace tn::native {
namespace {

constexpr int64_t kGrain = 32768;

// A number in a 16-bit format: each operation rounds, as upstream's scalar types do.
template <class H>
struct Rounded {
  float v = 0;
  Rounded() = default;
  Rounded(float f) {  // NOLINT
    H h;
    from_float(f, &h);
    v = to_float(h);
  }
  operator H() const {  // NOLINT
    H h;
    from_float(v, &h);
    return h;
  }
  friend Rounded operator+(Rounded a, Rounded b) { return a.v + b.v; }
  friend Rounded operator-(Rounded a, Rounded b) { return a.v - b.v; }
  friend Rounded operator*(Rounded a, Rounded b) { return a.v * b.v; }
  friend Rounded operator/(Rounded a, Rounded b) { return a.v / b.v; }
};
// The real type beside a type of numbers: counts are of it, so that a complex step isn't multiplied by a complex count.
template <class P>
struct Count {
  using Type = P;
};
template <class F>
struct Count<std::complex<F>> {
  using Type = F;
};
template <class H>
struct Count<Rounded<H>> {
  using Type = Rounded<H>;
};

template <class F>
std::complex<F> power(double base, std::complex<F> exponent) {
  return std::pow(std::complex<F>(static_cast<F>(base)), exponent);
}

template <class T, class P>
T stored(P v) {
  if constexpr (is_small_float_v<T> && !std::is_same_v<P, double>) return v;
  else return convert<T>(v);
}

// from + step * n. Upstream's linspace is compiled with fused multiply-adds, its logspace is not.
template <bool kFused, class P>
P advance(P from, P step, double n) {
  // Products of floats are exact in double, so that the sum is rounded as a fused one.
  if constexpr (std::is_same_v<P, float> && kFused)
    return static_cast<float>(static_cast<double>(step) * n + static_cast<double>(from));
  else if constexpr (std::is_floating_point_v<P>)
    return kFused ? std::fma(step, static_cast<P>(n), from) : from + step * static_cast<P>(n);
  else if constexpr (is_std_complex_v<P>)
    return {advance<kFused>(from.real(), step.real(), n), advance<kFused>(from.imag(), step.imag(), n)};
  else return from + step * P(static_cast<float>(n));
}

// value(P) gives the element for a point of the line.
template <bool kFused, class T, class P, class Value>
void fill_line(T* out, P start, P end, P span, int64_t steps, Value&& value) {
  using C = typename Count<P>::Type;
  C intervals;
  if constexpr (std::is_same_v<C, double>) intervals = static_cast<double>(steps - 1);
  else intervals = C(static_cast<float>(steps - 1));
  const P step = span / intervals;
  const int64_t halfway = steps / 2;
  parallel_for(0, steps, kGrain, [&](int64_t begin, int64_t stop) {
    for (int64_t i = begin; i < stop; ++i)
      out[i] = stored<T>(value(i < halfway ? advance<kFused>(start, step, static_cast<double>(i))
                                           : advance<kFused>(end, step, -static_cast<double>(steps - i - 1))));
  });
}

// Calls f<T, P>(): elements are T, the line is calculated in P.
template <class F>
void with_line_types(const char* name, ScalarType t, F&& f) {
  switch (t) {
    case ScalarType::Byte: return f.template operator()<uint8_t, double>();
    case ScalarType::Char: return f.template operator()<int8_t, double>();
    case ScalarType::Short: return f.template operator()<int16_t, double>();
    case ScalarType::Int: return f.template operator()<int32_t, double>();
    case ScalarType::Long: return f.template operator()<int64_t, double>();
    case ScalarType::Half: return f.template operator()<Half, Rounded<Half>>();
    case ScalarType::BFloat16: return f.template operator()<BFloat16, Rounded<BFloat16>>();
    case ScalarType::Float: return f.template operator()<float, float>();
    case ScalarType::Double: return f.template operator()<double, double>();
    case ScalarType::ComplexFloat: return f.template operator()<std::complex<float>, std::complex<float>>();
    case ScalarType::ComplexDouble: return f.template operator()<std::complex<double>, std::complex<double>>();
    default: not_implemented(name, t);
  }
}

// The number as an element, then as the line's type.
template <class T, class P>
P end_of_line(const Scalar& s, ScalarType t) {
  T v;
  store_scalar(s, t, &v, true);
  if constexpr (is_small_float_v<T>) return P(to_float(v));
  else return convert<P>(v);
}

void resize_to(const Tensor& out, int64_t steps) {
  TN_CHECK(steps >= 0, "number of steps must be non-negative");
  const int64_t size[] = {steps};
  if (out.numel() != steps) resize_impl(*out.impl(), size);
}

Tensor make(const char* name, const Scalar& start, const Scalar& end, int64_t steps, const NewTensor& options) {
  TN_CHECK(steps >= 0, "number of steps must be non-negative");
  ScalarType fallback = default_dtype();
  if (start.is_complex() || end.is_complex()) {
    fallback = complex_of(default_dtype());
    TN_CHECK(!options.dtype || is_complex(*options.dtype), name, ": inferred dtype ", element_type_name(fallback),
             " can't be safely cast to passed dtype ", scalar_type_name(options.dtype.value_or(fallback)));
  }
  const int64_t size[] = {steps};
  return options.make(str("aten::", std::string_view(name).substr(6, 8)), size, fallback);
}

}  // namespace

const Tensor& linspace_out(const Scalar& start, const Scalar& end, int64_t steps, const Tensor& out) {
  resize_to(out, steps);
  if (steps == 1) {
    fill(out, start);
    return out;
  }
  write_dense(out, [&](void* data) {
    with_line_types("linspace_cpu", out.dtype(), [&]<class T, class P>() {
      const P first = end_of_line<T, P>(start, out.dtype()), last = end_of_line<T, P>(end, out.dtype());
      fill_line<true>(static_cast<T*>(data), first, last, last - first, steps, [](P v) { return v; });
    });
  });
  return out;
}

const Tensor& logspace_out(const Scalar& start, const Scalar& end, int64_t steps, double base, const Tensor& out) {
  resize_to(out, steps);
  if (steps == 1) {
    if (out.is_complex()) fill(out, std::pow(std::complex<double>(base), start.to_complex()));
    else fill(out, std::pow(base, start.to_double()));
    return out;
  }
  write_dense(out, [&](void* data) {
    with_line_types("logspace_cpu", out.dtype(), [&]<class T, class P>() {
      const P first = end_of_line<T, P>(start, out.dtype()), last = end_of_line<T, P>(end, out.dtype());
      if constexpr (is_std_complex_v<P>) {
        fill_line<false>(static_cast<T*>(data), first, last, last - first, steps,
                         [base](P v) { return power(base, v); });
      } else {
        // Real exponents are counted in double, between ends of the element's type.
        const auto wide = [](P v) {
          if constexpr (is_small_float_v<T>) return static_cast<double>(v.v);
          else return static_cast<double>(v);
        };
        fill_line<false>(static_cast<T*>(data), wide(first), wide(last), wide(last - first), steps,
                         [base](double v) { return std::pow(base, v); });
      }
    });
  });
  return out;
}

Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, std::optional<ScalarType> dtype,
                std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  Tensor out = make("torch.linspace()", start, end, steps, {dtype, layout, device, pin_memory});
  linspace_out(start, end, steps, out);
  return out;
}
Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base, std::optional<ScalarType> dtype,
                std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  Tensor out = make("torch.logspace()", start, end, steps, {dtype, layout, device, pin_memory});
  logspace_out(start, end, steps, base, out);
  return out;
}

}  // namespace tn::native
