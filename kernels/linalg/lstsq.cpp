// Least squares.
#include <cmath>
#include <limits>

#include "generated/slots/linalg.h"
#include "kernels/linalg/common.h"

namespace tn {
namespace {

using namespace linalg;

enum class Driver { Gels, Gelsy, Gelsd, Gelss };

Driver driver_of(std::optional<std::string_view> name) {
  if (!name || *name == "gelsy") return Driver::Gelsy;
  if (*name == "gels") return Driver::Gels;
  if (*name == "gelsd") return Driver::Gelsd;
  TN_CHECK(*name == "gelss", "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
  return Driver::Gelss;
}

// A of full rank: QR of it, or of its adjoint where there are more unknowns than equations.
template <class T>
void full_rank(Mat<T> a, Mat<T> x) {
  const int64_t m = a.m, n = a.n, k = std::min(m, n);
  std::vector<T> tau(static_cast<size_t>(k));
  if (m >= n) {
    qr(a, tau.data());
    apply_q(a, tau.data(), k, true, Op::Adjoint, x.block(0, 0, m, x.n));
    solve_triangular(a.block(0, 0, n, n), true, Op::None, false, true, x.block(0, 0, n, x.n));
    return;
  }
  std::vector<T> turned(static_cast<size_t>(m * n));
  const Mat<T> h(turned.data(), n, m);
  copy_adjoint(h, a);
  qr(h, tau.data());
  solve_triangular(h.block(0, 0, m, m), true, Op::Adjoint, false, true, x.block(0, 0, m, x.n));
  for (int64_t j = 0; j < x.n; ++j) std::fill(x.col(j) + m, x.col(j) + n, T(0));
  apply_q(h, tau.data(), k, true, Op::None, x);
}

// The solution of least length, through singular values. Below the solution's rows stay the residual's parts, as of QR.
template <class T>
int32_t least_length(Mat<T> a, Mat<T> x, double rcond, Real<T>* values, int64_t* rank) {
  const int64_t m = std::min(a.m, a.n), n = a.n, k = m;
  std::vector<T> triangle, tau(static_cast<size_t>(k));
  Mat<T> core = a;
  if (a.m > n) {
    if (!all_finite(a)) return kNotFinite;
    qr(a, tau.data());
    apply_q(a, tau.data(), n, true, Op::Adjoint, x);
    triangle.resize(static_cast<size_t>(n * n));
    core = Mat<T>(triangle.data(), n, n);
    copy(core, a.block(0, 0, n, n));
    keep_triangle(core, true);
  }
  std::vector<T> u_space(static_cast<size_t>(m * k)), v_space(static_cast<size_t>(k * n)),
      inner(static_cast<size_t>(k * x.n));
  const Mat<T> u(u_space.data(), m, k), vh(v_space.data(), k, n), c(inner.data(), k, x.n);
  const int32_t info = svd(core, u, values, vh);
  if (info != 0) return info;
  product(c, T(1), u, Op::Adjoint, x.block(0, 0, m, x.n), Op::None, T(0));
  const Real<T> bound = static_cast<Real<T>>(rcond) * values[0];
  *rank = 0;
  for (int64_t i = 0; i < k; ++i) {
    const bool counts = values[i] > bound;
    *rank += counts;
    for (int64_t j = 0; j < x.n; ++j) c(i, j) = counts ? c(i, j) / values[i] : T(0);
  }
  product(x.block(0, 0, n, x.n), T(1), vh, Op::Adjoint, c, Op::None, T(0));
  return 0;
}

Tensor rows_of(const Tensor& t, int64_t from, int64_t count) {
  DimVector sizes(t.sizes());
  sizes[sizes.size() - 2] = count;
  return alias_with_geometry(t, sizes, t.strides(), t.storage_offset() + from * t.stride(-2));
}
Tensor without_last(const Tensor& t) {
  const auto n = static_cast<size_t>(t.dim() - 1);
  return alias_with_geometry(t, t.sizes().slice(0, n), t.strides().slice(0, n), t.storage_offset());
}

}  // namespace

namespace native {

std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq(const Tensor& self, const Tensor& b,
                                                        std::optional<double> rcond,
                                                        std::optional<std::string_view> driver) {
  TN_CHECK(self.dim() >= 2, "torch.linalg.lstsq: input must have at least 2 dimensions.");
  TN_CHECK(b.dim() >= 1, "torch.linalg.lstsq: other must have at least 1 dimension.");
  TN_CHECK(self.dtype() == b.dtype(),
           "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype ",
           scalar_type_name(self.dtype()), " and other's dtype ", scalar_type_name(b.dtype()));
  const int64_t difference = self.dim() - b.dim();
  TN_CHECK(
      difference == 0 || difference == 1,
      "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1");
  const bool vector = is_vector_rhs(self, b);
  const int64_t m = self.size(-2), n = self.size(-1), nrhs = vector ? 1 : b.size(-1);
  TN_CHECK(b.size(vector ? -1 : -2) == m, "torch.linalg.lstsq: input.size(-2) should match other.size(",
           vector ? -1 : -2, ")");
  TN_CHECK(is_floating(real_of(self.dtype())) && self.itemsize() >= 4,
           "This function doesn't handle types other than float and double");
  const Driver how = driver_of(driver);
  const double tolerance =
      rcond.value_or(static_cast<double>(std::max(m, n)) * (real_of(self.dtype()) == ScalarType::Float
                                                                ? std::numeric_limits<float>::epsilon()
                                                                : std::numeric_limits<double>::epsilon()));
  const Tensor right = !vector ? b : [&] {
    DimVector sizes(b.sizes()), strides(b.strides());
    sizes.push_back(1);
    strides.push_back(1);
    return alias_with_geometry(b, sizes, strides, b.storage_offset());
  }();
  const DimVector batch = infer_size(batch_of(self), batch_of(right));
  const Tensor a = columns_like(joined(batch, {m, n}), self);
  const int64_t rows = std::max(m, n);
  const Tensor x =
      empty_strided(joined(batch, {rows, nrhs}), column_strides(joined(batch, {rows, nrhs})), self.dtype());
  zero(x);
  copy_into(rows_of(x, 0, m), right);
  const int64_t count = product(batch), k = std::min(m, n);
  const bool has_rank = how != Driver::Gels, has_values = how == Driver::Gelsd || how == Driver::Gelss;
  const Tensor rank = empty(has_rank ? batch : DimVector(1, 0), ScalarType::Long);
  const Tensor values = empty(joined(batch, {k}), real_of(self.dtype()));
  const Tensor info = empty(batch, ScalarType::Int);
  zero(info);
  if (has_rank) zero(rank);
  with_element("linalg_lstsq_cpu", self.dtype(), [&]<class T>() {
    if (k == 0 || nrhs == 0) {
      if (k == 0) zero(x);
      if (nrhs > 0 || k == 0) return;
    }
    for_batch(count, 20 * m * n * k, [&](int64_t i) {
      if (how == Driver::Gels) {
        full_rank(matrix<T>(a, i), matrix<T>(x, i));
        return;
      }
      static_cast<int32_t*>(info->raw_data())[i] =
          least_length(matrix<T>(a, i), matrix<T>(x, i), tolerance, static_cast<Real<T>*>(values->raw_data()) + i * k,
                       rank.data<int64_t>() + i);
    });
  });
  check_errors(info, "torch.linalg.lstsq", count == 1 && batch.empty());
  // The residual's sum of squares, where the equations determine the solution.
  bool full = true;
  for (int64_t i = 0; has_rank && i < count; ++i) full = full && rank.data<int64_t>()[i] == n;
  Tensor residuals = empty({0}, real_of(self.dtype()));
  if (how != Driver::Gelsy && m > n && full && self.numel() > 0) {
    residuals = empty(joined(batch, {nrhs}), real_of(self.dtype()));
    with_element("linalg_lstsq_cpu", self.dtype(), [&]<class T>() {
      Real<T>* to = static_cast<Real<T>*>(residuals->raw_data());
      for (int64_t i = 0; i < count; ++i) {
        const Mat<T> part = matrix<T>(x, i);
        for (int64_t j = 0; j < nrhs; ++j) {
          Real<T> sum = 0;
          for (int64_t r = n; r < m; ++r) sum += square(part(r, j));
          to[i * nrhs + j] = sum;
        }
      }
    });
  }
  Tensor solution = rows_of(x, 0, n);
  if (vector) solution = without_last(solution);
  return {solution, residuals, rank, has_values ? values : empty({0}, real_of(self.dtype()))};
}

}  // namespace native
}  // namespace tn
