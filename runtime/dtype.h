// Upstream's dtypes with upstream's values, their properties and the rules of promotion.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tn {

enum class ScalarType : int8_t {
  Byte = 0,
  Char,
  Short,
  Int,
  Long,
  Half,
  Float,
  Double,
  ComplexHalf,
  ComplexFloat,
  ComplexDouble,
  Bool,
  QInt8,
  QUInt8,
  QInt32,
  BFloat16,
  QUInt4x2,
  QUInt2x4,
  Bits1x8,
  Bits2x4,
  Bits4x2,
  Bits8,
  Bits16,
  Float8_e5m2,
  Float8_e4m3fn,
  Float8_e5m2fnuz,
  Float8_e4m3fnuz,
  UInt16,
  UInt32,
  UInt64,
  UInt1,
  UInt2,
  UInt3,
  UInt4,
  UInt5,
  UInt6,
  UInt7,
  Int1,
  Int2,
  Int3,
  Int4,
  Int5,
  Int6,
  Int7,
  Float8_e8m0fnu,
  Float4_e2m1fn_x2,
  Undefined,
};
inline constexpr int kNumScalarTypes = static_cast<int>(ScalarType::Undefined);

// Storage-only number formats. Arithmetic happens in float; conversions live in runtime/half.h.
struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};
struct Float8_e5m2 {
  uint8_t bits;
};
struct Float8_e4m3fn {
  uint8_t bits;
};
struct Float8_e5m2fnuz {
  uint8_t bits;
};
struct Float8_e4m3fnuz {
  uint8_t bits;
};
struct Float8_e8m0fnu {
  uint8_t bits;
};

// Bytes of one element.
constexpr size_t item_size(ScalarType t) {
  switch (t) {
    case ScalarType::Short:
    case ScalarType::Half:
    case ScalarType::BFloat16:
    case ScalarType::UInt16:
    case ScalarType::Bits16: return 2;
    case ScalarType::Int:
    case ScalarType::Float:
    case ScalarType::ComplexHalf:
    case ScalarType::QInt32:
    case ScalarType::UInt32: return 4;
    case ScalarType::Long:
    case ScalarType::Double:
    case ScalarType::ComplexFloat:
    case ScalarType::UInt64: return 8;
    case ScalarType::ComplexDouble: return 16;
    case ScalarType::Undefined: return 0;
    default: return 1;
  }
}
constexpr bool is_complex(ScalarType t) {
  return t == ScalarType::ComplexHalf || t == ScalarType::ComplexFloat || t == ScalarType::ComplexDouble;
}
constexpr bool is_float8(ScalarType t) {
  return (t >= ScalarType::Float8_e5m2 && t <= ScalarType::Float8_e4m3fnuz) || t == ScalarType::Float8_e8m0fnu;
}
constexpr bool is_reduced_float(ScalarType t) { return t == ScalarType::Half || t == ScalarType::BFloat16; }
constexpr bool is_floating(ScalarType t) {
  return t == ScalarType::Float || t == ScalarType::Double || is_reduced_float(t) || is_float8(t) ||
         t == ScalarType::Float4_e2m1fn_x2;
}
constexpr bool is_barebones_unsigned(ScalarType t) { return t >= ScalarType::UInt16 && t <= ScalarType::UInt64; }
constexpr bool is_integral(ScalarType t, bool include_bool) {
  return (t >= ScalarType::Byte && t <= ScalarType::Long) || is_barebones_unsigned(t) ||
         (include_bool && t == ScalarType::Bool);
}
constexpr bool is_quantized(ScalarType t) {
  return (t >= ScalarType::QInt8 && t <= ScalarType::QInt32) || t == ScalarType::QUInt4x2 || t == ScalarType::QUInt2x4;
}
constexpr bool is_signed(ScalarType t) {
  return t != ScalarType::Byte && t != ScalarType::Bool && !is_barebones_unsigned(t) &&
         t != ScalarType::Float8_e8m0fnu && !(t >= ScalarType::UInt1 && t <= ScalarType::UInt7);
}
// The dtype of a complex dtype's parts; other dtypes answer themselves.
constexpr ScalarType real_of(ScalarType t) {
  return t == ScalarType::ComplexHalf     ? ScalarType::Half
         : t == ScalarType::ComplexFloat  ? ScalarType::Float
         : t == ScalarType::ComplexDouble ? ScalarType::Double
                                          : t;
}
constexpr ScalarType complex_of(ScalarType t) {
  return t == ScalarType::Half     ? ScalarType::ComplexHalf
         : t == ScalarType::Double ? ScalarType::ComplexDouble
         : is_complex(t)           ? t
                                   : ScalarType::ComplexFloat;
}

// "float32", as torch prints it.
std::string_view dtype_name(ScalarType t);
// "Float", as upstream's C++ messages print it.
std::string_view scalar_type_name(ScalarType t);
// "c10::complex<float>", as messages print the C++ type of a dtype's elements.
std::string element_type_name(ScalarType t);
// "torch.FloatTensor", as messages print a tensor's type.
std::string tensor_type_name(ScalarType t);

// Upstream's promotion of two dtypes; raises for pairs that upstream refuses (float8 and barebones unsigned mixes).
ScalarType promote_types(ScalarType a, ScalarType b);
// torch.can_cast.
bool can_cast(ScalarType from, ScalarType to);

ScalarType default_dtype() noexcept;
void set_default_dtype(ScalarType t) noexcept;

// A set of dtypes, as claims declare them.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  constexpr explicit DTypeSet(uint64_t bits) : bits_(bits) {}
  constexpr bool has(ScalarType t) const { return (bits_ >> static_cast<int>(t)) & 1; }
  constexpr uint64_t bits() const { return bits_; }

 private:
  uint64_t bits_ = 0;
};

}  // namespace tn
