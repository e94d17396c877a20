#include <algorithm>
#include <vector>

#include "generated/slots/sort.h"
#include "runtime/convert.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/promote.h"
#include "runtime/threads.h"

namespace tn {
namespace {

template <class T>
void mark(const T* x, int64_t n, std::vector<T> set, bool invert, bool* out) {
  // NaN equals nothing.
  std::erase_if(set, [](T v) { return v != v; });
  constexpr size_t kFew = 16;
  if (set.size() > kFew) {
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
  }
  parallel_for(0, n, 8192, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T v = x[i];
      const bool found = v == v && (set.size() > kFew ? std::binary_search(set.begin(), set.end(), v)
                                                      : std::find(set.begin(), set.end(), v) != set.end());
      out[i] = found != invert;
    }
  });
}

void membership(const Tensor& out, const Tensor& elements, const Tensor& tests, bool invert) {
  if (elements.numel() == 0) return;
  const ScalarType common = result_type(elements, tests);
  const ScalarType compute =
      is_floating(common) ? (common == ScalarType::Double ? common : ScalarType::Float) : ScalarType::Long;
  // Through the common dtype, which may round, as comparisons do.
  const Tensor x = contiguous(cast(cast(elements, common), compute)),
               t = contiguous(cast(cast(tests, common), compute));
  bool* to = out.data<bool>();
  with_element(compute, [&]<class T>() {
    if constexpr (std::is_arithmetic_v<T>) {
      const T* p = t.numel() ? t.data<T>() : nullptr;
      mark(x.data<T>(), x.numel(), std::vector<T>(p, p + t.numel()), invert, to);
    }
  });
}
void check_types(const Tensor& t) {
  TN_CHECK(!is_complex(t.dtype()), "Unsupported input type encountered for isin(): ", scalar_type_name(t.dtype()));
  TN_CHECK(t.dtype() != ScalarType::Bool && !is_barebones_unsigned(t.dtype()),
           "Unsupported input type encountered for isin(): ", scalar_type_name(t.dtype()));
}

}  // namespace

namespace slots {

void isin_Tensor_Tensor_meta(Outputs& outs, const Tensor& elements, const Tensor& test_elements, bool, bool) {
  check_types(elements);
  check_types(test_elements);
  outs.set(0, elements.sizes(), ScalarType::Bool, elements.device());
}
void isin_Tensor_Tensor_cpu(Outputs& outs, const Tensor& elements, const Tensor& test_elements, bool, bool invert) {
  membership(outs[0], elements, test_elements, invert);
}
void isin_Tensor_Scalar_meta(Outputs& outs, const Tensor& elements, const Scalar&, bool, bool) {
  check_types(elements);
  outs.set(0, elements.sizes(), ScalarType::Bool, elements.device());
}
void isin_Tensor_Scalar_cpu(Outputs& outs, const Tensor& elements, const Scalar& test_element, bool, bool invert) {
  membership(outs[0], elements, wrapped_scalar(test_element), invert);
}
void isin_Scalar_Tensor_meta(Outputs& outs, const Scalar&, const Tensor& test_elements, bool, bool) {
  check_types(test_elements);
  outs.set(0, {}, ScalarType::Bool, test_elements.device());
}
void isin_Scalar_Tensor_cpu(Outputs& outs, const Scalar& element, const Tensor& test_elements, bool, bool invert) {
  membership(outs[0], wrapped_scalar(element), test_elements, invert);
}

}  // namespace slots
}  // namespace tn
