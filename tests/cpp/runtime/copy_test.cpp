#include "runtime/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "runtime/convert.h"
#include "runtime/shape.h"

namespace tn {
namespace {

constexpr auto F = ScalarType::Float;

template <class T>
Tensor make(ScalarType t, std::initializer_list<T> values) {
  Tensor out = empty({static_cast<int64_t>(values.size())}, t);
  std::copy(values.begin(), values.end(), out.data<T>());
  return out;
}

Tensor iota(IntView sizes) {
  Tensor t = empty(sizes, F);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = static_cast<float>(i);
  return t;
}

Tensor permuted(const Tensor& t, const std::vector<int64_t>& order) {
  DimVector sizes, strides;
  for (const int64_t d : order) {
    sizes.push_back(t.size(d));
    strides.push_back(t.stride(d));
  }
  return alias_with_geometry(t, sizes, strides, t.storage_offset());
}

template <class Call>
std::string message(Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

// ---- single elements: upstream's results on x86
// -----------------------------------------------------------------------

TEST(Convert, FloatsOutOfRange) {
  const double huge = 1e20, nan = NAN;
  EXPECT_EQ(convert<uint8_t>(300.f), 44);
  EXPECT_EQ(convert<uint8_t>(-1.f), 255);
  EXPECT_EQ(convert<int8_t>(-300.0), -44);
  EXPECT_EQ(convert<int16_t>(70000.f), 4464);
  EXPECT_EQ(convert<int32_t>(1e10f), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(convert<int32_t>(nan), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(convert<int64_t>(huge), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(convert<int64_t>(-0x1p63), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(convert<uint16_t>(-300.f), 65236);
  EXPECT_EQ(convert<uint32_t>(-1.0), 4294967295u);
  EXPECT_EQ(convert<uint32_t>(1e10), 1410065408u);
  EXPECT_EQ(convert<uint64_t>(0x1p63), uint64_t{1} << 63);
  EXPECT_EQ(convert<uint64_t>(-1.f), ~uint64_t{0});
  EXPECT_EQ(convert<uint64_t>(nan), uint64_t{1} << 63);
  EXPECT_EQ(convert<uint8_t>(nan), 0);
}

TEST(Convert, BoolComplexAndSmallFloats) {
  EXPECT_TRUE(convert<bool>(NAN));
  EXPECT_FALSE(convert<bool>(-0.0f));
  EXPECT_TRUE(convert<bool>(std::complex<float>(0, 1)));
  EXPECT_EQ(convert<float>(std::complex<double>(2, 3)), 2);
  EXPECT_EQ(convert<Half>(int64_t{65536}).bits, 0x7c00);
  EXPECT_EQ(convert<BFloat16>(1.00390625).bits, 0x3f80);  // a tie, to even
  EXPECT_EQ(convert<ComplexHalf>(std::complex<float>(1, -2)).im.bits, 0xc000);
  EXPECT_EQ(convert<int32_t>(Half{0xc000}), -2);
  EXPECT_TRUE(std::signbit(convert<float>(Half{0x8000})));
}

TEST(Convert, EveryPairOfDtypesKeepsSmallNumbers) {
  int kinds = 0;
  for (int i = 0; i < kNumScalarTypes; ++i) {
    const auto from = static_cast<ScalarType>(i);
    if (!with_element(from, []<class T>() {})) continue;
    ++kinds;
    for (int j = 0; j < kNumScalarTypes; ++j) {
      const auto to = static_cast<ScalarType>(j);
      if (!with_element(to, []<class T>() {})) continue;
      // 1 and 2 are exact everywhere but in bool; e8m0 has no zero.
      const Tensor a = empty({3}, from), b = empty({3}, to);
      fill(a, 2);
      fill(b, 1);
      copy_into(b, a);
      EXPECT_EQ(item(b).to_double(), from == ScalarType::Bool || to == ScalarType::Bool ? 1.0 : 2.0)
          << dtype_name(from) << dtype_name(to);
    }
  }
  EXPECT_EQ(kinds, 21);
}

TEST(Convert, OpaqueDtypesOnlyMove) {
  const Tensor a = empty({4}, ScalarType::Bits8), b = empty({4}, ScalarType::Bits8);
  std::memset(a.data_ptr(), 5, 4);
  copy_into(b, a);
  EXPECT_EQ(b.data<uint8_t>()[3], 5);
  try {
    copy_into(empty({4}, F), a);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::NotImplemented);
    EXPECT_EQ(e.message(), "\"copy_\" not implemented for 'Bits8'");
  }
}

// ---- geometry
// ------------------------------------------------------------------------------------------------------------

float at(const Tensor& t, std::initializer_list<int64_t> index) {
  int64_t offset = 0, d = 0;
  for (const int64_t i : index) offset += i * t->stride(d++);
  return t.data<float>()[offset];
}

TEST(Copy, TransposedOfAnySize) {
  for (const int64_t n : {1, 3, 4, 31, 32, 33, 100})
    for (const int64_t m : {1, 5, 32, 65}) {
      const Tensor a = iota({n, m});
      const Tensor b = contiguous(permuted(a, {1, 0}));
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < m; ++j) ASSERT_EQ(at(b, {j, i}), at(a, {i, j})) << n << "x" << m;
    }
}

TEST(Copy, ThreeDimensionsAllOrders) {
  const Tensor a = iota({7, 33, 40});
  for (const auto& o : std::vector<std::vector<int64_t>>{{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
    const Tensor view = permuted(a, o);
    const Tensor b = contiguous(view);
    EXPECT_TRUE(b.is_contiguous());
    for (int64_t i = 0; i < view.size(0); ++i)
      for (int64_t j = 0; j < view.size(1); ++j)
        for (int64_t k = 0; k < view.size(2); ++k) ASSERT_EQ(at(b, {i, j, k}), at(view, {i, j, k}));
  }
}

TEST(Copy, LargeStridedUsesEveryChunk) {
  const Tensor a = iota({300, 500});
  const Tensor half = alias_with_geometry(a, {300, 250}, {500, 2}, 1);
  const Tensor b = cast(half, ScalarType::Double);
  for (int64_t i = 0; i < 300; ++i)
    for (int64_t j = 0; j < 250; ++j)
      ASSERT_EQ(b.data<double>()[i * 250 + j], static_cast<double>(i * 500 + 2 * j + 1));
}

TEST(Copy, BroadcastsAndChecksShapes) {
  const Tensor dst = empty({2, 3}, F);
  copy_into(dst, make<float>(F, {1, 2, 3}));
  EXPECT_EQ(at(dst, {1, 2}), 3);
  EXPECT_EQ(message([&] { copy_into(empty({2}, F), empty({3}, F)); }),
            "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0");
  EXPECT_EQ(message([&] { copy_into(empty({2}, F), empty({3, 2}, F)); }),
            "output with shape [2] doesn't match the broadcast shape [3, 2]");
  copy_into(empty({0, 3}, F), empty({3}, F));
  EXPECT_EQ(message([&] { copy_into(empty({}, F), iota({1})); }),
            "output with shape [] doesn't match the broadcast shape [1]");
}

TEST(Copy, SixtyFourDimensions) {
  std::vector<int64_t> sizes(64, 1), strides(64, 1);
  sizes[10] = 3;
  sizes[50] = 2;
  strides[10] = 1;
  strides[50] = 3;
  const Tensor a = alias_with_geometry(iota({6}), sizes, strides, 0);
  const Tensor b = contiguous(a);
  const float want[] = {0, 3, 1, 4, 2, 5};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(b.data<float>()[i], want[i]);
}

TEST(Copy, PreservesLayoutAsUpstream) {
  const Tensor a = iota({2, 3, 4});
  const Tensor p = permuted(a, {2, 0, 1});
  EXPECT_EQ(clone(p).strides(), IntView({1, 12, 4}));
  EXPECT_EQ(cast(p, ScalarType::Double).strides(), IntView({1, 12, 4}));
  EXPECT_EQ(contiguous(p).strides(), IntView({6, 3, 1}));
  EXPECT_EQ(clone(alias_with_geometry(a, {5, 2, 3, 4}, {0, 12, 4, 1}, 0)).strides(), IntView({24, 12, 4, 1}));
}

// ---- conj and neg
// --------------------------------------------------------------------------------------------------------

TEST(Copy, ConjAndNegBits) {
  using C = std::complex<float>;
  const Tensor z = make<C>(ScalarType::ComplexFloat, {C(1, 2), C(3, -4)});
  const Tensor conj = alias_with_geometry(z, z.sizes(), z.strides(), 0);
  conj->set_conj(true);
  EXPECT_EQ(resolve(conj).data<C>()[0], C(1, -2));
  EXPECT_FALSE(resolve(conj)->is_conj());
  EXPECT_EQ(item(conj).to_complex(), std::complex<double>(1, -2));
  const Tensor same = alias_with_geometry(z, z.sizes(), z.strides(), 0);
  same->set_conj(true);
  const Tensor out = clone(z);
  out->set_conj(true);
  copy_into(out, same);  // both pending: the bits move as they are
  EXPECT_EQ(out.data<C>()[1], C(3, -4));
  copy_into(out, make<float>(F, {5, 6}));
  EXPECT_EQ(out.data<C>()[0].real(), 5);
  EXPECT_TRUE(std::signbit(out.data<C>()[0].imag()));
  const Tensor neg = make<float>(F, {1, -0.0f});
  neg->set_neg(true);
  EXPECT_EQ(cast(neg, ScalarType::Long).data<int64_t>()[0], -1);
  EXPECT_FALSE(std::signbit(resolve(neg).data<float>()[1]));
  fill(neg, 2.0);
  EXPECT_EQ(neg.data<float>()[0], -2.0f);
  EXPECT_EQ(item(neg).to_double(), 2.0);
  EXPECT_TRUE(resolve(z).is_same(z));
}

// ---- scalars
// -------------------------------------------------------------------------------------------------------------

TEST(Fill, ChecksTheRange) {
  const auto refused = [](ScalarType t, const Scalar& s) {
    return message([&] { fill(empty({2}, t), s); }) != "no error";
  };
  EXPECT_EQ(message([] { fill(empty({}, ScalarType::Byte), 300); }),
            "value cannot be converted to type uint8_t without overflow");
  EXPECT_FALSE(refused(ScalarType::Byte, -255));
  EXPECT_TRUE(refused(ScalarType::Byte, -256));
  EXPECT_TRUE(refused(ScalarType::Byte, -1.5));
  EXPECT_FALSE(refused(ScalarType::Char, -1.5));
  EXPECT_TRUE(refused(ScalarType::Int, NAN));
  EXPECT_TRUE(refused(ScalarType::Long, ~uint64_t{0}));
  EXPECT_FALSE(refused(ScalarType::UInt64, ~uint64_t{0}));
  EXPECT_TRUE(refused(F, 1e300));
  EXPECT_FALSE(refused(F, INFINITY));
  EXPECT_FALSE(refused(ScalarType::Half, 1e300));
  EXPECT_TRUE(refused(ScalarType::ComplexHalf, 70000.0));
  EXPECT_TRUE(refused(F, std::complex<double>(1, 2)));
  EXPECT_FALSE(refused(F, std::complex<double>(1, 0)));
  EXPECT_FALSE(refused(ScalarType::Bool, 300));
}

TEST(Fill, StridedAndLarge) {
  const Tensor a = empty({5, 5}, F);
  zero(a);
  fill(alias_with_geometry(a, {5}, {6}, 0), 1.0);
  for (int64_t i = 0; i < 5; ++i)
    for (int64_t j = 0; j < 5; ++j) EXPECT_EQ(at(a, {i, j}), i == j);
  const Tensor big = empty({300000}, F);
  fill(big, -0.0);
  EXPECT_TRUE(std::signbit(big.data<float>()[299999]));
  zero(alias_with_geometry(a, {5}, {6}, 0));
  EXPECT_EQ(at(a, {4, 4}), 0);
}

TEST(Item, Errors) {
  EXPECT_EQ(message([] { item(empty({0}, F)); }), "a Tensor with 0 elements cannot be converted to Scalar");
  EXPECT_EQ(message([] { item(empty({}, ScalarType::Bits8)); }),
            "\"_local_scalar_dense_cpu\" not implemented for 'Bits8'");
}

}  // namespace
}  // namespace tn
