// Ranges whose ends are tensors: they only call the door.
#pragma once
#include <optional>

#include "kernels/common/options.h"
#include "runtime/tensor.h"

namespace tn::composite {

// A number, or a tensor of one.
struct End {
  End(const Scalar& s) : number(s) {}                 // NOLINT
  End(const Tensor* t) : dim(t->dim()), tensor(t) {}  // NOLINT
  Scalar value() const;
  Scalar number;
  int64_t dim = 0;
  const Tensor* tensor = nullptr;
};
struct Ends {
  End start, end;
};

Tensor linspace(const Ends& ends, int64_t steps, const NewTensor& options);
const Tensor& linspace_out(const Ends& ends, int64_t steps, const Tensor& out);
Tensor logspace(const Ends& ends, int64_t steps, double base, const NewTensor& options);
const Tensor& logspace_out(const Ends& ends, int64_t steps, double base, const Tensor& out);

}  // namespace tn::composite
