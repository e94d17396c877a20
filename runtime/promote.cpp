#include "runtime/promote.h"

namespace tn {
namespace {

ScalarType join(ScalarType a, ScalarType b) {
  if (a == ScalarType::Undefined) return b;
  if (b == ScalarType::Undefined) return a;
  return promote_types(a, b);
}

// A lower category changes the higher one's dtype only when it is of a higher kind.
ScalarType outrank(ScalarType higher, ScalarType lower) {
  if (is_complex(higher)) return higher;
  if (is_floating(higher)) return is_complex(lower) ? complex_of(higher) : higher;
  if (higher == ScalarType::Bool || is_floating(lower) || is_complex(lower)) return join(higher, lower);
  return higher == ScalarType::Undefined ? lower : higher;
}

// Python's floats and complex numbers count as the default dtype's.
ScalarType as_number(ScalarType t) {
  if (is_complex(t)) return complex_of(default_dtype());
  return is_floating(t) ? default_dtype() : t;
}

}  // namespace

void ResultType::add(const Tensor& t) {
  ScalarType dtype = t.dtype();
  if (t->is_wrapped_number()) {
    dtype = as_number(dtype);
    if (t.dim() == 0) {
      number_ = join(number_, dtype);
      return;
    }
  }
  ScalarType& category = t.dim() > 0 ? dimensioned_ : zero_dim_;
  category = join(category, dtype);
}

void ResultType::add(const Scalar& s) { number_ = join(number_, as_number(s.type())); }

ScalarType ResultType::get() const { return outrank(dimensioned_, outrank(zero_dim_, number_)); }

}  // namespace tn
