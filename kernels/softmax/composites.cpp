#include "kernels/softmax/composites.h"

#include <cmath>

#include "generated/ops/_log_softmax.h"
#include "generated/ops/_softmax.h"
#include "generated/ops/_to_copy.h"
#include "generated/slots/softmax.h"
#include "runtime/convert.h"
#include "runtime/copy.h"

namespace tn {
namespace {

Tensor in_dtype(const Tensor& self, std::optional<ScalarType> dtype) {
  return dtype && *dtype != self.dtype() ? at::_to_copy(self, dtype) : self;
}

}  // namespace

Tensor composite::softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return at::_softmax(in_dtype(self, dtype), dim, false);
}
Tensor composite::log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return at::_log_softmax(in_dtype(self, dtype), dim, false);
}

// Rows of minus infinity alone give 0, not NaN.
Tensor native::_safe_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  const Tensor x = in_dtype(self, dtype), out = at::_softmax(x, dim, false);
  if (out.is_meta() || out.numel() == 0) return out;
  const int64_t d = wrap_dim(dim, x.dim());
  int64_t outer = 1, inner = 1;
  const int64_t n = x.dim() == 0 ? 1 : x->size(d);
  for (int64_t k = 0; k < x.dim(); ++k)
    if (k != d) (k < d ? outer : inner) *= x->size(k);
  const Tensor from = contiguous(x);
  with_element(x.dtype(), [&]<class T>() {
    if constexpr (!is_std_complex_v<T> && !std::is_same_v<T, ComplexHalf>) {
      const T* p = from.data<T>();
      T* to = out.data<T>();
      for (int64_t i = 0; i < outer; ++i)
        for (int64_t j = 0; j < inner; ++j) {
          const int64_t start = i * n * inner + j;
          bool masked = true;
          for (int64_t k = 0; k < n && masked; ++k) masked = convert<double>(p[start + k * inner]) == -HUGE_VAL;
          for (int64_t k = 0; k < n && masked; ++k) to[start + k * inner] = T{};
        }
    }
  });
  return out;
}

}  // namespace tn
