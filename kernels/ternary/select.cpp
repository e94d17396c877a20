// where and masked_fill: moves by element size, whatever the dtype.
#include <complex>
#include <cstring>

#include "generated/slots/ternary.h"
#include "runtime/copy.h"
#include "runtime/iterator.h"
#include "runtime/op_table.h"
#include "runtime/promote.h"
#include "runtime/shape.h"

namespace tn {
namespace {

struct Bytes16 {
  uint64_t words[2];
};

// out = mask ? a : b, in words of T. The mask is the last operand.
template <class T>
void select_row(char* const* data, const int64_t* strides, int64_t n) {
  const bool contiguous =
      strides[0] == sizeof(T) && strides[1] == sizeof(T) && strides[2] == sizeof(T) && strides[3] == 1;
  if (contiguous) {
    T* const out = reinterpret_cast<T*>(data[0]);
    const T* const a = reinterpret_cast<const T*>(data[1]);
    const T* const b = reinterpret_cast<const T*>(data[2]);
    const uint8_t* const mask = reinterpret_cast<const uint8_t*>(data[3]);
    for (int64_t i = 0; i < n; ++i) out[i] = mask[i] ? a[i] : b[i];
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const char* const from = data[3][i * strides[3]] ? data[1] + i * strides[1] : data[2] + i * strides[2];
    std::memcpy(data[0] + i * strides[0], from, sizeof(T));
  }
}

void select_rows(const TensorIterator& it, size_t item) {
  it.for_rows([item](char* const* data, const int64_t* strides, int64_t n) {
    switch (item) {
      case 1: return select_row<uint8_t>(data, strides, n);
      case 2: return select_row<uint16_t>(data, strides, n);
      case 4: return select_row<uint32_t>(data, strides, n);
      case 8: return select_row<uint64_t>(data, strides, n);
      default: return select_row<Bytes16>(data, strides, n);
    }
  });
}

// mask ? a : b, where a and b have one dtype.
Tensor select(const OpInfo& op, const Tensor& mask, const Tensor& a, const Tensor& b) {
  TensorIterator it(op);
  it.add_output(Tensor());
  it.add_input(a);
  it.add_input(b);
  it.add_input(mask);
  it.build({.promotion = Promotion::None, .cast_inputs = false, .out_dtype = a.dtype()});
  if (!it.is_meta()) select_rows(it, a.itemsize());
  return it.output();
}

// The value as a tensor of self's dtype; upstream refuses a value that the dtype can't hold.
Tensor value_for(const Tensor& self, const Scalar& value) {
  const Tensor one = empty({}, self.dtype(), self.device());
  if (!one.is_meta()) store_scalar(value, self.dtype(), one->raw_data(), true);
  return one;
}
void check_mask(const Tensor& self, const Tensor& mask) {
  TN_CHECK(mask.dtype() == ScalarType::Bool, "masked_fill_ only supports boolean masks, but got mask with dtype ",
           scalar_type_name(mask.dtype()));
  (void)self;
}
void check_value(const Tensor& value) {
  TN_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
           value.dim(), " dimension(s).");
}

void fill_masked(const Tensor& self, const Tensor& mask, const Scalar& value) {
  check_mask(self, mask);
  const Tensor number = value_for(self, value);
  TensorIterator it(op_infos[kOp_masked_fill__Scalar]);
  it.add_output(self);
  it.add_input(number);
  it.add_input(self);
  it.add_input(mask);
  it.build({.promotion = Promotion::None, .resize_outputs = false, .cast_inputs = false, .out_dtype = self.dtype()});
  if (!it.is_meta()) select_rows(it, self.itemsize());
}

}  // namespace

Tensor native::where_self(const Tensor& condition, const Tensor& self, const Tensor& other) {
  TN_CHECK(condition.dtype() == ScalarType::Bool || condition.dtype() == ScalarType::Byte,
           "where expected condition to be a boolean tensor, but got a tensor with dtype ",
           scalar_type_name(condition.dtype()));
  const ScalarType dtype = result_type(self, other);
  const Tensor a = resolve(cast(self, dtype)), b = resolve(cast(other, dtype));
  return select(op_infos[kOp_where_self], condition, a, b);
}

Tensor native::masked_fill_Scalar(const Tensor& self, const Tensor& mask, const Scalar& value) {
  check_mask(self, mask);
  return select(op_infos[kOp_masked_fill_Scalar], mask, value_for(self, value), self);
}
Tensor native::masked_fill_Tensor(const Tensor& self, const Tensor& mask, const Tensor& value) {
  check_value(value);
  check_mask(self, mask);
  return select(op_infos[kOp_masked_fill_Tensor], mask, cast(value, self.dtype()), self);
}
const Tensor& native::masked_fill__Scalar(const Tensor& self, const Tensor& mask, const Scalar& value) {
  fill_masked(self, mask, value);
  return self;
}
const Tensor& native::masked_fill__Tensor(const Tensor& self, const Tensor& mask, const Tensor& value) {
  check_value(value);
  if (value.is_meta() || self.is_meta()) check_mask(self, mask);
  else fill_masked(self, mask, item(value));
  return self;
}

}  // namespace tn
