// Rows of normalisations, losses, softmax gradients and embeddings on every compiled target, against plain loops in
// double.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "generated/ops/native_batch_norm.h"
#include "generated/ops/native_layer_norm_backward.h"
#include "hwy/highway.h"
#include "kernels/index/embedding_rows.h"
#include "kernels/loss/pair_rows.h"
#include "kernels/norm/channels.h"
#include "kernels/norm/rows.h"
#include "kernels/softmax/gradient_rows.h"
#include "runtime/copy.h"
#include "runtime/door.h"
#include "runtime/threads.h"

namespace tn {
namespace {

constexpr ScalarType kTypes[] = {ScalarType::Float, ScalarType::Double, ScalarType::Half, ScalarType::BFloat16};
// Empty, one element, around one and several vectors of any width.
constexpr int64_t kLengths[] = {0, 1, 3, 7, 8, 9, 16, 17, 31, 64, 67, 133};

double tolerance(ScalarType t) {
  return t == ScalarType::Double ? 1e-12 : t == ScalarType::Float ? 3e-5 : t == ScalarType::Half ? 4e-3 : 3e-2;
}

class TrainingRows : public testing::TestWithParam<int64_t> {
 protected:
  static void SetUpTestSuite() { init_core(); }
  void SetUp() override { choose(GetParam()); }
  void TearDown() override { choose(0); }
  static void choose(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  // Values as the dtype holds them, in memory and in double.
  struct Values {
    Tensor tensor;
    std::vector<double> wide;
    const void* data() const { return tensor->raw_data(); }
  };
  Values make(ScalarType dtype, int64_t n, double low = -2, double high = 2) {
    const Tensor t = empty({n}, ScalarType::Double);
    std::uniform_real_distribution<double> values(low, high);
    for (int64_t i = 0; i < n; ++i) t.data<double>()[i] = values(engine_);
    return read(cast(t, dtype));
  }
  static Values read(const Tensor& t) {
    const Tensor wide = cast(t, ScalarType::Double, true);
    return {t, std::vector<double>(wide.data<double>(), wide.data<double>() + wide.numel())};
  }
  static void near(double found, double expected, double allowed, const char* what, int64_t n) {
    ASSERT_NEAR(found, expected, allowed * (1 + std::abs(expected))) << what << " of " << n;
  }
  std::mt19937 engine_{5};
};

TEST_P(TrainingRows, RunsOfAChannel) {
  for (const ScalarType t : kTypes) {
    const norm::ChannelKernels& run = norm::channel_kernels(t);
    for (const int64_t n : kLengths) {
      const Values x = make(t, n), g = make(t, n), out = make(t, n);
      const double mean = 0.25;
      double sum = 0, squares = 0, grads = 0, dots = 0;
      for (size_t i = 0; i < x.wide.size(); ++i) {
        const double u = x.wide[i] - mean;
        sum += x.wide[i], squares += u * u, grads += g.wide[i], dots += u * g.wide[i];
      }
      double pair[2] = {1, 2};
      near(run.run_sum(x.data(), n), sum, 1e-12, "sum", n);
      near(run.run_squares(x.data(), n, mean), squares, 1e-12, "squares", n);
      run.run_dots(x.data(), g.data(), n, mean, pair);
      near(pair[0], 1 + grads, 1e-12, "gradients", n);
      near(pair[1], 2 + dots, 1e-12, "dots", n);
      run.run_affine(x.data(), n, 1.5, -0.5, out.tensor->raw_data());
      const Values affine = read(out.tensor);
      for (size_t i = 0; i < x.wide.size(); ++i) near(affine.wide[i], x.wide[i] * 1.5 - 0.5, tolerance(t), "affine", n);
      run.run_gradient(x.data(), g.data(), n, {mean, 0.125, 0.5, 2}, out.tensor->raw_data());
      const Values slope = read(out.tensor);
      for (size_t i = 0; i < x.wide.size(); ++i)
        near(slope.wide[i], g.wide[i] * 2 - 0.125 - (x.wide[i] - mean) * 0.5, tolerance(t), "slope", n);
    }
  }
}

TEST_P(TrainingRows, InfinityStays) {
  const norm::ChannelKernels& run = norm::channel_kernels(ScalarType::Float);
  const float inf = std::numeric_limits<float>::infinity(), x[] = {inf, -inf, std::nanf(""), 1};
  float out[4], columns[4];
  const double scale[] = {0.1, 2, 0.1, 0.1}, shift[] = {0.3, 0.3, 0.3, 0.3};
  run.run_affine(x, 4, 0.1, 0.3, out);
  run.column_affine(x, 1, 4, scale, shift, columns);
  for (const float* found : {out, columns}) {
    EXPECT_EQ(found[0], inf);
    EXPECT_EQ(found[1], -inf);
    EXPECT_TRUE(std::isnan(found[2]));
    EXPECT_FLOAT_EQ(found[3], 0.4f);
  }
}

TEST_P(TrainingRows, ColumnsOfChannels) {
  constexpr int64_t kRows = 5;
  for (const ScalarType t : kTypes) {
    const norm::ChannelKernels& run = norm::channel_kernels(t);
    for (const int64_t c : {1, 3, 8, 17, 67, 300}) {
      const Values x = make(t, kRows * c), g = make(t, kRows * c), out = make(t, kRows * c);
      std::vector<double> mean(static_cast<size_t>(c)), sums(mean.size()), squares(mean.size()), grads(mean.size()),
          dots(mean.size());
      std::vector<double> numbers(4 * mean.size());
      for (size_t k = 0; k < mean.size(); ++k) mean[k] = 0.01 * static_cast<double>(k % 7);
      for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = 0.1 * static_cast<double>(k % 11);
      run.column_sums(x.data(), kRows, c, sums.data());
      run.column_squares(x.data(), kRows, c, mean.data(), squares.data());
      run.column_dots(x.data(), g.data(), kRows, c, mean.data(), grads.data(), dots.data());
      run.column_affine(x.data(), kRows, c, numbers.data(), numbers.data() + c, out.tensor->raw_data());
      const Values affine = read(out.tensor);
      run.column_gradient(x.data(), g.data(), kRows, c, numbers.data(), out.tensor->raw_data());
      const Values slope = read(out.tensor);
      const auto n = static_cast<size_t>(c);
      for (size_t k = 0; k < n; ++k) {
        double sum = 0, square = 0, grad = 0, dot = 0;
        for (size_t r = 0; r < kRows; ++r) {
          const size_t at = r * n + k;
          const double u = x.wide[at] - mean[k];
          sum += x.wide[at], square += u * u, grad += g.wide[at], dot += u * g.wide[at];
          near(affine.wide[at], x.wide[at] * numbers[k] + numbers[n + k], tolerance(t), "affine", c);
          near(slope.wide[at],
               g.wide[at] * numbers[3 * n + k] - numbers[n + k] - (x.wide[at] - numbers[k]) * numbers[2 * n + k],
               tolerance(t), "slope", c);
        }
        near(sums[k], sum, 1e-12, "sums", c);
        near(squares[k], square, 1e-12, "squares", c);
        near(grads[k], grad, 1e-12, "gradients", c);
        near(dots[k], dot, 1e-12, "dots", c);
      }
    }
  }
}

TEST_P(TrainingRows, PairsOfLosses) {
  using loss::PairOp;
  using F = std::function<double(double, double, double)>;
  const double p = 0.75;
  const struct {
    PairOp op;
    F f;
    bool gradient;
  } cases[] = {
      {PairOp::Mse, [](double a, double b, double) { return (a - b) * (a - b); }, false},
      {PairOp::SmoothL1,
       [&](double a, double b, double) {
         const double z = std::abs(a - b);
         return z < p ? 0.5 * z * z / p : z - 0.5 * p;
       },
       false},
      {PairOp::Huber,
       [&](double a, double b, double) {
         const double z = std::abs(a - b);
         return z <= p ? 0.5 * z * z : p * (z - 0.5 * p);
       },
       false},
      {PairOp::BinaryCrossEntropy,
       [](double a, double b, double) {
         return (b - 1) * std::max(std::log1p(-a), -100.0) - b * std::max(std::log(a), -100.0);
       },
       false},
      {PairOp::SoftMargin, [](double a, double b, double) { return std::log1p(std::exp(-a * b)); }, false},
      {PairOp::Logits,
       [](double a, double b, double) { return (1 - b) * a + std::log1p(std::exp(-std::abs(a))) + std::max(-a, 0.0); },
       false},
      {PairOp::WeighedLogits,
       [](double a, double b, double c) {
         return (1 - b) * a + (1 + (c - 1) * b) * (std::log1p(std::exp(-std::abs(a))) + std::max(-a, 0.0));
       },
       false},
      {PairOp::MseGradient, [](double a, double b, double) { return a - b; }, true},
      {PairOp::SmoothL1Gradient,
       [&](double a, double b, double) {
         const double z = a - b;
         return z <= -p ? -1.0 : z >= p ? 1.0 : z / p;
       },
       true},
      {PairOp::HuberGradient,
       [&](double a, double b, double) {
         const double z = a - b;
         return z < -p ? -p : z > p ? p : z;
       },
       true},
      {PairOp::BinaryCrossEntropyGradient,
       [](double a, double b, double) { return (a - b) / std::max((1 - a) * a, 1e-12); }, true},
      {PairOp::SoftMarginGradient,
       [](double a, double b, double) {
         const double z = std::exp(-a * b);
         return -b * z / (1 + z);
       },
       true},
  };
  for (const ScalarType t : kTypes)
    for (const auto& one : cases)
      for (const int64_t n : kLengths) {
        const Values a = make(t, n, 0.1, 0.9), b = make(t, n, 0.1, 0.9), c = make(t, n), w = make(t, n), g = make(t, n),
                     out = make(t, n);
        bool outside = false;
        loss::PairRow row{.a = a.data(),
                          .b = b.data(),
                          .weight = w.data(),
                          .out = out.tensor->raw_data(),
                          .outside = &outside,
                          .n = n,
                          .p = p,
                          .scale = 3};
        if (one.op == PairOp::WeighedLogits) row.c = c.data();
        if (one.gradient) row.grad = g.data();
        loss::run_pairs(one.op, t, row);
        const Values found = read(out.tensor);
        double total = 0;
        for (size_t i = 0; i < found.wide.size(); ++i) {
          const double expected =
              one.f(a.wide[i], b.wide[i], c.wide[i]) * w.wide[i] * (one.gradient ? 3 * g.wide[i] : 1);
          near(found.wide[i], expected, tolerance(t), "element", n);
          total += expected;
        }
        EXPECT_FALSE(outside);
        if (one.gradient) continue;
        double sum = -1;
        row.out = nullptr, row.sum = &sum;
        loss::run_pairs(one.op, t, row);
        near(sum, total, 3e-5, "sum", n);
      }
  const Values bad = make(ScalarType::Float, 9, 1.5, 2), y = make(ScalarType::Float, 9);
  bool outside = false;
  double sum = 0;
  loss::run_pairs(PairOp::BinaryCrossEntropy, ScalarType::Float,
                  {.a = bad.data(), .b = y.data(), .sum = &sum, .outside = &outside, .n = 9});
  EXPECT_TRUE(outside);
}

TEST_P(TrainingRows, SoftmaxGradients) {
  for (const ScalarType t : kTypes)
    for (const bool log : {false, true})
      for (const int64_t n : {1, 5, 16, 67, 133}) {
        constexpr int64_t kInner = 37;
        const Values g = make(t, n * kInner), y = make(t, n * kInner), out = make(t, n * kInner);
        const auto check = [&](int64_t step, int64_t lines, int64_t stride) {
          const Values found = read(out.tensor);
          for (int64_t l = 0; l < lines; ++l) {
            double sum = 0;
            const auto at = [&](int64_t k) { return static_cast<size_t>(l * stride + k * step); };
            for (int64_t k = 0; k < n; ++k) sum += log ? g.wide[at(k)] : g.wide[at(k)] * y.wide[at(k)];
            for (int64_t k = 0; k < n; ++k)
              near(found.wide[at(k)],
                   log ? g.wide[at(k)] - std::exp(y.wide[at(k)]) * sum : (g.wide[at(k)] - sum) * y.wide[at(k)],
                   3 * tolerance(t), "slope", n);
          }
        };
        softmax::gradient_rows(t, log, g.data(), y.data(), kInner, n, out.tensor->raw_data());
        check(1, kInner, n);
        softmax::gradient_columns(t, log, g.data(), y.data(), n, kInner, 0, 20, out.tensor->raw_data());
        softmax::gradient_columns(t, log, g.data(), y.data(), n, kInner, 20, 17, out.tensor->raw_data());
        check(kInner, kInner, 1);
      }
}

TEST_P(TrainingRows, RowsOfEmbeddings) {
  for (const ScalarType t : kTypes)
    for (const int64_t width : kLengths) {
      const Values table = make(t, 6 * width), to = make(t, 6 * width), out = make(t, width);
      const std::vector<int64_t> at = {2, 5, 2, 0, 3}, source = {0, 1, 1, 5, 4};
      const std::vector<double> scales = {1, 0.5, -1, 2, 0.25};
      index::sum_rows(t, {table.data(), width, at.data(), scales.data(), 5, 3, 5}, 0.5, out.tensor->raw_data());
      const Values summed = read(out.tensor);
      for (int64_t j = 0; j < width; ++j) {
        double sum = 0;
        for (size_t k = 0; k < at.size(); ++k)
          if (at[k] != 3) sum += scales[k] * table.wide[static_cast<size_t>(at[k] * width + j)];
        near(summed.wide[static_cast<size_t>(j)], 0.5 * sum, tolerance(t), "sum", width);
      }
      std::vector<double> expected = to.wide;
      for (size_t k = 0; k < at.size(); ++k)
        for (int64_t j = 0; j < width; ++j)
          if (at[k] != 5)
            expected[static_cast<size_t>(at[k] * width + j)] +=
                scales[k] * table.wide[static_cast<size_t>(source[k] * width + j)];
      const int64_t half = width / 2;
      const index::RowScatter scatter{
          table.data(), to.tensor->raw_data(), width, at.data(), source.data(), scales.data(), 5, 5, 6};
      index::scatter_rows(t, scatter, 0, half);
      index::scatter_rows(t, scatter, half, width);
      const Values scattered = read(to.tensor);
      for (size_t i = 0; i < expected.size(); ++i)
        near(scattered.wide[i], expected[i], 2 * tolerance(t), "scatter", width);
      std::vector<int64_t> where(static_cast<size_t>(width), 4);
      const Values best = make(t, width), row = make(t, width);
      index::max_row(t, row.data(), 9, best.tensor->raw_data(), where.data(), width);
      const Values most = read(best.tensor);
      double dot = 0;
      for (size_t j = 0; j < where.size(); ++j) {
        EXPECT_EQ(most.wide[j], std::max(best.wide[j], row.wide[j]));
        EXPECT_EQ(where[j], row.wide[j] > best.wide[j] ? 9 : 4);
        dot += row.wide[j] * table.wide[j];
      }
      near(index::dot_rows(t, row.data(), table.data(), width), dot, 3e-5, "dot", width);
    }
}

std::vector<int64_t> targets() {
  std::vector<int64_t> all;
  for (int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) all.push_back(rest & -rest);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Targets, TrainingRows, testing::ValuesIn(targets()),
                         [](const auto& info) { return std::string(hwy::TargetName(info.param)); });

// Results are the same bits with one thread and with several.
TEST(TrainingThreads, GiveOneResult) {
  init_core();
  std::mt19937 engine(3);
  std::normal_distribution<float> normal;
  const auto random = [&](std::initializer_list<int64_t> sizes) {
    Tensor t = empty(IntView(sizes), ScalarType::Float);
    for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = normal(engine);
    return t;
  };
  const Tensor planes = random({6, 5, 40, 40}), rows = random({900, 96}), grad = random({900, 96}),
               mean = random({900, 1}), rstd = random({900, 1});
  const Tensor columns = contiguous(planes, MemoryFormat::ChannelsLast);
  const int64_t width[] = {96};
  const auto run = [&](int threads) {
    const int before = num_threads();
    set_num_threads(threads);
    std::vector<Tensor> all;
    for (const Tensor& x : {planes, columns}) {
      auto [out, m, r] = at::native_batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5);
      all.insert(all.end(), {contiguous(out), m, r});
    }
    auto [dx, dw, db] =
        at::native_layer_norm_backward(grad, rows, IntView(width, 1), mean, rstd, {}, {}, {true, true, true});
    all.insert(all.end(), {dx, dw, db});
    set_num_threads(before);
    return all;
  };
  const std::vector<Tensor> one = run(1), more = run(3);
  for (size_t k = 0; k < one.size(); ++k)
    for (int64_t i = 0; i < one[k].numel(); ++i)
      ASSERT_EQ(one[k].data<float>()[i], more[k].data<float>()[i]) << k << " " << i;
}

}  // namespace
}  // namespace tn
