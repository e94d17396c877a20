#include "runtime/shape.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/error.h"

namespace tn {
namespace {

template <class Call>
std::string message(Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

IntView v(const DimVector& d) { return d; }

TEST(DimVector, GrowsPastTheInlinePart) {
  DimVector d;
  for (int i = 0; i < 100; ++i) d.push_back(i);
  EXPECT_EQ(d.size(), 100u);
  EXPECT_EQ(d[99], 99);
  d.erase(0);
  d.insert(98, -1);
  EXPECT_EQ(d[0], 1);
  EXPECT_EQ(d[98], -1);
  EXPECT_EQ(d[99], 99);
  const DimVector copy = d;
  d = IntView();
  EXPECT_EQ(copy.size(), 100u);
  EXPECT_TRUE(d.empty());
}

TEST(Shape, Broadcasts) {
  EXPECT_EQ(v(infer_size({3, 1}, {4})), IntView({3, 4}));
  EXPECT_EQ(v(infer_size({}, {2, 0})), IntView({2, 0}));
  EXPECT_EQ(v(infer_size({1}, {0})), IntView({0}));
  EXPECT_EQ(message([] { infer_size({2, 3}, {4, 3}); }),
            "The size of tensor a (2) must match the size of tensor b (4) at non-singleton dimension 0");
}

TEST(Shape, InfersViewSizes) {
  EXPECT_EQ(v(infer_view_size({2, -1}, 6)), IntView({2, 3}));
  EXPECT_EQ(v(infer_view_size({0, 3}, 0)), IntView({0, 3}));
  EXPECT_EQ(message([] { infer_view_size({4}, 6); }), "shape '[4]' is invalid for input of size 6");
  EXPECT_EQ(message([] { infer_view_size({4, -1}, 6); }), "shape '[4, -1]' is invalid for input of size 6");
  EXPECT_EQ(message([] { infer_view_size({-1, -1}, 6); }), "only one dimension can be inferred");
  EXPECT_EQ(message([] { infer_view_size({-2, 3}, 6); }), "invalid shape dimension -2 at index 0 of shape [-2, 3]");
  EXPECT_EQ(message([] { infer_view_size({-1, 0}, 0); }),
            "cannot reshape tensor of 0 elements into shape [-1, 0] because the unspecified dimension size -1 can be "
            "any value and "
            "is ambiguous");
}

TEST(Shape, ViewStrides) {
  EXPECT_EQ(v(*view_strides({2, 3, 4}, {12, 4, 1}, {6, 4})), IntView({4, 1}));
  EXPECT_EQ(v(*view_strides({2, 3}, {1, 2}, {2, 1, 3, 1})), IntView({1, 6, 2, 2}));
  EXPECT_FALSE(view_strides({2, 3}, {1, 2}, {6}));
  EXPECT_EQ(v(*view_strides({}, {}, {1, 1})), IntView({1, 1}));
  EXPECT_EQ(v(*view_strides({0, 3}, {3, 1}, {3, 0})), IntView({1, 1}));
  EXPECT_EQ(v(*view_strides({4}, {0}, {2, 2})), IntView({0, 0}));
}

TEST(Shape, MemoryFormats) {
  const auto F = ScalarType::Float;
  EXPECT_EQ(suggest_memory_format(empty({2, 3, 4, 5}, F)), MemoryFormat::Contiguous);
  EXPECT_EQ(suggest_memory_format(empty({2, 3, 4, 5}, F, {}, MemoryFormat::ChannelsLast)), MemoryFormat::ChannelsLast);
  EXPECT_EQ(suggest_memory_format(empty({2, 3, 4, 5, 6}, F, {}, MemoryFormat::ChannelsLast3d)),
            MemoryFormat::ChannelsLast3d);
  EXPECT_EQ(suggest_memory_format(empty({2, 1, 1, 1}, F)), MemoryFormat::Contiguous);  // ambiguous
}

TEST(Shape, PreservedStrides) {
  EXPECT_EQ(v(preserved_strides({4, 2, 3}, {1, 12, 4})), IntView({1, 12, 4}));
  EXPECT_EQ(v(preserved_strides({2, 2, 3}, {2, 12, 4})), IntView({1, 6, 2}));
  EXPECT_EQ(v(preserved_strides({5, 2, 3, 4}, {0, 12, 4, 1})), IntView({24, 12, 4, 1}));
  EXPECT_EQ(v(preserved_strides({3, 2, 2}, {4, 12, 2})), IntView({2, 6, 1}));
}

TEST(Shape, DimMask) {
  EXPECT_EQ(dim_mask(std::nullopt, 3), 7u);
  EXPECT_EQ(dim_mask(IntView(), 3), 7u);
  EXPECT_EQ(dim_mask(IntView(), 3, false), 0u);
  EXPECT_EQ(dim_mask(IntView({-1, 0}), 3), 5u);
  EXPECT_EQ(dim_mask(std::nullopt, 64), ~uint64_t{0});
  EXPECT_EQ(message([] { dim_mask(IntView({0, -2}), 2); }), "dim 0 appears multiple times in the list of dims");
  EXPECT_EQ(message([] { dim_mask(IntView({0}), 65); }), "only tensors with up to 64 dims are supported");
}

}  // namespace
}  // namespace tn
