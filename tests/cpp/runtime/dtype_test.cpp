#include "runtime/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "runtime/device.h"
#include "runtime/error.h"
#include "runtime/half.h"
#include "runtime/keyset.h"
#include "runtime/scalar.h"

namespace tn {
namespace {

// torch.promote_types of upstream for each pair in enum order: 'A' + value, lower case from 26 on, '.' for an error.
constexpr const char* kPromotion[kNumScalarTypes] = {
    "ACCDEFGHIJKA...P..............................", "CBCDEFGHIJKB...P..............................",
    "CCCDEFGHIJKC...P..............................", "DDDDEFGHIJKD...P..............................",
    "EEEEEFGHIJKE...P..............................", "FFFFFFGHIJKF...G...........FFFFFFFFFF.........",
    "GGGGGGGHJJKG...G...........GGGGGGGGGG.........", "HHHHHHHHKKKH...H...........HHHHHHHHHH.........",
    "IIIIIIJKIJKI...J..............................", "JJJJJJJKJJKJ...J..............................",
    "KKKKKKKKKKKK...K..............................", "ABCDEFGHIJKL...P..............................",
    "............M.................................", ".............N................................",
    "..............O...............................", "PPPPPGGHJJKP...P...........PPPPPPPPPP.........",
    "................Q.............................", ".................R............................",
    "..................S...........................", "...................T..........................",
    "....................U.........................", ".....................V........................",
    "......................W.......................", ".......................X......................",
    "........................Y.....................", ".........................Z....................",
    "..........................a...................", ".....FGH.......P...........b.................t",
    ".....FGH.......P............c................t", ".....FGH.......P.............d...............t",
    ".....FGH.......P..............e..............t", ".....FGH.......P...............f.............t",
    ".....FGH.......P................g............t", ".....FGH.......P.................h...........t",
    ".....FGH.......P..................i..........t", ".....FGH.......P...................j.........t",
    ".....FGH.......P....................k........t", ".....................................l........",
    "......................................m.......", ".......................................n......",
    "........................................o.....", ".........................................p....",
    "..........................................q...", "...........................................r..",
    "............................................s.", "...........................tttttttttt........t",
};

char letter(ScalarType t) {
  const int v = static_cast<int>(t);
  return static_cast<char>(v < 26 ? 'A' + v : 'a' + v - 26);
}

TEST(DType, PromotesEveryPairAsUpstream) {
  for (int i = 0; i < kNumScalarTypes; ++i)
    for (int j = 0; j < kNumScalarTypes; ++j) {
      char got = '.';
      try {
        got = letter(promote_types(static_cast<ScalarType>(i), static_cast<ScalarType>(j)));
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::Runtime);
      }
      EXPECT_EQ(got, kPromotion[i][j]) << dtype_name(static_cast<ScalarType>(i)) << " "
                                       << dtype_name(static_cast<ScalarType>(j));
    }
}

std::string message(ScalarType a, ScalarType b) {
  try {
    promote_types(a, b);
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

TEST(DType, PromotionErrorsNameBothTypes) {
  EXPECT_EQ(message(ScalarType::Byte, ScalarType::Float8_e5m2),
            "Promotion for Float8 Types is not supported, attempted to promote Byte and Float8_e5m2");
  EXPECT_EQ(message(ScalarType::UInt16, ScalarType::Int),
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote UInt16 and Int");
  EXPECT_EQ(message(ScalarType::Bits8, ScalarType::Float8_e5m2),
            "Promotion from Bits8 and Float8_e5m2 is unsupported.");
}

TEST(DType, CanCast) {
  // torch.can_cast: complex only to complex, float to no integer, nothing but bool to bool.
  for (int i = 0; i < kNumScalarTypes; ++i)
    for (int j = 0; j < kNumScalarTypes; ++j) {
      const auto a = static_cast<ScalarType>(i), b = static_cast<ScalarType>(j);
      const bool want = !(is_complex(a) && !is_complex(b)) && !(is_floating(a) && is_integral(b, false)) &&
                        (a == ScalarType::Bool || b != ScalarType::Bool);
      EXPECT_EQ(can_cast(a, b), want);
    }
  EXPECT_TRUE(can_cast(ScalarType::Long, ScalarType::Byte));
  EXPECT_FALSE(can_cast(ScalarType::ComplexFloat, ScalarType::Float));
}

TEST(DType, Names) {
  EXPECT_EQ(dtype_name(ScalarType::Float), "float32");
  EXPECT_EQ(dtype_name(ScalarType::Float4_e2m1fn_x2), "float4_e2m1fn_x2");
  EXPECT_EQ(scalar_type_name(ScalarType::ComplexDouble), "ComplexDouble");
  EXPECT_EQ(scalar_type_name(ScalarType::Undefined), "Undefined");
}

// ---- small floats ------------------------------------------------------------------------------------------------

static_assert(to_half(1.0f).bits == 0x3c00 && to_bfloat16(1.0f).bits == 0x3f80 && to_float(Half{0x3c00}) == 1.0f);

TEST(Half, RoundTripsEveryValue) {
  for (uint32_t b = 0; b < 0x10000; ++b) {
    const float f = to_float(Half{static_cast<uint16_t>(b)});
    if ((b & 0x7fff) > 0x7c00) {
      EXPECT_TRUE(std::isnan(f));
      EXPECT_EQ(to_half(f).bits, (b & 0x8000) | 0x7e00);
    } else {
      EXPECT_EQ(to_half(f).bits, b);
    }
    const float g = to_float(BFloat16{static_cast<uint16_t>(b)});
    EXPECT_TRUE(std::isnan(g) || to_bfloat16(g).bits == b) << b;
  }
  EXPECT_EQ(to_bfloat16(NAN).bits, 0x7fc0);
}

TEST(Half, RoundsToNearestEven) {
  // The middle between neighbours goes to the even one; anything beside it to the nearer.
  for (uint32_t b = 0; b < 0x7bff; ++b) {
    const float low = to_float(Half{static_cast<uint16_t>(b)}), high = to_float(Half{static_cast<uint16_t>(b + 1)});
    const float middle = (low + high) / 2;  // exact in float
    EXPECT_EQ(to_half(middle).bits, b % 2 == 0 ? b : b + 1);
    EXPECT_EQ(to_half(std::nextafterf(middle, 0)).bits, b);
    EXPECT_EQ(to_half(std::nextafterf(middle, INFINITY)).bits, b + 1);
  }
  EXPECT_EQ(to_half(65519.99f).bits, 0x7bff);
  EXPECT_EQ(to_half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(to_half(-0.0f).bits, 0x8000);
  EXPECT_EQ(to_half(-INFINITY).bits, 0xfc00);
}

template <class T>
void round_trip_bytes() {
  for (uint32_t b = 0; b < 256; ++b) {
    const float f = to_float(T{static_cast<uint8_t>(b)});
    if (std::isnan(f) || std::isinf(f)) continue;
    T back;
    from_float(f, &back);
    EXPECT_EQ(back.bits, b);
  }
}

TEST(Float8, RoundTripsEveryValue) {
  round_trip_bytes<Float8_e5m2>();
  round_trip_bytes<Float8_e4m3fn>();
  round_trip_bytes<Float8_e5m2fnuz>();
  round_trip_bytes<Float8_e4m3fnuz>();
  round_trip_bytes<Float8_e8m0fnu>();
}

TEST(Float8, EdgesAsUpstream) {
  EXPECT_EQ(to_float8_e4m3fn(1e5f).bits, 0x7e);  // saturates
  EXPECT_EQ(to_float8_e4m3fn(-INFINITY).bits, 0xfe);
  EXPECT_EQ(to_float8_e4m3fn(NAN).bits, 0x7f);
  EXPECT_EQ(to_float8_e4m3fn(465).bits, 0x7e);
  EXPECT_EQ(to_float8_e5m2(61440).bits, 0x7c);
  EXPECT_EQ(to_float8_e5m2(61439).bits, 0x7b);
  EXPECT_EQ(to_float8_e5m2fnuz(61440).bits, 0x80);
  EXPECT_EQ(to_float8_e5m2fnuz(-0.0f).bits, 0);
  EXPECT_EQ(to_float8_e4m3fnuz(247.9f).bits, 0x7f);
  EXPECT_EQ(to_float8_e4m3fnuz(-248).bits, 0x80);
  EXPECT_EQ(to_float8_e4m3fnuz(-1e-9f).bits, 0);
  EXPECT_EQ(to_float8_e8m0fnu(3).bits, 129);
  EXPECT_EQ(to_float8_e8m0fnu(-1e5f).bits, 0x90);
  EXPECT_EQ(to_float8_e8m0fnu(INFINITY).bits, 0xff);
  EXPECT_EQ(to_float(Float8_e8m0fnu{0}), 0x1p-127f);
}

// ---- devices, keys, scalars
// ------------------------------------------------------------------------------------------

TEST(Device, Parses) {
  EXPECT_EQ(Device::parse("cpu"), Device());
  EXPECT_EQ(Device::parse("cuda:1"), Device(DeviceType::CUDA, 1));
  EXPECT_EQ(Device::parse("cuda:1").str(), "cuda:1");
  EXPECT_EQ(Device::parse("privateuseone").type, DeviceType::PrivateUse1);
  for (const char* bad : {"", "cpu:", "cpu:1a", "cpu:01", "cpu:-1", ":1", "CUDA", "cuda:1:2", "metal"})
    EXPECT_THROW(Device::parse(bad), Error) << bad;
}

TEST(KeySet, NamesBothWays) {
  for (int k = 0; k <= 155; ++k) {
    const auto key = static_cast<DispatchKey>(k);
    const std::string_view name = key_name(key);
    DispatchKey back;
    EXPECT_TRUE(parse_key(name, &back)) << k;
    EXPECT_EQ(key_name(back), name);
  }
  EXPECT_EQ(key_name(DispatchKey::AutogradCPU), "AutogradCPU");
  EXPECT_EQ(key_name(DispatchKey::SparseCsrMeta), "SparseCsrMeta");
  DispatchKey key;
  EXPECT_FALSE(parse_key("NoSuchKey", &key));
  EXPECT_EQ(runtime_key(DispatchKey::Dense, 1), DispatchKey::CPU);
  EXPECT_EQ(key_parts(DispatchKey::AutogradMeta).backend, 16);
  EXPECT_EQ((KeySet(DispatchKey::CPU) | KeySet(DispatchKey::AutogradCPU)).highest(), DispatchKey::AutogradCPU);
}

TEST(Scalar, KindsAndEquality) {
  EXPECT_EQ(Scalar(true).type(), ScalarType::Bool);
  EXPECT_EQ(Scalar(1).type(), ScalarType::Long);
  EXPECT_EQ(Scalar(std::complex<double>(1, 2)).type(), ScalarType::ComplexDouble);
  EXPECT_TRUE(Scalar(1).equal(Scalar(1.0)));
  EXPECT_FALSE(Scalar(true).equal(Scalar(1)));
  EXPECT_FALSE(Scalar(int64_t{-1}).equal(Scalar(~uint64_t{0})));
  EXPECT_EQ((-Scalar(2.5)).to_double(), -2.5);
  EXPECT_THROW(-Scalar(true), Error);
}

}  // namespace
}  // namespace tn
