#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "generated/ops/_index_put_impl.h"
#include "generated/ops/arange.h"
#include "generated/ops/cat.h"
#include "generated/ops/constant_pad_nd.h"
#include "generated/ops/embedding.h"
#include "generated/ops/embedding_dense_backward.h"
#include "generated/ops/flip.h"
#include "generated/ops/gather.h"
#include "generated/ops/index.h"
#include "generated/ops/index_add.h"
#include "generated/ops/index_put.h"
#include "generated/ops/index_select.h"
#include "generated/ops/masked_select.h"
#include "generated/ops/nonzero.h"
#include "generated/ops/pad.h"
#include "generated/ops/repeat.h"
#include "generated/ops/repeat_interleave.h"
#include "generated/ops/roll.h"
#include "generated/ops/scatter.h"
#include "generated/ops/scatter_add.h"
#include "generated/ops/scatter_reduce.h"
#include "generated/ops/stack.h"
#include "generated/ops/t.h"
#include "generated/ops/take.h"
#include "generated/ops/to.h"
#include "generated/ops/view.h"
#include "generated/ops/zeros.h"
#include "runtime/copy.h"
#include "runtime/door.h"

namespace tn {
namespace {

class Indexing : public testing::Test {
 protected:
  static void SetUpTestSuite() { init_core(); }
  // 0 to 5 in two rows.
  Tensor m = at::view(at::arange(Scalar(6), ScalarType::Float), {2, 3});
};

template <class T = float>
std::vector<T> values(const Tensor& t) {
  const Tensor dense = contiguous(t);
  if (dense.numel() == 0) return {};
  return std::vector<T>(dense.data<T>(), dense.data<T>() + dense.numel());
}
Tensor longs(std::vector<int64_t> v, std::vector<int64_t> sizes = {}) {
  if (sizes.empty()) sizes.push_back(static_cast<int64_t>(v.size()));
  Tensor t = empty(sizes, ScalarType::Long);
  std::copy(v.begin(), v.end(), t.numel() ? t.data<int64_t>() : nullptr);
  return t;
}
Tensor mask(std::vector<int> v, std::vector<int64_t> sizes) {
  Tensor t = empty(sizes, ScalarType::Bool);
  for (size_t i = 0; i < v.size(); ++i) t.data<bool>()[i] = v[i] != 0;
  return t;
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

TEST_F(Indexing, ReadsRowsColumnsAndPairs) {
  EXPECT_EQ(values(at::index(m, {longs({1, -2})})), (std::vector<float>{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(values(at::index(m, {Tensor(), longs({2, 0})})), (std::vector<float>{2, 0, 5, 3}));
  EXPECT_EQ(values(at::index(m, {longs({0, 1}), longs({2, 0})})), (std::vector<float>{2, 3}));
  EXPECT_EQ(at::index(m, {longs({0, 1}, {2, 1}), longs({2, 0, 1})}).sizes(), IntView({2, 3}));
  EXPECT_EQ(at::index(at::t(m), {longs({0, 1})}).strides(), IntView({2, 1}));
  EXPECT_EQ(values(at::index(at::t(m), {Tensor(), longs({1})})), (std::vector<float>{3, 4, 5}));
  EXPECT_EQ(at::index(m, {longs({})}).sizes(), IntView({0, 3}));
}

TEST_F(Indexing, IndexesAroundADimensionComeFirst) {
  const Tensor c = at::view(at::arange(Scalar(24), ScalarType::Float), {2, 3, 4});
  const Tensor r = at::index(c, {longs({0, 1}), Tensor(), longs({3, 1})});
  EXPECT_EQ(r.sizes(), IntView({2, 3}));
  EXPECT_EQ(values(r), (std::vector<float>{3, 7, 11, 13, 17, 21}));
}

TEST_F(Indexing, MasksAreIndexesOfTheirTrueElements) {
  EXPECT_EQ(values(at::index(m, {mask({1, 0, 1, 0, 0, 1}, {2, 3})})), (std::vector<float>{0, 2, 5}));
  EXPECT_EQ(values(at::index(m, {mask({0, 1}, {2})})), (std::vector<float>{3, 4, 5}));
  EXPECT_EQ(message(ErrorKind::Index, [&] { at::index(m, {mask({1}, {1})}); }),
            "The shape of the mask [1] at index 0 does not match the shape of the indexed tensor [2, 3] at index 0");
}

TEST_F(Indexing, NamesWhatIsOutOfBounds) {
  EXPECT_EQ(message(ErrorKind::Index, [&] { at::index(m, {longs({5})}); }),
            "index 5 is out of bounds for dimension 0 with size 2");
  EXPECT_EQ(message(ErrorKind::Index, [&] { at::index(m, {longs({0, 1}), longs({0, 1, 2})}); }),
            "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]");
  EXPECT_EQ(message(ErrorKind::Index, [&] { at::index_select(m, 0, longs({2})); }), "index out of range in self");
  EXPECT_EQ(message(ErrorKind::Runtime, [&] { at::gather(m, 0, longs({-1}, {1, 1})); }),
            "index -1 is out of bounds for dimension 0 with size 2");
}

TEST_F(Indexing, PutAccumulatesInOrder) {
  at::index_put_(m, {longs({0, 0})}, at::zeros(IntView({1})));
  EXPECT_EQ(values(m), (std::vector<float>{0, 0, 0, 3, 4, 5}));
  const Tensor halves = at::zeros(IntView({1}), ScalarType::Half);
  const Tensor ones =
      at::to(at::view(at::arange(Scalar(1), Scalar(4), Scalar(1), ScalarType::Float), {3}), ScalarType::Half);
  EXPECT_EQ(values(at::to(at::index_put(halves, {longs({0, 0, 0})}, ones, true), ScalarType::Float)),
            (std::vector<float>{6}));
  EXPECT_EQ(message(ErrorKind::Runtime, [&] { at::index_put_(m, {longs({0})}, at::zeros(IntView({2}))); }),
            "shape mismatch: value tensor of shape [2] cannot be broadcast to indexing result of shape [1, 3]");
}

TEST_F(Indexing, SelectAndAddAlongADimension) {
  EXPECT_EQ(values(at::index_select(m, 1, longs({2, 2, 0}))), (std::vector<float>{2, 2, 0, 5, 5, 3}));
  EXPECT_EQ(values(at::index_add(at::zeros(IntView({2, 3})), 0, longs({1, 1}), m, Scalar(2))),
            (std::vector<float>{0, 0, 0, 6, 10, 14}));
  EXPECT_EQ(values(at::index_add(at::zeros(IntView({2, 3})), 1, longs({0, 0, 1}), m)),
            (std::vector<float>{1, 2, 0, 7, 5, 0}));
}

TEST_F(Indexing, GatherAndScatter) {
  EXPECT_EQ(values(at::gather(m, 1, longs({0, 2, 1, 1}, {2, 2}))), (std::vector<float>{0, 2, 4, 4}));
  const Tensor z = at::zeros(IntView({2, 3}));
  EXPECT_EQ(values(at::scatter(z, 0, longs({1, 0, 1}, {1, 3}), m)), (std::vector<float>{0, 1, 0, 0, 0, 2}));
  EXPECT_EQ(values(at::scatter_add(z, 0, longs({0, 0, 0, 0, 0, 0}, {2, 3}), m)),
            (std::vector<float>{3, 5, 7, 0, 0, 0}));
  EXPECT_EQ(values(at::scatter_reduce(z, 0, longs({0, 0, 0, 0, 0, 0}, {2, 3}), m, "mean", false)),
            (std::vector<float>{1.5F, 2.5F, 3.5F, 0, 0, 0}));
  EXPECT_EQ(values(at::scatter_reduce(z, 0, longs({0, 1, 0, 0, 0, 0}, {2, 3}), m, "amax")),
            (std::vector<float>{3, 4, 5, 0, 1, 0}));
}

TEST_F(Indexing, PositionsOfTruthAndFlatPositions) {
  const Tensor n = at::nonzero(m);
  EXPECT_EQ(values<int64_t>(n), (std::vector<int64_t>{0, 1, 0, 2, 1, 0, 1, 1, 1, 2}));
  EXPECT_EQ(n.strides(), IntView({1, 5}));
  EXPECT_EQ(values(at::masked_select(m, mask({1, 0, 1}, {3}))), (std::vector<float>{0, 2, 3, 5}));
  EXPECT_EQ(values(at::take(at::t(m), longs({1, -1}))), (std::vector<float>{3, 5}));
}

TEST_F(Indexing, EmbeddingAndItsGradient) {
  EXPECT_EQ(at::embedding(m, longs({1, 0, 1, 1}, {2, 2})).sizes(), IntView({2, 2, 3}));
  const Tensor g = at::embedding_dense_backward(m, longs({1, 1}), 3, -1, false);
  EXPECT_EQ(values(g), (std::vector<float>{0, 0, 0, 3, 5, 7, 0, 0, 0}));
  EXPECT_EQ(values(at::embedding_dense_backward(m, longs({1, 1}), 3, 1, false)), std::vector<float>(9, 0.0F));
}

TEST_F(Indexing, PadsByModes) {
  EXPECT_EQ(values(at::pad(m, {1, 2}, "reflect")), (std::vector<float>{1, 0, 1, 2, 1, 0, 4, 3, 4, 5, 4, 3}));
  EXPECT_EQ(values(at::pad(m, {2, 0}, "replicate")), (std::vector<float>{0, 0, 0, 1, 2, 3, 3, 3, 4, 5}));
  EXPECT_EQ(values(at::pad(m, {1, 1}, "circular")), (std::vector<float>{2, 0, 1, 2, 0, 5, 3, 4, 5, 3}));
  EXPECT_EQ(values(at::constant_pad_nd(m, {-1, 1}, Scalar(9))), (std::vector<float>{1, 2, 9, 4, 5, 9}));
}

TEST_F(Indexing, Concatenates) {
  EXPECT_EQ(values(at::cat({m, m}, 1)), (std::vector<float>{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  EXPECT_EQ(at::cat({at::zeros(IntView({0})), m}, 1).sizes(), IntView({2, 3}));
  EXPECT_EQ(at::cat({m, at::to(m, ScalarType::Double)}).dtype(), ScalarType::Double);
  EXPECT_EQ(at::stack({m, m}, 1).sizes(), IntView({2, 2, 3}));
  EXPECT_EQ(message(ErrorKind::Runtime, [&] { at::cat({m, at::zeros(IntView({2}))}); }),
            "Tensors must have same number of dimensions: got 2 and 1");
  const Tensor last = empty(IntView({1, 2, 3, 4}), ScalarType::Float, {}, MemoryFormat::ChannelsLast);
  EXPECT_TRUE(at::cat({last, last}, 1).is_contiguous(MemoryFormat::ChannelsLast));
}

TEST_F(Indexing, RearrangesAndRepeats) {
  EXPECT_EQ(values(at::flip(m, {1})), (std::vector<float>{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(values(at::flip(at::t(m), {0})), (std::vector<float>{2, 5, 1, 4, 0, 3}));
  EXPECT_EQ(values(at::roll(m, {1}, {1})), (std::vector<float>{2, 0, 1, 5, 3, 4}));
  EXPECT_EQ(values(at::repeat(m, {2, 1})), (std::vector<float>{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values<int64_t>(at::repeat_interleave(longs({2, 0, 1}))), (std::vector<int64_t>{0, 0, 2}));
}

}  // namespace
}  // namespace tn
