// Triangular systems, and the symmetric ones through L D L^T.
#include "generated/slots/linalg.h"
#include "kernels/linalg/common.h"

namespace tn {
namespace {

using namespace linalg;

struct Triangular {
  bool upper, left, unit;
  Op op = Op::None;
};

// out holds the right sides.
void solve(const Tensor& out, const Tensor& a, const Triangular& how) {
  const Tensor factors = columns_like(a.sizes(), a);
  const int64_t n = a.size(-1), count = product(batch_of(out));
  const std::vector<int64_t> which = batch_map(batch_of(out), batch_of(a));
  with_element("triangular_solve_cpu", out.dtype(), [&]<class T>() {
    if (out.numel() == 0) return;
    for_batch(count, n * out.numel() / count, [&](int64_t i) {
      solve_triangular(matrix<T>(factors, which[static_cast<size_t>(i)]), how.upper, how.op, how.unit, how.left,
                       matrix<T>(out, i));
    });
  });
}

}  // namespace

namespace slots {

void linalg_solve_triangular_meta(Outputs& outs, const Tensor& self, const Tensor& b, bool, bool left, bool) {
  check_equation(self, b, left, "linalg.solve_triangular");
  const DimVector batch = infer_size(batch_of(b), batch_of(self));
  set_columns(outs, 0, joined(batch, {b.size(-2), b.size(-1)}), self.dtype(), self.device());
}
void linalg_solve_triangular_cpu(Outputs& outs, const Tensor& self, const Tensor& b, bool upper, bool left,
                                 bool unitriangular) {
  copy_into(outs[0], b);
  solve(outs[0], self, {upper, left, unitriangular});
}

void triangular_solve_meta(Outputs& outs, const Tensor& self, const Tensor& a, bool, bool, bool) {
  TN_CHECK(self.dim() >= 2, "torch.triangular_solve: Expected b to have at least 2 dimensions, but it has ", self.dim(),
           " dimensions instead");
  TN_CHECK(a.dim() >= 2, "torch.triangular_solve: Expected A to have at least 2 dimensions, but it has ", a.dim(),
           " dimensions instead");
  check_solver(self, a, "triangular_solve");
  const DimVector batch = infer_size(batch_of(self), batch_of(a));
  set_columns(outs, 0, joined(batch, {self.size(-2), self.size(-1)}), self.dtype(), self.device());
  set_columns(outs, 1, joined(batch, {a.size(-2), a.size(-1)}), a.dtype(), a.device());
}
void triangular_solve_cpu(Outputs& outs, const Tensor& self, const Tensor& a, bool upper, bool transpose,
                          bool unitriangular) {
  warn_deprecated("torch.triangular_solve", "torch.linalg.solve_triangular");
  copy_into(outs[0], self);
  copy_into(outs[1], a);
  solve(outs[0], outs[1], {upper, true, unitriangular, transpose ? Op::Transpose : Op::None});
}

void linalg_ldl_factor_ex_meta(Outputs& outs, const Tensor& self, bool, bool) {
  check_square(self, "torch.linalg.ldl_factor_ex");
  check_floating_or_complex(self, "torch.linalg.ldl_factor_ex");
  set_columns(outs, 0, self.sizes(), self.dtype(), self.device());
  outs.set(1, self.sizes().slice(0, static_cast<size_t>(self.dim() - 1)), ScalarType::Int, self.device());
  outs.set(2, batch_of(self), ScalarType::Int, self.device());
}
void linalg_ldl_factor_ex_cpu(Outputs& outs, const Tensor& self, bool hermitian, bool check) {
  copy_into(outs[0], self);
  const int64_t n = self.size(-1);
  with_element("ldl_factor_kernel_cpu", self.dtype(), [&]<class T>() {
    for_batch(outs[2].numel(), n * n * n / 3, [&](int64_t i) {
      const Mat<T> a = matrix<T>(outs[0], i);
      keep_triangle(a, false);
      static_cast<int32_t*>(outs[2]->raw_data())[i] =
          ldl(a, static_cast<int32_t*>(outs[1]->raw_data()) + i * n, hermitian);
    });
  });
  if (check) check_errors(outs[2], "torch.linalg.ldl_factor_ex", self.dim() == 2);
}

void linalg_ldl_solve_meta(Outputs& outs, const Tensor& ld, const Tensor& pivots, const Tensor& b, bool) {
  check_square(ld, "torch.linalg.ldl_solve");
  check_floating_or_complex(ld, "torch.linalg.ldl_solve");
  (void)b.size(-2);
  check_solver(b, ld, "torch.linalg.ldl_solve");
  TN_CHECK(ld.sizes().slice(0, static_cast<size_t>(ld.dim() - 1)) == pivots.sizes(),
           "torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape ",
           pivots.sizes(), " instead");
  TN_CHECK(is_integral(pivots.dtype(), false), "torch.linalg.ldl_solve: Expected pivots to be integers. Got ",
           scalar_type_name(pivots.dtype()));
  const DimVector batch = infer_size(batch_of(b), batch_of(ld));
  set_columns(outs, 0, joined(batch, {b.size(-2), b.size(-1)}), b.dtype(), b.device());
}
void linalg_ldl_solve_cpu(Outputs& outs, const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian) {
  const Tensor& out = outs[0];
  copy_into(out, b);
  if (out.numel() == 0) return;
  const Tensor factors = columns_like(ld.sizes(), ld), places = contiguous(cast(pivots, ScalarType::Int));
  const int32_t* place = static_cast<const int32_t*>(places->raw_data());
  const int64_t n = ld.size(-1);
  for (int64_t i = 0; i < places.numel(); ++i)
    TN_CHECK(place[i] != 0 && std::abs(place[i]) <= n, "torch.linalg.ldl_solve: expected pivots between 1 and ", n,
             " or their negatives, got ", place[i]);
  const std::vector<int64_t> which = batch_map(batch_of(out), batch_of(ld));
  with_element("ldl_solve_kernel_cpu", out.dtype(), [&]<class T>() {
    for_batch(static_cast<int64_t>(which.size()), 2 * n * n * out.size(-1), [&](int64_t i) {
      const int64_t of = which[static_cast<size_t>(i)];
      ldl_solve(matrix<T>(factors, of), place + of * n, hermitian, matrix<T>(out, i));
    });
  });
}

}  // namespace slots
}  // namespace tn
