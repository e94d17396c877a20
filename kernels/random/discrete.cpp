// Fills with integers and coins; permutations.
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "kernels/random/draw.h"
#include "kernels/random/fill.h"

namespace tn::rng {
namespace {

constexpr unsigned kAllTypes = kFloats | kReduced | kInts | kBool;

// The nearest value of float type T that stays at or above `from` when cast, as upstream finds it: casting
// may round below.
template <class T>
int64_t round_trip(int64_t v) {
  return static_cast<int64_t>(to_float(element<T>(v)));
}
inline int floor_log2(int64_t v) { return v == 0 ? 0 : 63 - std::countl_zero(static_cast<uint64_t>(std::abs(v))); }

template <class T>
int64_t raised_from(int64_t from) {
  const int64_t next = round_trip<T>(from + 1);
  return next < from ? next + (int64_t{1} << (floor_log2(from + 1) - kDigits<T> + 1)) : from;
}
template <class T>
int64_t lowered_to(int64_t to) {
  const int64_t last = round_trip<T>(to - 1);
  return last >= to ? last - (int64_t{1} << (floor_log2(to - 1) - kDigits<T> + 1)) : to;
}

void check_range(int64_t from, int64_t last, ScalarType dtype) {
  const std::string type = element_type_name(dtype);
  const auto check = [&](auto low, auto high) {
    TN_CHECK(from >= low && from <= high, "from is out of bounds for ", type);
    TN_CHECK(last >= low && last <= high, "to - 1 is out of bounds for ", type);
  };
  if (dtype == ScalarType::UInt64) return check(int64_t{0}, std::numeric_limits<int64_t>::max());
  const bool served = with_type < kAllTypes | kUnsigned > (dtype, [&]<class T>(T) {
                                                if constexpr (is_float<T>) {
                                                  check(-kLargest<T>, kLargest<T>);
                                                } else if constexpr (!std::is_same_v<T, uint64_t>) {
                                                  check(static_cast<int64_t>(std::numeric_limits<T>::lowest()),
                                                        static_cast<int64_t>(std::numeric_limits<T>::max()));
                                                }
                                              });
  TN_CHECK(served, "check_random_bounds handles only integral, floating-point and boolean types");
}

// base + a draw modulo range.
template <class T>
void fill_range(const Target& out, uint64_t range, int64_t base, GeneratorImpl& generator) {
  fill<T>(out, generator, [&](T* data, int64_t n) {
    const auto shifted = [=](uint64_t v) { return element<T>(static_cast<int64_t>(v + static_cast<uint64_t>(base))); };
    // From here on 32 bits would favour small numbers visibly.
    if (range >= uint64_t{1} << 28) {
      draw64(generator, data, n, [&](uint64_t bits) { return shifted(bits % range); });
    } else {
      // bits % range by Lemire's multiplications (2019): exact for 32-bit operands, several times faster than
      // dividing.
      const uint64_t inverse = std::numeric_limits<uint64_t>::max() / range + 1;
      draw32(generator, data, n, [=](uint32_t bits) {
        const uint64_t fraction = inverse * bits;
        return shifted(((fraction >> 32) * range + ((fraction & 0xffffffff) * range >> 32)) >> 32);
      });
    }
  });
}

// Upstream's text, which an assertion macro makes from its source.
void check_probability(bool fits) {
  TN_CHECK(fits,
           "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be "
           "improved?  If so, please "
           "report an enhancement request to PyTorch.)");
}

template <class T>
void shuffle(T* data, int64_t n, int64_t stride, GeneratorImpl& generator) {
  const std::lock_guard lock(generator.mutex());
  if (n < std::numeric_limits<uint32_t>::max() / 20) {
    for (int64_t i = 0; i < n; ++i) data[i * stride] = element<T>(i);
    for (int64_t i = 0; i < n - 1; ++i) {
      const int64_t other = i + generator.random() % static_cast<uint32_t>(n - i);
      std::swap(data[i * stride], data[other * stride]);
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const auto other = static_cast<int64_t>(generator.random64() % static_cast<uint64_t>(i + 1));
    data[i * stride] = data[other * stride];
    data[other * stride] = element<T>(i);
  }
}

}  // namespace

void random(const Target& out, GeneratorImpl& generator) {
  if (numel(out) == 0) return;
  const bool served = with_type<kAllTypes>(out.dtype, [&]<class T>(T) {
    fill<T>(out, generator, [&](T* data, int64_t n) {
      if constexpr (std::is_same_v<T, double>) {
        draw64(generator, data, n, [](uint64_t bits) { return static_cast<double>(bits % ((uint64_t{1} << 53) + 1)); });
      } else if constexpr (is_float<T>) {
        draw32(generator, data, n, [](uint32_t bits) { return element<T>(bits % ((uint32_t{1} << kDigits<T>)+1)); });
      } else if constexpr (std::is_same_v<T, int64_t>) {
        draw64(generator, data, n, [](uint64_t bits) { return static_cast<T>(bits & std::numeric_limits<T>::max()); });
      } else {
        draw32(generator, data, n, [](uint32_t bits) {
          return static_cast<T>(bits & static_cast<uint32_t>(std::numeric_limits<T>::max()));
        });
      }
    });
  });
  if (!served) not_implemented("random_kernel_cpu", out.dtype);
}

void random_from_to(const Target& out, int64_t from, std::optional<int64_t> to, GeneratorImpl& generator) {
  uint64_t range = 0;  // 0: all 2^64 numbers
  if (to) {
    int64_t end = *to;
    TN_CHECK(from < end, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", end);
    with_type<kFloats | kReduced>(out.dtype, [&]<class T>(T) {
      from = raised_from<T>(from);
      end = lowered_to<T>(end);
      TN_CHECK(from < end,
               "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from=", from,
               " >= to=", end);
    });
    check_range(from, end - 1, out.dtype);
    range = static_cast<uint64_t>(end) - static_cast<uint64_t>(from);
  } else if (from != std::numeric_limits<int64_t>::lowest()) {
    int64_t last = 0;
    const bool served =
        with_type < kAllTypes | kUnsigned > (out.dtype, [&]<class T>(T) {
                                  if constexpr (is_float<T>) {
                                    last = int64_t{1} << kDigits<T>;
                                    from = raised_from<T>(from);
                                    TN_CHECK(from < last,
                                             "random_ expects 'from' casted to dtype to be less than or "
                                             "equal to 'to_inc' casted to dtype, but got from=",
                                             from, " > to_inc=", last);
                                  } else {
                                    last = static_cast<int64_t>(std::numeric_limits<T>::max());
                                  }
                                });
    TN_CHECK(served, "random_from_to_impl handles only integral, floating-point and boolean types");
    check_range(from, last, out.dtype);
    range = static_cast<uint64_t>(last) - static_cast<uint64_t>(from) + 1;
  }
  if (numel(out) == 0) return;
  if (range != 0) {
    const bool served = with_type < kAllTypes |
                        kUnsigned > (out.dtype, [&]<class T>(T) { fill_range<T>(out, range, from, generator); });
    if (!served) not_implemented("random_from_to_kernel_cpu", out.dtype);
    return;
  }
  const bool served =
      with_type < kFloats | kReduced |
      kInts > (out.dtype, [&]<class T>(T) {
        if constexpr (std::is_same_v<T, int64_t> || std::is_floating_point_v<T> || std::is_same_v<T, BFloat16>) {
          fill<T>(out, generator, [&](T* data, int64_t n) {
            draw64(generator, data, n, [](uint64_t bits) { return element<T>(static_cast<int64_t>(bits)); });
          });
        } else {
          TN_CHECK(!std::is_integral_v<T>,
                   "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16");
          not_implemented("random_full_64_bits_range_kernel_cpu", out.dtype);
        }
      });
  if (!served) not_implemented("random_full_64_bits_range_kernel_cpu", out.dtype);
}

void bernoulli(const Target& out, double p, GeneratorImpl& generator) {
  TN_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  if (numel(out) == 0) return;
  const bool served = with_type<kAllTypes>(out.dtype, [&]<class T>(T) {
    // unit(bits) < p, in integers: both sides times 2^53, which is exact.
    const auto bound = static_cast<uint64_t>(std::ceil(p * 0x1p53));
    const auto mask = (uint64_t{1} << 53) - 1;
    const T coins[2] = {element<T>(0.0f), element<T>(1.0f)};
    fill<T>(out, generator, [&](T* data, int64_t n) {
      draw64(generator, data, n, [&](uint64_t bits) { return coins[(bits & mask) < bound]; });
    });
  });
  if (!served) not_implemented("bernoulli_scalar_cpu_", out.dtype);
}

void bernoulli(const Target& out, const Source& p, GeneratorImpl& generator) {
  if (numel(out) == 0) return;
  const bool served = with_type<kAllTypes>(out.dtype, [&]<class T>(T) {
    const bool weighed = with_type < kFloats | kReduced > (p.dtype, [&]<class P>(P) {
                                                 fill_from<T, P>(out, p, generator, [&](auto chance) {
                                                   check_probability(chance >= 0 && chance <= 1);
                                                   if constexpr (std::is_same_v<P, double>)
                                                     return unit(generator.random64()) < chance ? 1.0f : 0.0f;
                                                   else return unit(generator.random()) < chance ? 1.0f : 0.0f;
                                                 });
                                               });
    if (!weighed) not_implemented("bernoulli_tensor_cpu_p_", p.dtype);
  });
  if (!served) not_implemented("bernoulli_tensor_cpu_self_", out.dtype);
}

void check_permutation_fits(int64_t n, ScalarType dtype) {
  const auto at_most = [n](int64_t limit, std::string_view text, std::string_view type) {
    TN_CHECK(n <= limit, "n cannot be greater than ", text, " for ", type, " type.");
  };
  const auto converts = [n](int64_t limit, std::string_view type) {
    TN_CHECK(n <= limit, "value cannot be converted to type ", type, " without overflow");
  };
  switch (dtype) {
    case ScalarType::Half: return at_most((int64_t{1} << 11) + 1, "2049", "Half");
    case ScalarType::Float: return at_most((int64_t{1} << 24) + 1, "2^24+1", "Float");
    case ScalarType::Double: return at_most((int64_t{1} << 53) + 1, "2^53+1", "Double");
    case ScalarType::Byte: return converts(256, "uint8_t");
    case ScalarType::Char: return converts(128, "int8_t");
    case ScalarType::Short: return converts(32768, "int16_t");
    case ScalarType::Int: return converts(int64_t{1} << 31, "int");
    default: return;
  }
}

void randperm(ScalarType dtype, void* data, int64_t n, int64_t stride, GeneratorImpl& generator) {
  TN_CHECK(n >= 0, "n must be non-negative, got", n);
  const bool served = with_type < kFloats | kReduced |
                      kInts > (dtype, [&]<class T>(T) { shuffle(static_cast<T*>(data), n, stride, generator); });
  if (!served) not_implemented("randperm", dtype);
}

}  // namespace tn::rng
