// Runs of bfloat16 against the conversion of one number, on the CPU's own instruction and without it.

#include "kernels/common/halves.h"

#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/common/bf16_pairs.h"
#include "runtime/half.h"

namespace tn {
namespace {

class Halves : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override { bf16_pairs::disable_for_test(GetParam()); }
  void TearDown() override { bf16_pairs::disable_for_test(false); }

  static void compare(const std::vector<float>& from) {
    std::vector<uint16_t> got(from.size() + 1, 0x1234);
    shorten(ScalarType::BFloat16, from.data(), got.data(), from.size());
    for (size_t i = 0; i < from.size(); ++i) {
      ASSERT_EQ(got[i], to_bfloat16(from[i]).bits) << "bits " << std::bit_cast<uint32_t>(from[i]) << " at " << i;
    }
    EXPECT_EQ(got.back(), 0x1234) << "written past the end";
  }
};

// Subnormals (which the instruction flushes), both NaNs with payloads, infinities, zeros, ties, overflow by rounding.
constexpr uint32_t kHard[] = {0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00008000, 0x00018000, 0x00800000,
                              0x7F800000, 0xFF800000, 0x7F800001, 0xFF812345, 0x7FC00000, 0xFFFFFFFF, 0x00000000,
                              0x80000000, 0x3F808000, 0x3F818000, 0x3F808001, 0x7F7FFFFF, 0x7F7F7FFF, 0x7F7F8000};

TEST_P(Halves, HardNumbersInEveryLane) {
  for (const uint32_t bits : kHard) {
    for (size_t at = 0; at < 70; ++at) {
      std::vector<float> from(70, 1.00390625F);
      from[at] = std::bit_cast<float>(bits);
      compare(from);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Halves, AnyLengthAnyBits) {
  std::mt19937 rng(5);
  for (size_t n = 0; n < 100; ++n) {
    std::vector<float> from(n);
    for (float& x : from) x = std::bit_cast<float>(static_cast<uint32_t>(rng()));
    compare(from);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(WithoutInstruction, Halves, ::testing::Bool());

}  // namespace
}  // namespace tn
