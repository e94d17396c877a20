// Products with vectors: mv, addmv, dot, vdot, addr.
#include "generated/slots/matmul.h"
#include "kernels/matmul/calls.h"
#include "kernels/matmul/checks.h"
#include "runtime/copy.h"
#include "runtime/overlap.h"
#include "runtime/promote.h"
#include "runtime/shape.h"

namespace tn {
namespace {

using namespace matmul;

void check_addmv(const Tensor& self, const Tensor& mat, const Tensor& vec) {
  TN_CHECK(mat.dim() == 2 && vec.dim() == 1 && self.dim() <= 1, "vector + matrix @ vector expected, got ", self.dim(),
           ", ", mat.dim(), ", ", vec.dim());
  TN_CHECK(mat->size(1) == vec->size(0) && (mat->size(0) == self.numel() || self.numel() == 1),
           "size mismatch, got input (", self.size(0), "), mat (", mat->size(0), 'x', mat->size(1), "), vec (",
           vec->size(0), ')');
  TN_CHECK(mat.dtype() == vec.dtype() && vec.dtype() == self.dtype(),
           "addmv input tensors must have the same dtype, but got ", scalar_type_name(self.dtype()), ", ",
           scalar_type_name(mat.dtype()), ", and ", scalar_type_name(vec.dtype()));
}

// A vector as a matrix of one column.
Tensor column(const Tensor& v) {
  if (v.dim() == 0) return alias_with_geometry(v, {1, 1}, {1, 1}, v.storage_offset());
  const int64_t sizes[] = {v->size(0), 1};
  const int64_t strides[] = {v->stride(0), 1};
  return alias_with_geometry(v, IntView(sizes, 2), IntView(strides, 2), v.storage_offset());
}

void addmv_values(const Tensor& out, const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
                  const Scalar& alpha) {
  if (out.numel() == 0) return;
  const Tensor addend = out.is_same(self) ? self : expanded(self, out.sizes());
  const Tensor out_column = column(out);
  if (mat->size(1) == 0) {
    scale_empty_product(out_column, out.is_same(self) ? out_column : column(addend), beta);
    return;
  }
  check_product_dtype(out.dtype(), "addmv_impl_cpu");
  if (!out.is_same(self) && !is_zero(beta)) copy_into(out, addend);
  run_product(out_column, mat, column(vec), beta, alpha);
}

void check_dot(const Tensor& self, const Tensor& other) {
  TN_CHECK(self.dim() == 1 && other.dim() == 1, "1D tensors expected, but got ", self.dim(), "D and ", other.dim(),
           "D tensors");
  TN_CHECK(self.dtype() == other.dtype(), "dot : expected both vectors to have same dtype, but found ",
           scalar_type_name(self.dtype()), " and ", scalar_type_name(other.dtype()));
  TN_CHECK(self.numel() == other.numel(), "inconsistent tensor size, expected tensor ", self.sizes(), " and src ",
           other.sizes(), " to have the same number of elements, but got ", self.numel(), " and ", other.numel(),
           " elements respectively");
  // Upstream's dot has no float8, unlike its mm.
  TN_CHECK_AS(NotImplemented, gemm::supports(self.dtype()), "\"dot\" not implemented for '",
              scalar_type_name(self.dtype()), "'");
}

const Tensor& write_dot(const Tensor& value, const Tensor& out) {
  TN_CHECK(out.dtype() == value.dtype(), "result dtype ", scalar_type_name(out.dtype()), " does not match input dtype ",
           scalar_type_name(value.dtype()));
  resize_output(out, {});
  copy_into(out, value);
  return out;
}

}  // namespace

// ---- mv, addmv ---------------------------------------------------------------------------------------------------

Tensor native::mv(const Tensor& self, const Tensor& vec) {
  const int64_t rows = self.size(0);
  Tensor out = empty(IntView(&rows, 1), vec.dtype(), vec.device());
  check_addmv(out, self, vec);
  if (!out.is_meta()) addmv_values(out, out, self, vec, 0, 1);
  return out;
}

const Tensor& native::mv_out(const Tensor& self, const Tensor& vec, const Tensor& out) {
  if (out.dim() > 1 || (out.numel() != self.size(0) && out.numel() != 1)) {
    const int64_t rows = self.size(0);
    const Tensor start = empty(IntView(&rows, 1), vec.dtype(), vec.device());
    check_addmv(start, self, vec);
  } else {
    check_addmv(out, self, vec);
  }
  const int64_t rows = self->size(0);
  resize_output(out, IntView(&rows, 1));
  if (!out.is_meta()) addmv_values(out, out, self, vec, 0, 1);
  return out;
}

void slots::addmv_meta(Outputs& outs, const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
                       const Scalar&) {
  check_addmv(self, mat, vec);
  const int64_t rows = mat->size(0);
  // Upstream gives beta * self without broadcasting when there is nothing to sum.
  if (mat->size(1) == 0 && rows > 0 && !is_zero(beta) && outs.form() != Outputs::Form::Inplace) {
    outs.set(0, self.sizes(), vec.dtype(), vec.device());
    return;
  }
  outs.set(0, IntView(&rows, 1), vec.dtype(), vec.device());
}
void slots::addmv_cpu(Outputs& outs, const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
                      const Scalar& alpha) {
  addmv_values(outs[0], self, mat, vec, beta, alpha);
}

// ---- dot ---------------------------------------------------------------------------------------------------------

Tensor native::dot(const Tensor& self, const Tensor& tensor) {
  check_dot(self, tensor);
  Tensor out = empty({}, self.dtype(), self.device());
  gemm::dot(self.dtype(), self->size(0), self->raw_data(), self->stride(0), tensor->raw_data(), tensor->stride(0),
            out.data_ptr());
  return out;
}
Tensor native::vdot(const Tensor& self, const Tensor& other) {
  if (!self.is_complex()) return dot(self, other);
  check_dot(self, other);
  const Tensor flipped = alias_with_geometry(self, self.sizes(), self.strides(), self.storage_offset());
  flipped->set_conj(true);
  return dot(clone(flipped), other);
}
const Tensor& native::dot_out(const Tensor& self, const Tensor& tensor, const Tensor& out) {
  return write_dot(dot(self, tensor), out);
}
const Tensor& native::vdot_out(const Tensor& self, const Tensor& other, const Tensor& out) {
  return write_dot(vdot(self, other), out);
}

// ---- addr --------------------------------------------------------------------------------------------------------

namespace {

void check_vector(const Tensor& t, const char* name) {
  TN_CHECK(t.dim() == 1, "addr: Expected 1-D argument ", name, ", but got ", t.dim(), "-D");
}

void check_number(ScalarType dtype, const Scalar& number, const char* name) {
  TN_CHECK(!number.is_bool() || dtype == ScalarType::Bool, "Boolean ", name, " only supported for Boolean results.");
  TN_CHECK(is_floating(dtype) || is_complex(dtype) || number.is_integral(true), "For integral input tensors, argument ",
           name, " must not be a floating point number.");
}

void addr_bool(const Tensor& out, const Tensor& self, const Tensor& vec1, const Tensor& vec2, bool beta, bool alpha) {
  if (beta) copy_into(out, self);
  else zero(out);
  if (!alpha) return;
  const Tensor a = contiguous(vec1), b = contiguous(vec2);
  const bool* const left = a.data<bool>();
  const bool* const right = b.data<bool>();
  for (int64_t i = 0; i < out->size(0); ++i) {
    bool* const row = out.data<bool>() + i * out->stride(0);
    for (int64_t j = 0; j < out->size(1); ++j) row[j * out->stride(1)] |= left[i] && right[j];
  }
}

struct Addr {
  Tensor self;
  ScalarType dtype;
};

Addr prepare_addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta, const Scalar& alpha,
                  bool in_place) {
  check_vector(vec1, "vec1");
  check_vector(vec2, "vec2");
  const int64_t sizes[] = {vec1->size(0), vec2->size(0)};
  const Tensor addend = in_place ? self : expanded(self, IntView(sizes, 2));
  TN_CHECK(addend.dim() == 2, "2D tensor expected, got ", addend.dim(), "D tensor for input");
  TN_CHECK(addend.sizes() == IntView(sizes, 2), "size mismatch, input: ", addend.sizes(), ", v1: ", vec1.sizes(),
           ", v2: ", vec2.sizes());
  ResultType result;
  result.add(addend);
  result.add(vec1);
  result.add(vec2);
  const ScalarType dtype = result.get();
  check_number(dtype, beta, "beta");
  check_number(dtype, alpha, "alpha");
  return {addend, dtype};
}

void addr_values(const Tensor& out, const Addr& call, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
                 const Scalar& alpha) {
  if (out.numel() == 0) return;
  if (call.dtype == ScalarType::Bool) {
    addr_bool(out, call.self, vec1, vec2, beta.to_bool(), alpha.to_bool());
    return;
  }
  TN_CHECK_AS(NotImplemented, gemm::supports(call.dtype), "\"addr\" not implemented for '",
              scalar_type_name(call.dtype), "'");
  if (!is_zero(beta)) copy_into(out, call.self);
  const Tensor left = column(contiguous(cast(vec1, call.dtype))), right = column(contiguous(cast(vec2, call.dtype)));
  const Tensor row = alias_with_geometry(right, right.sizes(), right.strides(), right.storage_offset());
  const int64_t sizes[] = {1, right->size(0)};
  const int64_t strides[] = {1, 1};
  row->set_geometry(IntView(sizes, 2), IntView(strides, 2), right.storage_offset());
  // Unlike BLAS, upstream's addr multiplies by an alpha of zero: NaN show.
  if (is_zero(alpha)) run_product(out, call::mul(left, alpha), row, beta, 1);
  else run_product(out, left, row, beta, alpha);
}

}  // namespace

Tensor native::addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
                    const Scalar& alpha) {
  const Addr call = prepare_addr(self, vec1, vec2, beta, alpha, false);
  Tensor out = empty_strided(call.self.sizes(), preserved_strides(call.self.sizes(), call.self.strides()), call.dtype,
                             self.device());
  addr_values(out, call, vec1, vec2, beta, alpha);
  return out;
}

const Tensor& native::addr_out(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
                               const Scalar& alpha, const Tensor& out) {
  const Addr call = prepare_addr(self, vec1, vec2, beta, alpha, out.is_same(self));
  TN_CHECK(can_cast(call.dtype, out.dtype()), "result type ", scalar_type_name(call.dtype),
           " can't be cast to the desired output type ", scalar_type_name(out.dtype()));
  resize_output(out, call.self.sizes());
  assert_no_internal_overlap(out);
  const Tensor apart = empty(call.self.sizes(), call.dtype, self.device());
  addr_values(apart, call, vec1, vec2, beta, alpha);
  copy_into(out, apart);
  return out;
}

const Tensor& native::addr_(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
                            const Scalar& alpha) {
  return addr_out(self, vec1, vec2, beta, alpha, self);
}

}  // namespace tn
