// The random number generator behind torch.Generator: mt19937 with upstream's seeding, draw order and saved
// state.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "runtime/device.h"
#include "runtime/intrusive.h"

namespace tn {

// Upstream's saved state: the legacy THGenerator struct (64-bit words) and the cached float normal behind it.
inline constexpr size_t kGeneratorStateSize = 5056;
// Seed of a torch.Generator() that nobody seeded; a contract, since programs rely on its stream.
inline constexpr uint64_t kDefaultSeed = 67280421310721;

// A hardware-seeded 64-bit number.
uint64_t nondeterministic_random();

// One stream on the CPU. Draws are not synchronised: a caller that draws holds `mutex()` for its whole
// operator, so that an operator's numbers are consecutive.
class GeneratorImpl final : public RefCounted {
 public:
  explicit GeneratorImpl(uint64_t seed = kDefaultSeed) noexcept { set_current_seed(seed); }
  static void destroy(GeneratorImpl* self) noexcept { delete self; }

  uint32_t random() noexcept {
    if (--left_ == 0) refill();
    return temper(words_[next_++]);
  }
  // Two draws, the high half first.
  uint64_t random64() noexcept {
    const uint64_t high = random();
    return high << 32 | random();
  }
  // The same numbers as n calls of random().
  void random_block(uint32_t* out, int64_t n) noexcept;

  // Reseeds and forgets cached normals.
  void set_current_seed(uint64_t seed) noexcept;
  uint64_t current_seed() const noexcept { return seed_; }
  // Reseeds from the hardware and returns that seed.
  uint64_t seed();

  // Box-Muller makes two normals at a time; the second waits here, one for each precision, as upstream keeps
  // them.
  std::optional<double> take_double_normal() noexcept { return std::exchange(double_normal_, std::nullopt); }
  void keep_double_normal(double sample) noexcept { double_normal_ = sample; }

  std::array<uint8_t, kGeneratorStateSize> get_state() const;
  // RuntimeError for a state of another size or one that no generator can be in.
  void set_state(std::span<const uint8_t> state);

  Ref<GeneratorImpl> clone() const;
  Device device() const noexcept { return Device(DeviceType::CPU); }
  std::mutex& mutex() const noexcept { return mutex_; }
  // The Python object of this generator, borrowed; owned by the bindings.
  std::atomic<void*>& py_object() noexcept { return py_object_; }

 private:
  static constexpr int kWords = 624;
  static constexpr int kShift = 397;

  static constexpr uint32_t temper(uint32_t y) noexcept {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }
  void refill() noexcept;

  uint64_t seed_ = 0;
  // Upstream's bookkeeping, part of the saved state: the draw that brings left_ to zero refills first.
  int32_t left_ = 1;
  uint32_t next_ = 0;
  std::optional<double> double_normal_;
  std::optional<float> float_normal_;  // nothing of ours makes one; kept since a loaded state may hold it
  std::atomic<void*> py_object_{nullptr};
  mutable std::mutex mutex_;
  std::array<uint32_t, kWords> words_;
};

// The process's generator, seeded from the hardware at its first use.
GeneratorImpl& default_cpu_generator();
// What an operator draws from when called with `chosen`; null stands for the default.
inline GeneratorImpl& generator_or_default(GeneratorImpl* chosen) { return chosen ? *chosen : default_cpu_generator(); }

}  // namespace tn
