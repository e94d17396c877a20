#include "kernels/matmul/activation.h"

#include <cmath>

#include "runtime/convert.h"
#include "runtime/threads.h"

namespace tn::matmul {
namespace {

template <class T>
T gelu(T x) {
  constexpr T kSqrtHalf = static_cast<T>(0.70710678118654752440);
  return x * static_cast<T>(0.5) * (static_cast<T>(1) + std::erf(x * kSqrtHalf));
}

template <class T>
void run(T* data, int64_t n, Activation which) {
  parallel_for(0, n, 8192, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if constexpr (is_small_float_v<T>) {
        const float x = to_float(data[i]);
        from_float(which == Activation::Gelu ? gelu(x) : x < 0 ? 0 : x, &data[i]);
      } else if constexpr (std::is_floating_point_v<T>) {
        data[i] = which == Activation::Gelu ? gelu(data[i]) : data[i] < 0 ? 0 : data[i];  // keeps NaN
      } else {
        data[i] = data[i] < 0 ? 0 : data[i];
      }
    }
  });
}

}  // namespace

void activate(const Tensor& t, Activation which) {
  const ScalarType dtype = t.dtype();
  TN_CHECK(!is_complex(dtype), "clamp is not supported for complex types");
  TN_CHECK_AS(NotImplemented, which == Activation::Relu || is_floating(dtype),
              "\"GeluKernelImpl\" not implemented for '", scalar_type_name(dtype), "'");
  with_element(dtype, [&]<class T>() {
    if constexpr (!is_std_complex_v<T> && !std::is_same_v<T, ComplexHalf> && !std::is_same_v<T, bool>) {
      run(t.data<T>(), t.numel(), which);
    }
  });
}

}  // namespace tn::matmul
