#include "runtime/rng.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <random>
#include <utility>

#include "runtime/error.h"

namespace tn {
namespace {

// The saved state as bytes lie in checkpoints. Padding is zero. x and rho come from a generator long gone.
struct SavedState {
  uint64_t seed;
  int32_t left;
  int32_t seeded;
  uint64_t next;
  uint64_t words[624];
  double unused_x;
  double double_normal;
  double unused_rho;
  int32_t has_double_normal;
  int32_t padding0;
  float float_normal;
  uint8_t has_float_normal;
  uint8_t padding1[3];
};
static_assert(sizeof(SavedState) == kGeneratorStateSize);
static_assert(offsetof(SavedState, words) == 24 && offsetof(SavedState, double_normal) == 5024);
static_assert(offsetof(SavedState, has_double_normal) == 5040 && offsetof(SavedState, float_normal) == 5048);

constexpr uint32_t twist(uint32_t high, uint32_t low) {
  const uint32_t mixed = (high & 0x80000000u) | (low & 0x7fffffffu);
  return mixed >> 1 ^ ((0u - (low & 1u)) & 0x9908b0dfu);
}

// words[i] ^= ... for i in [0, count). Word i + 1 is still old when i is written, so a vector reads both
// before it stores.
template <int count, int from>
inline void twist_run(uint32_t* words) {
  for (int i = 0; i < count; ++i) words[i] = words[i + from] ^ twist(words[i], words[i + 1]);
}

}  // namespace

uint64_t nondeterministic_random() {
  std::random_device device;
  const uint64_t high = device();
  return high << 32 | device();
}

void GeneratorImpl::refill() noexcept {
  left_ = kWords;
  next_ = 0;
  uint32_t* w = words_.data();
  // Runs of a multiple of eight and their rests, so that the runs become vector code without an epilogue.
  constexpr int first = kWords - kShift;
  twist_run<first - 3, kShift>(w);
  twist_run<3, kShift>(w + first - 3);
  twist_run<kShift - 5, -first>(w + first);
  twist_run<4, -first>(w + kWords - 5);
  w[kWords - 1] = w[kShift - 1] ^ twist(w[kWords - 1], w[0]);
}

void GeneratorImpl::random_block(uint32_t* out, int64_t n) noexcept {
  while (n > 0) {
    int64_t ready = left_ - 1;
    if (ready == 0) {
      refill();
      ready = kWords;
    }
    const int64_t take = std::min(n, ready);
    const uint32_t* from = words_.data() + next_;
    int64_t i = 0;
    for (; i + 16 <= take; i += 16)
      for (int j = 0; j < 16; ++j) out[i + j] = temper(from[i + j]);
    for (; i < take; ++i) out[i] = temper(from[i]);
    next_ += static_cast<uint32_t>(take);
    left_ = static_cast<int32_t>(ready - take) + 1;
    out += take;
    n -= take;
  }
}

void GeneratorImpl::set_current_seed(uint64_t seed) noexcept {
  seed_ = seed;
  double_normal_.reset();
  float_normal_.reset();
  // Only the low half of the seed reaches the stream, as in upstream.
  uint32_t word = static_cast<uint32_t>(seed);
  words_[0] = word;
  for (uint32_t i = 1; i < kWords; ++i) words_[i] = word = 1812433253u * (word ^ word >> 30) + i;
  left_ = 1;
  next_ = 0;
}

uint64_t GeneratorImpl::seed() {
  const uint64_t fresh = nondeterministic_random();
  set_current_seed(fresh);
  return fresh;
}

std::array<uint8_t, kGeneratorStateSize> GeneratorImpl::get_state() const {
  SavedState s{};
  s.seed = seed_;
  s.left = left_;
  s.seeded = 1;
  s.next = next_;
  std::copy(words_.begin(), words_.end(), s.words);
  s.has_double_normal = double_normal_.has_value();
  s.double_normal = double_normal_.value_or(0.0);
  s.has_float_normal = float_normal_.has_value();
  s.float_normal = float_normal_.value_or(0.0f);
  std::array<uint8_t, kGeneratorStateSize> bytes;
  std::memcpy(bytes.data(), &s, sizeof s);
  return bytes;
}

void GeneratorImpl::set_state(std::span<const uint8_t> state) {
  TN_CHECK(state.size() == kGeneratorStateSize, "Expected a CPUGeneratorImplState of size ", kGeneratorStateSize,
           " but found the input RNG state size to be ", state.size());
  SavedState s;
  std::memcpy(&s, state.data(), sizeof s);
  const auto next = static_cast<uint32_t>(s.next);
  // The last condition is ours: without it a forged state makes draws read behind the words.
  TN_CHECK(s.seeded != 0 && s.left > 0 && s.left <= kWords && next <= kWords &&
               static_cast<uint32_t>(s.left - 1) <= kWords - next,
           "Invalid mt19937 state");
  seed_ = s.seed;
  left_ = s.left;
  next_ = next;
  std::transform(s.words, s.words + kWords, words_.begin(), [](uint64_t w) { return static_cast<uint32_t>(w); });
  double_normal_ = s.has_double_normal ? std::optional(s.double_normal) : std::nullopt;
  float_normal_ = s.has_float_normal ? std::optional(s.float_normal) : std::nullopt;
}

Ref<GeneratorImpl> GeneratorImpl::clone() const {
  auto copy = make_ref<GeneratorImpl>();
  copy->seed_ = seed_;
  copy->left_ = left_;
  copy->next_ = next_;
  copy->words_ = words_;
  copy->double_normal_ = double_normal_;
  copy->float_normal_ = float_normal_;
  return copy;
}

GeneratorImpl& default_cpu_generator() {
  // Never destroyed: threads may draw while the process exits.
  static auto* const generator = new GeneratorImpl(nondeterministic_random());
  return *generator;
}

}  // namespace tn
