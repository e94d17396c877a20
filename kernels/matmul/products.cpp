// mm, addmm, bmm, baddbmm and what is made of them below the door.
#include "generated/slots/matmul.h"
#include "kernels/matmul/activation.h"
#include "kernels/matmul/checks.h"
#include "runtime/copy.h"
#include "runtime/overlap.h"
#include "runtime/refuse.h"

namespace tn {
namespace {

using namespace matmul;

void check_inner(const Tensor& a, const Tensor& b) {
  TN_CHECK(a->size(1) == b->size(0), "mat1 and mat2 shapes cannot be multiplied (", a->size(0), 'x', a->size(1),
           " and ", b->size(0), 'x', b->size(1), ')');
}

void check_same_dtype(const Tensor& a, const Tensor& b) {
  TN_CHECK(a.dtype() == b.dtype(), "expected m1 and m2 to have the same dtype, but got: ", element_type_name(a.dtype()),
           " != ", element_type_name(b.dtype()));
}

void addmm_shape(Outputs& outs, const Tensor& self, const Tensor& mat1, const Tensor& mat2) {
  TN_CHECK(self.dtype() == mat2.dtype(), "self and mat2 must have the same dtype, but got ",
           scalar_type_name(self.dtype()), " and ", scalar_type_name(mat2.dtype()));
  TN_CHECK(mat1.dtype() == mat2.dtype(), "mat1 and mat2 must have the same dtype, but got ",
           scalar_type_name(mat1.dtype()), " and ", scalar_type_name(mat2.dtype()));
  TN_CHECK(mat1.dim() == 2, "mat1 must be a matrix, got ", mat1.dim(), "-D tensor");
  TN_CHECK(mat2.dim() == 2, "mat2 must be a matrix, got ", mat2.dim(), "-D tensor");
  check_inner(mat1, mat2);
  const int64_t sizes[] = {mat1->size(0), mat2->size(1)};
  outs.set(0, IntView(sizes, 2), mat1.dtype(), mat1.device());
}

// A row of adjacent elements that stands for every row of the result.
const void* as_bias(const Tensor& self, int64_t n) {
  if (self.dim() == 0 || self.dim() > 2 || self->size(self.dim() - 1) != n) return nullptr;
  if (n != 1 && self->stride(self.dim() - 1) != 1) return nullptr;
  return self.dim() == 1 || self->size(0) == 1 ? self->raw_data() : nullptr;
}

void addmm_values(const Tensor& out, const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                  const Scalar& alpha) {
  const bool in_place = out.is_same(self);
  const void* bias = !in_place && is_one(beta) && gemm::supports(out.dtype()) ? as_bias(self, out->size(1)) : nullptr;
  if (bias != nullptr && mat1->size(1) > 0) {
    if (out.numel() > 0) run_product(out, mat1, mat2, 0, alpha, bias);
    return;
  }
  const Tensor addend = in_place ? self : expanded(self, out.sizes());
  if (out.numel() == 0) return;
  if (mat1->size(1) == 0) {
    scale_empty_product(out, addend, beta);
    return;
  }
  check_product_dtype(out.dtype(), "addmm_impl_cpu_");
  if (!in_place && !is_zero(beta)) copy_into(out, addend);
  run_product(out, mat1, mat2, beta, alpha);
}

void batch_shape(Outputs& outs, const Tensor& batch1, const Tensor& batch2) {
  TN_CHECK(batch1.dim() == 3, "batch1 must be a 3D tensor");
  TN_CHECK(batch2.dim() == 3, "batch2 must be a 3D tensor");
  TN_CHECK(batch2->size(0) == batch1->size(0) && batch2->size(1) == batch1->size(2),
           "Expected size for first two dimensions of batch2 tensor to be: [", batch1->size(0), ", ", batch1->size(2),
           "] but got: [", batch2->size(0), ", ", batch2->size(1), "].");
  const int64_t sizes[] = {batch1->size(0), batch1->size(1), batch2->size(2)};
  outs.set(0, IntView(sizes, 3), batch2.dtype(), batch2.device());
}

void check_batch_dtype(const Tensor& batch1, const Tensor& batch2) {
  TN_CHECK(batch1.dtype() == batch2.dtype(), "expected scalar type ", scalar_type_name(batch1.dtype()), " but found ",
           scalar_type_name(batch2.dtype()));
}

}  // namespace

// ---- mm ----------------------------------------------------------------------------------------------------------

void slots::mm_meta(Outputs& outs, const Tensor& self, const Tensor& mat2) {
  TN_CHECK(self.dim() == 2, "self must be a matrix");
  TN_CHECK(mat2.dim() == 2, "mat2 must be a matrix");
  check_inner(self, mat2);
  const int64_t sizes[] = {self->size(0), mat2->size(1)};
  outs.set(0, IntView(sizes, 2), self.dtype(), self.device());
}

void slots::mm_cpu(Outputs& outs, const Tensor& self, const Tensor& mat2) {
  check_same_dtype(self, mat2);
  const Tensor& out = outs[0];
  if (out.numel() == 0) return;
  if (self->size(1) == 0) {
    zero(out);
    return;
  }
  check_product_dtype(self.dtype(), "addmm_impl_cpu_");
  if (outs.form() != Outputs::Form::Functional) assert_no_internal_overlap(out);
  run_product(out, self, mat2, 0, 1);
}

// ---- addmm -------------------------------------------------------------------------------------------------------

void slots::addmm_meta(Outputs& outs, const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar&,
                       const Scalar&) {
  addmm_shape(outs, self, mat1, mat2);
}
void slots::addmm_cpu(Outputs& outs, const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                      const Scalar& alpha) {
  addmm_values(outs[0], self, mat1, mat2, beta, alpha);
}

void slots::_addmm_activation_meta(Outputs& outs, const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                                   const Scalar&, const Scalar&, bool) {
  addmm_shape(outs, self, mat1, mat2);
}
void slots::_addmm_activation_cpu(Outputs& outs, const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                                  const Scalar& beta, const Scalar& alpha, bool use_gelu) {
  addmm_values(outs[0], self, mat1, mat2, beta, alpha);
  // Upstream's relu is clamp_min, and its gelu here is the exact one.
  if (outs[0].numel() > 0) activate(outs[0], use_gelu ? Activation::Gelu : Activation::Relu);
}

// ---- batches -----------------------------------------------------------------------------------------------------

void slots::bmm_meta(Outputs& outs, const Tensor& self, const Tensor& mat2) { batch_shape(outs, self, mat2); }

void slots::bmm_cpu(Outputs& outs, const Tensor& self, const Tensor& mat2) {
  const Tensor& out = outs[0];
  if (out.numel() == 0) return;
  if (self->size(2) == 0) {
    zero(out);
    return;
  }
  check_batch_dtype(self, mat2);
  check_product_dtype(out.dtype(), "bmm");
  run_product(out, self, mat2, 0, 1);
}

void slots::baddbmm_meta(Outputs& outs, const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar&,
                         const Scalar&) {
  const int64_t sizes[] = {batch1.size(0), batch1.size(1), batch2.size(2)};
  if (outs.form() != Outputs::Form::Inplace || self.dim() == 3) (void)expanded(self, IntView(sizes, 3));
  TN_CHECK(self.dtype() == batch1.dtype(), "Input dtypes must be the same, got: input ",
           element_type_name(self.dtype()), ", batch1: ", element_type_name(batch1.dtype()),
           ", batch2: ", element_type_name(batch2.dtype()));
  batch_shape(outs, batch1, batch2);
}

void slots::baddbmm_cpu(Outputs& outs, const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                        const Scalar& beta, const Scalar& alpha) {
  const Tensor& out = outs[0];
  if (out.numel() == 0) return;
  const Tensor addend = out.is_same(self) ? self : expanded(self, out.sizes());
  if (batch1->size(2) == 0) {
    scale_empty_product(out, addend, beta);
    return;
  }
  check_batch_dtype(batch1, batch2);
  check_product_dtype(out.dtype(), "baddbmm");
  if (!out.is_same(self) && !is_zero(beta)) copy_into(out, addend);
  run_product(out, batch1, batch2, beta, alpha);
}

// ---- addbmm: the sum of a batch's products -------------------------------------------------------------------------

namespace {

// `out` has the result's shape already; self may be out.
void addbmm_values(const Tensor& out, const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                   const Scalar& beta, const Scalar& alpha) {
  TN_CHECK(batch1.dim() == 3, "batch1 must be a 3D tensor");
  TN_CHECK(batch2.dim() == 3, "batch2 must be a 3D tensor");
  TN_CHECK(batch1->size(0) == batch2->size(0), "batch1 and batch2 must have same number of batches, got ",
           batch1->size(0), " and ", batch2->size(0));
  TN_CHECK(batch1->size(2) == batch2->size(1), "Incompatible matrix sizes for bmm (", batch1->size(1), 'x',
           batch1->size(2), " and ", batch2->size(1), 'x', batch2->size(2), ')');
  TN_CHECK(self->size(0) == batch1->size(1) && self->size(1) == batch2->size(2),
           "self tensor does not match matmul output shape");
  TN_CHECK(out.dtype() == batch2.dtype(), "self and mat2 must have the same dtype, but got ",
           scalar_type_name(out.dtype()), " and ", scalar_type_name(batch2.dtype()));
  TN_CHECK(batch1.dtype() == batch2.dtype(), "mat1 and mat2 must have the same dtype, but got ",
           scalar_type_name(batch1.dtype()), " and ", scalar_type_name(batch2.dtype()));
  if (out.numel() == 0) return;
  if (!out.is_same(self) && !is_zero(beta)) copy_into(out, self);
  if (batch1->size(0) == 0 || batch1->size(2) == 0) {
    scale_empty_product(out, out, beta);
    return;
  }
  check_product_dtype(out.dtype(), "addmm_impl_cpu_");
  for (int64_t i = 0; i < batch1->size(0); ++i) {
    const auto of_batch = [i](const Tensor& t) {
      return alias_with_geometry(t, t.sizes().slice(1, 2), t.strides().slice(1, 2),
                                 t.storage_offset() + i * t->stride(0));
    };
    run_product(out, of_batch(batch1), of_batch(batch2), i == 0 ? beta : Scalar(1), alpha);
  }
}

Tensor addbmm_addend(const Tensor& self, const Tensor& batch1, const Tensor& batch2) {
  const int64_t sizes[] = {batch1.size(1), batch2.size(2)};
  return expanded(self, IntView(sizes, 2));
}

}  // namespace

Tensor native::addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                      const Scalar& alpha) {
  const Tensor addend = addbmm_addend(self, batch1, batch2);
  Tensor out = empty(addend.sizes(), self.dtype(), self.device());
  addbmm_values(out, addend, batch1, batch2, beta, alpha);
  return out;
}

const Tensor& native::addbmm_out(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                                 const Scalar& alpha, const Tensor& out) {
  const Tensor addend = addbmm_addend(self, batch1, batch2);
  resize_output(out, addend.sizes());
  addbmm_values(out, out.is_same(self) ? out : addend, batch1, batch2, beta, alpha);
  return out;
}

const Tensor& native::addbmm_(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                              const Scalar& alpha) {
  return addbmm_out(self, batch1, batch2, beta, alpha, self);
}

}  // namespace tn
