// Eigenvalues, singular values, the exponential.
#include "generated/slots/linalg.h"
#include "kernels/linalg/common.h"

namespace tn {
namespace {

using namespace linalg;

bool is_upper(std::string_view uplo) {
  const bool upper = uplo == "U" || uplo == "u";
  TN_CHECK(upper || uplo == "L" || uplo == "l", "Expected UPLO argument to be 'L' or 'U', but got ", uplo);
  return upper;
}

int32_t& code(const Tensor& info, int64_t i) { return static_cast<int32_t*>(info->raw_data())[i]; }

void set_values(Outputs& outs, int i, const Tensor& a, ScalarType dtype) {
  outs.set(i, joined(batch_of(a), {std::min(a.size(-2), a.size(-1))}), dtype, a.device());
}

ScalarType complex_result(const Tensor& self) {
  TN_CHECK(is_floating(self.dtype()) || self.is_complex(), "Unknown Complex ScalarType for ",
           scalar_type_name(self.dtype()));
  return complex_of(self.dtype());
}

// vectors may be undefined.
void general(const Tensor& self, const Tensor& values, const Tensor& vectors, const char* name) {
  const Tensor work = columns_like(self.sizes(), self), info = empty(batch_of(self), ScalarType::Int);
  const int64_t n = self.size(-1);
  with_element("linalg_eig_out_cpu", self.dtype(), [&]<class T>() {
    using C = std::complex<Real<T>>;
    for (int64_t i = 0; i < info.numel(); ++i)
      TN_CHECK(all_finite(matrix<T>(work, i)), "torch.linalg.eig: input tensor should not contain infs or NaNs.");
    if (n == 0) {
      if (info.numel() > 0) zero(info);
      return;
    }
    for_batch(info.numel(), 25 * n * n * n, [&](int64_t i) {
      code(info, i) = eig(matrix<T>(work, i), static_cast<C*>(values->raw_data()) + i * n,
                          vectors.defined() ? static_cast<C*>(vectors->raw_data()) + i * n * n : nullptr);
    });
  });
  check_errors(info, name, self.dim() == 2);
}

}  // namespace

namespace slots {

void _linalg_eigh_meta(Outputs& outs, const Tensor& a, std::string_view uplo, bool compute_v) {
  check_square(a, "linalg.eigh");
  (void)is_upper(uplo);
  set_values(outs, 0, a, real_of(a.dtype()));
  if (compute_v) set_columns(outs, 1, a.sizes(), a.dtype(), a.device());
  else outs.set(1, {0}, a.dtype(), a.device());
}
void _linalg_eigh_cpu(Outputs& outs, const Tensor& a, std::string_view uplo, bool compute_v) {
  const Tensor work = compute_v ? outs[1] : columns_like(a.sizes(), a), info = empty(batch_of(a), ScalarType::Int);
  if (compute_v) copy_into(work, a);
  const bool upper = is_upper(uplo);
  const int64_t n = a.size(-1);
  with_element("linalg_eigh_cpu", a.dtype(), [&]<class T>() {
    if (n == 0) {
      if (info.numel() > 0) zero(info);
      return;
    }
    for_batch(info.numel(), 9 * n * n * n, [&](int64_t i) {
      const Mat<T> m = matrix<T>(work, i);
      // The lower triangle is what is read.
      for (int64_t j = 0; j < n && upper; ++j)
        for (int64_t r = j + 1; r < n; ++r) m(r, j) = conjugate(m(j, r));
      code(info, i) = eigh(m, compute_v, static_cast<Real<T>*>(outs[0]->raw_data()) + i * n);
    });
  });
  check_errors(info, "linalg.eigh", a.dim() == 2);
}

void linalg_eig_meta(Outputs& outs, const Tensor& self) {
  const ScalarType dtype = complex_result(self);
  check_square(self, "linalg.eig");
  set_values(outs, 0, self, dtype);
  set_columns(outs, 1, self.sizes(), dtype, self.device());
}
void linalg_eig_cpu(Outputs& outs, const Tensor& self) { general(self, outs[0], outs[1], "linalg.eig"); }

void _linalg_eigvals_meta(Outputs& outs, const Tensor& self) {
  const ScalarType dtype = complex_result(self);
  check_square(self, "linalg.eigvals");
  set_values(outs, 0, self, dtype);
}
void _linalg_eigvals_cpu(Outputs& outs, const Tensor& self) { general(self, outs[0], Tensor(), "linalg.eigvals"); }

void _linalg_svd_meta(Outputs& outs, const Tensor& a, bool full, bool compute_uv,
                      std::optional<std::string_view> driver) {
  check_matrix(a, "linalg.svd");
  check_floating_or_complex(a, "linalg.svd");
  TN_CHECK(!driver || a.is_meta(),
           "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.");
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  if (compute_uv) {
    set_columns(outs, 0, joined(batch_of(a), {m, full ? m : k}), a.dtype(), a.device());
    set_columns(outs, 2, joined(batch_of(a), {full ? n : k, n}), a.dtype(), a.device());
  } else {
    outs.set(0, {0}, a.dtype(), a.device());
    outs.set(2, {0}, a.dtype(), a.device());
  }
  set_values(outs, 1, a, real_of(a.dtype()));
}
void _linalg_svd_cpu(Outputs& outs, const Tensor& a, bool, bool compute_uv, std::optional<std::string_view>) {
  const Tensor work = columns_like(a.sizes(), a), info = empty(batch_of(a), ScalarType::Int);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  with_element("linalg_svd_cpu", a.dtype(), [&]<class T>() {
    const Mat<T> none(nullptr, 0, 0);
    for_batch(info.numel(), 20 * m * n * std::max<int64_t>(k, 1), [&](int64_t i) {
      code(info, i) =
          svd(matrix<T>(work, i), compute_uv ? matrix<T>(outs[0], i) : none,
              static_cast<Real<T>*>(outs[1]->raw_data()) + i * k, compute_uv ? matrix<T>(outs[2], i) : none);
    });
  });
  check_errors(info, "linalg.svd", a.dim() == 2);
}

void linalg_matrix_exp_meta(Outputs& outs, const Tensor& self) {
  check_square(self, "linalg.matrix_exp");
  check_floating_or_complex(self, "linalg.matrix_exp");
  outs.set(0, self.sizes(), self.dtype(), self.device());
}
void linalg_matrix_exp_cpu(Outputs& outs, const Tensor& self) {
  if (self.numel() == 0) return;
  // 16-bit floats compute in float.
  const bool narrow = is_reduced_float(self.dtype());
  const Tensor work = columns_like(self.sizes(), narrow ? cast(self, ScalarType::Float) : self);
  const int64_t n = self.size(-1);
  with_element("matrix_exp", work.dtype(), [&]<class T>() {
    for_batch(product(batch_of(self)), 20 * n * n * n, [&](int64_t i) { exponential(matrix<T>(work, i)); });
  });
  copy_into(outs[0], work);
}

}  // namespace slots
}  // namespace tn
