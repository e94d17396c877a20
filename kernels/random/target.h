// Tensors as targets and sources of random fills.
#pragma once
#include "kernels/random/fill.h"
#include "runtime/shape.h"
#include "runtime/tensor.h"

namespace tn::rng {

// A tensor that is filled; a complex one as pairs of reals.
class TensorTarget {
 public:
  explicit TensorTarget(const Tensor& t);
  operator Target() const { return {dtype_, data_, sizes_, strides_}; }  // NOLINT

 private:
  DimVector sizes_, strides_;
  ScalarType dtype_;
  void* data_;
};

// Strides with which `t` reads as if expanded to `sizes`; RuntimeError when it can't be.
DimVector expanded_strides(const Tensor& t, IntView sizes);

// Upstream's refusal of a target that writes one element twice.
void check_no_overlap(const Tensor& t);

}  // namespace tn::rng
