// LU with row exchanges, and what is computed from it: solutions, inverses, determinants.
#include <cmath>

#include "generated/slots/linalg.h"
#include "kernels/linalg/common.h"

namespace tn {
namespace {

using namespace linalg;

int32_t* ints(const Tensor& t) { return static_cast<int32_t*>(t->raw_data()); }

// `out` holds the matrices; info may be undefined.
void factor(const Tensor& out, const Tensor& pivots, const Tensor& info) {
  const int64_t count = product(batch_of(out)), m = out.size(-2), n = out.size(-1), k = std::min(m, n);
  with_element("lu_cpu", out.dtype(), [&]<class T>() {
    for_batch(count, m * n * k, [&](int64_t i) {
      const int32_t code = lu(matrix<T>(out, i), ints(pivots) + i * k);
      if (info.defined()) ints(info)[i] = code;
    });
  });
}

void check_pivoting(bool pivot) {
  TN_CHECK(pivot, "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
}

void set_pivots(Outputs& outs, int i, const Tensor& a) {
  outs.set(i, joined(batch_of(a), {std::min(a.size(-2), a.size(-1))}), ScalarType::Int, a.device());
}

// Which row of A stands in row i of L U.
std::vector<int64_t> order_of(const int32_t* pivots, int64_t k, int64_t m) {
  std::vector<int64_t> order(static_cast<size_t>(m));
  for (int64_t i = 0; i < m; ++i) order[static_cast<size_t>(i)] = i;
  for (int64_t i = 0; i < k; ++i) std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(pivots[i] - 1)]);
  return order;
}

bool is_odd(const int32_t* pivots, int64_t n) {
  bool odd = false;
  for (int64_t i = 0; i < n; ++i) odd ^= pivots[i] != i + 1;
  return odd;
}

// P, L and U have rows that are adjacent.
template <class T>
void unpack(Mat<T> from, T* l, T* u) {
  const int64_t m = from.m, n = from.n, k = std::min(m, n);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < k; ++j) l[i * k + j] = i > j ? from(i, j) : i == j ? T(1) : T(0);
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < n; ++j) u[i * n + j] = i <= j ? from(i, j) : T(0);
}

void unpack_pivots(const Tensor& p, const Tensor& pivots, int64_t m) {
  zero(p);
  const int64_t k = pivots.size(-1);
  const size_t item = p.itemsize();
  for (int64_t b = 0; b < p.numel() / std::max<int64_t>(m * m, 1); ++b) {
    const std::vector<int64_t> order = order_of(ints(pivots) + b * k, k, m);
    char* base = static_cast<char*>(p->raw_data()) + static_cast<size_t>(b * m * m) * item;
    for (int64_t i = 0; i < m; ++i)
      store_scalar(1, p.dtype(), base + static_cast<size_t>(order[static_cast<size_t>(i)] * m + i) * item);
  }
}

void set_parts(Outputs& outs, const Tensor& a, bool p, bool data) {
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const auto set = [&](int i, bool wanted, int64_t rows, int64_t cols) {
    if (wanted) outs.set(i, joined(batch_of(a), {rows, cols}), a.dtype(), a.device());
    else outs.set(i, {0}, a.dtype(), a.device());
  };
  set(0, p, m, m);
  set(1, data, m, k);
  set(2, data, k, n);
}

// x = A^-1 x, or x A^-1 if !left, by A's factors; `adjoint`: of A^H. Small right sides are solved as they are.
template <class T>
void solve_one(Mat<T> factors, const int32_t* pivots, bool left, bool adjoint, Mat<T> x) {
  if (left) {
    lu_solve(factors, pivots, adjoint ? Op::Adjoint : Op::None, x);
    return;
  }
  // X A = B is A^H X^H = B^H.
  std::vector<T> space(static_cast<size_t>(x.m * x.n));
  const Mat<T> turned(space.data(), x.n, x.m);
  copy_adjoint(turned, x);
  lu_solve(factors, pivots, adjoint ? Op::None : Op::Adjoint, turned);
  copy_adjoint(x, turned);
}

// out holds B, column by column.
void solve(const Tensor& out, const Tensor& factors, const Tensor& pivots, bool left, bool adjoint, const char* name) {
  if (out.numel() == 0) return;
  const std::vector<int64_t> which = batch_map(batch_of(out), batch_of(factors));
  const int64_t n = factors.size(-1);
  with_element(name, out.dtype(), [&]<class T>() {
    for_batch(static_cast<int64_t>(which.size()), 2 * n * out.numel() / static_cast<int64_t>(which.size()),
              [&](int64_t i) {
                const int64_t of = which[static_cast<size_t>(i)];
                solve_one(matrix<T>(factors, of), ints(pivots) + of * n, left, adjoint, matrix<T>(out, i));
              });
  });
}

Tensor unsqueezed(const Tensor& t) {
  DimVector sizes(t.sizes()), strides(t.strides());
  sizes.push_back(1);
  strides.push_back(1);
  return alias_with_geometry(t, sizes, strides, t.storage_offset());
}

}  // namespace

namespace slots {

void linalg_lu_factor_ex_meta(Outputs& outs, const Tensor& a, bool, bool) {
  TN_CHECK(a.dim() >= 2, "torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: ", a.sizes(),
           " instead");
  set_columns(outs, 0, a.sizes(), a.dtype(), a.device());
  set_pivots(outs, 1, a);
  outs.set(2, batch_of(a), ScalarType::Int, a.device());
}
void linalg_lu_factor_ex_cpu(Outputs& outs, const Tensor& a, bool pivot, bool check) {
  check_pivoting(pivot);
  copy_into(outs[0], a);
  factor(outs[0], outs[1], outs[2]);
  if (check) check_errors(outs[2], "torch.linalg.lu_factor_ex", a.dim() == 2);
}

void linalg_lu_meta(Outputs& outs, const Tensor& a, bool pivot) {
  TN_CHECK(a.dim() >= 2, "linalg.lu: Expected tensor with 2 or more dimensions. Got size: ", a.sizes(), " instead");
  set_parts(outs, a, pivot, true);
}
void linalg_lu_cpu(Outputs& outs, const Tensor& a, bool pivot) {
  check_pivoting(pivot);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const Tensor work = columns_like(a.sizes(), a), pivots = empty(joined(batch_of(a), {k}), ScalarType::Int);
  factor(work, pivots, Tensor());
  with_element("lu_cpu", a.dtype(), [&]<class T>() {
    for_batch(product(batch_of(a)), m * n, [&](int64_t i) {
      unpack(matrix<T>(work, i), static_cast<T*>(outs[1]->raw_data()) + i * m * k,
             static_cast<T*>(outs[2]->raw_data()) + i * k * n);
    });
  });
  unpack_pivots(outs[0], pivots, m);
}

void lu_unpack_meta(Outputs& outs, const Tensor& data, const Tensor& pivots, bool unpack_data, bool with_pivots) {
  TN_CHECK(data.dim() >= 2, "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: ", data.sizes(),
           " instead");
  TN_CHECK(
      !with_pivots || pivots.dtype() == ScalarType::Int,
      "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this function "
      "is intended to be used with the output produced by torch.linalg.lu_factor");
  set_parts(outs, data, with_pivots, unpack_data);
}
void lu_unpack_cpu(Outputs& outs, const Tensor& data, const Tensor& pivots, bool unpack_data, bool with_pivots) {
  const int64_t m = data.size(-2), n = data.size(-1), k = std::min(m, n);
  if (data.numel() == 0 && !with_pivots) return;
  if (unpack_data) {
    const Tensor work = columns_like(data.sizes(), data);
    const int64_t count = product(batch_of(data));
    const auto run = [&]<class T>() {
      for_batch(count, m * n, [&](int64_t i) {
        unpack(matrix<T>(work, i), static_cast<T*>(outs[1]->raw_data()) + i * m * k,
               static_cast<T*>(outs[2]->raw_data()) + i * k * n);
      });
    };
    if (is_integral(data.dtype(), false) && data.itemsize() == 8) run.template operator()<int64_t>();
    else if (data.dtype() == ScalarType::Int) run.template operator()<int32_t>();
    else with_element("lu_unpack", data.dtype(), run);
  }
  if (!with_pivots) return;
  const Tensor given = contiguous(pivots);
  for (int64_t i = 0; i < given.numel(); ++i)
    TN_CHECK(ints(given)[i] >= 1 && ints(given)[i] <= m,
             "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
             "Did you properly pass the result of lu_factor?");
  unpack_pivots(outs[0], given, m);
}

void linalg_lu_solve_meta(Outputs& outs, const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool) {
  check_floating_or_complex(lu, "torch.linalg.lu_solve");
  TN_CHECK(lu.dtype() == b.dtype(), "linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type ",
           scalar_type_name(lu.dtype()), " and B of type ", scalar_type_name(b.dtype()), " instead");
  TN_CHECK(pivots.dtype() == ScalarType::Int, "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32");
  check_square(lu, "torch.linalg.lu_solve");
  check_equation(lu, b, left, "linalg.lu_solve");
  TN_CHECK(lu.size(-1) == pivots.size(-1),
           "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix");
  TN_CHECK(lu.sizes().slice(0, static_cast<size_t>(lu.dim() - 1)) == pivots.sizes(),
           "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape ",
           pivots.sizes(), " instead");
  const DimVector sizes = joined(infer_size(batch_of(b), batch_of(lu)), {b.size(-2), b.size(-1)});
  if (left) set_columns(outs, 0, sizes, b.dtype(), b.device());
  else outs.set(0, sizes, b.dtype(), b.device());
}
void linalg_lu_solve_cpu(Outputs& outs, const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left,
                         bool adjoint) {
  const Tensor work = left ? outs[0] : columns_like(outs[0].sizes(), b);
  if (left) copy_into(work, b);
  solve(work, columns_like(lu.sizes(), lu), contiguous(pivots), left, adjoint, "linalg.lu_solve_cpu");
  if (!left) copy_into(outs[0], work);
}

void _linalg_solve_ex_meta(Outputs& outs, const Tensor& a, const Tensor& b, bool left, bool) {
  check_floating_or_complex(a, "linalg.solve");
  TN_CHECK(a.dtype() == b.dtype(), "linalg.solve: Expected A and B to have the same dtype, but found A of type ",
           scalar_type_name(a.dtype()), " and B of type ", scalar_type_name(b.dtype()), " instead");
  check_matrix(a, "linalg.solve");
  const bool vector = is_vector_rhs(a, b);
  const Tensor right = vector ? unsqueezed(b) : b;
  check_equation(a, right, left, "linalg.solve");
  const DimVector batch = infer_size(batch_of(right), batch_of(a));
  TN_CHECK(left || !vector,
           "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case "
           "linalg.solve is equivalent to B / A.squeeze(-1)");
  const DimVector sizes = vector ? joined(batch, {right.size(-2)}) : joined(batch, {right.size(-2), right.size(-1)});
  // Upstream's layout of vectors too is that of a column-major matrix.
  if (left) set_columns(outs, 0, sizes, b.dtype(), b.device());
  else outs.set(0, sizes, b.dtype(), b.device());
  set_columns(outs, 1, a.sizes(), a.dtype(), a.device());
  outs.set(2, a.sizes().slice(0, static_cast<size_t>(a.dim() - 1)), ScalarType::Int, a.device());
  outs.set(3, batch_of(a), ScalarType::Int, a.device());
}
void _linalg_solve_ex_cpu(Outputs& outs, const Tensor& a, const Tensor& b, bool left, bool check) {
  copy_into(outs[1], a);
  factor(outs[1], outs[2], outs[3]);
  const bool vector = is_vector_rhs(a, b);
  const Tensor target = vector ? unsqueezed(outs[0]) : outs[0];
  const Tensor work = columns_like(target.sizes(), vector ? unsqueezed(b) : b);
  solve(work, outs[1], outs[2], left, false, "linalg_solve");
  copy_into(target, work);
  if (check) check_errors(outs[3], "torch.linalg.solve_ex", a.dim() == 2);
}

void linalg_inv_ex_meta(Outputs& outs, const Tensor& a, bool) {
  check_square(a, "linalg.inv");
  check_floating_or_complex(a, "linalg.inv", false);
  set_columns(outs, 0, a.sizes(), a.dtype(), a.device());
  outs.set(1, batch_of(a), ScalarType::Int, a.device());
}
void linalg_inv_ex_cpu(Outputs& outs, const Tensor& a, bool check) {
  const int64_t n = a.size(-1);
  const Tensor work = columns_like(a.sizes(), a);
  with_element("linalg_inv", a.dtype(), [&]<class T>() {
    for_batch(product(batch_of(a)), n * n * n * 2, [&](int64_t i) {
      std::vector<int32_t> pivots(static_cast<size_t>(n));
      const Mat<T> factors = matrix<T>(work, i), out = matrix<T>(outs[0], i);
      ints(outs[1])[i] = lu(factors, pivots.data());
      set_identity(out);
      lu_solve(factors, pivots.data(), Op::None, out);
    });
  });
  if (check) check_errors(outs[1], "linalg.inv_ex", a.dim() == 2);
}

void _linalg_det_meta(Outputs& outs, const Tensor& a) {
  check_square(a, "linalg.det");
  check_floating_or_complex(a, "linalg.det");
  outs.set(0, batch_of(a), a.dtype(), a.device());
  set_columns(outs, 1, a.sizes(), a.dtype(), a.device());
  set_pivots(outs, 2, a);
}
void _linalg_det_cpu(Outputs& outs, const Tensor& a) {
  copy_into(outs[1], a);
  factor(outs[1], outs[2], Tensor());
  const int64_t n = a.size(-1);
  with_element("lu_cpu", a.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < outs[0].numel(); ++i) {
      const Mat<T> factors = matrix<T>(outs[1], i);
      T value = is_odd(ints(outs[2]) + i * n, n) ? T(-1) : T(1);
      for (int64_t k = 0; k < n; ++k) value *= factors(k, k);
      static_cast<T*>(outs[0]->raw_data())[i] = value;
    }
  });
}

void _linalg_slogdet_meta(Outputs& outs, const Tensor& a) {
  check_square(a, "linalg.slogdet");
  check_floating_or_complex(a, "linalg.slogdet", false);
  outs.set(0, batch_of(a), a.dtype(), a.device());
  outs.set(1, batch_of(a), real_of(a.dtype()), a.device());
  set_columns(outs, 2, a.sizes(), a.dtype(), a.device());
  set_pivots(outs, 3, a);
}
void _linalg_slogdet_cpu(Outputs& outs, const Tensor& a) {
  copy_into(outs[2], a);
  factor(outs[2], outs[3], Tensor());
  const int64_t n = a.size(-1);
  with_element("lu_cpu", a.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < outs[0].numel(); ++i) {
      const Mat<T> factors = matrix<T>(outs[2], i);
      T sign = is_odd(ints(outs[3]) + i * n, n) ? T(-1) : T(1);
      Real<T> log = 0;
      for (int64_t k = 0; k < n; ++k) {
        const T v = factors(k, k);
        const Real<T> size = std::abs(v);
        log += std::log(size);
        sign *= size == 0 ? T(0) : v / size;
      }
      static_cast<T*>(outs[0]->raw_data())[i] = sign;
      static_cast<Real<T>*>(outs[1]->raw_data())[i] = log;
    }
  });
}

}  // namespace slots
}  // namespace tn
