// Attention against plain loops in double: layouts, masks, shared heads, blocks, gradients by differences.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "generated/ops/_fused_sdp_choice.h"
#include "generated/ops/_scaled_dot_product_flash_attention_for_cpu.h"
#include "generated/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h"
#include "generated/ops/scaled_dot_product_attention.h"
#include "runtime/copy.h"
#include "runtime/door.h"
#include "runtime/threads.h"

namespace tn {
namespace {

double value(const Tensor& t, int64_t a, int64_t b, int64_t c, int64_t d) {
  return t.data<double>()[a * t->stride(0) + b * t->stride(1) + c * t->stride(2) + d * t->stride(3)];
}

class Attention : public testing::Test {
 protected:
  static void SetUpTestSuite() { init_core(); }
  Tensor random(std::initializer_list<int64_t> sizes) {
    Tensor t = empty(IntView(sizes), ScalarType::Double);
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = normal(engine_);
    return t;
  }
  std::mt19937 engine_{11};
};

// mask: undefined, or [len, keys] to add.
Tensor reference(const Tensor& q, const Tensor& k, const Tensor& v, bool causal, const Tensor& mask, double scale) {
  const int64_t batch = q->size(0), heads = q->size(1), group = heads / k->size(1), len = q->size(2), keys = k->size(2),
                d = q->size(3);
  Tensor out = empty({batch, heads, len, d}, ScalarType::Double);
  zero(out);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < len; ++i) {
        std::vector<double> w(static_cast<size_t>(keys));
        double sum = 0;
        for (int64_t j = 0; j < keys; ++j) {
          double s = 0;
          for (int64_t c = 0; c < d; ++c) s += value(q, b, h, i, c) * value(k, b, h / group, j, c);
          s = s * scale + (mask.defined() ? mask.data<double>()[i * keys + j] : 0);
          w[static_cast<size_t>(j)] = causal && j > i ? 0 : std::exp(s);
          sum += w[static_cast<size_t>(j)];
        }
        if (sum == 0) continue;
        for (int64_t j = 0; j < keys; ++j)
          for (int64_t c = 0; c < d; ++c)
            out.data<double>()[((b * heads + h) * len + i) * d + c] +=
                w[static_cast<size_t>(j)] / sum * value(v, b, h / group, j, c);
      }
  return out;
}

double distance(const Tensor& got, const Tensor& want) {
  EXPECT_EQ(got.sizes(), want.sizes());
  const Tensor a = contiguous(cast(got, ScalarType::Double)), b = contiguous(want);
  double worst = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double off = std::abs(a.data<double>()[i] - b.data<double>()[i]);
    if (!(off <= worst)) worst = off;
  }
  return worst;
}

Tensor flash(const Tensor& q, const Tensor& k, const Tensor& v, bool causal = false, OptionalTensor mask = {}) {
  return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, causal, mask));
}

TEST_F(Attention, BlocksHeadsAndCausal) {
  struct Case {
    int64_t heads, kv_heads, len, keys, d;
  };
  for (const Case& c : {Case{3, 3, 4, 5, 8}, Case{4, 2, 1, 700, 16}, Case{8, 2, 9, 33, 7}, Case{2, 1, 130, 1100, 4},
                        Case{1, 1, 800, 20, 3}})
    for (const bool causal : {false, true}) {
      const Tensor q = random({2, c.heads, c.len, c.d}), k = random({2, c.kv_heads, c.keys, c.d}),
                   v = random({2, c.kv_heads, c.keys, c.d});
      const double scale = 1 / std::sqrt(static_cast<double>(c.d));
      const Tensor want = reference(q, k, v, causal, {}, scale);
      EXPECT_LT(distance(flash(q, k, v, causal), want), 1e-13) << c.len << ' ' << c.keys << causal;
      for (const auto& [dtype, bound] : {std::pair{ScalarType::Float, 3e-6}, std::pair{ScalarType::BFloat16, 4e-2},
                                         std::pair{ScalarType::Half, 5e-3}})
        EXPECT_LT(distance(flash(cast(q, dtype), cast(k, dtype), cast(v, dtype), causal), want), bound)
            << dtype_name(dtype);
    }
}

TEST_F(Attention, MasksAndRowsThatSeeNothing) {
  const Tensor q = random({2, 3, 4, 8}), k = random({2, 3, 600, 8}), v = random({2, 3, 600, 8}),
               mask = random({4, 600});
  for (int64_t j = 0; j < 600; ++j) {
    mask.data<double>()[600 + j] = -INFINITY;
    if (j < 590) mask.data<double>()[1200 + j] = -INFINITY;  // nothing in the first block
  }
  const Tensor want = reference(q, k, v, false, mask, 1 / std::sqrt(8.0));
  EXPECT_LT(distance(flash(q, k, v, false, mask), want), 1e-13);
  const auto both = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, false, mask);
  const Tensor& lse = std::get<1>(both);
  EXPECT_EQ(lse.strides(), IntView({12, 1, 3}));
  EXPECT_EQ(lse.data<double>()[3], 0);  // head 0, row 1
  EXPECT_EQ(std::get<0>(both).data<double>()[8], 0);
  // A bool mask is the same as its numbers.
  Tensor flags = empty({4, 600}, ScalarType::Bool), numbers = empty({4, 600}, ScalarType::Double);
  for (int64_t i = 0; i < 2400; ++i) {
    flags.data<bool>()[i] = i % 3 != 0;
    numbers.data<double>()[i] = i % 3 != 0 ? 0 : -INFINITY;
  }
  GradModeGuard no_grad(false);
  EXPECT_LT(distance(at::scaled_dot_product_attention(q, k, v, flags),
                     reference(q, k, v, false, numbers, 1 / std::sqrt(8.0))),
            1e-13);
}

TEST_F(Attention, NaNStays) {
  const Tensor q = random({1, 1, 2, 4}), k = random({1, 1, 3, 4}), v = random({1, 1, 3, 4});
  q.data<double>()[0] = NAN;
  const Tensor out = flash(q, k, v);
  EXPECT_TRUE(std::isnan(out.data<double>()[0]));
  EXPECT_FALSE(std::isnan(out.data<double>()[4]));
}

TEST_F(Attention, SameBitsWithAnyThreads) {
  const Tensor q = cast(random({1, 4, 300, 32}), ScalarType::Float),
               k = cast(random({1, 2, 700, 32}), ScalarType::Float);
  const Tensor many = flash(q, k, k, true);
  const int before = num_threads();
  set_num_threads(1);
  const Tensor one = flash(q, k, k, true);
  set_num_threads(before);
  for (int64_t i = 0; i < one.numel(); ++i) ASSERT_EQ(one.data<float>()[i], many.data<float>()[i]);
}

TEST_F(Attention, GradientsMatchDifferences) {
  for (const bool causal : {false, true}) {
    const Tensor q = random({1, 4, 70, 3}), k = random({1, 2, 75, 3}), v = random({1, 2, 75, 3}),
                 weight = random({1, 4, 70, 3});
    const Tensor mask = causal ? Tensor() : random({70, 75});
    const auto loss = [&] {
      const Tensor out = flash(q, k, v, causal, mask.defined() ? OptionalTensor(mask) : OptionalTensor());
      double sum = 0;
      for (int64_t i = 0; i < out.numel(); ++i) sum += out.data<double>()[i] * weight.data<double>()[i];
      return sum;
    };
    const OptionalTensor given = mask.defined() ? OptionalTensor(mask) : OptionalTensor();
    const auto forward = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, causal, given);
    const auto grads = at::_scaled_dot_product_flash_attention_for_cpu_backward(weight, q, k, v, std::get<0>(forward),
                                                                                std::get<1>(forward), 0, causal, given);
    EXPECT_EQ(std::get<0>(grads).strides(), IntView({840, 3, 12, 1}));
    const Tensor inputs[] = {q, k, v};
    const Tensor found[] = {contiguous(std::get<0>(grads)), contiguous(std::get<1>(grads)),
                            contiguous(std::get<2>(grads))};
    for (int which = 0; which < 3; ++which)
      for (int64_t i = 0; i < inputs[which].numel(); i += 41) {
        double& x = inputs[which].data<double>()[i];
        const double at = x, step = 1e-5;
        x = at + step;
        const double above = loss();
        x = at - step;
        const double below = loss();
        x = at;
        EXPECT_NEAR(found[which].data<double>()[i], (above - below) / (2 * step), 1e-7) << which << ' ' << i;
      }
  }
}

TEST_F(Attention, Choice) {
  const Tensor q = random({2, 4, 4, 8}), k = random({2, 2, 5, 8});
  EXPECT_EQ(at::_fused_sdp_choice(q, k, k, {}, 0, false, {}, true), 1);
  EXPECT_EQ(at::_fused_sdp_choice(q, k, k), 0);
  EXPECT_EQ(at::_fused_sdp_choice(q, q, q, {}, 0.1), 0);
  EXPECT_EQ(at::_fused_sdp_choice(q, q, q, random({4, 4, 4})), 0);
}

}  // namespace
}  // namespace tn
