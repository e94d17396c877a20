// A number of any of Python's kinds: bool, int, float or complex (plus unsigned 64-bit, as upstream has it).
#pragma once
#include <complex>
#include <type_traits>
#include <cstdint>

#include "runtime/dtype.h"

namespace tn {

class Scalar {
 public:
  enum class Kind : uint8_t { Double, Int, Bool, Complex, UInt };

  Scalar() : Scalar(int64_t{0}) {}
  Scalar(double v) : kind_(Kind::Double), re_{.d = v} {}    // NOLINT: numbers convert
  Scalar(float v) : Scalar(static_cast<double>(v)) {}       // NOLINT
  Scalar(int v) : Scalar(static_cast<int64_t>(v)) {}        // NOLINT
  Scalar(int64_t v) : kind_(Kind::Int), re_{.i = v} {}      // NOLINT
  Scalar(long long v) : Scalar(static_cast<int64_t>(v)) {}  // NOLINT
  Scalar(uint64_t v) : kind_(Kind::UInt), re_{.u = v} {}    // NOLINT
  template <class B>
    requires std::is_same_v<B, bool>               // else pointers would become true
  Scalar(B v) : kind_(Kind::Bool), re_{.i = v} {}  // NOLINT
  Scalar(std::complex<double> v) : kind_(Kind::Complex), re_{.d = v.real()}, im_(v.imag()) {}  // NOLINT

  Kind kind() const { return kind_; }
  bool is_floating() const { return kind_ == Kind::Double; }
  bool is_complex() const { return kind_ == Kind::Complex; }
  bool is_bool() const { return kind_ == Kind::Bool; }
  bool is_integral(bool include_bool) const {
    return kind_ == Kind::Int || kind_ == Kind::UInt || (include_bool && kind_ == Kind::Bool);
  }
  // Double, Long, Bool, ComplexDouble or UInt64.
  ScalarType type() const;

  // Numeric conversions. to_int64 of a float truncates; a complex gives its real part.
  double to_double() const {
    return kind_ == Kind::Double || kind_ == Kind::Complex ? re_.d
           : kind_ == Kind::UInt                           ? static_cast<double>(re_.u)
                                                           : static_cast<double>(re_.i);
  }
  int64_t to_int64() const {
    return kind_ == Kind::Double || kind_ == Kind::Complex ? static_cast<int64_t>(re_.d) : re_.i;
  }
  uint64_t to_uint64() const {
    return kind_ == Kind::Double || kind_ == Kind::Complex ? static_cast<uint64_t>(re_.d) : re_.u;
  }
  bool to_bool() const {
    return kind_ == Kind::Double ? re_.d != 0 : kind_ == Kind::Complex ? re_.d != 0 || im_ != 0 : re_.i != 0;
  }
  std::complex<double> to_complex() const { return {to_double(), kind_ == Kind::Complex ? im_ : 0.0}; }

  // C++ conversion to a kernel's element type.
  template <class T>
  T to() const {
    if constexpr (requires(T c) {
                    c.real();
                    c.imag();
                  }) {
      using P = typename T::value_type;
      return T(static_cast<P>(to_double()), static_cast<P>(kind_ == Kind::Complex ? im_ : 0.0));
    } else if constexpr (std::is_same_v<T, bool>) {
      return to_bool();
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(to_double());
    } else {
      return static_cast<T>(to_int64());
    }
  }
  Scalar operator-() const;
  bool equal(const Scalar& other) const;

 private:
  Kind kind_;
  union {
    double d;
    int64_t i;
    uint64_t u;
  } re_;
  double im_ = 0;
};

}  // namespace tn
