#include <atomic>
#include <cstring>

#include "generated/slots/reduce.h"
#include "runtime/convert.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/promote.h"
#include "runtime/threads.h"

namespace tn::native {
namespace {

template <class T>
bool same(const T* a, const T* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (is_small_float_v<T>) {
      if (!(to_float(a[i]) == to_float(b[i]))) return false;
    } else if constexpr (std::is_same_v<T, ComplexHalf>) {
      if (!(to_float(a[i].re) == to_float(b[i].re) && to_float(a[i].im) == to_float(b[i].im))) return false;
    } else if (!(a[i] == b[i])) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool equal(const Tensor& self, const Tensor& other) {
  TN_CHECK(self.device().type == other.device().type,
           "Cannot compare two tensors on different devices. Got: ", self.device().str(), " and ",
           other.device().str());
  if (self.sizes() != other.sizes()) return false;
  if (self.numel() == 0) return true;
  if (self.dtype() != other.dtype()) {
    const ScalarType common = result_type(self, other);
    return equal(cast(self, common), cast(other, common));
  }
  const Tensor a = contiguous(self), b = contiguous(other);
  std::atomic<bool> all{true};
  with_element(a.dtype(), [&]<class T>() {
    const T *left = a.data<T>(), *right = b.data<T>();
    parallel_for(0, a.numel(), 32768, [&](int64_t begin, int64_t end) {
      if (all.load(std::memory_order_relaxed) && !same(left + begin, right + begin, end - begin))
        all.store(false, std::memory_order_relaxed);
    });
  });
  return all.load();
}

}  // namespace tn::native
