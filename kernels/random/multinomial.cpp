// Weighted choice of indices.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/random/draw.h"
#include "kernels/random/fill.h"

namespace tn::rng {
namespace {

template <class T>
void choose(const Weights& w, int64_t samples, int64_t* out, GeneratorImpl& generator) {
  using Op = Opmath<T>;
  std::vector<Op> cumulative(static_cast<size_t>(w.categories));
  const std::lock_guard lock(generator.mutex());
  for (int64_t row = 0; row < w.rows; ++row) {
    const T* weights = static_cast<const T*>(w.data) + row * w.row_stride;
    Op sum = 0;
    for (int64_t i = 0; i < w.categories; ++i) {
      const Op weight = to_float(weights[i * w.stride]);
      TN_CHECK(weight >= 0, "invalid multinomial distribution (encountering probability entry < 0)");
      TN_CHECK(std::isfinite(weight),
               "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
      sum += weight;
      cumulative[static_cast<size_t>(i)] = sum;
    }
    TN_CHECK(sum > 0, "invalid multinomial distribution (sum of probabilities <= 0)");
    for (Op& c : cumulative) c /= sum;
    cumulative.back() = 1;
    for (int64_t s = 0; s < samples; ++s) {
      const double u = unit(generator.random64());
      // The first category whose cumulative weight is not below u.
      size_t low = 0, high = cumulative.size();
      while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (static_cast<double>(cumulative[middle]) < u) low = middle + 1;
        else high = middle;
      }
      *out++ = static_cast<int64_t>(low);
    }
  }
}

// NaN is above everything.
template <class Op>
bool above(Op a, Op b) {
  return (std::isnan(a) && !std::isnan(b)) || a > b;
}

// Upstream's argmax for one sample, its topk for more; equal values come in the order that topk's calls of
// the standard library leave, which is why they are the same calls.
template <class T>
void choose_largest(const Weights& w, int64_t samples, int64_t* out, const Target& noise) {
  using Op = Opmath<T>;
  using Entry = std::pair<Op, int64_t>;
  const auto before = [](const Entry& a, const Entry& b) { return above(a.first, b.first); };
  const bool matrix = noise.sizes.size() == 2;
  const int64_t noise_row = matrix ? noise.strides[0] : 0, noise_stride = noise.strides[matrix ? 1 : 0];
  std::vector<Entry> queue(static_cast<size_t>(w.categories));
  for (int64_t row = 0; row < w.rows; ++row, out += samples) {
    const T* weights = static_cast<const T*>(w.data) + row * w.row_stride;
    const T* q = static_cast<const T*>(noise.data) + row * noise_row;
    for (int64_t i = 0; i < w.categories; ++i)
      queue[static_cast<size_t>(i)] = {
          to_float(element<T>(to_float(weights[i * w.stride]) / to_float(q[i * noise_stride]))), i};
    const auto begin = queue.begin(), end = queue.end();
    if (samples == 1) {
      *out = std::min_element(begin, end, before)->second;
      continue;
    }
    if (samples * 64 <= w.categories) {
      std::partial_sort(begin, begin + samples, end, before);
    } else {
      std::nth_element(begin, begin + samples - 1, end, before);
      std::sort(begin, begin + samples - 1, before);
    }
    for (int64_t s = 0; s < samples; ++s) out[s] = queue[static_cast<size_t>(s)].second;
  }
}

template <class T>
void check_weights(const Weights& w) {
  bool valid = true, all_positive = true;
  for (int64_t row = 0; row < w.rows; ++row) {
    const T* weights = static_cast<const T*>(w.data) + row * w.row_stride;
    Opmath<T> sum = 0;
    for (int64_t i = 0; i < w.categories; ++i) {
      const auto v = to_float(weights[i * w.stride]);
      valid = valid && v >= 0 && std::isfinite(v);
      sum += v;
    }
    all_positive = all_positive && sum != 0;
  }
  TN_CHECK(valid, "probability tensor contains either `inf`, `nan` or element < 0");
  TN_CHECK(all_positive, "invalid multinomial distribution (sum of probabilities <= 0)");
}

}  // namespace

void multinomial_with_replacement(const Weights& weights, int64_t samples, int64_t* out, GeneratorImpl& generator) {
  const bool served = with_type < kFloats |
                      kReduced > (weights.dtype, [&]<class T>(T) { choose<T>(weights, samples, out, generator); });
  if (!served) not_implemented("multinomial", weights.dtype);
}

void multinomial_without_replacement(const Weights& weights, int64_t samples, int64_t* out, const Target& noise,
                                     GeneratorImpl& generator) {
  const bool served = with_type < kFloats | kReduced > (weights.dtype, [&]<class T>(T) {
                                              check_weights<T>(weights);
                                              exponential(noise, 1.0, generator);
                                              choose_largest<T>(weights, samples, out, noise);
                                            });
  if (!served) not_implemented("multinomial", weights.dtype);
}

}  // namespace tn::rng
