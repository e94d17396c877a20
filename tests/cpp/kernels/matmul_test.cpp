// The operators over gemm: shapes, dtypes, upstream's messages, and values against plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "generated/ops/_grouped_mm.h"
#include "generated/ops/_int_mm.h"
#include "generated/ops/_weight_int8pack_mm.h"
#include "generated/ops/addbmm.h"
#include "generated/ops/addmm.h"
#include "generated/ops/addmv.h"
#include "generated/ops/addr.h"
#include "generated/ops/baddbmm.h"
#include "generated/ops/bmm.h"
#include "generated/ops/dot.h"
#include "generated/ops/einsum.h"
#include "generated/ops/linalg_multi_dot.h"
#include "generated/ops/linear.h"
#include "generated/ops/matmul.h"
#include "generated/ops/mm.h"
#include "generated/ops/mv.h"
#include "generated/ops/t.h"
#include "generated/ops/transpose.h"
#include "runtime/copy.h"
#include "runtime/door.h"

namespace tn {
namespace {

class Matmul : public testing::Test {
 protected:
  static void SetUpTestSuite() { init_core(); }

  Tensor random(std::initializer_list<int64_t> sizes, ScalarType dtype = ScalarType::Double) {
    Tensor t = empty(IntView(sizes), ScalarType::Double);
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = normal(engine_);
    return cast(t, dtype);
  }
  std::mt19937 engine_{7};
};

double at2(const Tensor& t, int64_t i, int64_t j) {
  const Tensor wide = cast(t, ScalarType::Double);
  return wide.data<double>()[i * wide->stride(0) + j * wide->stride(1)];
}

// beta * c + alpha * a b, in double.
Tensor reference(const Tensor& a, const Tensor& b, const Tensor* c = nullptr, double beta = 0, double alpha = 1) {
  const int64_t m = a->size(0), n = b->size(1), k = a->size(1);
  Tensor out = empty({m, n}, ScalarType::Double);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += at2(a, i, p) * at2(b, p, j);
      out.data<double>()[i * n + j] = alpha * sum + (c ? beta * at2(*c, i, j) : 0);
    }
  return out;
}

void expect_near(const Tensor& got, const Tensor& want, double bound = 1e-12) {
  ASSERT_EQ(got.sizes(), want.sizes());
  const Tensor a = contiguous(cast(got, ScalarType::Double)), b = contiguous(want);
  for (int64_t i = 0; i < a.numel(); ++i) EXPECT_NEAR(a.data<double>()[i], b.data<double>()[i], bound) << i;
}

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

Tensor slice_of(const Tensor& t, int64_t i) {
  return alias_with_geometry(t, t.sizes().slice(1, 2), t.strides().slice(1, 2), t.storage_offset() + i * t->stride(0));
}

TEST_F(Matmul, MmValuesAndStrides) {
  const Tensor a = random({3, 5}), b = random({4, 5});
  const Tensor bt = at::transpose(b, 0, 1);
  const Tensor out = at::mm(a, bt);
  expect_near(out, reference(a, bt));
  EXPECT_TRUE(out.is_contiguous());
}

TEST_F(Matmul, MmMessages) {
  EXPECT_EQ(message_of([&] { at::mm(random({2, 3}), random({4, 5})); }),
            "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)");
  EXPECT_EQ(message_of([&] { at::mm(random({2, 3}, ScalarType::Float), random({3, 2})); }),
            "expected m1 and m2 to have the same dtype, but got: float != double");
  EXPECT_EQ(message_of([&] { at::mm(random({2, 3}, ScalarType::Bool), random({3, 2}, ScalarType::Bool)); }),
            "\"addmm_impl_cpu_\" not implemented for 'Bool'");
  EXPECT_EQ(message_of([&] { at::mm(random({2}), random({3, 2})); }), "self must be a matrix");
}

TEST_F(Matmul, MmOutMayBeAnOperand) {
  const Tensor a = random({3, 3});
  const Tensor want = reference(a, a);
  at::mm_out(a, a, a);
  expect_near(a, want);
}

TEST_F(Matmul, EmptyInnerDimension) {
  const Tensor out = at::mm(random({2, 0}), random({0, 3}));
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(out.data<double>()[i], 0);
  const Tensor c = random({2, 3});
  expect_near(at::addmm(c, random({2, 0}), random({0, 3}), 1, 1), c);
  const Tensor twice = at::addmm(c, random({2, 0}), random({0, 3}), 2, 1);
  EXPECT_EQ(twice.data<double>()[4], 2 * c.data<double>()[4]);
}

TEST_F(Matmul, AddmmBroadcasts) {
  const Tensor a = random({3, 5}), b = random({5, 4});
  const Tensor row = random({4}), col = random({3, 1}), full = random({3, 4});
  const int64_t sizes[] = {3, 4}, row_strides[] = {0, 1}, col_strides[] = {1, 0};
  const Tensor row2 = alias_with_geometry(row, sizes, row_strides, 0),
               col2 = alias_with_geometry(col, sizes, col_strides, 0);
  expect_near(at::addmm(row, a, b), reference(a, b, &row2, 1));
  expect_near(at::addmm(row, a, b, 2, 3), reference(a, b, &row2, 2, 3));
  expect_near(at::addmm(col, a, b, 2, 3), reference(a, b, &col2, 2, 3));
  expect_near(at::addmm(full, a, b, 0.5, 1), reference(a, b, &full, 0.5));
  const Tensor want = reference(a, b, &full, 2, 3);
  at::addmm_(full, a, b, 2, 3);
  expect_near(full, want);
}

TEST_F(Matmul, AddmmMessages) {
  EXPECT_EQ(message_of([&] { at::addmm(random({2}), random({2, 3}), random({3, 5})); }),
            "The expanded size of the tensor (5) must match the existing size (2) at non-singleton dimension 1.  "
            "Target sizes: [2, 5].  Tensor sizes: [2]");
  EXPECT_EQ(message_of([&] { at::addmm(random({5}), random({2, 3}, ScalarType::Float), random({3, 5})); }),
            "mat1 and mat2 must have the same dtype, but got Float and Double");
}

TEST_F(Matmul, Batches) {
  const Tensor a = random({2, 3, 5}), b = random({2, 5, 4}), c = random({2, 3, 4});
  const Tensor out = at::bmm(a, b), sum = at::baddbmm(c, a, b, 2, 3);
  for (int64_t i = 0; i < 2; ++i) {
    const Tensor addend = slice_of(c, i);
    expect_near(slice_of(out, i), reference(slice_of(a, i), slice_of(b, i)));
    expect_near(slice_of(sum, i), reference(slice_of(a, i), slice_of(b, i), &addend, 2, 3));
  }
  const Tensor addend = slice_of(c, 0);
  const Tensor first = reference(slice_of(a, 0), slice_of(b, 0), &addend, 2, 3);
  expect_near(at::addbmm(addend, a, b, 2, 3), reference(slice_of(a, 1), slice_of(b, 1), &first, 1, 3));
  EXPECT_EQ(message_of([&] { at::bmm(a, random({2, 6, 4})); }),
            "Expected size for first two dimensions of batch2 tensor to be: [2, 5] but got: [2, 6].");
}

TEST_F(Matmul, Vectors) {
  const Tensor a = random({3, 5}), v = random({5}), w = random({3});
  const int64_t column[] = {5, 1}, unit[] = {1, 1}, three[] = {3, 1};
  const Tensor vc = alias_with_geometry(v, column, unit, 0), wc = alias_with_geometry(w, three, unit, 0);
  const Tensor want = reference(a, vc);
  expect_near(at::mv(a, v), alias_with_geometry(want, IntView(three, 1), IntView(unit, 1), 0));
  EXPECT_EQ(at::addmv(random({1}), random({5, 0}), random({0})).sizes(), IntView({1}));
  const Tensor want2 = reference(a, vc, &wc, 2, 3);
  expect_near(at::addmv(w, a, v, 2, 3), alias_with_geometry(want2, IntView(three, 1), IntView(unit, 1), 0));
  EXPECT_EQ(
      message_of([&] { at::dot(v, w); }),
      "inconsistent tensor size, expected tensor [5] and src [3] to have the same number of elements, but got 5 and 3 "
      "elements respectively");
}

TEST_F(Matmul, AddrFollowsSelf) {
  const Tensor self = random({5, 3}), t = at::transpose(self, 0, 1), a = random({3}), b = random({5});
  const Tensor out = at::addr(t, a, b, 2, 3);
  EXPECT_EQ(out.strides(), t.strides());
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 5; ++j)
      EXPECT_NEAR(at2(out, i, j), 2 * at2(t, i, j) + 3 * a.data<double>()[i] * b.data<double>()[j], 1e-12);
}

TEST_F(Matmul, MatmulShapes) {
  EXPECT_EQ(at::matmul(random({2, 3, 4}), random({4})).sizes(), IntView({2, 3}));
  EXPECT_EQ(at::matmul(random({4}), random({2, 4, 6})).sizes(), IntView({2, 6}));
  EXPECT_EQ(at::matmul(random({4, 4}), random({2, 4, 6})).sizes(), IntView({2, 4, 6}));
  EXPECT_EQ(at::matmul(random({2, 1, 3, 4}), random({3, 4, 5})).sizes(), IntView({2, 3, 3, 5}));
  EXPECT_EQ(at::matmul(random({4}), random({4})).dim(), 0);
  // A batch on the right doesn't fold: its rows are not adjacent once it is transposed.
  EXPECT_EQ(message_of([&] { at::matmul(random({5}), random({2, 4, 6})); }),
            "Expected size for first two dimensions of batch2 tensor to be: [2, 5] but got: [2, 4].");
  EXPECT_EQ(message_of([&] { at::matmul(random({}), random({3})); }),
            "both arguments to matmul need to be at least 1D, but they are 0D and 1D");
}

TEST_F(Matmul, Linear) {
  const Tensor x = random({2, 3, 5}), w = random({4, 5}), b = random({4});
  const int64_t flat[] = {6, 5}, strides[] = {5, 1}, out_sizes[] = {6, 4}, row[] = {0, 1};
  const Tensor flat_x = alias_with_geometry(x, flat, strides, 0), bias = alias_with_geometry(b, out_sizes, row, 0);
  const Tensor want = reference(flat_x, at::transpose(w, 0, 1), &bias, 1);
  const Tensor got = at::linear(x, w, b);
  EXPECT_EQ(got.sizes(), IntView({2, 3, 4}));
  const int64_t got_strides[] = {4, 1};
  expect_near(alias_with_geometry(got, out_sizes, got_strides, 0), want);
  // Rows that are not adjacent.
  const Tensor wide = random({6, 9});
  const int64_t wide_strides[] = {9, 1};
  const Tensor part = alias_with_geometry(wide, flat, wide_strides, 2);
  expect_near(at::linear(part, w), reference(part, at::transpose(w, 0, 1)));
  EXPECT_EQ(message_of([&] { at::linear(x, random({4, 6})); }),
            "mat1 and mat2 shapes cannot be multiplied (6x5 and 6x4)");
}

TEST_F(Matmul, Einsum) {
  const Tensor a = random({3, 4}), b = random({4, 5});
  expect_near(at::einsum("ij,jk->ik", {a, b}), reference(a, b));
  EXPECT_EQ(at::einsum("...ij,...jk", {random({2, 1, 3, 4}), random({7, 4, 5})}).sizes(), IntView({2, 7, 3, 5}));
  EXPECT_EQ(message_of([&] { at::einsum("ij,jk", {a}); }),
            "einsum(): fewer operands were provided than specified in the equation");
}

TEST_F(Matmul, MultiDot) {
  const Tensor a = random({2, 3}), b = random({3, 4}), c = random({4, 2}), d = random({2, 6});
  expect_near(at::linalg_multi_dot({a, b, c, d}), reference(reference(reference(a, b), c), d));
}

TEST_F(Matmul, EightBits) {
  const Tensor a = cast(random({3, 40}), ScalarType::Char), b = cast(random({40, 2}), ScalarType::Char);
  expect_near(at::_int_mm(a, b), reference(a, b), 0);
  const Tensor x = random({2, 70}, ScalarType::Float), w = cast(random({130, 70}), ScalarType::Char),
               s = random({130}, ScalarType::Float);
  const Tensor got = at::_weight_int8pack_mm(x, w, s), plain = reference(x, at::transpose(w, 0, 1));
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 130; ++j) EXPECT_NEAR(at2(got, i, j), at2(plain, i, j) * s.data<float>()[j], 1e-4);
}

TEST_F(Matmul, Grouped) {
  const Tensor a = random({16, 8}, ScalarType::Float), b = random({2, 8, 12}, ScalarType::Float);
  Tensor ends = empty({2}, ScalarType::Int);
  ends.data<int32_t>()[0] = 5;
  ends.data<int32_t>()[1] = 13;
  const Tensor out = at::_grouped_mm(a, b, ends), first = reference(a, slice_of(b, 0)),
               second = reference(a, slice_of(b, 1));
  for (int64_t i = 0; i < 16; ++i)
    for (int64_t j = 0; j < 12; ++j)
      EXPECT_NEAR(at2(out, i, j), i < 5 ? at2(first, i, j) : i < 13 ? at2(second, i, j) : 0, 1e-4);
  ends.data<int32_t>()[1] = 17;
  EXPECT_EQ(message_of([&] { at::_grouped_mm(a, b, ends); }),
            "_grouped_mm: expected offsets that rise from 0 to at most 16, got 17 after 5");
  EXPECT_EQ(message_of([&] { at::_grouped_mm(a, random({4, 8}, ScalarType::Float), ends); }),
            "contraction dimension of mat_a and mat_b must match");
}

}  // namespace
}  // namespace tn
