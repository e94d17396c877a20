#include "runtime/scalar.h"

#include "runtime/error.h"

namespace tn {

ScalarType Scalar::type() const {
  switch (kind_) {
    case Kind::Double: return ScalarType::Double;
    case Kind::Int: return ScalarType::Long;
    case Kind::Bool: return ScalarType::Bool;
    case Kind::Complex: return ScalarType::ComplexDouble;
    case Kind::UInt: return ScalarType::UInt64;
  }
  return ScalarType::Undefined;
}

Scalar Scalar::operator-() const {
  switch (kind_) {
    case Kind::Double: return Scalar(-re_.d);
    case Kind::Int: return Scalar(static_cast<int64_t>(uint64_t{0} - re_.u));  // wraps, as upstream's build does
    case Kind::UInt: return Scalar(uint64_t{0} - re_.u);
    case Kind::Complex: return Scalar(-to_complex());
    case Kind::Bool: break;
  }
  fail(ErrorKind::Runtime, "tried to negate a boolean Scalar");
}

bool Scalar::equal(const Scalar& other) const {
  if (is_bool() || other.is_bool()) return is_bool() && other.is_bool() && re_.i == other.re_.i;
  if (is_complex() || other.is_complex()) return to_complex() == other.to_complex();
  if (is_floating() || other.is_floating()) return to_double() == other.to_double();
  // One negative value never equals an unsigned one beyond int64.
  if (kind_ != other.kind_ && (re_.i < 0 || other.re_.i < 0)) return false;
  return re_.u == other.re_.u;
}

}  // namespace tn
