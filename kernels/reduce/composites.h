// Small pieces of upstream's composites.
#pragma once
#include <optional>

#include "runtime/scalar.h"

namespace tn::composite {

inline std::optional<Scalar> unbiased_correction(bool unbiased) { return Scalar(unbiased ? 1 : 0); }

}  // namespace tn::composite
