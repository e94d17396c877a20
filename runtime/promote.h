// The dtype that an operator's arguments promote to: tensors with dimensions outrank those without, which outrank
// numbers.
#pragma once
#include "runtime/dtype.h"
#include "runtime/scalar.h"
#include "runtime/tensor.h"

namespace tn {

class ResultType {
 public:
  void add(const Tensor& t);
  void add(const Scalar& s);
  // Undefined if nothing was added.
  ScalarType get() const;

 private:
  ScalarType dimensioned_ = ScalarType::Undefined;
  ScalarType zero_dim_ = ScalarType::Undefined;
  ScalarType number_ = ScalarType::Undefined;
};

// torch.result_type of two tensors.
inline ScalarType result_type(const Tensor& a, const Tensor& b) {
  ResultType r;
  r.add(a);
  r.add(b);
  return r.get();
}

}  // namespace tn
