// cdist: every row of one matrix against every row of another, in batches.
#include <cstring>

#include "generated/slots/distance.h"
#include "generated/slots/view.h"
#include "kernels/distance/lp.h"
#include "runtime/copy.h"
#include "runtime/shape.h"
#include "runtime/threads.h"

namespace tn::native {
namespace {

struct Problem {
  DimVector batch;
  int64_t batches, rows1, rows2, width;
};

Problem problem_of(const Tensor& x1, const Tensor& x2) {
  const IntView all1 = x1.sizes(), all2 = x2.sizes();
  Problem p;
  p.batch = infer_size(all1.slice(0, all1.size() - 2), all2.slice(0, all2.size() - 2));
  p.batches = product(p.batch);
  p.rows1 = x1.size(-2);
  p.rows2 = x2.size(-2);
  p.width = x1.size(-1);
  return p;
}

DimVector with(const DimVector& batch, int64_t rows, int64_t columns) {
  DimVector shape(batch);
  shape.push_back(rows);
  shape.push_back(columns);
  return shape;
}

// The operand as dense matrices for every batch.
Tensor dense(const Tensor& x, const Problem& p) {
  return contiguous(expand(x, with(p.batch, x.size(-2), p.width), false));
}

}  // namespace

Tensor _cdist_forward(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t>) {
  TN_CHECK(x1.dim() >= 2, "cdist only supports at least 2D tensors, X1 got: ", x1.dim(), "D");
  TN_CHECK(x2.dim() >= 2, "cdist only supports at least 2D tensors, X2 got: ", x2.dim(), "D");
  TN_CHECK(is_floating(x1.dtype()),
           "cdist only supports floating-point dtypes, X1 got: ", scalar_type_name(x1.dtype()));
  TN_CHECK(is_floating(x2.dtype()),
           "cdist only supports floating-point dtypes, X2 got: ", scalar_type_name(x2.dtype()));
  TN_CHECK(x1.size(-1) == x2.size(-1), "X1 and X2 must have the same number of columns. X1: ", x1.size(-1),
           " X2: ", x2.size(-1));
  TN_CHECK(p >= 0, "cdist only supports non-negative p values");
  TN_CHECK(x1.dtype() == x2.dtype(), "cdist: expected X1 and X2 of the same dtype, got ", scalar_type_name(x1.dtype()),
           " and ", scalar_type_name(x2.dtype()));
  const Problem at = problem_of(x1, x2);
  const Tensor out = empty(with(at.batch, at.rows1, at.rows2), x1.dtype(), x1.device());
  if (out.is_meta() || out.numel() == 0) return out;
  const Tensor a = dense(x1, at), b = dense(x2, at);
  distance::with_kind("cdist", x1.dtype(), p, [&]<class T, class Kind>() {
    const T* const left = a.data<T>();
    const T* const right = b.data<T>();
    T* const to = out.data<T>();
    const int64_t rows = at.batches * at.rows1,
                  grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, at.rows2 * at.width));
    parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* const other = right + r / at.rows1 * at.rows2 * at.width;
        for (int64_t j = 0; j < at.rows2; ++j)
          to[r * at.rows2 + j] = Kind::distance(left + r * at.width, other + j * at.width, at.width, static_cast<T>(p));
      }
    });
  });
  return out;
}

Tensor _cdist_backward(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p, const Tensor& cdist) {
  const Problem at = problem_of(x1, x2);
  const Tensor out = empty(with(at.batch, at.rows1, at.width), x1.dtype(), x1.device());
  if (out.is_meta() || out.numel() == 0) return out;
  std::memset(out->data(), 0, static_cast<size_t>(out.numel()) * out.itemsize());
  if (at.rows2 == 0) return out;
  const DimVector pairs = with(at.batch, at.rows1, at.rows2);
  const Tensor a = dense(x1, at), b = dense(x2, at), g = contiguous(expand(grad, pairs, false)),
               d = contiguous(expand(cdist, pairs, false));
  distance::with_kind("cdist_backward", x1.dtype(), p, [&]<class T, class Kind>() {
    const T *const left = a.data<T>(), *const right = b.data<T>(), *const grads = g.data<T>(),
                   *const distances = d.data<T>();
    T* const to = out.data<T>();
    const int64_t rows = at.batches * at.rows1,
                  grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, at.rows2 * at.width));
    parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T *const row = left + r * at.width, *const other = right + r / at.rows1 * at.rows2 * at.width;
        T* const sum = to + r * at.width;
        for (int64_t j = 0; j < at.rows2; ++j) {
          const T gradient = grads[r * at.rows2 + j], distance = distances[r * at.rows2 + j];
          for (int64_t k = 0; k < at.width; ++k)
            sum[k] += Kind::slope(row[k] - other[j * at.width + k], gradient, distance, static_cast<T>(p));
        }
      }
    });
  });
  return out;
}

}  // namespace tn::native
