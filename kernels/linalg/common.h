// What the operators on batches of matrices share: upstream's argument checks, column-major results, the loop over the
// batch.
#pragma once
#include <algorithm>
#include <string_view>
#include <vector>

#include "kernels/common/options.h"
#include "kernels/linalg/dense.h"
#include "runtime/copy.h"
#include "runtime/shape.h"
#include "runtime/slots.h"
#include "runtime/threads.h"

namespace tn::linalg {

// ---- checks.cpp ----

void check_matrix(const Tensor& t, std::string_view op, std::string_view argument = "A");
void check_square(const Tensor& t, std::string_view op, std::string_view argument = "A");
void check_floating_or_complex(const Tensor& t, std::string_view op, bool low_precision = true);
// For the equation AX = B, or XA = B if !left.
void check_equation(const Tensor& a, const Tensor& b, bool left, std::string_view op);
// As the older solvers say it.
void check_solver(const Tensor& b, const Tensor& a, std::string_view op);
// Raises for the first code that isn't zero, with the wording that the operator's name calls for.
void check_errors(const Tensor& info, std::string_view op, bool is_matrix);
void warn_deprecated(std::string_view old, std::string_view now);

// ---- shapes ----

inline IntView batch_of(const Tensor& t) { return t.sizes().slice(0, static_cast<size_t>(t.dim() - 2)); }
inline DimVector joined(IntView batch, std::initializer_list<int64_t> last) {
  DimVector out(batch);
  for (const int64_t v : last) out.push_back(v);
  return out;
}
// Strides of matrices that lie column by column, one after the other.
DimVector column_strides(IntView sizes);
void set_columns(Outputs& outs, int i, IntView sizes, ScalarType dtype, Device device);
// A new tensor in that layout, with the values of one that may have to be broadcast.
Tensor columns_like(IntView sizes, const Tensor& values);
// For each matrix of the batch `full` the number of that of a tensor whose batch is `own`, broadcast.
std::vector<int64_t> batch_map(IntView full, IntView own);
bool is_vector_rhs(const Tensor& a, const Tensor& b);

template <class T>
Mat<T> matrix(const Tensor& t, int64_t i) {
  const int64_t m = t.size(-2), n = t.size(-1);
  return {static_cast<T*>(t->raw_data()) + i * m * n, m, n, std::max<int64_t>(m, 1)};
}
// Adjacent rows of vectors.
template <class T>
T* vector_of(const Tensor& t, int64_t i) {
  return static_cast<T*>(t->raw_data()) + i * (t.dim() == 0 ? 1 : t.size(-1));
}

template <class F>
void with_element(std::string_view name, ScalarType t, F&& f) {
  switch (t) {
    case ScalarType::Float: return f.template operator()<float>();
    case ScalarType::Double: return f.template operator()<double>();
    case ScalarType::ComplexFloat: return f.template operator()<std::complex<float>>();
    case ScalarType::ComplexDouble: return f.template operator()<std::complex<double>>();
    default: not_implemented(name, t);
  }
}

// f(i) for each matrix. Matrices are small or few: `work`, of one of them in operations, tells how many make a piece.
template <class F>
void for_batch(int64_t count, int64_t work, F&& f) {
  const int64_t grain = std::max<int64_t>(1, 30000 / std::max<int64_t>(work, 1));
  parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

}  // namespace tn::linalg
