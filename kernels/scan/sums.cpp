#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "generated/slots/scan.h"
#include "kernels/common/accumulate.h"
#include "kernels/scan/split.h"
#include "runtime/convert.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/threads.h"

namespace tn {
namespace {

using scan::Split;
using scan::split_at;

struct Add {
  template <class A>
  A operator()(A a, A b) const {
    if constexpr (std::is_same_v<A, int64_t>)
      return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else return a + b;
  }
};
struct Multiply {
  template <class A>
  A operator()(A a, A b) const {
    if constexpr (std::is_same_v<A, int64_t>)
      return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else return a * b;
  }
};
// log(e^a + e^b), also where both are infinite.
struct LogAddExp {
  template <class A>
  A operator()(A a, A b) const {
    if constexpr (std::is_floating_point_v<A>) {
      const A low = std::isnan(a) || a < b ? a : b, high = std::isnan(a) || a > b ? a : b;
      if (low == high && std::isinf(low)) return low;
      return std::isfinite(low) || low != high ? std::log1p(std::exp(low - high)) + high : high;
    } else if constexpr (is_std_complex_v<A>) {
      using R = typename A::value_type;
      if (std::isnan(a.real()) || std::isnan(a.imag()) || std::isnan(b.real()) || std::isnan(b.imag()))
        return {std::numeric_limits<R>::quiet_NaN(), std::numeric_limits<R>::quiet_NaN()};
      const bool less = a.real() < b.real();
      const A low = less ? a : b, high = less ? b : a;
      if (std::isinf(low.real()) && low.real() == high.real())
        return low.real() < 0 ? low : std::log(std::exp(low) + std::exp(high));
      const A z = std::exp(low - high);  // log1p of it, exact for small parts
      const R norm = std::log1p(2 * z.real() + z.real() * z.real() + z.imag() * z.imag()) / 2;
      return A(norm, std::atan2(z.imag(), 1 + z.real())) + high;
    } else {
      return a;
    }
  }
};

// Rows by fours: each alone waits for its own additions.
template <class S, class A, class Op>
void rows(const S* x, int64_t count, int64_t n, A start, S* out, Op op) {
  int64_t r = 0;
  for (; r + 4 <= count; r += 4, x += 4 * n, out += 4 * n) {
    A a = start, b = start, c = start, d = start;
    for (int64_t i = 0; i < n; ++i) {
      a = op(a, convert<A>(x[i]));
      b = op(b, convert<A>(x[n + i]));
      c = op(c, convert<A>(x[2 * n + i]));
      d = op(d, convert<A>(x[3 * n + i]));
      out[i] = convert<S>(a);
      out[n + i] = convert<S>(b);
      out[2 * n + i] = convert<S>(c);
      out[3 * n + i] = convert<S>(d);
    }
  }
  for (; r < count; ++r, x += n, out += n) {
    A a = start;
    for (int64_t i = 0; i < n; ++i) {
      a = op(a, convert<A>(x[i]));
      out[i] = convert<S>(a);
    }
  }
}
template <class S, class A, class Op>
void columns(const S* x, const Split& s, int64_t cols, A start, S* out, Op op) {
  constexpr int64_t kCols = 256;
  A carry[kCols];
  for (int64_t begin = 0; begin < cols; begin += kCols) {
    const int64_t width = std::min(kCols, cols - begin);
    std::fill_n(carry, width, start);
    for (int64_t i = 0; i < s.n; ++i) {
      const S* from = x + begin + i * s.inner;
      S* to = out + begin + i * s.inner;
      for (int64_t j = 0; j < width; ++j) {
        carry[j] = op(carry[j], convert<A>(from[j]));
        to[j] = convert<S>(carry[j]);
      }
    }
  }
}

template <class Op>
void run(const Tensor& out, const Tensor& self, int64_t dim, double start, Op op) {
  if (self.numel() == 0) return;
  const Tensor x = contiguous(cast(self, out.dtype()));
  const Split s = split_at(x, dim);
  with_element(x.dtype(), [&]<class S>() {
    if constexpr ((!is_small_float_v<S> || sizeof(S) == 2) && !std::is_same_v<S, ComplexHalf>) {
      using A = CarryType<S>;
      const S* from = x.data<S>();
      S* to = out.data<S>();
      const A first = convert<A>(start);
      const int64_t grain = std::max<int64_t>(1, 16384 / s.n);
      if (s.inner == 1) {
        parallel_for(0, s.outer, (grain + 3) / 4 * 4, [&](int64_t begin, int64_t end) {
          rows(from + begin * s.n, end - begin, s.n, first, to + begin * s.n, op);
        });
        return;
      }
      constexpr int64_t kWidth = 256;
      const int64_t blocks = (s.inner + kWidth - 1) / kWidth;
      parallel_for(0, s.outer * blocks, std::max<int64_t>(1, grain / std::min(s.inner, kWidth)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t t = begin; t < end; ++t) {
                       const int64_t column = t % blocks * kWidth, at = t / blocks * s.n * s.inner + column;
                       columns(from + at, s, std::min(kWidth, s.inner - column), first, to + at, op);
                     }
                   });
    }
  });
}

// In place, integers stay what they are.
void set_running(Outputs& outs, const char* name, const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  wrap_dim(dim, self.dim());
  const bool in_place = outs.form() == Outputs::Form::Inplace;
  const bool widens = is_integral(self.dtype(), true) && !in_place;
  TN_CHECK_AS(NotImplemented, !(in_place && self.dtype() == ScalarType::Bool), '"', name,
              "_out_cpu\" not implemented for 'Bool'");
  outs.set(0, self.sizes(), dtype.value_or(widens ? ScalarType::Long : self.dtype()), self.device());
}

}  // namespace

namespace slots {

void cumsum_meta(Outputs& outs, const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  set_running(outs, "cumsum", self, dim, dtype);
}
void cumsum_cpu(Outputs& outs, const Tensor& self, int64_t dim, std::optional<ScalarType>) {
  run(outs[0], self, dim, 0, Add());
}
void cumprod_meta(Outputs& outs, const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  set_running(outs, "cumprod", self, dim, dtype);
}
void cumprod_cpu(Outputs& outs, const Tensor& self, int64_t dim, std::optional<ScalarType>) {
  run(outs[0], self, dim, 1, Multiply());
}

}  // namespace slots

Tensor native::_logcumsumexp(const Tensor& self, int64_t dim) {
  TN_CHECK_AS(NotImplemented, is_floating(self.dtype()) || is_complex(self.dtype()),
              "\"logcumsumexp_out_cpu\" not implemented for '", scalar_type_name(self.dtype()), "'");
  wrap_dim(dim, self.dim());
  const Tensor out = empty(self.sizes(), self.dtype());
  run(out, self, dim, -HUGE_VAL, LogAddExp());
  return out;
}
Tensor native::logcumsumexp(const Tensor& self, int64_t dim) { return native::_logcumsumexp(self, dim); }

}  // namespace tn
