// Operators over lists whose element's operator is no row: norms, copies, products.
#include <cmath>

#include "generated/ops/abs.h"
#include "generated/ops/clone.h"
#include "generated/ops/copy.h"
#include "generated/ops/linalg_vector_norm.h"
#include "generated/ops/max.h"
#include "generated/ops/mm.h"
#include "generated/ops/pow.h"
#include "generated/ops/sum.h"
#include "generated/ops/zero.h"
#include "generated/ops/zeros_like.h"
#include "kernels/foreach/foreach.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/op_table.h"

namespace tn::foreach {
namespace {

template <class F>
std::vector<Tensor> collect(TensorList self, F&& f) {
  std::vector<Tensor> results;
  results.reserve(self.size());
  for (size_t i = 0; i < self.size(); ++i) results.push_back(f(i));
  return results;
}

}  // namespace

std::vector<Scalar> unpack_numbers(const Tensor& packed, size_t count) {
  TN_CHECK(packed.is_cpu(), "Expected scalars to be on CPU, got ", packed.device().str(), " instead.");
  TN_CHECK(packed.is_contiguous(), "Expected scalars to be contiguous.");
  TN_CHECK(packed.dim() == 1, "Expected packed scalar Tensor to be of dimension 1. Got ", packed.dim(), " instead.");
  TN_CHECK(packed.numel() == static_cast<int64_t>(count), "Expected length of scalars to match input of length ", count,
           " but got ", packed.numel(), " instead.");
  std::vector<Scalar> numbers;
  numbers.reserve(count);
  for (size_t i = 0; i < count; ++i)
    numbers.push_back(item(alias_with_geometry(packed, {}, {}, packed.storage_offset() + static_cast<int64_t>(i))));
  return numbers;
}

std::vector<Tensor> norm(TensorList self, const Scalar& ord, std::optional<ScalarType> dtype) {
  check_lists({self});
  const double p = ord.to_double();
  if (std::isinf(p) && p > 0)
    for (const Tensor& t : self)
      TN_CHECK(t.numel() > 0,
               "_foreach_norm cannot compute the infinity norm on an empty tensor because the operation does "
               "not have an identity");
  return collect(self, [&](size_t i) { return at::linalg_vector_norm(self[i], ord, std::nullopt, false, dtype); });
}

std::vector<Tensor> powsum(TensorList self, const Scalar& ord, std::optional<ScalarType> dtype) {
  check_lists({self});
  return collect(self, [&](size_t i) {
    if (is_integral(self[i].dtype(), true))
      fail(ErrorKind::NotImplemented, "\"powsum_cpu\" not implemented for '", scalar_type_name(self[i].dtype()), "'");
    const Tensor magnitude = at::abs(dtype ? cast(self[i], *dtype) : self[i]);
    return at::sum(at::pow(magnitude, ord), dtype);
  });
}

std::vector<Tensor> max(TensorList self) {
  check_lists({self});
  for (const Tensor& t : self)
    TN_CHECK(t.numel() > 0,
             "_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is undefined.");
  return collect(self, [&](size_t i) { return at::max(self[i]); });
}

std::vector<Tensor> mm(TensorList self, TensorList mat2) {
  TN_CHECK(!self.empty() && !mat2.empty(), "_foreach_mm requires non-empty tensor lists");
  check_lists({self, mat2});
  return collect(self, [&](size_t i) { return at::mm(self[i], mat2[i]); });
}

std::vector<Tensor> pow(const Scalar& self, TensorList exponent) {
  check_lists({exponent});
  return collect(exponent, [&](size_t i) { return at::pow(self, exponent[i]); });
}

std::vector<Tensor> clone(TensorList self, std::optional<MemoryFormat> format) {
  check_lists({self});
  return collect(self, [&](size_t i) { return at::clone(self[i], format); });
}

std::vector<Tensor> copy(TensorList self, TensorList src, bool non_blocking) {
  check_lists({self, src});
  return collect(self, [&](size_t i) { return at::copy(self[i], src[i], non_blocking); });
}

void copy_(TensorList self, TensorList src, bool non_blocking) {
  check_lists({self, src});
  for (size_t i = 0; i < self.size(); ++i) at::copy_(self[i], src[i], non_blocking);
}

void zero_(TensorList self) {
  check_lists({self});
  for (const Tensor& t : self) at::zero_(t);
}

std::vector<Tensor> zeros(TensorList self) {
  check_lists({self});
  return collect(self, [&](size_t i) { return at::zeros_like(self[i]); });
}

}  // namespace tn::foreach

namespace tn {

void write_out(const OpInfo& op, const std::vector<Tensor>& results, TensorList out) {
  TN_CHECK(results.size() == out.size(), op.name, ": expected ", results.size(), " tensors in out, got ", out.size());
  for (size_t i = 0; i < results.size(); ++i) write_out(op, results[i], out[i]);
}

}  // namespace tn
