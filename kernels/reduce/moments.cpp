// Variance and standard deviation, with and without the mean.
#include <algorithm>
#include <cmath>
#include <limits>

#include "generated/slots/reduce.h"
#include "kernels/common/moved.h"
#include "kernels/reduce/load.h"
#include "kernels/reduce/spread.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/warn.h"

namespace tn {
namespace {

using namespace reduce;

Spread joined(const Spread& a, double an, const Spread& b, double bn) {
  const double n = an + bn, step = b.mean - a.mean;
  return {a.mean + step * bn / n, a.squares + b.squares + step * step * an * bn / n};
}

template <class T>
Spread spread_of_long(const T* x, int64_t n) {
  const int64_t parts = n / kRun;
  if (parts < 2) return spread_of(x, n);
  const auto partial = std::make_unique<Spread[]>(static_cast<size_t>(parts));
  const auto start = [&](int64_t i) { return n / parts * i + std::min(i, n % parts); };
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      partial[static_cast<size_t>(i)] = spread_of(x + start(i), start(i + 1) - start(i));
  });
  Spread all = partial[0];
  for (int64_t i = 1; i < parts; ++i)
    all = joined(all, static_cast<double>(start(i)), partial[static_cast<size_t>(i)],
                 static_cast<double>(start(i + 1) - start(i)));
  return all;
}

// A float or double tensor, reduced dimensions moved to the end where the walk needs it. f(output number, spread).
template <class T, class F>
void walk(const Tensor& given, uint64_t mask, F&& f) {
  Tensor x = given;
  Plan plan;
  make_plan(x, mask, &plan);
  if (plan.num_reduced > 1 || (!plan.columns && plan.reduced[0].in != 1 && plan.reduced[0].size > 1)) {
    x = with_masked_last(x, mask);
    const T* p = x.data<T>();
    const int64_t n = plan.count;
    if (plan.outputs == 1) return f(0, spread_of_long(p, n));
    return parallel_for(0, plan.outputs, std::max<int64_t>(1, kRun / n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) f(i, spread_of(p + i * n, n));
    });
  }
  const T* p = x.data<T>();
  const Dim inner = plan.reduced[0];
  if (!plan.columns || plan.count == 1) {
    if (plan.outputs == 1) return f(0, spread_of_long(p, plan.count));
    return parallel_for(0, plan.outputs, std::max<int64_t>(1, kRun / plan.count), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t in, out;
        plan.locate(i, &in, &out);
        f(out, spread_of(p + in, plan.count));
      }
    });
  }
  const Dim first = plan.kept[0];
  const int64_t blocks = (first.size + kSpreadColumns - 1) / kSpreadColumns;
  parallel_for(0, plan.outputs / first.size * blocks, 1, [&](int64_t begin, int64_t end) {
    Spread spreads[kSpreadColumns];
    for (int64_t t = begin; t < end; ++t) {
      const int64_t start = t % blocks * kSpreadColumns, cols = std::min(kSpreadColumns, first.size - start);
      int64_t in, out;
      plan.locate(t / blocks * first.size + start, &in, &out);
      spread_of_columns(p + in, inner.in, plan.count, cols, spreads);
      for (int64_t j = 0; j < cols; ++j) f(out + j * first.out, spreads[j]);
    }
  });
}

Tensor part_of_complex(const Tensor& self, int64_t which) {
  DimVector strides(self.strides());
  for (int64_t& s : strides) s *= 2;
  const Tensor part = alias_with_geometry(self, {}, {}, 0);
  part->set_dtype(real_of(self.dtype()));
  part->set_geometry(self.sizes(), strides, 2 * self.storage_offset() + which);
  return part;
}

void run(Outputs& outs, const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool root,
         bool with_mean) {
  const Tensor& out = outs[0];
  const uint64_t mask = mask_of(self, dim);
  const double count = out.numel() ? static_cast<double>(self.numel()) / static_cast<double>(out.numel()) : 0;
  const double divisor = std::max(0.0, count - (correction ? correction->to_double() : 1.0));
  if (divisor <= 0 && out.numel() > 0)
    warn(str(root ? "std" : "var", with_mean ? "_mean" : "",
             "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input "
             "numel divided by output numel)."));
  if (out.numel() == 0) return;
  if (self.numel() == 0) {
    fill(out, std::nan(""));
    if (with_mean) fill(outs[1], std::nan(""));
    return;
  }
  const auto finish = [&](double variance) { return root ? std::sqrt(variance) : variance; };
  if (is_complex(self.dtype())) {
    const ScalarType real = out.dtype();
    const auto of = [&]<class T>() {
      T* to = out.data<T>();
      const auto total = std::make_unique<double[]>(static_cast<size_t>(out.numel()));
      for (int64_t which : {0, 1})
        walk<T>(part_of_complex(self, which), mask, [&](int64_t i, const Spread& s) {
          total[static_cast<size_t>(i)] += s.squares / divisor;
          if (with_mean) reinterpret_cast<T*>(outs[1]->raw_data())[2 * i + which] = static_cast<T>(s.mean);
        });
      for (int64_t i = 0; i < out.numel(); ++i) to[i] = static_cast<T>(finish(total[static_cast<size_t>(i)]));
    };
    return real == ScalarType::Double ? of.template operator()<double>() : of.template operator()<float>();
  }
  const Tensor x = is_reduced_float(self.dtype()) ? cast(self, ScalarType::Float) : self;
  visit(out.dtype(), [&]<class O>() {
    O* to = out.data<O>();
    O* mean = with_mean ? outs[1].data<O>() : nullptr;
    const auto store = [&](int64_t i, const Spread& s) {
      to[i] = convert<O>(finish(s.squares / divisor));
      if (mean) mean[i] = convert<O>(s.mean);
    };
    if (x.dtype() == ScalarType::Double) walk<double>(x, mask, store);
    else walk<float>(x, mask, store);
  });
}

void set(Outputs& outs, const char* name, const Tensor& self, OptionalIntArrayRef dim, bool keepdim, bool with_mean) {
  TN_CHECK(is_floating(self.dtype()) || is_complex(self.dtype()), name,
           " only support floating point and complex dtypes");
  const DimVector sizes = reduced_sizes(self.sizes(), mask_of(self, dim), keepdim);
  outs.set(0, sizes, real_of(self.dtype()), self.device());
  if (with_mean) outs.set(1, sizes, self.dtype(), self.device());
}

}  // namespace

namespace slots {

void var_correction_meta(Outputs& outs, const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>&,
                         bool keepdim) {
  set(outs, "std and var", self, dim, keepdim, false);
}
void var_correction_cpu(Outputs& outs, const Tensor& self, OptionalIntArrayRef dim,
                        const std::optional<Scalar>& correction, bool) {
  run(outs, self, dim, correction, false, false);
}
void std_correction_meta(Outputs& outs, const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>&,
                         bool keepdim) {
  set(outs, "std and var", self, dim, keepdim, false);
}
void std_correction_cpu(Outputs& outs, const Tensor& self, OptionalIntArrayRef dim,
                        const std::optional<Scalar>& correction, bool) {
  run(outs, self, dim, correction, true, false);
}
void var_mean_correction_meta(Outputs& outs, const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>&,
                              bool keepdim) {
  set(outs, "var_mean", self, dim, keepdim, true);
}
void var_mean_correction_cpu(Outputs& outs, const Tensor& self, OptionalIntArrayRef dim,
                             const std::optional<Scalar>& correction, bool) {
  run(outs, self, dim, correction, false, true);
}
void std_mean_correction_meta(Outputs& outs, const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>&,
                              bool keepdim) {
  set(outs, "std_mean", self, dim, keepdim, true);
}
void std_mean_correction_cpu(Outputs& outs, const Tensor& self, OptionalIntArrayRef dim,
                             const std::optional<Scalar>& correction, bool) {
  run(outs, self, dim, correction, true, true);
}

}  // namespace slots
}  // namespace tn
