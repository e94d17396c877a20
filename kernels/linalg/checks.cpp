#include "generated/slots/linalg.h"
#include "kernels/linalg/common.h"
#include "runtime/warn.h"

namespace tn::linalg {

void check_matrix(const Tensor& t, std::string_view op, std::string_view argument) {
  TN_CHECK(t.dim() >= 2, op, ": The input tensor ", argument, " must have at least 2 dimensions.");
}

void check_square(const Tensor& t, std::string_view op, std::string_view argument) {
  check_matrix(t, op, argument);
  TN_CHECK(t.size(-1) == t.size(-2), op, ": ", argument, " must be batches of square matrices, but they are ",
           t.size(-2), " by ", t.size(-1), " matrices");
}

void check_floating_or_complex(const Tensor& t, std::string_view op, bool low_precision) {
  const ScalarType dtype = t.dtype();
  TN_CHECK(is_floating(dtype) || is_complex(dtype), op, ": Expected a floating point or complex tensor as input. Got ",
           scalar_type_name(dtype));
  if (low_precision) return;
  TN_CHECK(dtype == ScalarType::Float || dtype == ScalarType::Double || dtype == ScalarType::ComplexFloat ||
               dtype == ScalarType::ComplexDouble,
           op, ": Low precision dtypes not supported. Got ", scalar_type_name(dtype));
}

void check_equation(const Tensor& a, const Tensor& b, bool left, std::string_view op) {
  check_square(a, op, "A");
  check_matrix(b, op, "B");
  TN_CHECK(left ? a.size(-2) == b.size(-2) : a.size(-1) == b.size(-1), op,
           ": Incompatible shapes of A and B for the equation ", left ? "AX = B" : "XA = B", " (", a.size(-2), "x",
           a.size(-1), " and ", b.size(-2), "x", b.size(-1), ")");
}

void check_solver(const Tensor& b, const Tensor& a, std::string_view op) {
  TN_CHECK(b.dtype() == a.dtype(), "Expected b and A to have the same dtype, but found b of type ",
           scalar_type_name(b.dtype()), " and A of type ", scalar_type_name(a.dtype()), " instead.");
  TN_CHECK(a.size(-1) == a.size(-2), "A must be batches of square matrices, but they are ", a.size(-2), " by ",
           a.size(-1), " matrices");
  TN_CHECK(a.size(-1) == b.size(-2), "Incompatible matrix sizes for ", op, ": each A matrix is ", a.size(-1), " by ",
           a.size(-1), " but each b matrix is ", b.size(-2), " by ", b.size(-1));
}

namespace {

[[noreturn]] void fail_with(std::string_view op, const std::string& which, int32_t info) {
  const auto has = [op](std::string_view part) { return op.find(part) != op.npos; };
  const auto linalg = [&](const auto&... parts) { fail(ErrorKind::LinAlg, op, ": ", which, parts...); };
  if (info == kNotFinite && has("svd"))
    linalg("The algorithm failed to converge because the input matrix contained non-finite values.");
  if (info < 0) fail(ErrorKind::Runtime, op, ": ", which, "Argument ", -info, " has illegal value.");
  if (has("inv"))
    linalg("The diagonal element ", info,
           " is zero, the inversion could not be completed because the input matrix is singular.");
  if (has("solve")) linalg("The solver failed because the input matrix is singular.");
  if (has("cholesky"))
    linalg(
        "The factorization could not be completed because the input is not positive-definite (the leading minor of "
        "order "
        "",
        info, " is not positive-definite).");
  if (has("svd"))
    linalg(
        "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
        "singular "
        "values (error code: ",
        info, ").");
  if (has("eig") || has("syevd"))
    linalg(
        "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
        "eigenvalues (error code: ",
        info, ").");
  if (has("lstsq"))
    linalg(
        "The least squares solution could not be computed because the input matrix does not have full rank (error "
        "code: ",
        info, ").");
  if (has("lu_factor"))
    fail(ErrorKind::Runtime, op, ": ", which, "U[", info, ",", info,
         "] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the "
         "factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)");
  fail(ErrorKind::Runtime, op, ": ", which, "Unknown error code: ", info, ".");
}

}  // namespace

void check_errors(const Tensor& info, std::string_view op, bool is_matrix) {
  if (info.is_meta()) return;
  const Tensor codes = contiguous(info);
  const int32_t* p = static_cast<const int32_t*>(codes->raw_data());
  for (int64_t i = 0; i < codes.numel(); ++i)
    if (p[i] != 0) fail_with(op, is_matrix ? std::string() : str("(Batch element ", i, "): "), p[i]);
}

void warn_deprecated(std::string_view old, std::string_view now) {
  warn(str(old, " is deprecated in favor of ", now, " and will be removed in a future PyTorch release."));
}

DimVector column_strides(IntView sizes) {
  DimVector out(sizes.size());
  contiguous_strides(sizes, out.data());
  const size_t n = sizes.size();
  if (n >= 2) {
    out[n - 2] = 1;
    out[n - 1] = std::max<int64_t>(sizes[n - 2], 1);
  }
  return out;
}

void set_columns(Outputs& outs, int i, IntView sizes, ScalarType dtype, Device device) {
  outs.set_strided(i, sizes, column_strides(sizes), dtype, device);
}

Tensor columns_like(IntView sizes, const Tensor& values) {
  const Tensor out = empty_strided(sizes, column_strides(sizes), values.dtype(), values.device());
  copy_into(out, values);
  return out;
}

std::vector<int64_t> batch_map(IntView full, IntView own) {
  std::vector<int64_t> out(static_cast<size_t>(product(full)), 0);
  int64_t stride = 1, block = 1;
  const size_t offset = full.size() - own.size();
  for (size_t d = full.size(); d-- > 0;) {
    const int64_t extent = full[d];
    if (d >= offset && own[d - offset] != 1) {
      for (size_t i = 0; i < out.size(); ++i) out[i] += static_cast<int64_t>(i) / block % extent * stride;
      stride *= extent;
    }
    block *= extent;
  }
  return out;
}

bool is_vector_rhs(const Tensor& a, const Tensor& b) {
  return b.dim() == 1 || (a.dim() - 1 == b.dim() && b.sizes() == a.sizes().slice(0, static_cast<size_t>(a.dim() - 1)));
}

}  // namespace tn::linalg

namespace tn::native {

void _linalg_check_errors(const Tensor& info, std::string_view api_name, bool is_matrix) {
  linalg::check_errors(info, api_name, is_matrix);
}

}  // namespace tn::native
