// arange and the older range.
#include <algorithm>
#include <cmath>
#include <limits>

#include "generated/slots/factory.h"
#include "kernels/common/options.h"
#include "kernels/common/accumulate.h"
#include "kernels/factory/dense.h"
#include "runtime/convert.h"
#include "runtime/threads.h"
#include "runtime/warn.h"

namespace tn::native {
namespace {

template <class F>
void with_range_type(const char* name, ScalarType t, F&& f) {
  switch (t) {
    case ScalarType::Byte: return f.template operator()<uint8_t>();
    case ScalarType::Char: return f.template operator()<int8_t>();
    case ScalarType::Short: return f.template operator()<int16_t>();
    case ScalarType::Int: return f.template operator()<int32_t>();
    case ScalarType::Long: return f.template operator()<int64_t>();
    case ScalarType::Half: return f.template operator()<Half>();
    case ScalarType::BFloat16: return f.template operator()<BFloat16>();
    case ScalarType::Float: return f.template operator()<float>();
    case ScalarType::Double: return f.template operator()<double>();
    default: not_implemented(name, t);
  }
}

// A number of the checked conversion to the counting type.
template <class W>
W counted(const Scalar& s) {
  W v;
  store_scalar(s,
               std::is_same_v<W, int64_t>  ? ScalarType::Long
               : std::is_same_v<W, double> ? ScalarType::Double
                                           : ScalarType::Float,
               &v, true);
  return v;
}

void check_bounds(double start, double end, double step) {
  TN_CHECK(step > 0 || step < 0, "step must be nonzero");
  TN_CHECK(std::isfinite(start) && std::isfinite(end), "unsupported range: ", start, " -> ", end);
  TN_CHECK((step > 0 && end >= start) || (step < 0 && end <= start),
           "upper bound and lower bound inconsistent with step sign");
}

template <class T>
double arange_length(const Scalar& start, const Scalar& end, const Scalar& step) {
  if constexpr (std::is_same_v<T, int64_t>) {
    const auto first = counted<int64_t>(start), last = counted<int64_t>(end), by = counted<int64_t>(step);
    TN_CHECK_AS(Value, by != 0, "step must be nonzero");
    const int64_t sign = (by > 0) - (by < 0);
    return std::ceil(static_cast<double>((last - first + by - sign) / by));
  } else {
    return std::ceil((end.to_double() - start.to_double()) / step.to_double());
  }
}

// Upstream's vector loop starts each vector of its 32 bytes from a rounded base; what is left behind two vectors is
// counted one by one. The values are those of its AVX2 code, which contracts to multiply-adds.
template <class T>
void fill_range(T* out, CarryType<T> start, CarryType<T> step, int64_t n) {
  using W = CarryType<T>;
  constexpr int64_t kGrain = 32768;
  if constexpr (std::is_same_v<W, int64_t>) {
    parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        out[i] = static_cast<T>(static_cast<uint64_t>(start) + static_cast<uint64_t>(step) * static_cast<uint64_t>(i));
    });
  } else {
    constexpr int64_t kLanes = 32 / sizeof(T);
    if constexpr (std::is_same_v<W, double>) {
      // Whole numbers need no rounding: any order of operations gives them.
      const auto whole = [](double v) { return v == std::nearbyint(v); };
      if (whole(start) && whole(step) && std::abs(start) + std::abs(step) * static_cast<double>(n) < 0x1p53 &&
          sizeof(T) == 8) {
        parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) out[i] = convert<T>(start + step * static_cast<double>(i));
        });
        return;
      }
      if (whole(start) && whole(step) && std::abs(start) + std::abs(step) * static_cast<double>(n) < 0x1p24) {
        parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            out[i] = convert<T>(start + step * static_cast<double>(static_cast<int32_t>(i)));
        });
        return;
      }
    }
    const int64_t blocks = n - n % (2 * kLanes);
    parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (i >= blocks) {
          out[i] = convert<T>(std::fma(step, static_cast<W>(i), start));
          continue;
        }
        const int64_t lane = i % kLanes;
        const W base = convert<W>(convert<T>(std::fma(step, static_cast<W>(i - lane), start)));
        out[i] = convert<T>(std::fma(step, static_cast<W>(lane), base));
      }
    });
  }
}

const Tensor& arange_into(const Tensor& out, const Scalar& start, const Scalar& end, const Scalar& step) {
  with_range_type("arange_cpu", out.dtype(), [&]<class T>() {
    using W = CarryType<T>;
    counted<W>(start), counted<W>(end), counted<W>(step);
    check_bounds(counted<double>(start), counted<double>(end), counted<double>(step));
    const double length = arange_length<T>(start, end, step);
    TN_CHECK(length >= 0 && length <= static_cast<double>(std::numeric_limits<int64_t>::max()),
             "invalid size, possible overflow?");
    const auto n = static_cast<int64_t>(length);
    if (out.numel() != n) {
      if (out.numel() > 0)
        warn(str("The number of elements in the out tensor of shape ", out.sizes(), " is ", out.numel(),
                 " which does not match the computed number of elements ", n,
                 ". Note that this may occur as a result of rounding error. The out tensor will be resized to a tensor "
                 "of shape (",
                 n, ",)."));
      const int64_t size[] = {n};
      resize_impl(*out.impl(), size);
    }
    write_dense(out, [&](void* data) { fill_range(static_cast<T*>(data), counted<W>(start), counted<W>(step), n); });
  });
  return out;
}

const Tensor& range_into(const Tensor& out, const Scalar& start, const Scalar& end, const Scalar& step) {
  with_range_type("range_cpu", out.dtype(), [&]<class T>() {
    using W = CarryType<T>;
    const W first = counted<W>(start), last = counted<W>(end), by = counted<W>(step);
    TN_CHECK(by > 0 || by < 0, "step must be nonzero");
    TN_CHECK(std::isfinite(static_cast<double>(first)) && std::isfinite(static_cast<double>(last)),
             "unsupported range: ", first, " -> ", last);
    TN_CHECK((by > 0 && last >= first) || (by < 0 && last <= first),
             "upper bound and lower bound inconsistent with step sign");
    const auto n = static_cast<int64_t>((last - first) / by + 1);
    const int64_t size[] = {n};
    if (out.numel() != n) resize_impl(*out.impl(), size);
    write_dense(out, [&](void* data) {
      T* to = static_cast<T*>(data);
      for (int64_t i = 0; i < n; ++i) to[i] = convert<T>(static_cast<W>(first + static_cast<W>(i) * by));
    });
  });
  return out;
}

ScalarType range_dtype(std::optional<ScalarType> given, const Scalar& start, const Scalar& end, const Scalar& step) {
  if (given) return *given;
  return start.is_integral(true) && end.is_integral(true) && step.is_integral(true) ? ScalarType::Long
                                                                                    : default_dtype();
}

const int64_t kNone[] = {0};

}  // namespace

const Tensor& arange_start_out(const Scalar& start, const Scalar& end, const Scalar& step, const Tensor& out) {
  return arange_into(out, start, end, step);
}
const Tensor& arange_out(const Scalar& end, const Tensor& out) { return arange_into(out, 0, end, 1); }
Tensor arange_start_step(const Scalar& start, const Scalar& end, const Scalar& step, std::optional<ScalarType> dtype,
                         std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  const NewTensor options{dtype, layout, device, pin_memory};
  Tensor out = options.make("aten::arange", kNone, range_dtype(dtype, start, end, step));
  arange_into(out, start, end, step);
  return out;
}
Tensor arange_start(const Scalar& start, const Scalar& end, std::optional<ScalarType> dtype,
                    std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  return arange_start_step(start, end, 1, dtype, layout, device, pin_memory);
}
Tensor arange(const Scalar& end, std::optional<ScalarType> dtype, std::optional<Layout> layout,
              std::optional<Device> device, std::optional<bool> pin_memory) {
  return arange_start_step(0, end, 1, dtype, layout, device, pin_memory);
}

const Tensor& range_out(const Scalar& start, const Scalar& end, const Scalar& step, const Tensor& out) {
  return range_into(out, start, end, step);
}
const Tensor& range_out_(const Scalar& start, const Scalar& end, const Tensor& out) {
  return range_into(out, start, end, 1);
}
Tensor range_step(const Scalar& start, const Scalar& end, const Scalar& step, std::optional<ScalarType> dtype,
                  std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  const NewTensor options{dtype, layout, device, pin_memory};
  Tensor out = options.make("aten::range", kNone, default_dtype());
  range_into(out, start, end, step);
  return out;
}
Tensor range(const Scalar& start, const Scalar& end, std::optional<ScalarType> dtype, std::optional<Layout> layout,
             std::optional<Device> device, std::optional<bool> pin_memory) {
  return range_step(start, end, 1, dtype, layout, device, pin_memory);
}

}  // namespace tn::native
