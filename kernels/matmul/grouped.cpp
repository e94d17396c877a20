// _grouped_mm: products of slices that offsets cut out of one dimension (experts of a mixture), or of a batch.
#include <algorithm>
#include <vector>

#include "generated/slots/matmul.h"
#include "kernels/matmul/checks.h"
#include "runtime/copy.h"

namespace tn {
namespace {

using namespace matmul;

void check_operand(const Tensor& t, const char* name) {
  TN_CHECK(t.dtype() == ScalarType::Float || t.dtype() == ScalarType::BFloat16 || t.dtype() == ScalarType::Half,
           "Expected ", name, " to be Float32, BFloat16 or Float16 matrix, got ", scalar_type_name(t.dtype()));
}

// Rows or columns must be dense and begin at multiples of 16 bytes.
void check_strides(const Tensor& t) {
  const int64_t last = t.dim() - 1, unit = 16 / static_cast<int64_t>(t.itemsize());
  const int64_t rows = t->stride(last - 1), cols = t->stride(last);
  const bool by_columns = rows == 1 && cols >= std::max<int64_t>(1, t->size(last - 1));
  const bool by_rows = cols == 1 && rows >= std::max<int64_t>(1, t->size(last));
  TN_CHECK(by_columns || by_rows, "Invalid strides/sizes, got ", t.strides(), " for strides and ", t.sizes(),
           " for sizes");
  TN_CHECK((by_columns ? cols : rows) % unit == 0, "strides should be multiple of 16 bytes");
}

// The part [from, to) of a dimension, or one matrix of a batch.
Tensor part(const Tensor& t, int64_t dim, int64_t from, int64_t to) {
  int64_t sizes[] = {t->size(0), t->size(1)};
  sizes[dim] = to - from;
  return alias_with_geometry(t, sizes, t.strides(), t.storage_offset() + from * t->stride(dim));
}
Tensor matrix(const Tensor& t, int64_t i) {
  return alias_with_geometry(t, t.sizes().slice(1, 2), t.strides().slice(1, 2), t.storage_offset() + i * t->stride(0));
}

void multiply(const Tensor& out, const Tensor& a, const Tensor& b) {
  if (out.numel() == 0) return;
  if (a->size(1) == 0) zero(out);
  else run_product(out, a, b, 0, 1);
}

// Ends of the groups; each lies between the one before and the dimension's size.
std::vector<int64_t> group_ends(const Tensor& offs, int64_t size) {
  const Tensor dense = contiguous(offs);
  std::vector<int64_t> ends(dense.data<int32_t>(), dense.data<int32_t>() + dense.numel());
  int64_t before = 0;
  for (const int64_t end : ends) {
    TN_CHECK(end >= before && end <= size, "_grouped_mm: expected offsets that rise from 0 to at most ", size, ", got ",
             end, " after ", before);
    before = end;
  }
  return ends;
}

}  // namespace

Tensor native::_grouped_mm(const Tensor& self, const Tensor& mat2, OptionalTensor offs, OptionalTensor bias,
                           std::optional<ScalarType> out_dtype) {
  check_operand(self, "mat_a");
  check_operand(mat2, "mat_b");
  TN_CHECK(self.dim() == 2 || self.dim() == 3, "mat_a has to be 2 or 3d");
  TN_CHECK(mat2.dim() == 2 || mat2.dim() == 3, "mat_b has to be 2 or 3d");
  const bool flat_a = self.dim() == 2, flat_b = mat2.dim() == 2;
  // Upstream checks two matrices only slice by slice.
  TN_CHECK(self.size(-1) == mat2.size(-2), "contraction dimension of mat_a and mat_b must match");
  check_strides(self);
  check_strides(mat2);
  TN_CHECK(static_cast<bool>(offs) == (flat_a || flat_b),
           "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d");
  if (offs) {
    TN_CHECK(offs->dim() == 1, "offs has to be 1D");
    TN_CHECK(offs->dtype() == ScalarType::Int, "Offsets have to be int32");
  }
  TN_CHECK(!bias, "Bias not supported yet");
  TN_CHECK(!out_dtype || *out_dtype == self.dtype(), "Grouped gemm output dtype must match `mat_a` dtype");
  TN_CHECK(self.dtype() == mat2.dtype(),
           "expected m1 and m2 to have the same dtype, but got: ", element_type_name(self.dtype()),
           " != ", element_type_name(mat2.dtype()));
  const int64_t groups = offs ? offs->size(0) : self.size(0), m = self.size(-2), n = mat2.size(-1);
  TN_CHECK(flat_a || flat_b || mat2.size(0) == groups, "batched dimension has to match");
  TN_CHECK((flat_a || self.size(0) == groups) && (flat_b || mat2.size(0) == groups),
           "matrix batch sizes have to match");

  // Rows of the result begin at multiples of 16 bytes, too.
  const int64_t unit = 16 / static_cast<int64_t>(self.itemsize()), row = (n + unit - 1) / unit * unit;
  const bool batch = flat_a == flat_b;
  const int64_t sizes[] = {groups, m, n}, strides[] = {m * row, row, 1};
  const IntView shape = batch ? IntView(sizes, 3) : IntView(sizes + 1, 2),
                layout = batch ? IntView(strides, 3) : IntView(strides + 1, 2);
  Tensor out = empty_strided(shape, layout, self.dtype());
  if (!batch) zero(out);  // what no group covers
  if (!offs) {
    for (int64_t i = 0; i < groups; ++i) multiply(matrix(out, i), matrix(self, i), matrix(mat2, i));
    return out;
  }
  const std::vector<int64_t> ends = group_ends(*offs, flat_a && !flat_b ? m : flat_b && !flat_a ? n : self.size(1));
  int64_t from = 0;
  for (int64_t i = 0; i < groups; ++i) {
    const int64_t to = ends[static_cast<size_t>(i)];
    if (batch) multiply(matrix(out, i), part(self, 1, from, to), part(mat2, 0, from, to));
    else if (flat_a) multiply(part(out, 0, from, to), part(self, 0, from, to), matrix(mat2, i));
    else multiply(part(out, 1, from, to), matrix(self, i), part(mat2, 1, from, to));
    from = to;
  }
  return out;
}

}  // namespace tn
