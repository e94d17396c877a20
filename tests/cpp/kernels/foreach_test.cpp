// Lists and fused steps against plain loops: every instruction set of this machine, lengths around the
// vectors', any threads.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "generated/ops/_amp_foreach_non_finite_check_and_unscale.h"
#include "generated/ops/_foreach_add.h"
#include "generated/ops/_foreach_lerp.h"
#include "generated/ops/_foreach_mul.h"
#include "generated/ops/_fused_adam.h"
#include "generated/ops/_fused_sgd.h"
#include "hwy/targets.h"
#include "kernels/foreach/stretch.h"
#include "runtime/error.h"
#include "runtime/op_table.h"
#include "runtime/threads.h"

namespace tn {
namespace {

Tensor ramp(int64_t n, double scale, ScalarType dtype = ScalarType::Float) {
  const Tensor t = empty({n}, dtype);
  for (int64_t i = 0; i < n; ++i) {
    const double value = scale * (static_cast<double>(i % 13) - 5.5);
    if (dtype == ScalarType::Double) t.data<double>()[i] = value;
    else t.data<float>()[i] = static_cast<float>(value);
  }
  return t;
}
std::vector<float> values(const Tensor& t) { return {t.data<float>(), t.data<float>() + t.numel()}; }

class ForeachTest : public testing::Test {
 protected:
  void SetUp() override { init_core(); }
  void TearDown() override {
    use(0);
    set_num_threads(1);
  }
  static void use(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
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

TEST_F(ForeachTest, StretchMeetsEachElementOnceWhateverTheThreads) {
  struct Item {
    int64_t n;
  };
  const std::vector<Item> items = {{0}, {70000}, {1}, {0}, {33000}, {5}};
  for (int threads : {1, 3}) {
    set_num_threads(threads);
    for (const bool in_order : {false, true}) {
      std::vector<std::vector<int>> met;
      for (const Item& item : items) met.emplace_back(static_cast<size_t>(item.n));
      foreach
        ::stretch(items, 1, in_order, [&](const Item& item, int64_t begin, int64_t end) {
          auto& counts = met[static_cast<size_t>(&item - items.data())];
          for (int64_t i = begin; i < end; ++i) ++counts[static_cast<size_t>(i)];
        });
      for (const auto& counts : met)
        for (int c : counts) ASSERT_EQ(c, 1);
    }
  }
}

TEST_F(ForeachTest, ListsOfAllLengthsInOneCall) {
  on_each_target([] {
    std::vector<Tensor> a, b;
    for (int64_t n = 0; n < 70; ++n) {
      a.push_back(ramp(n, 0.5));
      b.push_back(ramp(n, 2));
    }
    const std::vector<Tensor> sums = at::_foreach_add(a, b, 3);
    ASSERT_EQ(sums.size(), a.size());
    for (size_t k = 0; k < a.size(); ++k)
      for (int64_t i = 0; i < a[k].numel(); ++i)
        ASSERT_EQ(sums[k].data<float>()[i], a[k].data<float>()[i] + 3 * b[k].data<float>()[i]) << k << ' ' << i;
    at::_foreach_mul_(a, ArrayRef<Scalar>(std::vector<Scalar>(70, Scalar(2.0))));
    for (size_t k = 0; k < a.size(); ++k)
      for (int64_t i = 0; i < a[k].numel(); ++i) ASSERT_EQ(a[k].data<float>()[i], static_cast<float>(i % 13) - 5.5f);
  });
}

TEST_F(ForeachTest, ThreadsChangeNothing) {
  std::vector<std::vector<float>> found[2];
  for (int threads : {1, 4}) {
    set_num_threads(threads);
    const std::vector<Tensor> a = {ramp(90001, 0.3), ramp(3, 0.1), ramp(70003, 0.7)},
                              b = {ramp(90001, 0.9), ramp(3, 0.8), ramp(70003, 0.2)};
    for (const Tensor& t : at::_foreach_lerp(a, b, Scalar(0.3))) found[threads == 4].push_back(values(t));
  }
  EXPECT_EQ(found[0], found[1]);
}

TEST_F(ForeachTest, ElementsThatShareMemoryKeepTheirOrder) {
  set_num_threads(4);
  const Tensor whole = ramp(100000, 1);
  const Tensor part = alias_with_geometry(whole, {50000}, {1}, 0);
  const std::vector<float> before = values(whole);
  const std::vector<Tensor> list = {whole, part};
  at::_foreach_add_(list, Scalar(1.0));
  for (size_t i = 0; i < before.size(); ++i)
    ASSERT_EQ(whole.data<float>()[i], before[i] + (i < 50000 ? 2.0f : 1.0f)) << i;
}

TEST_F(ForeachTest, AdamStepOfEveryLength) {
  on_each_target([] {
    for (const bool amsgrad : {false, true}) {
      for (int64_t n = 0; n < 40; ++n) {
        const Tensor p = ramp(n, 0.5, ScalarType::Double), g = ramp(n, 0.25, ScalarType::Double),
                     m = ramp(n, 0.125, ScalarType::Double), v = ramp(n, 0, ScalarType::Double),
                     peak = ramp(n, 0, ScalarType::Double);
        for (int64_t i = 0; i < n; ++i) {
          v.data<double>()[i] = 0.5 + static_cast<double>(i) / 8;
          peak.data<double>()[i] = i % 2 ? 2.0 : 0.25;
        }
        const std::vector<double> p0(p.data<double>(), p.data<double>() + n),
            m0(m.data<double>(), m.data<double>() + n), v0(v.data<double>(), v.data<double>() + n);
        const Tensor step = scalar_tensor(Scalar(3.0), ScalarType::Float);
        at::_fused_adam_(p, g, m, v, amsgrad ? TensorList(peak) : TensorList(), step, 0.1, 0.9, 0.99, 0.01, 1e-8,
                         amsgrad, false);
        for (int64_t i = 0; i < n; ++i) {
          const auto k = static_cast<size_t>(i);
          const double grad = g.data<double>()[i] + 0.01 * p0[k], mean = 0.9 * m0[k] + 0.1 * grad,
                       square = 0.99 * v0[k] + 0.01 * grad * grad;
          const double most = amsgrad ? std::max(i % 2 ? 2.0 : 0.25, square) : square;
          const double root = std::sqrt(most) / std::sqrt(1 - std::pow(0.99, 3)) + 1e-8;
          ASSERT_NEAR(m.data<double>()[i], mean, 1e-14);
          ASSERT_NEAR(v.data<double>()[i], square, 1e-14);
          ASSERT_NEAR(p.data<double>()[i], p0[k] - 0.1 / (1 - std::pow(0.9, 3)) * mean / root, 1e-13) << n << ' ' << i;
        }
      }
    }
  });
}

TEST_F(ForeachTest, SgdStepScalesGradientsAndKeepsTheFirstBuffer) {
  on_each_target([] {
    const Tensor p = ramp(21, 1), g = ramp(21, 4), buffer = ramp(21, 100);
    const std::vector<float> p0 = values(p), g0 = values(g);
    const Tensor scale = scalar_tensor(Scalar(4.0), ScalarType::Float);
    at::_fused_sgd_(p, g, buffer, 0.0, 0.5, 0.25, 0.0, true, true, true, scale);
    for (size_t i = 0; i < p0.size(); ++i) {
      const float grad = -g0[i] / 4;
      ASSERT_EQ(g.data<float>()[i], g0[i] / 4);
      ASSERT_EQ(buffer.data<float>()[i], grad);
      ASSERT_EQ(p.data<float>()[i], p0[i] - 0.25f * (grad + 0.5f * grad));
    }
  });
}

TEST_F(ForeachTest, UnscaleFindsWhatIsNotFinite) {
  on_each_target([] {
    for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
      for (int64_t at = -1; at < 35; ++at) {
        const Tensor g = ramp(35, 2), found = scalar_tensor(Scalar(0.0), ScalarType::Float),
                     half = scalar_tensor(Scalar(0.5), ScalarType::Float);
        if (at >= 0) g.data<float>()[at] = bad;
        at::_amp_foreach_non_finite_check_and_unscale_(g, found, half);
        ASSERT_EQ(*found.data<float>(), at >= 0 ? 1.0f : 0.0f) << at;
        for (int64_t i = 0; i < 35; ++i) {
          if (i == at) continue;
          ASSERT_EQ(g.data<float>()[i], static_cast<float>(i % 13) - 5.5f);
        }
      }
    }
  });
}

TEST_F(ForeachTest, FusedStepsNameWhatDoesNotFit) {
  const Tensor p = ramp(3, 1), g = ramp(4, 1);
  EXPECT_THROW(at::_fused_sgd_(p, g, {}, 0.0, 0.0, 0.1, 0.0, false, false, false), Error);
  EXPECT_THROW(at::_fused_sgd_(p, ramp(3, 1, ScalarType::Double), {}, 0.0, 0.0, 0.1, 0.0, false, false, false), Error);
}

}  // namespace
}  // namespace tn
