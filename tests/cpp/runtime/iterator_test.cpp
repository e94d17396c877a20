#include "runtime/iterator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/copy.h"
#include "runtime/door.h"
#include "runtime/overlap.h"
#include "runtime/promote.h"

namespace tn {
namespace {

constexpr auto F = ScalarType::Float;
constexpr OpInfo kOp = {"aten::test", "", "", nullptr, 0, nullptr, 0, 0, Way::Kernel, 0};
constexpr DTypeSet kAll(~uint64_t{0});

template <class Call>
std::string message(Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

template <class T>
void add_row(const Row& r) {
  for (int64_t i = 0; i < r.n; ++i) {
    const T a = *reinterpret_cast<const T*>(r.data[1] + i * r.strides[1]);
    const T b = *reinterpret_cast<const T*>(r.data[2] + i * r.strides[2]);
    *reinterpret_cast<T*>(r.data[0] + i * r.strides[0]) = static_cast<T>(a + b);
  }
}
constexpr PointwiseSlot kAdd = {.row = [](const Row& r) {
  switch (r.dtype) {
    case ScalarType::Float: return add_row<float>(r);
    case ScalarType::Double: return add_row<double>(r);
    case ScalarType::Long: return add_row<int64_t>(r);
    case ScalarType::ComplexFloat: return add_row<std::complex<float>>(r);
    default: ADD_FAILURE() << "dtype " << dtype_name(r.dtype);
  }
}};
constexpr PointwiseSlot kSqrt = {.row =
                                     [](const Row& r) {
                                       ASSERT_EQ(r.dtype, ScalarType::Float);
                                       for (int64_t i = 0; i < r.n; ++i)
                                         *reinterpret_cast<float*>(r.data[0] + i * r.strides[0]) =
                                             std::sqrt(*reinterpret_cast<const float*>(r.data[1] + i * r.strides[1]));
                                     },
                                 .promotion = Promotion::ToFloat};
constexpr PointwiseSlot kPositive = {.row =
                                         [](const Row& r) {
                                           ASSERT_EQ(r.dtype, ScalarType::Float);
                                           ASSERT_EQ(r.out_dtype, ScalarType::Bool);
                                           for (int64_t i = 0; i < r.n; ++i)
                                             *reinterpret_cast<bool*>(r.data[0] + i * r.strides[0]) =
                                                 *reinterpret_cast<const float*>(r.data[1] + i * r.strides[1]) > 0;
                                         },
                                     .promotion = Promotion::ToBool};

Tensor add(const Tensor& a, const Tensor& b) {
  const Tensor* in[] = {&a, &b};
  return pointwise({kOp, kAdd, kAll}, in, {});
}
void add_(const Tensor& a, const Tensor& b) {
  const Tensor* in[] = {&a, &b};
  pointwise_inplace({kOp, kAdd, kAll}, in, {});
}
void add_out(const Tensor& a, const Tensor& b, const Tensor& out) {
  const Tensor* in[] = {&a, &b};
  pointwise_out({kOp, kAdd, kAll}, in, {}, out);
}

Tensor iota(IntView sizes, ScalarType t = F) {
  Tensor f = empty(sizes, F);
  for (int64_t i = 0; i < f.numel(); ++i) f.data<float>()[i] = static_cast<float>(i);
  return cast(f, t);
}
Tensor ones(IntView sizes, ScalarType t = F) {
  Tensor o = empty(sizes, t);
  fill(o, 1);
  return o;
}
Tensor strided(IntView sizes, IntView strides, ScalarType t = F) {
  Tensor o = empty_strided(sizes, strides, t);
  if (o->raw_data()) std::memset(o.storage()->data(), 0, o.storage()->nbytes());
  return o;
}
Tensor view(const Tensor& t, IntView sizes, IntView strides, int64_t offset = 0) {
  return alias_with_geometry(t, sizes, strides, offset);
}
Tensor number(const Scalar& s) { return wrapped_scalar(s); }

// ---- strides of results: each line is upstream's answer
// ------------------------------------------------------------------

TEST(Iterator, ResultStrides) {
  const Tensor t = strided({3, 4}, {1, 3});
  EXPECT_EQ(add(t, t).strides(), IntView({1, 3}));
  EXPECT_EQ(add(t, number(1.0)).strides(), IntView({1, 3}));
  EXPECT_EQ(add(t, ones({3, 4})).strides(), IntView({1, 3}));  // the first decides
  EXPECT_EQ(add(ones({3, 4}), t).strides(), IntView({4, 1}));
  EXPECT_EQ(add(t, ones({4})).strides(), IntView({1, 3}));
  const Tensor cl = empty({2, 3, 4, 5}, F, {}, MemoryFormat::ChannelsLast);
  zero(cl);
  EXPECT_EQ(add(cl, cl).strides(), cl.strides());
  EXPECT_EQ(add(cl, ones({3, 1, 1})).strides(), cl.strides());
  EXPECT_EQ(add(ones({1}), cl).strides(), cl.strides());
  const Tensor odd = strided({2, 1, 3}, {3, 100, 1});
  EXPECT_EQ(add(odd, odd).strides(), IntView({3, 3, 1}));
  EXPECT_EQ(add(odd, number(1.0)).strides(), IntView({3, 6, 1}));
  EXPECT_EQ(add(empty({0, 1}, F), number(1)).strides(), IntView({1, 0}));
  EXPECT_EQ(add(empty({0, 1}, F), empty({0, 1}, F)).strides(), IntView({1, 1}));
  EXPECT_EQ(add(empty({3, 0, 1}, F), ones({1})).strides(), IntView({0, 1, 0}));
  EXPECT_EQ(add(view(ones({8, 8}), {4, 4}, {16, 2}), ones({4, 4})).strides(), IntView({4, 1}));
}

TEST(Iterator, ValuesThroughEveryLayout) {
  const Tensor a = iota({3, 4, 5});
  for (const auto& [sizes, strides] :
       std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>>{{{3, 4, 5}, {20, 5, 1}},
                                                                          {{5, 4, 3}, {1, 5, 20}},
                                                                          {{4, 3, 5}, {5, 20, 1}},
                                                                          {{3, 2, 5}, {20, 10, 1}},
                                                                          {{3, 4, 5}, {0, 5, 1}}}) {
    const Tensor v = view(a, sizes, strides);
    const Tensor r = contiguous(add(v, ones({v.size(2)}))), plain = contiguous(v);
    for (int64_t i = 0; i < r.numel(); ++i) ASSERT_EQ(r.data<float>()[i], plain.data<float>()[i] + 1);
  }
  const Tensor big = iota({200, 300});
  const Tensor r = add(view(big, {300, 200}, {1, 300}), ones({200}));
  for (int64_t i = 0; i < 300; ++i)
    for (int64_t j = 0; j < 200; ++j)
      ASSERT_EQ(r.data<float>()[i * r.stride(0) + j * r.stride(1)], static_cast<float>(j * 300 + i + 1));
}

TEST(Iterator, EmptyZeroDimAndManyDimensions) {
  EXPECT_EQ(add(empty({0, 3}, F), ones({3})).sizes(), IntView({0, 3}));
  EXPECT_EQ(add(strided({0, 3, 2}, {1, 2, 9}), ones({1, 2})).numel(), 0);
  EXPECT_EQ(item(add(ones({}), ones({}))).to_double(), 2);
  std::vector<int64_t> sizes(64, 1);
  sizes[0] = 2;
  EXPECT_EQ(add(ones(sizes), ones({1})).dim(), 64);
  sizes.push_back(1);
  EXPECT_EQ(add(ones(sizes), ones(sizes)).dim(), 65);
}

// ---- dtypes
// --------------------------------------------------------------------------------------------------------------

TEST(Iterator, Promotes) {
  EXPECT_EQ(add(ones({2}, ScalarType::Long), number(1.5)).dtype(), F);
  EXPECT_EQ(add(ones({2}), number(1.5)).dtype(), F);
  EXPECT_EQ(add(ones({2}), scalar_tensor(1, ScalarType::Double)).dtype(), F);
  EXPECT_EQ(add(ones({2}), ones({2}, ScalarType::Double)).dtype(), ScalarType::Double);
  EXPECT_EQ(add(number(1.5), number(2.5)).dtype(), F);
  EXPECT_EQ(add(ones({2}), number(std::complex<double>(0, 1))).dtype(), ScalarType::ComplexFloat);
  EXPECT_EQ(add(ones({2}, ScalarType::Bool), number(1)).dtype(), ScalarType::Long);
  EXPECT_EQ(item(add(ones({1}, ScalarType::Long), number(1.5))).to_double(), 2.5);
  const Tensor l = iota({3}, ScalarType::Long);
  const Tensor* in[] = {&l};
  const Tensor root = pointwise({kOp, kSqrt, kAll}, in, {});
  EXPECT_EQ(root.dtype(), F);
  EXPECT_EQ(root.data<float>()[2], std::sqrt(2.0f));
}

TEST(Iterator, GateRefusesByName) {
  const DTypeSet only_double(uint64_t{1} << static_cast<int>(ScalarType::Double));
  const Tensor a = ones({2});
  const Tensor* in[] = {&a, &a};
  EXPECT_EQ(message([&] { pointwise({kOp, kAdd, only_double}, in, {}); }),
            "torchnative: aten::test refused: dtype float32; reason: no kernel for this dtype");
}

// ---- in-place and out=
// -----------------------------------------------------------------------------------------------------

TEST(Iterator, InplaceRules) {
  const Tensor a = iota({2, 2});
  add_(a, ones({2}));
  EXPECT_EQ(a.data<float>()[3], 4);
  add_(a, number(1));
  EXPECT_EQ(a.data<float>()[0], 2);
  add_(a, a);
  EXPECT_EQ(a.data<float>()[0], 4);
  const Tensor l = ones({2}, ScalarType::Long);
  EXPECT_EQ(message([&] { add_(l, number(1.5)); }), "result type Float can't be cast to the desired output type Long");
  EXPECT_EQ(message([&] { add_(ones({2}), ones({3, 2})); }),
            "output with shape [2] doesn't match the broadcast shape [3, 2]");
  EXPECT_EQ(message([&] { add_(ones({2}), ones({3})); }),
            "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0");
  const Tensor f = ones({2});
  add_(f, ones({2}, ScalarType::Double));  // computed in double, written as float
  EXPECT_EQ(f.data<float>()[1], 2);
  EXPECT_EQ(f.dtype(), F);
}

TEST(Iterator, Overlaps) {
  const char* partial =
      "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
      "location. "
      "Please clone() the tensor before performing the operation.";
  const Tensor x = iota({5});
  const Tensor tail = view(x, {4}, {1}, 1), head = view(x, {4}, {1}, 0);
  EXPECT_EQ(message([&] { add_(tail, head); }), partial);
  EXPECT_EQ(message([&] { add_out(tail, number(1), head); }), partial);
  EXPECT_EQ(message([&] { add_(view(ones({1}), {3}, {0}), number(1)); }),
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() "
            "the tensor before performing the operation.");
  const Tensor same = view(x, {5}, {1});
  add_(x, same);
  EXPECT_EQ(x.data<float>()[4], 8);
  EXPECT_EQ(overlap_of(x, same), Overlap::Full);
  EXPECT_EQ(overlap_of(view(x, {2}, {2}), view(x, {2}, {2}, 1)), Overlap::Unknown);
}

TEST(Iterator, OutRules) {
  const Tensor out = empty({0}, F);
  add_out(ones({2, 3}), ones({3}), out);
  EXPECT_EQ(out.sizes(), IntView({2, 3}));
  EXPECT_EQ(out.data<float>()[5], 2);
  const Tensor wide = empty({2}, ScalarType::Double);
  add_out(ones({2}), number(1), wide);
  EXPECT_EQ(wide.data<double>()[1], 2);
  EXPECT_EQ(message([] { add_out(ones({2}), number(1), empty({2}, ScalarType::Long)); }),
            "result type Float can't be cast to the desired output type Long");
  const Tensor rows = strided({2, 3}, {1, 2});  // keeps its own strides
  add_out(iota({2, 3}), number(1), rows);
  EXPECT_EQ(rows.data<float>()[1], 4);
  const Tensor a = ones({2});
  const Tensor* in[] = {&a};
  const Tensor floats = empty({2}, F);
  pointwise_out({kOp, kPositive, kAll}, in, {}, floats);
  EXPECT_EQ(floats.data<float>()[0], 1);
  pointwise_inplace({kOp, kPositive, kAll}, in, {});
  EXPECT_EQ(a.data<float>()[0], 1);
}

TEST(Iterator, ConjugateOperands) {
  using C = std::complex<float>;
  const Tensor z = empty({2}, ScalarType::ComplexFloat);
  fill(z, std::complex<double>(1, 2));
  const Tensor conj = view(z, {2}, {1});
  conj->set_conj(true);
  EXPECT_EQ(add(conj, number(1)).data<C>()[1], C(2, -2));
  add_(conj, number(std::complex<double>(0, 1)));  // its value becomes 1 - i
  EXPECT_EQ(z.data<C>()[0], C(1, 1));
}

// ---- meta
// ----------------------------------------------------------------------------------------------------------------

TEST(Iterator, MetaOnlyShapes) {
  const Tensor m = empty({1 << 20, 1 << 20}, F, DeviceType::Meta);
  const Tensor r = add(m, scalar_tensor(1, ScalarType::Double));
  EXPECT_TRUE(r.is_meta());
  EXPECT_EQ(r.sizes(), m.sizes());
  EXPECT_EQ(add(ones({}), empty({2}, ScalarType::Half, DeviceType::Meta)).dtype(), ScalarType::Half);
  EXPECT_EQ(message([&] { add(empty({2}, F, DeviceType::Meta), ones({2})); }),
            "Expected all tensors to be on the same device, but found at least two devices, meta and cpu!");
  EXPECT_EQ(add(strided({2, 3}, {1, 2}, F), ones({3})).strides(), IntView({1, 2}));
}

TEST(Outputs, FormsOfStructuredKernels) {
  const Tensor out = strided({2, 2}, {1, 2});
  const Tensor* given[] = {&out};
  Outputs o(kOp, Outputs::Form::Out, given);
  o.set(0, {2, 2}, F);
  EXPECT_FALSE(o[0].is_same(out));  // a temporary of the asked strides
  copy_into(o[0], iota({2, 2}));
  o.finish();
  EXPECT_EQ(out.data<float>()[1], 2);
  Outputs wrong(kOp, Outputs::Form::Out, given);
  EXPECT_EQ(message([&] { wrong.set(0, {2, 2}, ScalarType::Long); }),
            "Expected out tensor to have dtype long int, but got float instead");
  Outputs in(kOp, Outputs::Form::Inplace, given);
  EXPECT_EQ(message([&] { in.set(0, {3, 2}, F); }),
            "Bad in-place call: input tensor size [2, 2] and output tensor size [3, 2] should match");
}

}  // namespace
}  // namespace tn
