// Losses of pairs of elements, reduced or not.
#include <atomic>
#include <vector>

#include "generated/slots/loss.h"
#include "kernels/loss/pair_rows.h"
#include "kernels/loss/reduction.h"
#include "runtime/error.h"
#include "runtime/promote.h"
#include "runtime/refuse.h"

namespace tn {
namespace {

using namespace loss;

void set_pair(Outputs& outs, const Tensor& self, const Tensor& target, int64_t reduction) {
  const ScalarType dtype = result_type(self, target);
  if (!is_floating(dtype) || is_float8(dtype)) refuse_dtype(outs.op(), dtype);
  const DimVector sizes = infer_size(self.sizes(), target.sizes());
  if (reduction == kNone) outs.set(0, sizes, dtype, self.device());
  else outs.set(0, {}, dtype, self.device());
}
// Fills outs[0] from operands broadcast to sizes; in chunks that the size alone determines.
void reduce_pairs(Outputs& outs, PairOp op, const Tensor& self, const Tensor& target, IntView sizes, int64_t reduction,
                  double p = 0, OptionalTensor weight = {}, OptionalTensor positives = {}) {
  const ScalarType dtype = outs[0].dtype();
  const auto spread = [&](OptionalTensor t) { return t ? spread_out(*t, dtype, sizes) : Tensor(); };
  const Tensor a = spread(self), b = spread(target), w = spread(weight), c = spread(positives);
  const int64_t n = a.numel();
  constexpr int64_t kChunk = 8192;
  const auto item = static_cast<int64_t>(item_size(dtype));
  std::vector<double> sums(static_cast<size_t>((n + kChunk - 1) / kChunk));
  std::atomic<bool> outside = false;
  parallel_for(0, n, kChunk, [&](int64_t begin, int64_t end) {
    const auto at = [&](const Tensor& t) -> const void* {
      return t.defined() ? static_cast<const char*>(t->raw_data()) + begin * item : nullptr;
    };
    bool bad = false;
    PairRow row{.a = at(a), .b = at(b), .c = at(c), .weight = at(w), .outside = &bad, .n = end - begin, .p = p};
    if (reduction == kNone) row.out = static_cast<char*>(outs[0]->raw_data()) + begin * item;
    else row.sum = &sums[static_cast<size_t>(begin / kChunk)];
    run_pairs(op, dtype, row);
    if (bad) outside = true;
  });
  TN_CHECK(!outside, "all elements of input should be between 0 and 1");
  if (reduction == kNone) return;
  double total = 0;
  for (const double sum : sums) total += sum;
  fill(outs[0], reduction == kMean ? total / static_cast<double>(n) : total);
}

}  // namespace

namespace slots {

void mse_loss_meta(Outputs& outs, const Tensor& self, const Tensor& target, int64_t reduction) {
  set_pair(outs, self, target, reduction);
}
void mse_loss_cpu(Outputs& outs, const Tensor& self, const Tensor& target, int64_t reduction) {
  reduce_pairs(outs, PairOp::Mse, self, target, infer_size(self.sizes(), target.sizes()), reduction);
}
void smooth_l1_loss_meta(Outputs& outs, const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
  TN_CHECK(beta >= 0, "smooth_l1_loss does not support negative values for beta.");
  set_pair(outs, self, target, reduction);
}
void smooth_l1_loss_cpu(Outputs& outs, const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
  reduce_pairs(outs, PairOp::SmoothL1, self, target, infer_size(self.sizes(), target.sizes()), reduction, beta);
}
void huber_loss_meta(Outputs& outs, const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
  TN_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
  set_pair(outs, self, target, reduction);
}
void huber_loss_cpu(Outputs& outs, const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
  reduce_pairs(outs, PairOp::Huber, self, target, infer_size(self.sizes(), target.sizes()), reduction, delta);
}

void binary_cross_entropy_meta(Outputs& outs, const Tensor& self, const Tensor&, OptionalTensor, int64_t reduction) {
  if (reduction == kNone) outs.set(0, self.sizes(), self.dtype(), self.device());
  else outs.set(0, {}, self.dtype(), self.device());
}
void binary_cross_entropy_cpu(Outputs& outs, const Tensor& self, const Tensor& target, OptionalTensor weight,
                              int64_t reduction) {
  reduce_pairs(outs, PairOp::BinaryCrossEntropy, self, target, self.sizes(), reduction, 0, weight);
}

void binary_cross_entropy_with_logits_meta(Outputs& outs, const Tensor& self, const Tensor& target,
                                           OptionalTensor weight, OptionalTensor pos_weight, int64_t reduction) {
  DimVector sizes = infer_size(self.sizes(), target.sizes());
  ResultType common;
  common.add(self);
  common.add(target);
  for (const OptionalTensor& t : {weight, pos_weight}) {
    if (!t) continue;
    sizes = infer_size(sizes, t->sizes());
    common.add(*t);
  }
  const ScalarType dtype = common.get();
  if (!is_floating(dtype)) refuse_dtype(outs.op(), dtype);
  if (reduction == kNone) outs.set(0, sizes, dtype, self.device());
  else outs.set(0, {}, dtype, self.device());
}
void binary_cross_entropy_with_logits_cpu(Outputs& outs, const Tensor& self, const Tensor& target,
                                          OptionalTensor weight, OptionalTensor pos_weight, int64_t reduction) {
  DimVector sizes = infer_size(self.sizes(), target.sizes());
  if (weight) sizes = infer_size(sizes, weight->sizes());
  if (pos_weight) sizes = infer_size(sizes, pos_weight->sizes());
  reduce_pairs(outs, pos_weight ? PairOp::WeighedLogits : PairOp::Logits, self, target, sizes, reduction, 0, weight,
               pos_weight);
}

void soft_margin_loss_meta(Outputs& outs, const Tensor& self, const Tensor& target, int64_t reduction) {
  set_pair(outs, self, target, reduction);
}
void soft_margin_loss_cpu(Outputs& outs, const Tensor& self, const Tensor& target, int64_t reduction) {
  reduce_pairs(outs, PairOp::SoftMargin, self, target, infer_size(self.sizes(), target.sizes()), reduction);
}

}  // namespace slots
}  // namespace tn
