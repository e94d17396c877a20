#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "generated/ops/arange.h"
#include "generated/ops/contiguous.h"
#include "generated/ops/eye.h"
#include "generated/ops/full.h"
#include "generated/ops/item.h"
#include "generated/ops/linspace.h"
#include "generated/ops/resize.h"
#include "generated/ops/select_scatter.h"
#include "generated/ops/set.h"
#include "generated/ops/t.h"
#include "generated/ops/to.h"
#include "generated/ops/tril.h"
#include "generated/ops/tril_indices.h"
#include "generated/ops/triu.h"
#include "generated/ops/view.h"
#include "generated/ops/zeros.h"
#include "runtime/copy.h"
#include "runtime/door.h"
#include "runtime/half.h"

namespace tn {
namespace {

class Factory : public testing::Test {
 protected:
  static void SetUpTestSuite() { init_core(); }
};

template <class T>
std::vector<T> values(const Tensor& t) {
  const Tensor dense = contiguous(t);
  if (dense.numel() == 0) return {};
  return std::vector<T>(dense.data<T>(), dense.data<T>() + dense.numel());
}
template <class F>
std::string message(ErrorKind kind, F&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(static_cast<int>(e.kind()), static_cast<int>(kind));
    return e.message();
  }
  return "no error";
}

TEST_F(Factory, ArangeCountsAsUpstream) {
  EXPECT_EQ(values<int64_t>(at::arange(Scalar(5))), (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(values<int64_t>(at::arange(Scalar(5), Scalar(-2), Scalar(-3))), (std::vector<int64_t>{5, 2, -1}));
  EXPECT_EQ(values<int32_t>(at::arange(Scalar(1), Scalar(2.5), Scalar(0.5), ScalarType::Int)),
            (std::vector<int32_t>{1, 1, 1}));
  EXPECT_EQ(values<float>(at::arange(Scalar(0), Scalar(1), Scalar(0.25))), (std::vector<float>{0, 0.25F, 0.5F, 0.75F}));
  EXPECT_EQ(at::arange(Scalar(0)).numel(), 0);
  EXPECT_EQ(message(ErrorKind::Runtime, [] { at::arange(Scalar(0), Scalar(5), Scalar(0)); }), "step must be nonzero");
  EXPECT_EQ(message(ErrorKind::Value, [] { at::arange(Scalar(1), Scalar(2.5), Scalar(0.5), ScalarType::Long); }),
            "step must be nonzero");
  EXPECT_EQ(message(ErrorKind::Runtime, [] { at::arange(Scalar(5), Scalar(0), Scalar(1)); }),
            "upper bound and lower bound inconsistent with step sign");
  EXPECT_EQ(message(ErrorKind::NotImplemented, [] { at::arange(Scalar(5), ScalarType::Bool); }),
            "\"arange_cpu\" not implemented for 'Bool'");
}

TEST_F(Factory, LinspaceMeetsBothEnds) {
  EXPECT_EQ(values<int32_t>(at::linspace(Scalar(0), Scalar(5), 3, ScalarType::Int)), (std::vector<int32_t>{0, 2, 5}));
  const auto line = values<float>(at::linspace(Scalar(0), Scalar(0.3), 4));
  EXPECT_EQ(line.front(), 0.0F);
  EXPECT_EQ(line.back(), 0.3F);
  EXPECT_EQ(message(ErrorKind::Runtime, [] { at::linspace(Scalar(0), Scalar(5), -1); }),
            "number of steps must be non-negative");
}

TEST_F(Factory, TrianglesOfStridedMatrices) {
  const Tensor m = at::view(at::arange(Scalar(6), ScalarType::Float), {2, 3});
  EXPECT_EQ(values<float>(at::tril(m)), (std::vector<float>{0, 0, 0, 3, 4, 0}));
  EXPECT_EQ(values<float>(at::triu(m, 1)), (std::vector<float>{0, 1, 2, 0, 0, 5}));
  EXPECT_EQ(values<float>(at::triu(at::t(m))), (std::vector<float>{0, 3, 0, 4, 0, 0}));
  at::tril_(m, -1);
  EXPECT_EQ(values<float>(m), (std::vector<float>{0, 0, 0, 3, 0, 0}));
  EXPECT_EQ(values<int64_t>(at::tril_indices(3, 2)), (std::vector<int64_t>{0, 1, 1, 2, 2, 0, 0, 1, 0, 1}));
  EXPECT_EQ(values<float>(at::eye(2, 3)), (std::vector<float>{1, 0, 0, 0, 1, 0}));
}

TEST_F(Factory, OutKeepsItsDtype) {
  const Tensor out = empty(IntView({1}), ScalarType::Int);
  at::full_out(out, IntView({2}), Scalar(2.5));
  EXPECT_EQ(values<int32_t>(out), (std::vector<int32_t>{2, 2}));
  at::zeros_out(out, IntView({3}));
  EXPECT_EQ(values<int32_t>(out), (std::vector<int32_t>{0, 0, 0}));
}

TEST_F(Factory, ToReturnsItselfWhenNothingChanges) {
  const Tensor m = at::zeros(IntView({2, 3}));
  EXPECT_TRUE(at::to(m, ScalarType::Float).is_same(m));
  EXPECT_TRUE(at::contiguous(m).is_same(m));
  EXPECT_FALSE(at::to(m, ScalarType::Float, false, true).is_same(m));
  EXPECT_EQ(at::to(m, ScalarType::Half).dtype(), ScalarType::Half);
  EXPECT_EQ(message(ErrorKind::Runtime, [&] { at::item(m); }),
            "a Tensor with 6 elements cannot be converted to Scalar");
}

TEST_F(Factory, SetTakesOverStorage) {
  const Tensor from = at::view(at::arange(Scalar(6), ScalarType::Float), {2, 3}), t = at::zeros(IntView({1}));
  at::set_(t, from.storage(), 1, IntView({2, 2}), IntView({3, 1}));
  EXPECT_EQ(values<float>(t), (std::vector<float>{1, 2, 4, 5}));
  at::set_(t, from.storage(), 2, IntView({2, 3}));  // grows the storage
  EXPECT_GE(from.storage()->nbytes(), 8 * sizeof(float));
  EXPECT_EQ(message(ErrorKind::Runtime, [&] { at::set_(t, from.storage(), -1, IntView({2})); }),
            "Tensor: invalid storage offset -1");
  EXPECT_EQ(message(ErrorKind::Runtime, [&] { at::set_(t, at::arange(Scalar(2))); }),
            "Could not set tensor of type long int to a tensor of type float");
  at::set_(t);
  EXPECT_EQ(t.sizes(), IntView({0}));
}

TEST_F(Factory, ResizeKeepsElementsAndStridesOfTheSameShape) {
  const Tensor t = at::view(at::arange(Scalar(6), ScalarType::Float), {2, 3});
  at::resize_(t, {3, 2});
  EXPECT_EQ(values<float>(t), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  const Tensor u = at::t(t);
  at::resize_(u, {2, 3});
  EXPECT_EQ(u.strides(), IntView({1, 2}));
}

TEST_F(Factory, ScattersKeepTheStridesOfSelf) {
  const Tensor m = at::t(at::view(at::arange(Scalar(6), ScalarType::Float), {2, 3}));
  const Tensor out = at::select_scatter(m, at::zeros(IntView({2})), 0, 1);
  EXPECT_EQ(out.strides(), m.strides());
  EXPECT_EQ(values<float>(out), (std::vector<float>{0, 3, 0, 0, 2, 5}));
}

TEST_F(Factory, DenseConversionsOf16BitFloatsEqualThoseOfSingleElements) {
  const Tensor bits = at::arange(Scalar(-32768), Scalar(32768), Scalar(1), ScalarType::Short);
  for (const ScalarType t : {ScalarType::Half, ScalarType::BFloat16}) {
    const Tensor all = at::view(bits, t);
    for (const ScalarType to : {ScalarType::Float, ScalarType::Double, ScalarType::Long, ScalarType::Bool,
                                ScalarType::BFloat16, ScalarType::Half}) {
      const Tensor once = at::to(all, to);
      std::vector<char> one(once.itemsize());
      for (int64_t i = 0; i < all.numel(); i += 7) {
        const auto word = static_cast<const uint16_t*>(all.data_ptr())[i];
        const float value = t == ScalarType::Half ? to_float(Half{word}) : to_float(BFloat16{word});
        if (value != value && to == ScalarType::Half) continue;  // instructions keep a NaN's payload, in upstream too
        convert_row(t, static_cast<const char*>(all.data_ptr()) + 2 * i, 2, to, one.data(),
                    static_cast<int64_t>(one.size()), 1);
        const auto* got = static_cast<const char*>(once.data_ptr()) + i * static_cast<int64_t>(one.size());
        ASSERT_EQ(std::memcmp(got, one.data(), one.size()), 0)
            << dtype_name(t) << " to " << dtype_name(to) << " at " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tn
