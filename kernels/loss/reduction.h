// What losses share: upstream's numbers of reductions, the types that they have, and broadcast operands.
#pragma once
#include <cstdint>

#include "runtime/convert.h"
#include "runtime/copy.h"
#include "runtime/shape.h"
#include "runtime/slots.h"
#include "runtime/threads.h"

namespace tn::loss {

inline constexpr int64_t kNone = 0, kMean = 1, kSum = 2;

template <class F>
void visit_floating(ScalarType dtype, F&& f) {
  switch (dtype) {
    case ScalarType::Float: return f.template operator()<float>();
    case ScalarType::Double: return f.template operator()<double>();
    case ScalarType::Half: return f.template operator()<Half>();
    case ScalarType::BFloat16: return f.template operator()<BFloat16>();
    default: return;
  }
}

// The operand in a dtype, broadcast to sizes, contiguous.
inline Tensor spread_out(const Tensor& t, ScalarType dtype, IntView sizes) {
  const Tensor x = cast(t, dtype);
  if (x.sizes() == sizes) return contiguous(x);
  const Tensor out = empty(sizes, dtype);
  copy_into(out, x);
  return out;
}

}  // namespace tn::loss
