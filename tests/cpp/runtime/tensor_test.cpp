#include "runtime/tensor.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/copy.h"
#include "runtime/warn.h"

namespace tn {
namespace {

constexpr auto F = ScalarType::Float;

template <class Call>
std::string message(ErrorKind kind, Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind);
    return e.message();
  }
  return "no error";
}

TEST(Tensor, EmptyGeometry) {
  const Tensor t = empty({2, 0, 3}, F);
  EXPECT_EQ(t.numel(), 0);
  EXPECT_EQ(t.strides(), IntView({3, 3, 1}));
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_EQ(t->raw_data(), nullptr);
  const Tensor s = empty({}, F);
  EXPECT_EQ(s.numel(), 1);
  EXPECT_EQ(s.dim(), 0);
  EXPECT_NE(s.data_ptr(), nullptr);
}

TEST(Tensor, ManyDimensions) {
  std::vector<int64_t> sizes(64, 1);
  sizes[3] = 2;
  const Tensor t = empty(sizes, F);
  EXPECT_EQ(t.numel(), 2);
  EXPECT_EQ(t.dim(), 64);
  EXPECT_EQ(t.size(3), 2);
  EXPECT_TRUE(t->is_non_overlapping_and_dense());
  // Upstream lets tensors have more.
  EXPECT_EQ(empty(std::vector<int64_t>(65, 1), F).dim(), 65);
}

TEST(Tensor, OverflowsAndNegatives) {
  EXPECT_EQ(message(ErrorKind::Runtime, [] { empty({int64_t{1} << 62, 4}, F); }),
            "Storage size calculation overflowed with sizes=[4611686018427387904, 4]");
  EXPECT_EQ(message(ErrorKind::Runtime, [] { empty({int64_t{1} << 60, 4}, ScalarType::Double); }),
            "Storage size calculation overflowed with sizes=[1152921504606846976, 4]");
  EXPECT_EQ(message(ErrorKind::Runtime, [] { empty({2, -3}, F); }),
            "Trying to create tensor with negative dimension -3: [2, -3]");
  EXPECT_EQ(message(ErrorKind::Runtime, [] { empty_strided({2, 3}, {-1, 1}, F); }),
            "Storage size calculation overflowed with sizes=[2, 3] and strides=[-1, 1]");
  EXPECT_EQ(message(ErrorKind::Runtime, [] { empty_strided({2, 3}, {1}, F); }),
            "dimensionality of sizes (2) must match dimensionality of strides (1)");
  EXPECT_EQ(message(ErrorKind::Runtime, [] { empty_strided({int64_t{1} << 40, 3}, {int64_t{1} << 40, 1}, F); }),
            "Storage size calculation overflowed with sizes=[1099511627776, 3] and strides=[1099511627776, 1]");
  EXPECT_EQ(empty({int64_t{1} << 62, 0, 8}, F).numel(), 0);
}

TEST(Tensor, ChannelsLast) {
  const Tensor t = empty({2, 3, 4, 5}, F, {}, MemoryFormat::ChannelsLast);
  EXPECT_EQ(t.strides(), IntView({60, 1, 15, 3}));
  EXPECT_FALSE(t.is_contiguous());
  EXPECT_TRUE(t.is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_TRUE(t->is_non_overlapping_and_dense());
  const Tensor thin = empty({2, 1, 4, 5}, F);
  EXPECT_TRUE(thin.is_contiguous() && thin.is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_EQ(message(ErrorKind::Runtime, [] { empty({2, 3}, F, {}, MemoryFormat::ChannelsLast); }),
            "required rank 4 tensor to use channels_last format");
}

TEST(Tensor, ContiguityIgnoresUnitDimensions) {
  const Tensor t = empty_strided({2, 1, 3}, {3, 100, 1}, F);
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_FALSE(empty_strided({2, 3}, {1, 2}, F).is_contiguous());
  EXPECT_TRUE(empty_strided({2, 3}, {1, 2}, F)->is_non_overlapping_and_dense());
  EXPECT_FALSE(empty_strided({2, 3}, {0, 1}, F)->is_non_overlapping_and_dense());
  EXPECT_FALSE(empty_strided({2, 3}, {6, 2}, F)->is_non_overlapping_and_dense());
}

TEST(Tensor, ViewsShareVersionAndStorage) {
  Tensor base = empty({4, 4}, F);
  base->set_requires_grad_bit(true);
  const Tensor view = alias_with_geometry(base, {2, 4}, {4, 1}, 8);
  EXPECT_EQ(view.data_ptr(), base.data<float>() + 8);
  EXPECT_FALSE(view.requires_grad());
  view->bump_version();
  EXPECT_EQ(base->version(), 1u);
  base.reset();
  view->bump_version();
  EXPECT_EQ(view->version(), 2u);
  view->own_version();
  EXPECT_EQ(view->version(), 0u);
}

TEST(Tensor, WrapDim) {
  EXPECT_EQ(wrap_dim(-1, 3), 2);
  EXPECT_EQ(wrap_dim(0, 0), 0);
  EXPECT_EQ(message(ErrorKind::Index, [] { wrap_dim(5, 2); }),
            "Dimension out of range (expected to be in range of [-2, 1], but got 5)");
  EXPECT_EQ(message(ErrorKind::Index, [] { empty({}, F).size(0); }),
            "Dimension specified as 0 but tensor has no dimensions");
}

std::string last_warning;

TEST(Tensor, ResizeOutputWarnsOnlyWhenElementsAreLost) {
  warn_hook = [](const std::string& m, WarnKind) { last_warning = m; };
  last_warning.clear();
  const Tensor none = empty({0}, F);
  EXPECT_TRUE(resize_output(none, {2, 3}));
  EXPECT_EQ(none.strides(), IntView({3, 1}));
  EXPECT_EQ(last_warning, "");
  EXPECT_FALSE(resize_output(none, {2, 3}));
  const Tensor some = empty({3}, F);
  fill(some, 7.0);
  EXPECT_TRUE(resize_output(some, {400}));
  EXPECT_EQ(some.data<float>()[2], 7.0f);
  EXPECT_EQ(last_warning.substr(0, 113),
            "An output with one or more elements was resized since it had shape [3], which does not match the required "
            "output ");
  warn_hook = nullptr;
}

TEST(Tensor, InferenceModeDropsAutogradKeys) {
  EXPECT_TRUE(empty({1}, F)->keys().has(DispatchKey::AutogradCPU));
  EXPECT_TRUE(empty({1}, F)->keys().has(DispatchKey::AutocastCPU));
  thread_state.inference_mode = true;
  const Tensor t = empty({1}, F);
  thread_state.inference_mode = false;
  EXPECT_FALSE(t->keys().has(DispatchKey::AutogradCPU));
  EXPECT_TRUE(t->keys().has(DispatchKey::CPU));
  EXPECT_TRUE(t->is_inference());
}

TEST(Tensor, MetaHasNoMemory) {
  const Tensor t = empty({1 << 20, 1 << 20}, F, DeviceType::Meta);
  EXPECT_EQ(t.data_ptr(), nullptr);
  EXPECT_EQ(t.storage()->nbytes(), size_t{4} << 40);
}

TEST(Tensor, HugeOffsetIsNoOverflow) {
  EXPECT_THROW(storage_bytes({2}, {1}, INT64_MAX - 1, 4), Error);
  EXPECT_EQ(storage_bytes({0}, {1}, INT64_MAX - 1, 4), 0u);
}

}  // namespace
}  // namespace tn
