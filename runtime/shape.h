// Shape arithmetic and views, below the door.
#pragma once
#include <optional>
#include <vector>

#include "runtime/array_ref.h"
#include "runtime/fwd.h"
#include "runtime/tensor.h"

namespace tn {

// Small sizes without a heap block for up to eight dimensions.
class DimVector {
 public:
  DimVector() = default;
  explicit DimVector(size_t n, int64_t value = 0) { resize(n, value); }
  DimVector(IntView v) { assign(v); }  // NOLINT
  DimVector(const DimVector& o) { assign(o); }
  DimVector& operator=(const DimVector& o) {
    if (this != &o) assign(o);
    return *this;
  }
  ~DimVector() { delete[] heap_; }
  void assign(IntView v);
  void resize(size_t n, int64_t value = 0);
  void push_back(int64_t v) { resize(size_ + 1, v); }
  void erase(size_t i);
  void insert(size_t i, int64_t v);
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t* data() { return heap_ ? heap_ : inline_; }
  const int64_t* data() const { return heap_ ? heap_ : inline_; }
  int64_t& operator[](size_t i) { return data()[i]; }
  int64_t operator[](size_t i) const { return data()[i]; }
  int64_t& back() { return data()[size_ - 1]; }
  int64_t* begin() { return data(); }
  int64_t* end() { return data() + size_; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + size_; }
  operator IntView() const { return {data(), size_}; }  // NOLINT

 private:
  int64_t inline_[8];
  int64_t* heap_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 8;
};

// Broadcast shape; RuntimeError "The size of tensor a (3) must match the size of tensor b (4) at non-singleton
// dimension 0".
DimVector infer_size(IntView a, IntView b);
// Fills in a -1; RuntimeError "shape '[2, 3]' is invalid for input of size 5".
DimVector infer_view_size(IntView shape, int64_t numel);
// Strides of a view of other sizes without copying, if there are any (upstream's rule).
std::optional<DimVector> view_strides(IntView sizes, IntView strides, IntView new_sizes);
MemoryFormat suggest_memory_format(const Tensor& self);
// empty_like's strides: dense in self's order of dimensions.
DimVector preserved_strides(IntView sizes, IntView strides);
// Wrapped, checked for duplicates, as a bit mask over dims; an absent or empty list means all.
uint64_t dim_mask(OptionalIntArrayRef dims, int64_t ndim, bool empty_is_all = true);

}  // namespace tn
