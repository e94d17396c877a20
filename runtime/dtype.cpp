#include "runtime/dtype.h"

#include <array>

#include "runtime/error.h"

namespace tn {
namespace {

struct Names {
  const char* python;
  const char* cpp;
};

constexpr Names kNames[kNumScalarTypes + 1] = {
    {"uint8", "Byte"},
    {"int8", "Char"},
    {"int16", "Short"},
    {"int32", "Int"},
    {"int64", "Long"},
    {"float16", "Half"},
    {"float32", "Float"},
    {"float64", "Double"},
    {"complex32", "ComplexHalf"},
    {"complex64", "ComplexFloat"},
    {"complex128", "ComplexDouble"},
    {"bool", "Bool"},
    {"qint8", "QInt8"},
    {"quint8", "QUInt8"},
    {"qint32", "QInt32"},
    {"bfloat16", "BFloat16"},
    {"quint4x2", "QUInt4x2"},
    {"quint2x4", "QUInt2x4"},
    {"bits1x8", "Bits1x8"},
    {"bits2x4", "Bits2x4"},
    {"bits4x2", "Bits4x2"},
    {"bits8", "Bits8"},
    {"bits16", "Bits16"},
    {"float8_e5m2", "Float8_e5m2"},
    {"float8_e4m3fn", "Float8_e4m3fn"},
    {"float8_e5m2fnuz", "Float8_e5m2fnuz"},
    {"float8_e4m3fnuz", "Float8_e4m3fnuz"},
    {"uint16", "UInt16"},
    {"uint32", "UInt32"},
    {"uint64", "UInt64"},
    {"uint1", "UInt1"},
    {"uint2", "UInt2"},
    {"uint3", "UInt3"},
    {"uint4", "UInt4"},
    {"uint5", "UInt5"},
    {"uint6", "UInt6"},
    {"uint7", "UInt7"},
    {"int1", "Int1"},
    {"int2", "Int2"},
    {"int3", "Int3"},
    {"int4", "Int4"},
    {"int5", "Int5"},
    {"int6", "Int6"},
    {"int7", "Int7"},
    {"float8_e8m0fnu", "Float8_e8m0fnu"},
    {"float4_e2m1fn_x2", "Float4_e2m1fn_x2"},
    {"undefined", "Undefined"},
};

// Upstream counts the sub-byte unsigned dtypes among the barebones ones when it promotes.
constexpr bool promotes_as_barebones(ScalarType t) {
  return is_barebones_unsigned(t) || (t >= ScalarType::UInt1 && t <= ScalarType::UInt7);
}
constexpr bool is_bits(ScalarType t) { return t >= ScalarType::Bits1x8 && t <= ScalarType::Bits16; }

// The dtypes that promote freely, by rank in upstream's lattice; -1 for others.
constexpr int position(ScalarType t) {
  if (t <= ScalarType::Bool) return static_cast<int>(t);
  return t == ScalarType::BFloat16 ? 12 : -1;
}

constexpr int kPlain = 13;

// One pair of plain dtypes, by kind (bool < integer < float < complex), then width.
constexpr ScalarType promote_plain(ScalarType a, ScalarType b) {
  if (a == b) return a;
  if (is_complex(a) || is_complex(b)) {
    const ScalarType other = is_complex(a) ? real_of(b) : real_of(a);
    const ScalarType mine = is_complex(a) ? real_of(a) : real_of(b);
    const ScalarType real = is_floating(other) ? promote_plain(mine, other) : mine;
    return complex_of(real);
  }
  if (is_floating(a) || is_floating(b)) {
    if (!is_floating(a)) return b;
    if (!is_floating(b)) return a;
    if (item_size(a) == item_size(b)) return ScalarType::Float;  // float16 with bfloat16
    return item_size(a) > item_size(b) ? a : b;
  }
  if (a == ScalarType::Bool) return b;
  if (b == ScalarType::Bool) return a;
  if (a == ScalarType::Byte || b == ScalarType::Byte) {
    const ScalarType other = a == ScalarType::Byte ? b : a;
    return other == ScalarType::Char ? ScalarType::Short : other;
  }
  return a > b ? a : b;
}

constexpr auto kPromotion = [] {
  std::array<std::array<ScalarType, kPlain>, kPlain> table{};
  for (int i = 0; i < kPlain; ++i)
    for (int j = 0; j < kPlain; ++j) {
      const auto type = [](int k) { return k == 12 ? ScalarType::BFloat16 : static_cast<ScalarType>(k); };
      table[i][j] = promote_plain(type(i), type(j));
    }
  return table;
}();

[[gnu::cold]] ScalarType promote_rare(ScalarType a, ScalarType b) {
  const std::string_view na = scalar_type_name(a), nb = scalar_type_name(b);
  if (a == b) return a;
  if (a == ScalarType::Undefined || b == ScalarType::Undefined) return ScalarType::Undefined;
  TN_CHECK(!is_quantized(a) && !is_quantized(b),
           "promoteTypes with quantized numbers is not handled yet; figure out what the correct rules should be, "
           "offending types: ",
           na, " ", nb);
  TN_CHECK(!is_bits(a) && !is_bits(b), "Promotion from ", na, " and ", nb, " is unsupported.");
  TN_CHECK(!is_float8(a) && !is_float8(b), "Promotion for Float8 Types is not supported, attempted to promote ", na,
           " and ", nb);
  if (promotes_as_barebones(a) || promotes_as_barebones(b)) {
    if (is_floating(a)) return a;
    if (is_floating(b)) return b;
    fail(ErrorKind::Runtime, "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote ", na,
         " and ", nb);
  }
  // Upstream stops with an internal assertion here.
  fail(ErrorKind::Runtime, "promote_types: expected dtypes with promotion rules, got ", na, " and ", nb);
}

constinit ScalarType default_dtype_ = ScalarType::Float;

}  // namespace

std::string_view dtype_name(ScalarType t) { return kNames[static_cast<size_t>(t)].python; }
std::string element_type_name(ScalarType t) {
  switch (t) {
    case ScalarType::Byte: return "unsigned char";
    case ScalarType::Char: return "signed char";
    case ScalarType::Short: return "short int";
    case ScalarType::Int: return "int";
    case ScalarType::Long: return "long int";
    case ScalarType::Half: return "c10::Half";
    case ScalarType::Float: return "float";
    case ScalarType::Double: return "double";
    case ScalarType::ComplexHalf: return "c10::complex<c10::Half>";
    case ScalarType::ComplexFloat: return "c10::complex<float>";
    case ScalarType::ComplexDouble: return "c10::complex<double>";
    case ScalarType::Bool: return "bool";
    case ScalarType::BFloat16: return "c10::BFloat16";
    case ScalarType::UInt16: return "short unsigned int";
    case ScalarType::UInt32: return "unsigned int";
    case ScalarType::UInt64: return "long unsigned int";
    default: return "c10::" + std::string(scalar_type_name(t));
  }
}

std::string tensor_type_name(ScalarType t) {
  if (t == ScalarType::BFloat16) return "CPUBFloat16Type";
  return "torch." + std::string(scalar_type_name(t)) + "Tensor";
}

std::string_view scalar_type_name(ScalarType t) { return kNames[static_cast<size_t>(t)].cpp; }

ScalarType promote_types(ScalarType a, ScalarType b) {
  const int i = position(a), j = position(b);
  if (__builtin_expect(i >= 0 && j >= 0, 1)) return kPromotion[i][j];
  return promote_rare(a, b);
}

bool can_cast(ScalarType from, ScalarType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && is_integral(to, false)) return false;
  return from == ScalarType::Bool || to != ScalarType::Bool;
}

ScalarType default_dtype() noexcept { return default_dtype_; }
void set_default_dtype(ScalarType t) noexcept { default_dtype_ = t; }

}  // namespace tn
