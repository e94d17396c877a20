// Products of eight-bit integers: _int_mm sums in 32 bits; _weight_int8pack_mm multiplies floats by int8 weights with a
// scale for each output.
#include <algorithm>
#include <vector>

#include "generated/slots/matmul.h"
#include "kernels/matmul/checks.h"
#include "runtime/copy.h"
#include "runtime/overlap.h"
#include "runtime/refuse.h"

namespace tn {
namespace {

using namespace matmul;

void check_int_mm(const Tensor& self, const Tensor& mat2, const Tensor* out) {
#define TN_INT_MM "int_mm_out_cpu: "
  TN_CHECK(self.dim() == 2, TN_INT_MM "Expected self to be of dimension 2 but got ", self.dim());
  TN_CHECK(self.size(1) == mat2.size(0), TN_INT_MM "self.size(1) needs to match mat2.size(0) but got ", self.size(1),
           " and ", mat2.size(0));
  (void)mat2.size(1);  // IndexError for a vector
  TN_CHECK(mat2.dim() == 2, TN_INT_MM "Expected mat2 to be of dimension 2 but got ", mat2.dim());
  TN_CHECK(self.dtype() == ScalarType::Char || self.dtype() == ScalarType::Byte,
           TN_INT_MM "Expected self dtype to be int8 or uint8 but got ", element_type_name(self.dtype()));
  TN_CHECK(mat2.dtype() == ScalarType::Char, TN_INT_MM "Expected mat2 dtype to be of type int8 but got ",
           element_type_name(mat2.dtype()));
  if (out == nullptr) return;
  TN_CHECK(out->dtype() == ScalarType::Int, TN_INT_MM "Expected result dtype to be of type kInt but got ",
           element_type_name(out->dtype()));
  TN_CHECK(out->dim() == 2, TN_INT_MM "Expected result to be of dimension 2 but got ", out->dim());
  TN_CHECK(out->size(0) == self.size(0), TN_INT_MM "Expected result.size(0) to be ", self.size(0), " but got ",
           out->size(0));
  TN_CHECK(out->size(1) == mat2.size(1), TN_INT_MM "Expected result.size(1) to be ", mat2.size(1), " but got ",
           out->size(1));
#undef TN_INT_MM
}

}  // namespace

const Tensor& native::_int_mm_out(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  check_int_mm(self, mat2, &out);
  if (out.numel() == 0) return out;
  if (self->size(1) == 0) {
    zero(out);
    return out;
  }
  run_product(out, cast(self, ScalarType::Int), cast(mat2, ScalarType::Int), 0, 1);
  return out;
}

Tensor native::_int_mm(const Tensor& self, const Tensor& mat2) {
  check_int_mm(self, mat2, nullptr);
  const int64_t sizes[] = {self->size(0), mat2->size(1)};
  Tensor out = empty(IntView(sizes, 2), ScalarType::Int);
  _int_mm_out(self, mat2, out);
  return out;
}

Tensor native::_weight_int8pack_mm(const Tensor& self, const Tensor& mat2, const Tensor& scales) {
#define TN_INT8 "_weight_int8pack_mm_cpu : "
  TN_CHECK(
      self.dtype() == ScalarType::Float || self.dtype() == ScalarType::BFloat16 || self.dtype() == ScalarType::Half,
      TN_INT8 "expect A to be either 32-bit or 16-bit float tensor.");
  TN_CHECK(self.is_contiguous(), TN_INT8 "expect A to be contiguous.");
  TN_CHECK(self.dim() == 2, TN_INT8 "expect A to be 2D tensor.");
  TN_CHECK(mat2.dtype() == ScalarType::Char, TN_INT8 "expect B to be int8 tensor.");
  TN_CHECK(mat2.is_contiguous(), TN_INT8 "expect B to be contiguous.");
  TN_CHECK(mat2.dim() == 2 && mat2->size(1) == self->size(1), TN_INT8 "expect B.size(1) == ", self->size(1));
  TN_CHECK(scales.dim() == 1 && scales->size(0) == mat2->size(0), TN_INT8 "expect scales to be 1d tensor with size ",
           mat2->size(0));
#undef TN_INT8
  const int64_t m = self->size(0), n = mat2->size(0), k = self->size(1);
  const int64_t sizes[] = {m, n};
  const Tensor wide = empty(IntView(sizes, 2), ScalarType::Float);
  const Tensor a = cast(self, ScalarType::Float), scale = contiguous(cast(scales, ScalarType::Float));
  // Weights are widened a band at a time: they are the large operand.
  constexpr int64_t kBand = 64;
  std::vector<float> band(static_cast<size_t>(kBand * k));
  for (int64_t from = 0; from < n; from += kBand) {
    const int64_t count = std::min(kBand, n - from);
    convert_row(ScalarType::Char, static_cast<const char*>(mat2->raw_data()) + from * k, 1, ScalarType::Float,
                reinterpret_cast<char*>(band.data()), sizeof(float), count * k);
    gemm::gemm(ScalarType::Float, m, count, k, {a->raw_data(), k, 1}, {band.data(), 1, k},
               {wide.data<float>() + from, n, 1});
  }
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) wide.data<float>()[i * n + j] *= scale.data<float>()[j];
  return cast(wide, self.dtype());
}

}  // namespace tn
