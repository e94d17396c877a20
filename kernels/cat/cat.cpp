#include "kernels/cat/cat.h"

#include <algorithm>
#include <cstring>

#include "generated/slots/cat.h"
#include "runtime/copy.h"
#include "runtime/overlap.h"
#include "runtime/promote.h"
#include "runtime/shape.h"
#include "runtime/threads.h"

namespace tn {
namespace {

// An old rule: tensors of shape [0] fit to anything.
bool skipped(const Tensor& t) { return t.dim() == 1 && t.numel() == 0; }

MemoryFormat result_format(TensorList tensors) {
  MemoryFormat format = suggest_memory_format(tensors[0]);
  for (const Tensor& t : tensors)
    if (suggest_memory_format(t) != format) return MemoryFormat::Contiguous;
  return format;
}

struct CatPlan {
  int64_t dim = 0;
  const Tensor* model = nullptr;  // the first that isn't skipped
  DimVector sizes;
  ScalarType dtype = ScalarType::Undefined;
  MemoryFormat format = MemoryFormat::Contiguous;
};

void check_shape(const Tensor& model, const Tensor& t, int64_t dim, size_t index) {
  TN_CHECK(model.dim() == t.dim(), "Tensors must have same number of dimensions: got ", model.dim(), " and ", t.dim());
  for (int64_t d = 0; d < model.dim(); ++d)
    TN_CHECK(d == dim || model->size(d) == t->size(d), "Sizes of tensors must match except in dimension ", dim,
             ". Expected size ", model->size(d), " but got size ", t->size(d), " for tensor number ", index,
             " in the list.");
}

CatPlan plan_cat(TensorList tensors, int64_t dim) {
  TN_CHECK_AS(Value, !tensors.empty(), "torch.cat(): expected a non-empty list of Tensors");
  CatPlan plan;
  ResultType type;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    TN_CHECK(t.dim() > 0, "zero-dimensional tensor (at position ", i, ") cannot be concatenated");
    TN_CHECK(t.device().type == tensors[0].device().type, "Tensor on device ", t.device().str(),
             " is not on the expected device ", tensors[0].device().str(), "!");
    if (!plan.model && !skipped(t)) plan.model = &t;
    type.add(t);
  }
  plan.dtype = type.get();
  plan.format = result_format(tensors);
  if (!plan.model) {
    plan.sizes = DimVector(1, 0);
    return plan;
  }
  plan.dim = wrap_dim(dim, plan.model->dim());
  plan.sizes = DimVector(plan.model->sizes());
  int64_t total = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (skipped(tensors[i])) continue;
    check_shape(*plan.model, tensors[i], plan.dim, i);
    total += tensors[i]->size(plan.dim);
  }
  plan.sizes[static_cast<size_t>(plan.dim)] = total;
  return plan;
}

// Contiguous operands of one dtype: the result's rows are the inputs' rows, one after the other.
void copy_rows(TensorList tensors, const CatPlan& plan, const Tensor& out) {
  const int64_t outer = product(plan.sizes.operator IntView().slice(0, static_cast<size_t>(plan.dim)));
  const auto item = static_cast<int64_t>(out.itemsize());
  const int64_t row = out.numel() / outer * item;
  char* to = static_cast<char*>(out.data_ptr());
  struct Piece {
    const char* from;
    int64_t bytes;
  };
  std::vector<Piece> pieces;
  pieces.reserve(tensors.size());
  for (const Tensor& t : tensors)
    if (t.numel() != 0) pieces.push_back({static_cast<const char*>(t.data_ptr()), t.numel() / outer * item});
  parallel_for(0, outer, std::max<int64_t>((int64_t{1} << 18) / std::max<int64_t>(row, 1), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t o = begin; o < end; ++o) {
                   char* at = to + o * row;
                   for (const Piece& p : pieces) {
                     std::memcpy(at, p.from + o * p.bytes, static_cast<size_t>(p.bytes));
                     at += p.bytes;
                   }
                 }
               });
}

void fill_cat(TensorList tensors, const CatPlan& plan, const Tensor& out) {
  if (out.is_meta() || out.numel() == 0) return;
  bool rows = out.is_contiguous();
  for (const Tensor& t : tensors) rows = rows && (t.numel() == 0 || (t.is_contiguous() && t.dtype() == out.dtype()));
  if (rows && product(plan.sizes.operator IntView().slice(0, static_cast<size_t>(plan.dim))) > 1)
    return copy_rows(tensors, plan, out);
  int64_t at = out.storage_offset();
  for (const Tensor& t : tensors) {
    if (skipped(t)) continue;
    if (t.numel() != 0) copy_into(alias_with_geometry(out, t.sizes(), out.strides(), at), t);
    at += t->size(plan.dim) * out->stride(plan.dim);
  }
}

}  // namespace

Tensor concatenate(TensorList tensors, int64_t dim) {
  const CatPlan plan = plan_cat(tensors, dim);
  Tensor out = empty(plan.sizes, plan.dtype, tensors[0].device(), plan.format);
  fill_cat(tensors, plan, out);
  return out;
}

Tensor native::cat(TensorList tensors, int64_t dim) { return concatenate(tensors, dim); }

const Tensor& native::cat_out(TensorList tensors, int64_t dim, const Tensor& out) {
  const CatPlan plan = plan_cat(tensors, dim);
  TN_CHECK_AS(Type, can_cast(plan.dtype, out.dtype()),
              "torch.cat(): input types can't be cast to the desired output type ", scalar_type_name(out.dtype()));
  TN_CHECK(out.device().type == tensors[0].device().type, "Expected out tensor to have device ",
           tensors[0].device().str(), ", but got ", out.device().str(), " instead");
  resize_output(out, plan.sizes, plan.format);
  if (plan.model) {
    assert_no_internal_overlap(out);
    for (const Tensor& t : tensors) assert_no_overlap(out, t);
  }
  fill_cat(tensors, plan, out);
  return out;
}

}  // namespace tn
