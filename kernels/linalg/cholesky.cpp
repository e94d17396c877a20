// cholesky and what is solved with its factor.
#include "generated/slots/linalg.h"
#include "kernels/linalg/common.h"

namespace tn {
namespace {

using namespace linalg;

void factor(const Tensor& l, const Tensor& info, bool upper) {
  const int64_t n = l.size(-1);
  with_element("cholesky_cpu", l.dtype(), [&]<class T>() {
    for_batch(info.numel(), n * n * n / 3, [&](int64_t i) {
      const Mat<T> a = matrix<T>(l, i);
      std::vector<T> turned(static_cast<size_t>(upper ? n * n : 0));
      const Mat<T> work = upper ? Mat<T>(turned.data(), n, n) : a;
      if (upper) copy_adjoint(work, a);
      static_cast<int32_t*>(info->raw_data())[i] = cholesky(work);
      keep_triangle(work, false);
      if (upper) copy_adjoint(a, work);
    });
  });
}

// b = (L L^H)^-1 b; the factor may be given as U = L^H. Zero, or one more than the place of a zero on the diagonal.
template <class T>
void solve_with(Mat<T> a, bool upper, Mat<T> b) {
  solve_triangular(a, upper, upper ? Op::Adjoint : Op::None, false, true, b);
  solve_triangular(a, upper, upper ? Op::None : Op::Adjoint, false, true, b);
}

void set_solution(Outputs& outs, const Tensor& self, const Tensor& a) {
  TN_CHECK(self.dim() >= 2, "b should have at least 2 dimensions, but has ", self.dim(), " dimensions instead");
  TN_CHECK(a.dim() >= 2, "u should have at least 2 dimensions, but has ", a.dim(), " dimensions instead");
  check_solver(self, a, "cholesky_solve");
  const DimVector batch = infer_size(batch_of(self), batch_of(a));
  set_columns(outs, 0, joined(batch, {self.size(-2), self.size(-1)}), self.dtype(), self.device());
}

void solve(const Tensor& out, const Tensor& self, const Tensor& a, bool upper) {
  copy_into(out, self);
  if (out.numel() == 0) return;
  const Tensor factors = columns_like(a.sizes(), a);
  const std::vector<int64_t> which = batch_map(batch_of(out), batch_of(a));
  const int64_t n = a.size(-1);
  with_element("cholesky_solve_cpu", out.dtype(), [&]<class T>() {
    for_batch(static_cast<int64_t>(which.size()), 2 * n * n * out.size(-1), [&](int64_t i) {
      solve_with(matrix<T>(factors, which[static_cast<size_t>(i)]), upper, matrix<T>(out, i));
    });
  });
}

}  // namespace

namespace slots {

void linalg_cholesky_ex_meta(Outputs& outs, const Tensor& self, bool, bool) {
  check_square(self, "linalg.cholesky");
  check_floating_or_complex(self, "linalg.cholesky");
  set_columns(outs, 0, self.sizes(), self.dtype(), self.device());
  outs.set(1, batch_of(self), ScalarType::Int, self.device());
}
void linalg_cholesky_ex_cpu(Outputs& outs, const Tensor& self, bool upper, bool check) {
  copy_into(outs[0], self);
  factor(outs[0], outs[1], upper);
  if (check) check_errors(outs[1], "linalg.cholesky_ex", self.dim() == 2);
}

void cholesky_meta(Outputs& outs, const Tensor& self, bool) {
  if (self.numel() == 0 && self.dim() >= 2) {
    outs.set(0, self.sizes(), self.dtype(), self.device());
    return;
  }
  check_square(self, "cholesky");
  set_columns(outs, 0, self.sizes(), self.dtype(), self.device());
}
void cholesky_cpu(Outputs& outs, const Tensor& self, bool upper) {
  warn_deprecated("torch.cholesky", "torch.linalg.cholesky");
  if (self.numel() == 0) return;
  copy_into(outs[0], self);
  const Tensor info = empty(batch_of(self), ScalarType::Int);
  factor(outs[0], info, upper);
  check_errors(info, "cholesky", self.dim() == 2);
}

void cholesky_solve_meta(Outputs& outs, const Tensor& self, const Tensor& input2, bool) {
  set_solution(outs, self, input2);
}
void cholesky_solve_cpu(Outputs& outs, const Tensor& self, const Tensor& input2, bool upper) {
  solve(outs[0], self, input2, upper);
}
void _cholesky_solve_helper_meta(Outputs& outs, const Tensor& self, const Tensor& a, bool) {
  set_solution(outs, self, a);
}
void _cholesky_solve_helper_cpu(Outputs& outs, const Tensor& self, const Tensor& a, bool upper) {
  solve(outs[0], self, a, upper);
}

void cholesky_inverse_meta(Outputs& outs, const Tensor& self, bool) {
  check_square(self, "cholesky_inverse");
  set_columns(outs, 0, self.sizes(), self.dtype(), self.device());
}
void cholesky_inverse_cpu(Outputs& outs, const Tensor& self, bool upper) {
  const Tensor info = empty(batch_of(self), ScalarType::Int), factors = columns_like(self.sizes(), self);
  const int64_t n = self.size(-1);
  with_element("cholesky_inverse_out_cpu", self.dtype(), [&]<class T>() {
    for_batch(info.numel(), n * n * n, [&](int64_t i) {
      const Mat<T> a = matrix<T>(factors, i), out = matrix<T>(outs[0], i);
      int32_t code = 0;
      for (int64_t k = n; k-- > 0;)
        if (a(k, k) == T(0)) code = static_cast<int32_t>(k + 1);
      static_cast<int32_t*>(info->raw_data())[i] = code;
      if (code != 0) return;
      set_identity(out);
      solve_with(a, upper, out);
    });
  });
  check_errors(info, "cholesky_inverse", self.dim() == 2);
}

}  // namespace slots
}  // namespace tn
