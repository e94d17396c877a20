// Rows of elementwise slots against the C library, on every instruction set of this machine: lengths up to two vectors
// and one, strides, and the special numbers in every lane.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "generated/slots/binary.h"
#include "generated/slots/compare.h"
#include "generated/slots/unary.h"
#include "hwy/targets.h"
#include "runtime/half.h"

namespace tn {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kSpecial[] = {0.0, -0.0, 1, -1, 0.5, kNaN, kInf, -kInf, 3, -3, 6, 1e-30, 88, -88};

struct Case {
  const char* name;
  const PointwiseSlot* slot;
  std::function<double(double, double)> expected;
  int inputs = 1;
  double ulps = 0;  // of the result's dtype
  std::vector<Arg> params = {};
};

std::vector<Case> cases() {
  const auto nan_wins = [](double a, double b, double chosen) {
    return std::isnan(a) || std::isnan(b) ? kNaN : chosen;
  };
  std::vector<Case> all = {
      {"abs", &slots::abs, [](double a, double) { return std::abs(a); }},
      {"neg", &slots::neg, [](double a, double) { return -a; }},
      {"floor", &slots::floor, [](double a, double) { return std::floor(a); }},
      {"round", &slots::round, [](double a, double) { return std::nearbyint(a); }},
      {"sqrt", &slots::sqrt, [](double a, double) { return std::sqrt(a); }},
      {"relu", &slots::relu, [](double a, double) { return a < 0 ? 0 : a; }},
      {"sign", &slots::sign, [](double a, double) { return static_cast<double>((a > 0) - (a < 0)); }},
      {"exp", &slots::exp, [](double a, double) { return std::exp(a); }, 1, 2},
      {"expm1", &slots::expm1, [](double a, double) { return std::expm1(a); }, 1, 2},
      {"log", &slots::log, [](double a, double) { return std::log(a); }, 1, 2},
      {"tanh", &slots::tanh, [](double a, double) { return std::tanh(a); }, 1, 2},
      {"erf", &slots::erf, [](double a, double) { return std::erf(a); }, 1, 3},
      {"sin", &slots::sin, [](double a, double) { return std::sin(a); }, 1, 2},
      {"sigmoid", &slots::sigmoid, [](double a, double) { return 1 / (1 + std::exp(-a)); }, 1, 4},
      {"mul", &slots::mul_Tensor, [](double a, double b) { return a * b; }, 2, 1},
      {"div", &slots::div_Tensor, [](double a, double b) { return a / b; }, 2, 1},
      {"maximum", &slots::maximum, [=](double a, double b) { return nan_wins(a, b, a > b ? a : b); }, 2},
      {"minimum", &slots::minimum, [=](double a, double b) { return nan_wins(a, b, a < b ? a : b); }, 2},
      {"fmax", &slots::fmax, [](double a, double b) { return std::isnan(a)   ? b
                                                             : std::isnan(b) ? a
                                                             : b > a         ? b
                                                                             : a; },
       2},
      {"fmin", &slots::fmin, [](double a, double b) { return std::isnan(a)   ? b
                                                             : std::isnan(b) ? a
                                                             : b < a         ? b
                                                                             : a; },
       2},
      {"copysign", &slots::copysign_Tensor, [](double a, double b) { return std::copysign(a, b); }, 2},
      {"atan2", &slots::atan2, [](double a, double b) { return std::atan2(a, b); }, 2, 2},
      {"xlogy", &slots::xlogy_Tensor,
       [](double a, double b) { return std::isnan(b) ? b
                                       : a == 0      ? 0
                                                     : a * std::log(b); }, 2, 4},
      {"eq", &slots::eq_Tensor, [](double a, double b) { return static_cast<double>(a == b); }, 2},
      {"ne", &slots::ne_Tensor, [](double a, double b) { return static_cast<double>(a != b); }, 2},
      {"lt", &slots::lt_Tensor, [](double a, double b) { return static_cast<double>(a < b); }, 2},
      {"ge", &slots::ge_Tensor, [](double a, double b) { return static_cast<double>(a >= b); }, 2},
      {"sigmoid_backward", &slots::sigmoid_backward, [](double g, double y) { return g * (1 - y) * y; }, 2, 3},
      {"hardsigmoid_backward", &slots::hardsigmoid_backward,
       [](double g, double x) { return x > -3 && x < 3 ? g / 6 : 0; }, 2, 1},
  };
  all.push_back({"threshold_backward",
                 &slots::threshold_backward,
                 [](double g, double x) { return x <= 0 ? 0 : g; },
                 2,
                 0,
                 {Arg::of(0.0)}});
  all.push_back({"hardtanh_backward",
                 &slots::hardtanh_backward,
                 [](double g, double x) { return x > -1 && x < 2 ? g : 0; },
                 2,
                 0,
                 {Arg::of(-1.0), Arg::of(2.0)}});
  return all;
}

float to_value(float v) { return v; }
double to_value(double v) { return v; }
float to_value(BFloat16 v) { return to_float(v); }
float to_value(Half v) { return to_float(v); }
void store(double v, float* to) { *to = static_cast<float>(v); }
void store(double v, double* to) { *to = v; }
void store(double v, BFloat16* to) { *to = to_bfloat16(static_cast<float>(v)); }
void store(double v, Half* to) { *to = to_half(static_cast<float>(v)); }

// The distance of two neighbours at v; below the smallest normal number that of subnormals.
template <class T>
double step(double v) {
  constexpr bool kHalf = std::is_same_v<T, Half>;
  constexpr int kBits = sizeof(T) == 8 ? 52 : sizeof(T) == 4 ? 23 : kHalf ? 10 : 7;
  constexpr int kLeast = sizeof(T) == 8 ? -1022 : kHalf ? -14 : -126;
  return std::ldexp(1.0, std::max(v == 0 ? kLeast : std::ilogb(v), kLeast) - kBits);
}

template <class T>
void check(const Case& c, ScalarType dtype, size_t n, size_t stride, std::mt19937& random) {
  std::uniform_real_distribution<double> some(-4, 4);
  std::uniform_int_distribution<size_t> which(0, 2 * std::size(kSpecial));
  std::vector<T> in[2];
  for (auto& v : in) {
    v.resize(n * stride + 1);
    for (T& x : v) {
      const size_t k = which(random);
      store(k < std::size(kSpecial) ? kSpecial[k] : some(random), &x);
    }
  }
  const bool truth = c.slot->promotion == Promotion::ToBool;
  const auto item = static_cast<int64_t>(truth ? 1 : sizeof(T));
  std::vector<char> out(n * static_cast<size_t>(item) * stride + sizeof(T), char{42});
  char* data[] = {out.data(), reinterpret_cast<char*>(in[0].data()), reinterpret_cast<char*>(in[1].data())};
  const auto s = static_cast<int64_t>(stride);
  const int64_t strides[] = {item * s, static_cast<int64_t>(sizeof(T)) * s, static_cast<int64_t>(sizeof(T)) * s};
  c.slot->row(Row{data, strides, static_cast<int64_t>(n), dtype, truth ? ScalarType::Bool : dtype, c.params.data()});
  for (size_t i = 0; i < n; ++i) {
    const double a = to_value(in[0][i * stride]), b = to_value(in[1][i * stride]);
    double want = c.expected(a, b), got = 0;
    const char* at = out.data() + static_cast<int64_t>(i) * strides[0];
    if (truth) {
      got = *at;
    } else {
      T rounded;
      store(want, &rounded);
      if (c.ulps == 0 || std::isinf(to_value(rounded))) want = to_value(rounded);
      got = to_value(*reinterpret_cast<const T*>(at));
    }
    const bool close =
        (std::isnan(want) && std::isnan(got)) || want == got || std::abs(want - got) <= (c.ulps + 0.5) * step<T>(want);
    EXPECT_TRUE(close) << c.name << '(' << a << ", " << b << ") is " << want << ", got " << got << "; n " << n
                       << ", lane " << i << ", stride " << stride << ", dtype " << dtype_name(dtype);
    if (want == 0 && got == 0 && !truth && c.ulps == 0) {
      EXPECT_EQ(std::signbit(want), std::signbit(got)) << c.name << '(' << a << ", " << b << ')';
    }
  }
  EXPECT_EQ(out.back(), 42) << c.name << " wrote behind its row";
}

class Elementwise : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { use(GetParam()); }
  void TearDown() override { use(0); }
  static void use(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

TEST_P(Elementwise, RowsOfEveryLengthAndStride) {
  std::mt19937 random(7);
  for (const Case& c : cases()) {
    for (size_t n : {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 700}) {
      for (size_t stride : {1, 3}) {
        check<float>(c, ScalarType::Float, n, stride, random);
        check<double>(c, ScalarType::Double, n, stride, random);
        check<BFloat16>(c, ScalarType::BFloat16, n, stride, random);
        check<Half>(c, ScalarType::Half, n, stride, random);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Elementwise, ::testing::ValuesIn([] {
                           std::vector<int64_t> all;
                           for (int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1)
                             all.push_back(rest & -rest);
                           return all;
                         }()),
                         [](const auto& info) { return std::string(hwy::TargetName(info.param)); });

}  // namespace
}  // namespace tn
