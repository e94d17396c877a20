#include <cstring>
#include <string>

#include "generated/ops/copy.h"
#include "runtime/copy.h"
#include "runtime/door.h"
#include "runtime/error.h"
#include "runtime/shape.h"
#include "runtime/slots.h"

namespace tn {

namespace {

void check_given(const Tensor& given, Outputs::Form form, IntView sizes, ScalarType dtype, Device device) {
  if (form == Outputs::Form::Inplace) {
    TN_CHECK(given.dtype() == dtype, "Bad in-place call: input tensor dtype ", element_type_name(given.dtype()),
             " and output tensor dtype ", element_type_name(dtype), " should match");
    TN_CHECK(given.device().type == device.type, "Bad in-place call: input tensor device ", given.device().str(),
             " and output tensor device ", device.str(), " should match");
    TN_CHECK(given.sizes() == sizes, "Bad in-place call: input tensor size ", given.sizes(), " and output tensor size ",
             sizes, " should match");
    return;
  }
  TN_CHECK(given.dtype() == dtype, "Expected out tensor to have dtype ", element_type_name(dtype), ", but got ",
           element_type_name(given.dtype()), " instead");
  TN_CHECK(given.device().type == device.type, "Expected out tensor to have device ", device.str(), ", but got ",
           given.device().str(), " instead");
}

// Strides of dimensions with one element, and of tensors without any, don't matter.
bool strides_fit(const Tensor& t, IntView strides) {
  if (t.numel() == 0) return true;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t->size(d) != 1 && t->stride(d) != strides[static_cast<size_t>(d)]) return false;
  return true;
}

}  // namespace

Outputs::Outputs(const OpInfo& op, Form form, std::span<const Tensor* const> given) : op_(op), form_(form) {
  TN_CHECK(given.size() <= kMax, "Outputs: expected at most ", kMax, " results, got ", given.size());
  for (size_t i = 0; i < given.size(); ++i) given_[i] = given[i];
}

void Outputs::set(int i, IntView sizes, ScalarType dtype, Device device, MemoryFormat format) {
  const auto k = static_cast<size_t>(i);
  if (form_ == Form::Functional || given_[k] == nullptr) {
    work_[k] = empty(sizes, dtype, device, format);
    return;
  }
  const Tensor& given = *given_[k];
  check_given(given, form_, sizes, dtype, device);
  if (form_ == Form::Out) resize_output(given, sizes, format);
  const bool direct = given.is_meta() || (given.is_contiguous(format) && !given->is_conj() && !given->is_neg());
  work_[k] = direct ? given : empty(sizes, dtype, device, format);
}

void Outputs::set_strided(int i, IntView sizes, IntView strides, ScalarType dtype, Device device) {
  const auto k = static_cast<size_t>(i);
  if (form_ == Form::Functional || given_[k] == nullptr) {
    work_[k] = empty_strided(sizes, strides, dtype, device);
    return;
  }
  const Tensor& given = *given_[k];
  check_given(given, form_, sizes, dtype, device);
  if (form_ == Form::Out && resize_output(given, sizes)) {
    const size_t bytes = storage_bytes(sizes, strides, given.storage_offset(), given.itemsize());
    if (bytes > given.storage()->nbytes()) given.storage()->resize(bytes);
    given->set_geometry(sizes, strides, given.storage_offset());
  }
  const bool direct = given.is_meta() || (strides_fit(given, strides) && !given->is_conj() && !given->is_neg());
  work_[k] = direct ? given : empty_strided(sizes, strides, dtype, device);
}

void Outputs::finish() {
  for (size_t k = 0; k < kMax; ++k) {
    if (given_[k] == nullptr || !work_[k].defined() || work_[k].is_same(*given_[k])) continue;
    copy_into(*given_[k], work_[k]);
    work_[k] = *given_[k];
  }
}

namespace {

void check_cast(const Tensor& result, const Tensor& target) {
  TN_CHECK(can_cast(result.dtype(), target.dtype()), "result type ", scalar_type_name(result.dtype()),
           " can't be cast to the desired output type ", scalar_type_name(target.dtype()));
}

// Composites run above autograd: their write is a call that it sees, and that counts the version.
void write(const OpInfo& op, const Tensor& target, const Tensor& result) {
  if (op.is(OpInfo::kImplicit)) {
    at::copy_(target, result);
  } else {
    copy_into(target, result);
  }
}

}  // namespace

void write_inplace(const OpInfo& op, const Tensor& result, const Tensor& self) {
  if (result.is_same(self)) return;
  TN_CHECK(result.sizes() == self.sizes(), "output with shape ", self.sizes(), " doesn't match the broadcast shape ",
           result.sizes());
  check_cast(result, self);
  write(op, self, result);
}

void write_out(const OpInfo& op, const Tensor& result, const Tensor& out) {
  if (result.is_same(out)) return;
  if (op.is(OpInfo::kImplicit) && grad_mode())
    TN_CHECK(!result.requires_grad() && !out.requires_grad(), op.name + std::strlen("aten::"),
             "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
             "requires grad.");
  check_cast(result, out);
  TN_CHECK(result.device().type == out.device().type, "Expected out tensor to have device ", result.device().str(),
           ", but got ", out.device().str(), " instead");
  if (resize_output(out, result.sizes()) && !result.is_contiguous() && result->is_non_overlapping_and_dense())
    out->set_geometry(result.sizes(), result.strides(), out.storage_offset());
  write(op, out, result);
}

}  // namespace tn
