#include "kernels/matmul/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "hwy/targets.h"
#include "kernels/common/bf16_pairs.h"
#include "runtime/half.h"
#include "runtime/threads.h"

namespace tn {
namespace {

template <class T>
struct Traits;
template <>
struct Traits<float> {
  static constexpr ScalarType kType = ScalarType::Float;
  using Wide = double;
  static constexpr double kEps = 0x1p-23, kOutEps = 0;
};
template <>
struct Traits<double> {
  static constexpr ScalarType kType = ScalarType::Double;
  using Wide = long double;
  static constexpr double kEps = 0x1p-52, kOutEps = 0;
};
template <>
struct Traits<BFloat16> {
  static constexpr ScalarType kType = ScalarType::BFloat16;
  using Wide = double;
  static constexpr double kEps = 0x1p-23, kOutEps = 0x1p-8;
};
template <>
struct Traits<Half> {
  static constexpr ScalarType kType = ScalarType::Half;
  using Wide = double;
  static constexpr double kEps = 0x1p-23, kOutEps = 0x1p-11;
};

double wide(float x) { return x; }
long double wide(double x) { return x; }
double wide(BFloat16 x) { return to_float(x); }
double wide(Half x) { return to_float(x); }

template <class T>
T narrow(double x) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(static_cast<float>(x));
  } else if constexpr (std::is_same_v<T, Half>) {
    return to_half(static_cast<float>(x));
  } else {
    return static_cast<T>(x);
  }
}

enum class Layout { kRows, kColumns, kLoose };  // kLoose: neither stride is 1

struct Shape {
  int64_t m, n, k;
};

// A matrix somewhere in a larger buffer, whose other elements must stay as they are.
template <class T>
struct Matrix {
  int64_t rows, cols, row_stride, col_stride;
  std::vector<T> data;

  Matrix(int64_t r, int64_t c, Layout layout, std::mt19937& rng, int64_t gap = 3) : rows(r), cols(c) {
    row_stride = layout == Layout::kRows ? c + gap : layout == Layout::kColumns ? 1 : 2 * c + gap;
    col_stride = layout == Layout::kRows ? 1 : layout == Layout::kColumns ? r + gap : 2;
    data.resize(static_cast<size_t>(std::max<int64_t>(1, r * row_stride + c * col_stride)));
    std::uniform_real_distribution<double> values(-1, 1);
    for (T& x : data) x = narrow<T>(values(rng));
  }
  size_t place(int64_t i, int64_t j) const { return static_cast<size_t>(i * row_stride + j * col_stride); }
  T& at(int64_t i, int64_t j) { return data[place(i, j)]; }
  gemm::Mat mat() const { return {data.data(), row_stride, col_stride}; }
  gemm::OutMat out() { return {data.data(), row_stride, col_stride}; }
};

// Error of a sum of k products in any order, plus the scaling and the rounding of the result.
template <class T>
void check(Shape s, Layout la, Layout lb, Layout lc, double alpha, double beta, bool with_bias) {
  using W = typename Traits<T>::Wide;
  std::mt19937 rng(static_cast<unsigned>(s.m * 10007 + s.n * 101 + s.k));
  Matrix<T> a(s.m, s.k, la, rng), b(s.k, s.n, lb, rng), c(s.m, s.n, lc, rng), bias(1, s.n, Layout::kRows, rng);
  if (beta == 0 && s.m * s.n > 0) c.at(0, 0) = narrow<T>(std::numeric_limits<double>::quiet_NaN());
  Matrix<T> before = c;
  gemm::gemm(Traits<T>::kType, s.m, s.n, s.k, a.mat(), b.mat(), c.out(), alpha, beta,
             with_bias ? bias.data.data() : nullptr);
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      W sum = 0, size = 0;
      for (int64_t p = 0; p < s.k; ++p) {
        const W term = W(wide(a.at(i, p))) * W(wide(b.at(p, j)));
        sum += term, size += std::abs(term);
      }
      W want = alpha * sum;
      size *= std::abs(alpha);
      if (beta != 0) want += beta * W(wide(before.at(i, j))), size += std::abs(beta * W(wide(before.at(i, j))));
      if (with_bias) want += W(wide(bias.at(0, j))), size += std::abs(W(wide(bias.at(0, j))));
      const W bound = size * Traits<T>::kEps * static_cast<W>(s.k + 3) / 2 + std::abs(want) * Traits<T>::kOutEps +
                      (Traits<T>::kOutEps > 0 ? 0x1p-24 : 0.0);
      const W got = wide(c.at(i, j));
      ASSERT_LE(std::abs(got - want), bound)
          << "at " << i << "," << j << " of " << s.m << "x" << s.n << "x" << s.k << " layouts " << static_cast<int>(la)
          << static_cast<int>(lb) << static_cast<int>(lc) << " alpha " << alpha << " beta " << beta;
      before.at(i, j) = c.at(i, j);
    }
  }
  ASSERT_EQ(std::memcmp(before.data.data(), c.data.data(), c.data.size() * sizeof(T)), 0) << "wrote outside of C";
}

template <class T>
void check_layouts(Shape s) {
  for (Layout la : {Layout::kRows, Layout::kColumns, Layout::kLoose}) {
    for (Layout lb : {Layout::kRows, Layout::kColumns, Layout::kLoose}) {
      check<T>(s, la, lb, Layout::kRows, 1, 0, false);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  check<T>(s, Layout::kRows, Layout::kRows, Layout::kRows, 1, 1, false);
  check<T>(s, Layout::kRows, Layout::kColumns, Layout::kRows, 1, 0, true);
  check<T>(s, Layout::kRows, Layout::kRows, Layout::kColumns, -0.5, 2, true);
  check<T>(s, Layout::kColumns, Layout::kRows, Layout::kLoose, 2, 0, true);
  check<T>(s, Layout::kRows, Layout::kColumns, Layout::kColumns, 2, 0.5, false);
}

// One instance for each SIMD target that this machine has among those compiled.
class Gemm : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { use(GetParam()); }
  void TearDown() override {
    use(0);
    bf16_pairs::disable_for_test(false);
  }
  static void use(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

template <class T>
void odd_sizes() {
  set_num_threads(2);
  const int64_t sizes[] = {0, 1, 2, 3, 7, 8, 13, 16, 17, 33, 48, 70};
  unsigned turn = 0;
  for (int64_t m : sizes) {
    for (int64_t n : sizes) {
      // All pairs of m and n, each k often enough; all triples would take minutes.
      check_layouts<T>({m, n, sizes[turn * 5 % 12]});
      if (::testing::Test::HasFatalFailure()) return;
      ++turn;
    }
    ++turn;  // else each n would meet one k only
  }
}

template <class T>
void large_sizes() {
  set_num_threads(3);
  // Several blocks of k and of columns, tiles for several threads, long sums, dot products.
  for (Shape s : {Shape{60, 270, 900},
                  {16, 530, 800},
                  {1, 600, 577},
                  {3, 1100, 64},
                  {300, 1, 500},
                  {9, 7, 17000},
                  {1, 1, 50003}}) {
    check<T>(s, Layout::kRows, Layout::kRows, Layout::kRows, 1, 0, false);
    check<T>(s, Layout::kRows, Layout::kColumns, Layout::kRows, 1, 1, true);
    check<T>(s, Layout::kColumns, Layout::kRows, Layout::kColumns, 0.5, 2, true);
    check<T>(s, Layout::kLoose, Layout::kLoose, Layout::kLoose, 1, 0, false);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST_P(Gemm, OddSizesFloat) { odd_sizes<float>(); }
TEST_P(Gemm, OddSizesDouble) { odd_sizes<double>(); }
TEST_P(Gemm, OddSizesBFloat16) { odd_sizes<BFloat16>(); }
TEST_P(Gemm, OddSizesBFloat16WithoutPairs) {
  bf16_pairs::disable_for_test(true);
  odd_sizes<BFloat16>();
}
TEST_P(Gemm, LargeSizesBFloat16WithoutPairs) {
  bf16_pairs::disable_for_test(true);
  large_sizes<BFloat16>();
}
TEST_P(Gemm, OddSizesHalf) { odd_sizes<Half>(); }

TEST_P(Gemm, LargeSizesFloat) { large_sizes<float>(); }
TEST_P(Gemm, LargeSizesDouble) { large_sizes<double>(); }
TEST_P(Gemm, LargeSizesBFloat16) { large_sizes<BFloat16>(); }
TEST_P(Gemm, LargeSizesHalf) { large_sizes<Half>(); }

TEST_P(Gemm, BitsDoNotDependOnThreads) {
  for (Shape s : {Shape{200, 300, 900}, {1, 5000, 600}, {64, 64, 4096}, {8, 8, 50000}, {1, 1, 300000}, {5, 4096, 64}}) {
    for (Layout lb : {Layout::kRows, Layout::kColumns}) {
      std::mt19937 rng(7);
      Matrix<float> a(s.m, s.k, Layout::kRows, rng), b(s.k, s.n, lb, rng), c(s.m, s.n, Layout::kRows, rng);
      Matrix<float> first = c;
      for (int threads : {1, 2, 3, 7}) {
        set_num_threads(threads);
        gemm::gemm(ScalarType::Float, s.m, s.n, s.k, a.mat(), b.mat(), c.out());
        if (threads == 1) first = c;
        ASSERT_EQ(std::memcmp(first.data.data(), c.data.data(), c.data.size() * 4), 0)
            << s.m << "x" << s.n << "x" << s.k;
      }
    }
  }
}

TEST_P(Gemm, NanAndInfinityPass) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (int64_t k : {1, 5, 40}) {
    std::vector<float> a(static_cast<size_t>(3 * k), 1), b(static_cast<size_t>(k * 3), 0), c(9, nan);
    a[static_cast<size_t>(k)] = inf;      // row 1: inf * 0
    a[static_cast<size_t>(2 * k)] = nan;  // row 2
    gemm::gemm(ScalarType::Float, 3, 3, k, {a.data(), k, 1}, {b.data(), 3, 1}, {c.data(), 3, 1});
    for (size_t j = 0; j < 3; ++j) {
      EXPECT_EQ(c[j], 0);
      EXPECT_TRUE(std::isnan(c[3 + j]));
      EXPECT_TRUE(std::isnan(c[6 + j]));
    }
    // A NaN in C passes with beta, and alpha == 0 still multiplies.
    c[0] = nan;
    gemm::gemm(ScalarType::Float, 3, 3, k, {a.data(), k, 1}, {b.data(), 3, 1}, {c.data(), 3, 1}, 1, 1);
    EXPECT_TRUE(std::isnan(c[0]));
  }
}

TEST_P(Gemm, EmptySumScalesC) {
  std::vector<float> c = {1, 2, 3, 4}, bias = {10, 20};
  gemm::gemm(ScalarType::Float, 2, 2, 0, {nullptr, 0, 1}, {nullptr, 2, 1}, {c.data(), 2, 1}, 1, 0.5, bias.data());
  EXPECT_EQ(c, (std::vector<float>{10.5, 21, 11.5, 22}));
  gemm::gemm(ScalarType::Float, 2, 2, 0, {nullptr, 0, 1}, {nullptr, 2, 1}, {c.data(), 2, 1});
  EXPECT_EQ(c, (std::vector<float>{0, 0, 0, 0}));
}

TEST_P(Gemm, BroadcastStrides) {
  const float one = 2;
  std::vector<float> c(35);
  gemm::gemm(ScalarType::Float, 5, 7, 11, {&one, 0, 0}, {&one, 0, 0}, {c.data(), 7, 1});
  for (float x : c) EXPECT_EQ(x, 44);
}

template <class T>
void batches() {
  for (int threads : {1, 3}) {
    set_num_threads(threads);
    for (Shape s : {Shape{8, 8, 8}, {1, 16, 9}, {128, 64, 33}, {3, 40, 1100}, {5, 1, 7}}) {
      for (bool nt : {false, true}) {
        const int64_t batch = 9;
        std::mt19937 rng(3);
        Matrix<T> a(batch * s.m, s.k, Layout::kRows, rng, 0), b(batch * s.n, s.k, Layout::kRows, rng, 0);
        Matrix<T> c(batch * s.m, s.n, Layout::kRows, rng, 0), want = c;
        const int64_t b_rs = nt ? 1 : s.n, b_cs = nt ? s.k : 1;
        gemm::gemm_batched(Traits<T>::kType, batch, s.m, s.n, s.k, {a.data.data(), s.k, 1}, s.m * s.k,
                           {b.data.data(), b_rs, b_cs}, s.n * s.k, {c.data.data(), s.n, 1}, s.m * s.n);
        for (int64_t i = 0; i < batch; ++i) {
          gemm::gemm(Traits<T>::kType, s.m, s.n, s.k, {a.data.data() + i * s.m * s.k, s.k, 1},
                     {b.data.data() + i * s.n * s.k, b_rs, b_cs}, {want.data.data() + i * s.m * s.n, s.n, 1});
        }
        ASSERT_EQ(std::memcmp(want.data.data(), c.data.data(), c.data.size() * sizeof(T)), 0);
      }
    }
  }
}

TEST_P(Gemm, Batches) {
  batches<float>();
  batches<double>();
  batches<BFloat16>();
  batches<Half>();
}

INSTANTIATE_TEST_SUITE_P(Targets, Gemm, ::testing::ValuesIn([] {
                           std::vector<int64_t> targets;
                           for (int64_t all = hwy::SupportedTargets() & HWY_TARGETS; all != 0; all &= all - 1) {
                             targets.push_back(all & -all);
                           }
                           return targets;
                         }()),
                         [](const auto& info) { return std::string(hwy::TargetName(info.param)); });

template <class T>
void exact(ScalarType dtype, T alpha, T beta) {
  set_num_threads(2);
  for (Shape s : {Shape{1, 1, 1}, {3, 5, 0}, {7, 300, 20}, {65, 66, 130}}) {
    for (bool nt : {false, true}) {
      std::mt19937_64 rng(5);
      const auto make = [&](int64_t n) {
        std::vector<T> v(static_cast<size_t>(n) + 1);
        for (T& x : v) x = static_cast<T>(rng());
        return v;
      };
      const auto a = make(s.m * s.k), b = make(s.k * s.n), bias = make(s.n);
      auto c = make(s.m * s.n), before = c;
      const int64_t b_rs = nt ? 1 : s.n, b_cs = nt ? s.k : 1;
      gemm::gemm(dtype, s.m, s.n, s.k, {a.data(), s.k, 1}, {b.data(), b_rs, b_cs}, {c.data(), s.n, 1},
                 static_cast<int64_t>(alpha), static_cast<int64_t>(beta), bias.data());
      for (int64_t i = 0; i < s.m; ++i) {
        for (int64_t j = 0; j < s.n; ++j) {
          uint64_t sum = 0;
          for (int64_t p = 0; p < s.k; ++p) {
            sum += static_cast<uint64_t>(a[static_cast<size_t>(i * s.k + p)]) *
                   static_cast<uint64_t>(b[static_cast<size_t>(p * b_rs + j * b_cs)]);
          }
          const auto at = static_cast<size_t>(i * s.n + j);
          sum = sum * static_cast<uint64_t>(alpha) + static_cast<uint64_t>(beta) * static_cast<uint64_t>(before[at]) +
                static_cast<uint64_t>(bias[static_cast<size_t>(j)]);
          ASSERT_EQ(c[at], static_cast<T>(sum));
        }
      }
    }
  }
}

TEST(GemmPlain, IntegersWrapAround) {
  exact<uint8_t>(ScalarType::Byte, 3, 7);
  exact<int8_t>(ScalarType::Char, -3, 1);
  exact<int16_t>(ScalarType::Short, 1, 0);
  exact<int32_t>(ScalarType::Int, 5, -1);
  exact<int64_t>(ScalarType::Long, -7, 2);
}

template <class T>
void complex_product(ScalarType dtype, double eps) {
  using C = std::complex<T>;
  for (Shape s : {Shape{1, 1, 1}, {4, 3, 0}, {9, 270, 31}}) {
    std::mt19937 rng(5);
    std::uniform_real_distribution<T> values(-1, 1);
    const auto make = [&](int64_t n) {
      std::vector<C> v(static_cast<size_t>(n) + 1);
      for (C& x : v) x = C(values(rng), values(rng));
      return v;
    };
    const auto a = make(s.m * s.k), b = make(s.k * s.n);
    auto c = make(s.m * s.n), before = c;
    const std::complex<double> alpha(0.5, -2), beta(1, 1);
    gemm::gemm(dtype, s.m, s.n, s.k, {a.data(), s.k, 1}, {b.data(), s.n, 1}, {c.data(), s.n, 1}, alpha, beta);
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        std::complex<long double> sum = 0;
        for (int64_t p = 0; p < s.k; ++p) {
          sum += std::complex<long double>(a[static_cast<size_t>(i * s.k + p)]) *
                 std::complex<long double>(b[static_cast<size_t>(p * s.n + j)]);
        }
        const auto at = static_cast<size_t>(i * s.n + j);
        sum = sum * std::complex<long double>(alpha) +
              std::complex<long double>(beta) * std::complex<long double>(before[at]);
        ASSERT_LE(std::abs(std::complex<long double>(c[at]) - sum), eps * static_cast<double>(8 * (s.k + 2)));
      }
    }
  }
}

TEST(GemmPlain, Complex) {
  complex_product<float>(ScalarType::ComplexFloat, 0x1p-23);
  complex_product<double>(ScalarType::ComplexDouble, 0x1p-52);
}

TEST(GemmPlain, GemvAndDot) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, x = {1, -9, 10, -9, 100};
  std::vector<float> y = {1, 1};
  gemm::gemv(ScalarType::Float, 2, 3, {a.data(), 3, 1}, x.data(), 2, y.data(), 1, 1, 1);
  EXPECT_EQ(y, (std::vector<float>{322, 655}));
  float out = 0;
  gemm::dot(ScalarType::Float, 3, a.data(), 2, x.data(), 2, &out);
  EXPECT_EQ(out, 531);
}

TEST(GemmPlain, RefusesOtherTypes) {
  EXPECT_FALSE(gemm::supports(ScalarType::Bool));
  EXPECT_ANY_THROW(gemm::gemm(ScalarType::Bool, 1, 1, 1, {nullptr, 1, 1}, {nullptr, 1, 1}, {nullptr, 1, 1}));
}

// ---- 16-bit conversions ----

TEST(Conversions, HalfRoundTripsAndRoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half h{static_cast<uint16_t>(bits)};
    const float f = to_float(h);
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(to_float(to_half(f))));
      continue;
    }
    ASSERT_EQ(to_half(f).bits, bits);
    const uint32_t magnitude = bits & 0x7FFF;
    if (magnitude >= 0x7BFF) continue;
    const float next = to_float(Half{static_cast<uint16_t>(bits + 1)}), middle = (f + next) / 2;  // exact
    ASSERT_EQ(to_half(middle).bits, bits + (bits & 1));
    ASSERT_EQ(to_half(std::nextafter(middle, f)).bits, bits);
    ASSERT_EQ(to_half(std::nextafter(middle, next)).bits, bits + 1);
  }
  EXPECT_EQ(to_half(65519.99F).bits, 0x7BFF);
  EXPECT_EQ(to_half(65520.0F).bits, 0x7C00);
  EXPECT_EQ(to_half(-1e30F).bits, 0xFC00);
  EXPECT_EQ(to_float(Half{0x0001}), 0x1p-24F);
  EXPECT_EQ(to_float(Half{0xC000}), -2.0F);
}

TEST(Conversions, BFloat16RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const BFloat16 h{static_cast<uint16_t>(bits)};
    const float f = to_float(h);
    ASSERT_EQ(to_bfloat16(f).bits, std::isnan(f) ? 0x7FC0 : bits);
  }
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0x3F808000U)).bits, 0x3F80);
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0x3F818000U)).bits, 0x3F82);
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0x3F808001U)).bits, 0x3F81);
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()).bits, 0x7F80);
}

}  // namespace
}  // namespace tn
