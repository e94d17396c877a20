// The l_p distance of two rows, and its derivative, for each kind of p.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/common/options.h"
#include "runtime/dtype.h"

namespace tn::distance {

// Partial sums that don't wait for each other.
constexpr int kLanes = 8;

template <class T, class F>
T sum_over(int64_t m, F&& term) {
  T lanes[kLanes] = {};
  int64_t k = 0;
  for (; k + kLanes <= m; k += kLanes)
    for (int l = 0; l < kLanes; ++l) lanes[l] += term(k + l);
  for (; k < m; ++k) lanes[0] += term(k);
  T sum = 0;
  for (const T lane : lanes) sum += lane;
  return sum;
}

struct Zero {
  template <class T>
  static T distance(const T* a, const T* b, int64_t m, T) {
    return sum_over<T>(m, [=](int64_t k) { return static_cast<T>(a[k] != b[k]); });
  }
  template <class T>
  static T slope(T, T, T, T) {
    return 0;
  }
};
struct One {
  template <class T>
  static T distance(const T* a, const T* b, int64_t m, T) {
    return sum_over<T>(m, [=](int64_t k) { return std::abs(a[k] - b[k]); });
  }
  template <class T>
  static T slope(T diff, T grad, T, T) {
    return grad * static_cast<T>((diff > 0) - (diff < 0));
  }
};
struct Two {
  template <class T>
  static T distance(const T* a, const T* b, int64_t m, T) {
    return std::sqrt(sum_over<T>(m, [=](int64_t k) { return (a[k] - b[k]) * (a[k] - b[k]); }));
  }
  template <class T>
  static T slope(T diff, T grad, T dist, T) {
    return dist == 0 ? 0 : grad * diff / dist;
  }
};
struct Infinite {
  template <class T>
  static T distance(const T* a, const T* b, int64_t m, T) {
    T most = 0;
    for (int64_t k = 0; k < m; ++k) {
      const T d = std::abs(a[k] - b[k]);
      if (!(d <= most)) most = d;  // NaN stays
    }
    return most;
  }
  template <class T>
  static T slope(T diff, T grad, T dist, T) {
    return std::abs(diff) == dist ? grad * static_cast<T>((diff > 0) - (diff < 0)) : 0;
  }
};
struct General {
  template <class T>
  static T distance(const T* a, const T* b, int64_t m, T p) {
    return std::pow(sum_over<T>(m, [=](int64_t k) { return std::pow(std::abs(a[k] - b[k]), p); }), 1 / p);
  }
  template <class T>
  static T slope(T diff, T grad, T dist, T p) {
    if (dist == 0 || (p < 1 && diff == 0)) return 0;
    const T sign = static_cast<T>((diff > 0) - (diff < 0));
    return sign * std::pow(std::abs(diff), p - 1) * grad / std::pow(dist, p - 1);
  }
};

// Calls f.operator()<T, Kind>() for a dtype and p.
template <class F>
void with_kind(const char* name, ScalarType t, double p, F&& f) {
  const auto pick = [&]<class T>() {
    if (p == 0) return f.template operator()<T, Zero>();
    if (p == 1) return f.template operator()<T, One>();
    if (p == 2) return f.template operator()<T, Two>();
    if (std::isinf(p)) return f.template operator()<T, Infinite>();
    return f.template operator()<T, General>();
  };
  if (t == ScalarType::Float) return pick.template operator()<float>();
  if (t == ScalarType::Double) return pick.template operator()<double>();
  not_implemented(name, t);
}

}  // namespace tn::distance
