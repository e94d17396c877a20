// Convolutions and poolings against plain loops in double, over strides, paddings, dilations, groups and formats.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "generated/ops/convolution.h"
#include "generated/ops/convolution_backward.h"
#include "generated/ops/max_pool2d_with_indices.h"
#include "runtime/copy.h"
#include "runtime/door.h"

namespace tn {
namespace {

struct Shape2 {
  int64_t batch, in, out, groups, height, width, kernel, stride, pad, dilation;
};

class Convolution : public testing::TestWithParam<Shape2> {
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

// Calls f(x element, w element, y element) for each product of the sum.
template <class F>
void each_product(const Shape2& s, int64_t oh, int64_t ow, F&& f) {
  const int64_t ci = s.in / s.groups, co = s.out / s.groups;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t o = 0; o < s.out; ++o)
      for (int64_t y = 0; y < oh; ++y)
        for (int64_t x = 0; x < ow; ++x)
          for (int64_t c = 0; c < ci; ++c)
            for (int64_t i = 0; i < s.kernel; ++i)
              for (int64_t j = 0; j < s.kernel; ++j) {
                const int64_t u = y * s.stride - s.pad + i * s.dilation, v = x * s.stride - s.pad + j * s.dilation;
                if (u < 0 || v < 0 || u >= s.height || v >= s.width) continue;
                f(((n * s.in + o / co * ci + c) * s.height + u) * s.width + v,
                  ((o * ci + c) * s.kernel + i) * s.kernel + j, ((n * s.out + o) * oh + y) * ow + x);
              }
}

void expect_close(const Tensor& got, const Tensor& want, double tolerance) {
  ASSERT_EQ(got.sizes(), want.sizes());
  const Tensor wide = contiguous(cast(got, ScalarType::Double));
  double scale = 1;
  for (int64_t i = 0; i < want.numel(); ++i) scale = std::max(scale, std::abs(want.data<double>()[i]));
  for (int64_t i = 0; i < want.numel(); ++i)
    ASSERT_NEAR(wide.data<double>()[i], want.data<double>()[i], tolerance * scale) << "element " << i;
}

TEST_P(Convolution, FollowsTheSum) {
  const Shape2 s = GetParam();
  const Tensor x = random({s.batch, s.in, s.height, s.width}), w = random({s.out, s.in / s.groups, s.kernel, s.kernel}),
               b = random({s.out});
  const int64_t span = s.dilation * (s.kernel - 1) + 1;
  const int64_t oh = (s.height + 2 * s.pad - span) / s.stride + 1, ow = (s.width + 2 * s.pad - span) / s.stride + 1;
  const Tensor y = empty({s.batch, s.out, oh, ow}, ScalarType::Double), g = random({s.batch, s.out, oh, ow});
  const Tensor gx = empty(x.sizes(), ScalarType::Double), gw = empty(w.sizes(), ScalarType::Double);
  zero(gx);
  zero(gw);
  for (int64_t i = 0; i < y.numel(); ++i) y.data<double>()[i] = b.data<double>()[i / (oh * ow) % s.out];
  each_product(s, oh, ow, [&](int64_t at, int64_t k, int64_t o) {
    y.data<double>()[o] += x.data<double>()[at] * w.data<double>()[k];
    gx.data<double>()[at] += g.data<double>()[o] * w.data<double>()[k];
    gw.data<double>()[k] += g.data<double>()[o] * x.data<double>()[at];
  });
  const int64_t stride[] = {s.stride, s.stride}, pad[] = {s.pad, s.pad}, dilation[] = {s.dilation, s.dilation},
                none[] = {0, 0};
  for (const ScalarType t : {ScalarType::Double, ScalarType::Float})
    for (const MemoryFormat format : {MemoryFormat::Contiguous, MemoryFormat::ChannelsLast}) {
      const double tolerance = t == ScalarType::Double ? 1e-12 : 1e-5;
      const Tensor xt = contiguous(cast(x, t), format), wt = cast(w, t), gt = cast(g, t);
      expect_close(at::convolution(xt, wt, cast(b, t), stride, pad, dilation, false, none, s.groups), y, tolerance);
      const auto [dx, dw, db] = at::convolution_backward(gt, xt, wt, std::nullopt, stride, pad, dilation, false, none,
                                                         s.groups, {true, true, true});
      expect_close(dx, gx, tolerance);
      expect_close(dw, gw, tolerance);
      // A transposed convolution is the gradient of the plain one.
      const int64_t more[] = {s.height - ((oh - 1) * s.stride - 2 * s.pad + span),
                              s.width - ((ow - 1) * s.stride - 2 * s.pad + span)};
      if (more[0] == more[1] && (more[0] < s.stride || more[0] < s.dilation))
        expect_close(at::convolution(gt, wt, {}, stride, pad, dilation, true, more, s.groups), gx, tolerance);
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Convolution,
                         testing::Values(Shape2{2, 4, 6, 1, 7, 9, 3, 1, 1, 1}, Shape2{1, 3, 20, 1, 16, 16, 7, 2, 3, 1},
                                         Shape2{2, 4, 6, 2, 8, 8, 3, 2, 1, 1}, Shape2{3, 5, 7, 1, 5, 6, 1, 1, 0, 1},
                                         Shape2{2, 5, 7, 1, 5, 5, 1, 2, 0, 1}, Shape2{1, 6, 6, 6, 9, 11, 3, 1, 1, 1},
                                         Shape2{2, 4, 8, 4, 9, 9, 5, 2, 2, 1}, Shape2{1, 3, 3, 3, 12, 13, 3, 3, 2, 2},
                                         Shape2{1, 2, 3, 1, 12, 12, 3, 1, 5, 2},
                                         Shape2{1, 130, 140, 1, 4, 5, 3, 1, 1, 1},
                                         Shape2{1, 2, 2, 1, 40, 60, 3, 1, 0, 1}));

TEST(Pooling, TakesTheFirstMaximumAndTheLastNan) {
  init_core();
  const int64_t width = 70;  // more than two vectors, and a rest
  const Tensor x = empty({1, 1, 3, width}, ScalarType::Float);
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = static_cast<float>(i * 7 % 5);
  x.data<float>()[width + 10] = NAN;
  const int64_t kernel[] = {3, 3}, pad[] = {1, 1}, one[] = {1, 1};
  for (const int64_t step : {1, 2, 3}) {
    const int64_t stride[] = {step, step};
    const auto [y, index] = at::max_pool2d_with_indices(x, kernel, stride, pad, one, false);
    for (int64_t r = 0; r < y->size(2); ++r)
      for (int64_t c = 0; c < y->size(3); ++c) {
        float best = -INFINITY;
        int64_t place = -1;
        for (int64_t u = std::max<int64_t>(r * step - 1, 0); u < std::min<int64_t>(r * step + 2, 3); ++u)
          for (int64_t v = std::max<int64_t>(c * step - 1, 0); v < std::min(c * step + 2, width); ++v) {
            const float value = x.data<float>()[u * width + v];
            if (value > best || std::isnan(value)) best = value, place = u * width + v;
          }
        const int64_t at = r * y->size(3) + c;
        ASSERT_EQ(index.data<int64_t>()[at], place) << "stride " << step << " at " << r << ", " << c;
        ASSERT_TRUE(y.data<float>()[at] == best || (std::isnan(best) && std::isnan(y.data<float>()[at])));
      }
  }
}

}  // namespace
}  // namespace tn
