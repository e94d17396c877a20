#include "kernels/matmul/checks.h"

#include "generated/slots/view.h"
#include "runtime/copy.h"
#include "runtime/overlap.h"
#include "runtime/refuse.h"

namespace tn::matmul {
namespace {

bool summed_in_float(ScalarType t) {
  return t == ScalarType::Float8_e5m2 || t == ScalarType::Float8_e4m3fn || t == ScalarType::Float8_e5m2fnuz ||
         t == ScalarType::Float8_e4m3fnuz;
}

bool shares_storage(const Tensor& a, const Tensor& b) { return a.storage().get() == b.storage().get(); }

// BLAS leaves A and B unread where alpha is zero, so their NaN stay out. Upstream's loops for small batches and its
// half precisions read them.
bool skips_product(const Tensor& out, const Tensor& a, const Scalar& alpha) {
  if (__builtin_expect(!is_zero(alpha), 1) || is_reduced_float(out.dtype())) return false;
  constexpr int64_t kLoops = 400;  // products of a matrix
  return out.dim() == 2 || a->size(2) * out->size(1) * out->size(2) >= kLoops;
}

}  // namespace

bool has_product(ScalarType t) { return gemm::supports(t) || summed_in_float(t); }

void check_product_dtype(ScalarType t, const char* kernel) {
  TN_CHECK_AS(NotImplemented, has_product(t), '"', kernel, "\" not implemented for '", scalar_type_name(t), "'");
}

void run_product(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
                 const void* bias) {
  const ScalarType dtype = out.dtype();
  if (__builtin_expect(summed_in_float(dtype), 0)) {
    const Tensor wide = cast(out, ScalarType::Float);
    run_product(wide, cast(a, ScalarType::Float), cast(b, ScalarType::Float), beta, alpha);
    copy_into(out, wide);
    return;
  }
  if (__builtin_expect(shares_storage(out, a) || shares_storage(out, b), 0)) {
    const Tensor apart = is_zero(beta) ? empty(out.sizes(), dtype) : contiguous(out);
    const Tensor& target = shares_storage(apart, out) ? static_cast<const Tensor&>(clone(out)) : apart;
    run_product(target, a, b, beta, alpha, bias);
    copy_into(out, target);
    return;
  }
  const int64_t depth = skips_product(out, a, alpha) ? 0 : a->size(a.dim() - 1);
  if (out.dim() == 2) {
    gemm::gemm(dtype, out->size(0), out->size(1), depth, mat(a), mat(b), out_mat(out), alpha, beta, bias);
    return;
  }
  gemm::gemm_batched(dtype, out->size(0), out->size(1), out->size(2), depth, mat(a, 1), a->stride(0), mat(b, 1),
                     b->stride(0), out_mat(out, 1), out->stride(0), alpha, beta, bias);
}

void scale_empty_product(const Tensor& out, const Tensor& self, const Scalar& beta) {
  if (is_zero(beta)) {
    zero(out);
    return;
  }
  const ScalarType dtype = out.dtype();
  if (is_integral(dtype, true)) {
    // mul's rule: a float or complex number gives a result of its own kind.
    TN_CHECK(!beta.is_floating() && !beta.is_complex(), "result type ",
             scalar_type_name(beta.is_complex() ? ScalarType::ComplexFloat : default_dtype()),
             " can't be cast to the desired output type ", scalar_type_name(dtype));
  }
  if (!out.is_same(self)) copy_into(out, self);
  if (dtype == ScalarType::Bool || is_one(beta)) return;
  const Tensor none = empty({out.size(-2), 0}, dtype);
  const Tensor none_t = empty({0, out.size(-1)}, dtype);
  if (out.dim() == 2) {
    run_product(out, none, none_t, beta, 1);
    return;
  }
  for (int64_t i = 0; i < out->size(0); ++i) {
    const Tensor slice = alias_with_geometry(out, out.sizes().slice(1, 2), out.strides().slice(1, 2),
                                             out.storage_offset() + i * out->stride(0));
    run_product(slice, none, none_t, beta, 1);
  }
}

Tensor expanded(const Tensor& self, IntView sizes) {
  return self.sizes() == sizes ? self : native::expand(self, sizes, false);
}

}  // namespace tn::matmul
