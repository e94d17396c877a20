// Weights as a direction and a length: w = v g / |v|, with lengths along the first or the last dimension.
#include <cmath>
#include <vector>

#include "generated/slots/norm.h"
#include "kernels/common/options.h"
#include "kernels/norm/rows.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/threads.h"

namespace tn {
namespace {

// v as a matrix whose rows (first) or columns (last dimension) have one length each.
struct Groups {
  bool rows;
  int64_t count, each;

  Groups(const Tensor& v, int64_t dim) {
    TN_CHECK(dim == 0 || dim == v.dim() - 1,
             "_weight_norm_interface: fused kernels can only be applied for first or last dim, got ", dim);
    rows = dim == 0;
    count = v.size(dim);
    each = count == 0 ? 0 : v.numel() / count;
  }
};

template <class F>
void with_float(ScalarType t, F&& f) {
  if (t == ScalarType::Double) return f.template operator()<double>();
  if (t == ScalarType::Float || is_reduced_float(t)) return f.template operator()<float>();
  not_implemented("weight_norm_kernel", t);
}
ScalarType wide(ScalarType t) { return is_reduced_float(t) ? ScalarType::Float : t; }
Tensor widened(const Tensor& t, ScalarType type) { return contiguous(cast(t, type)); }
void check_count(const char* op, const char* argument, const Tensor& t, int64_t wanted) {
  TN_CHECK(t.numel() == wanted, op, ": expected ", argument, " with ", wanted, " elements, got ", t.numel());
}
int64_t grain(int64_t each) { return std::max<int64_t>(1, 8192 / std::max<int64_t>(each, 1)); }

// Calls f(begin, end) for pieces of the groups: whole rows, or columns side by side.
template <class F>
void for_groups(const Groups& g, F&& f) {
  parallel_for(0, g.count, g.rows ? grain(g.each) : std::max<int64_t>(16, grain(g.each)), f);
}

template <class T>
void lengths(const Groups& g, const T* v, T* out) {
  for_groups(g, [&](int64_t begin, int64_t end) {
    if (g.rows) {
      for (int64_t i = begin; i < end; ++i) out[i] = std::sqrt(norm::squares(v + i * g.each, g.each));
      return;
    }
    std::vector<T> sums(static_cast<size_t>(end - begin));
    for (int64_t r = 0; r < g.each; ++r) {
      const T* x = v + r * g.count + begin;
      for (int64_t i = 0; i < end - begin; ++i) sums[static_cast<size_t>(i)] += x[i] * x[i];
    }
    for (int64_t i = begin; i < end; ++i) out[i] = std::sqrt(sums[static_cast<size_t>(i - begin)]);
  });
}

// out = v * a[group] + u * b[group]; u may be null.
template <class T>
void combine(const Groups& g, const T* v, const T* a, const T* u, const T* b, T* out) {
  for_groups(g, [&](int64_t begin, int64_t end) {
    if (g.rows) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t k = i * g.each; k < (i + 1) * g.each; ++k) out[k] = v[k] * a[i] + (u ? u[k] * b[i] : T(0));
      return;
    }
    for (int64_t r = 0; r < g.each; ++r)
      for (int64_t i = begin; i < end; ++i) {
        const int64_t k = r * g.count + i;
        out[k] = v[k] * a[i] + (u ? u[k] * b[i] : T(0));
      }
  });
}

template <class T>
void products(const Groups& g, const T* x, const T* y, T* out) {
  for_groups(g, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = 0;
    if (g.rows) {
      for (int64_t i = begin; i < end; ++i) {
        double sum = 0;
        for (int64_t k = i * g.each; k < (i + 1) * g.each; ++k) sum += static_cast<double>(x[k]) * y[k];
        out[i] = static_cast<T>(sum);
      }
      return;
    }
    for (int64_t r = 0; r < g.each; ++r)
      for (int64_t i = begin; i < end; ++i) out[i] += x[r * g.count + i] * y[r * g.count + i];
  });
}

template <class T>
T* data(const Tensor& t) {
  return static_cast<T*>(t->raw_data());
}

}  // namespace

namespace native {

std::tuple<Tensor, Tensor> _weight_norm_interface(const Tensor& v, const Tensor& g, int64_t dim) {
  const Groups groups(v, dim);
  const ScalarType type = wide(v.dtype());
  check_count("_weight_norm_interface", "g", g, groups.count);
  const Tensor x = widened(v, type), length = widened(g, type);
  const Tensor norms = empty(g.sizes(), type), out = empty(v.sizes(), type);
  with_float(v.dtype(), [&]<class T>() {
    lengths(groups, data<T>(x), data<T>(norms));
    std::vector<T> scale(static_cast<size_t>(groups.count));
    for (int64_t i = 0; i < groups.count; ++i) scale[static_cast<size_t>(i)] = data<T>(length)[i] / data<T>(norms)[i];
    combine<T>(groups, data<T>(x), scale.data(), nullptr, nullptr, data<T>(out));
  });
  return {cast(out, v.dtype()), norms};
}

std::tuple<Tensor, Tensor> _weight_norm_interface_backward(const Tensor& grad_w, const Tensor& saved_v,
                                                           const Tensor& saved_g, const Tensor& saved_norms,
                                                           int64_t dim) {
  const Groups groups(saved_v, dim);
  const ScalarType type = wide(saved_v.dtype());
  constexpr const char* kOp = "_weight_norm_interface_backward";
  check_count(kOp, "grad_w", grad_w, saved_v.numel());
  check_count(kOp, "saved_g", saved_g, groups.count);
  check_count(kOp, "saved_norms", saved_norms, groups.count);
  const Tensor grad = widened(grad_w, type), v = widened(saved_v, type), g = widened(saved_g, type);
  const Tensor norms = widened(saved_norms, type);
  const Tensor grad_v = empty(saved_v.sizes(), type), grad_g = empty(saved_g.sizes(), type);
  with_float(saved_v.dtype(), [&]<class T>() {
    products(groups, data<T>(grad), data<T>(v), data<T>(grad_g));
    std::vector<T> scale(static_cast<size_t>(groups.count)), back(scale.size());
    for (int64_t i = 0; i < groups.count; ++i) {
      const auto k = static_cast<size_t>(i);
      const T n = data<T>(norms)[i], sum = data<T>(grad_g)[i];
      scale[k] = data<T>(g)[i] / n;
      back[k] = -scale[k] * sum / (n * n);
      data<T>(grad_g)[i] = sum / n;
    }
    combine<T>(groups, data<T>(grad), scale.data(), data<T>(v), back.data(), data<T>(grad_v));
  });
  return {cast(grad_v, saved_v.dtype()), cast(grad_g, saved_g.dtype())};
}

}  // namespace native
}  // namespace tn
