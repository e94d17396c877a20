// Reductions against plain loops in long double, on every instruction set of this machine and any number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "generated/ops/all.h"
#include "generated/ops/amax.h"
#include "generated/ops/any.h"
#include "generated/ops/argmax.h"
#include "generated/ops/log_softmax.h"
#include "generated/ops/max.h"
#include "generated/ops/softmax.h"
#include "generated/ops/sort.h"
#include "generated/ops/sum.h"
#include "generated/ops/topk.h"
#include "generated/ops/var_mean.h"
#include "hwy/targets.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/op_table.h"
#include "runtime/threads.h"

namespace tn {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Tensor random_floats(IntView sizes, float low, float high, uint32_t seed = 1) {
  const Tensor t = empty(sizes, ScalarType::Float);
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> draw(low, high);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = draw(engine);
  return t;
}
Tensor floats(std::vector<float> values) {
  const Tensor t = empty({static_cast<int64_t>(values.size())}, ScalarType::Float);
  std::copy(values.begin(), values.end(), t.data<float>());
  return t;
}
Tensor transposed(const Tensor& t) {
  return alias_with_geometry(t, {t->size(1), t->size(0)}, {t->stride(1), t->stride(0)}, 0);
}

class ReduceTest : public testing::Test {
 protected:
  void SetUp() override { init_core(); }
  void TearDown() override { use(0); }
  static void use(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  // Runs the body once for each instruction set.
  template <class F>
  void on_each_target(F&& body) {
    for (int64_t all = hwy::SupportedTargets() & HWY_TARGETS; all != 0; all &= all - 1) {
      SCOPED_TRACE(hwy::TargetName(all & -all));
      use(all & -all);
      body();
      use(0);
    }
  }
};

TEST_F(ReduceTest, SumsOfEveryLengthAndDirection) {
  on_each_target([] {
    for (int64_t rows : {1, 2, 5, 17, 40}) {
      for (int64_t cols = 0; cols <= 70; ++cols) {
        const Tensor x = random_floats({rows, cols}, -1, 1), by_row = at::sum(x, IntView({1})),
                     by_col = at::sum(x, IntView({0}));
        std::vector<double> down(static_cast<size_t>(cols));
        for (int64_t i = 0; i < rows; ++i) {
          double across = 0;
          for (int64_t j = 0; j < cols; ++j) {
            across += x.data<float>()[i * cols + j];
            down[static_cast<size_t>(j)] += x.data<float>()[i * cols + j];
          }
          ASSERT_NEAR(by_row.data<float>()[i], across, 2e-6) << rows << 'x' << cols;
        }
        for (int64_t j = 0; j < cols; ++j)
          ASSERT_NEAR(by_col.data<float>()[j], down[static_cast<size_t>(j)], 4e-6) << rows << 'x' << cols;
      }
    }
  });
}

TEST_F(ReduceTest, LongSumsKeepTheirDigits) {
  const Tensor x = random_floats({1 << 21}, 0, 1);
  double exact = 0;
  for (int64_t i = 0; i < x.numel(); ++i) exact += x.data<float>()[i];
  on_each_target([&] { EXPECT_NEAR(*at::sum(x).data<float>() / exact, 1, 4e-7); });
}

TEST_F(ReduceTest, ResultsDoNotDependOnThreads) {
  const Tensor x = random_floats({1000, 1000}, -1, 1), wide = random_floats({4, 300000}, -1, 1);
  const auto all = [&] {
    std::vector<float> bits;
    const Tensor results[] = {at::sum(x), at::sum(x, IntView({0})), at::sum(wide, IntView({1})), at::softmax(x, 0),
                              std::get<0>(at::var_mean(wide, std::nullopt, std::optional<Scalar>(Scalar(1)), false))};
    for (const Tensor& t : results) bits.insert(bits.end(), t.data<float>(), t.data<float>() + t.numel());
    return bits;
  };
  const int before = num_threads();
  set_num_threads(1);
  const auto one = all();
  set_num_threads(3);
  const auto three = all();
  set_num_threads(before);
  EXPECT_TRUE(one == three);
}

TEST_F(ReduceTest, ExtremesKeepNaNAndTheFirstPlace) {
  on_each_target([] {
    for (int64_t n : {1, 3, 8, 17, 65, 130}) {
      for (int64_t at_nan = 0; at_nan < n; at_nan += 3) {
        Tensor x = random_floats({n}, -1, 1);
        x.data<float>()[at_nan] = kNaN;
        EXPECT_TRUE(std::isnan(*at::amax(x).data<float>())) << n << ' ' << at_nan;
        EXPECT_EQ(*at::argmax(x).data<int64_t>(), at_nan);
        x.data<float>()[at_nan] = 5;
        x.data<float>()[n - 1] = 5;
        EXPECT_EQ(*at::argmax(x).data<int64_t>(), at_nan);
        EXPECT_EQ(*at::amax(x).data<float>(), 5);
      }
    }
    // Down the columns, in partial vectors as well.
    const Tensor x = random_floats({9, 21}, -1, 1);
    for (int64_t j = 0; j < 21; ++j) x.data<float>()[(j % 9) * 21 + j] = x.data<float>()[8 * 21 + j] = j % 2 ? kNaN : 3;
    const auto [values, places] = at::max(x, 0);
    for (int64_t j = 0; j < 21; ++j) {
      EXPECT_EQ(places.data<int64_t>()[j], j % 9) << j;
      if (j % 2) EXPECT_TRUE(std::isnan(values.data<float>()[j]));
      else EXPECT_EQ(values.data<float>()[j], 3);
    }
  });
}

TEST_F(ReduceTest, NothingHasNoLargestValue) {
  const Tensor none = empty({2, 0}, ScalarType::Float);
  try {
    at::max(none);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(),
              "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
              "the 'dim' argument.");
  }
  EXPECT_THROW(at::max(none, 1), Error);
  EXPECT_EQ(at::amax(none, {0}).numel(), 0);
  EXPECT_EQ(*at::sum(none).data<float>(), 0);
  EXPECT_TRUE(at::all(none, int64_t{1}).data<bool>()[1]);
  EXPECT_FALSE(at::any(none, int64_t{1}).data<bool>()[1]);
}

TEST_F(ReduceTest, SoftmaxOfEveryLengthAndDirection) {
  on_each_target([] {
    for (int64_t n : {1, 2, 7, 8, 9, 31, 33, 70, 1000}) {
      const Tensor x = random_floats({n, 5}, -30, 30), down = at::softmax(x, 0),
                   across = at::softmax(contiguous(transposed(x)), 1), logs = at::log_softmax(x, 0);
      for (int64_t j = 0; j < 5; ++j) {
        // The distance from the top rounds to float, in any implementation that stays in float.
        float top = -HUGE_VALF;
        double total = 0;
        for (int64_t i = 0; i < n; ++i) top = std::max(top, x.data<float>()[i * 5 + j]);
        for (int64_t i = 0; i < n; ++i) total += std::exp(static_cast<double>(x.data<float>()[i * 5 + j] - top));
        for (int64_t i = 0; i < n; ++i) {
          const double log = static_cast<double>(x.data<float>()[i * 5 + j] - top) - std::log(total), p = std::exp(log);
          ASSERT_NEAR(down.data<float>()[i * 5 + j], p, 6e-7 * p + 1e-37);
          ASSERT_NEAR(across.data<float>()[j * n + i], p, 6e-7 * p + 1e-37);
          ASSERT_NEAR(logs.data<float>()[i * 5 + j], log, 3e-7 * std::abs(log) + 3e-7);
        }
      }
    }
    const Tensor edge = at::softmax(floats({-HUGE_VALF, 1, 1}), 0);
    EXPECT_EQ(edge.data<float>()[0], 0);
    EXPECT_EQ(edge.data<float>()[1], 0.5f);
    EXPECT_TRUE(std::isnan(at::softmax(floats({kNaN, 1}), 0).data<float>()[1]));
    EXPECT_TRUE(std::isnan(at::softmax(floats({-HUGE_VALF, -HUGE_VALF}), 0).data<float>()[0]));
  });
}

TEST_F(ReduceTest, SortIsStableAndPutsNaNLast) {
  const Tensor x = floats({1, kNaN, -0.f, 0, 1, -HUGE_VALF});
  const auto [up, from] = at::sort(x, 0, false);
  const std::vector<int64_t> order{5, 2, 3, 0, 4, 1};
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(from.data<int64_t>()[i], order[i]);
  const auto [down, back] = at::sort(x, 0, true);
  const std::vector<int64_t> reverse{1, 0, 4, 2, 3, 5};
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(back.data<int64_t>()[i], reverse[i]);
}

TEST_F(ReduceTest, TopkAgreesWithSort) {
  for (int64_t n : {1, 10, 300, 5000}) {
    for (int64_t k : {int64_t{1}, n / 2, n}) {
      if (k == 0) continue;
      const Tensor x = random_floats({n}, -1, 1, static_cast<uint32_t>(n));
      const auto [best, where] = at::topk(x, k);
      const auto [sorted, order] = at::sort(x, 0, true);
      for (int64_t i = 0; i < k; ++i) {
        ASSERT_EQ(best.data<float>()[i], sorted.data<float>()[i]);
        ASSERT_EQ(where.data<int64_t>()[i], order.data<int64_t>()[i]);
      }
    }
  }
}

}  // namespace
}  // namespace tn
