// Batch norm: with the batch's own statistics, which may move the running ones, or with those.
#include <cmath>
#include <utility>

#include "generated/slots/norm.h"
#include "kernels/norm/batch.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/op_table.h"
#include "runtime/shape.h"

namespace tn {
namespace {

using namespace norm;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

struct Statistics {
  std::vector<double> mean, var;  // biased
};

Tensor channel_tensor(const std::vector<double>& values, ScalarType dtype) {
  const int64_t n[] = {static_cast<int64_t>(values.size())};
  const Tensor t = empty(IntView(n, 1), dtype);
  convert_row(ScalarType::Double, reinterpret_cast<const char*>(values.data()), sizeof(double), dtype,
              static_cast<char*>(t->raw_data()), static_cast<int64_t>(t.itemsize()), n[0]);
  return t;
}

void move_towards(OptionalTensor running, const std::vector<double>& values, double factor, double momentum) {
  if (!running) return;
  const auto channels = static_cast<int64_t>(values.size());
  std::vector<double> moved = channel_values(running, channels, 0);
  for (size_t c = 0; c < moved.size(); ++c) moved[c] = momentum * (values[c] * factor) + (1 - momentum) * moved[c];
  const Tensor made = channel_tensor(moved, running->dtype());
  copy_into(*running, running->sizes() == made.sizes()
                          ? made
                          : alias_with_geometry(made, running->sizes(),
                                                preserved_strides(running->sizes(), running->strides()), 0));
}

Statistics collect(const Planes& p, const void* x, OptionalTensor running_mean, OptionalTensor running_var,
                   double momentum) {
  Statistics s;
  s.mean = channel_means(p, x);
  s.var = channel_squares(p, x, s.mean.data());
  const auto count = static_cast<double>(p.each());
  move_towards(running_mean, s.mean, 1, momentum);
  move_towards(running_var, s.var, 1 / (count - 1), momentum);
  for (double& v : s.var) v /= count;
  return s;
}

void check_input(const char* op, const Tensor& input) {
  TN_CHECK_AS(NotImplemented, is_floating(input.dtype()), "\"", op, "\" not implemented for '",
              scalar_type_name(input.dtype()), "'");
  TN_CHECK(input.dim() >= 2, op, ": expected at least 2 dimensions, got ", input.dim());
}
void check_sizes(const Tensor& input, std::initializer_list<std::pair<const char*, OptionalTensor>> parameters) {
  for (const auto& [name, t] : parameters)
    TN_CHECK(!t || t->numel() == input->size(1), name, " should contain ", input->size(1), " elements not ",
             t->numel());
}

Three batch_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias, OptionalTensor running_mean,
                 OptionalTensor running_var, bool training, double momentum, double eps) {
  check_input("batch_norm", input);
  TN_CHECK(training || (running_mean && running_var),
           "batch_norm: expected running_mean and running_var in evaluation, got none");
  check_sizes(input,
              {{"running_mean", running_mean}, {"running_var", running_var}, {"weight", weight}, {"bias", bias}});
  const ScalarType saved =
      is_mixed(input, {weight, bias, running_mean, running_var}) ? ScalarType::Float : input.dtype();
  TN_CHECK(!training || input.numel() > 0,
           "input tensor must have at least one element, but got input_sizes = ", input.sizes());
  const MemoryFormat format = suggest_memory_format(input);
  const Tensor x = contiguous(input, format), out = empty(input.sizes(), input.dtype(), {}, format);
  const Planes p = planes_of(x);
  Statistics s;
  if (training) {
    s = collect(p, x->raw_data(), running_mean, running_var, momentum);
  } else {
    s.mean = channel_values(running_mean, p.channels, 0);
    s.var = channel_values(running_var, p.channels, 0);
  }
  // Variances become factors: rstd, and with the weight the scale.
  for (double& v : s.var) v = v == 0 && eps == 0 && training ? 0 : 1 / std::sqrt(v + eps);
  std::vector<double> scale = channel_values(weight, p.channels, 1), shift = channel_values(bias, p.channels, 0);
  for (size_t c = 0; c < scale.size(); ++c) {
    scale[c] *= s.var[c];
    shift[c] -= s.mean[c] * scale[c];
  }
  if (x.numel() > 0) channel_affine(p, x->raw_data(), scale.data(), shift.data(), out->raw_data());
  if (!training) return {out, empty({0}, saved), empty({0}, saved)};
  return {out, channel_tensor(s.mean, saved), channel_tensor(s.var, saved)};
}

Tensor no_reserve() { return empty({0}, ScalarType::Byte); }
Four with_reserve(Three three) {
  return {std::move(std::get<0>(three)), std::move(std::get<1>(three)), std::move(std::get<2>(three)), no_reserve()};
}

}  // namespace

namespace native {

Three native_batch_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias, OptionalTensor running_mean,
                        OptionalTensor running_var, bool training, double momentum, double eps) {
  return batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}
Three _native_batch_norm_legit(const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                               const Tensor& running_mean, const Tensor& running_var, bool training, double momentum,
                               double eps) {
  return batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}
std::tuple<const Tensor&, const Tensor&, const Tensor&> _native_batch_norm_legit_out(
    const Tensor& input, OptionalTensor weight, OptionalTensor bias, const Tensor& running_mean,
    const Tensor& running_var, bool training, double momentum, double eps, const Tensor& out, const Tensor& save_mean,
    const Tensor& save_invstd) {
  const OpInfo& op = op_infos[kOp__native_batch_norm_legit_out];
  const auto [y, mean, rstd] = batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
  write_out(op, y, out);
  write_out(op, mean, save_mean);
  write_out(op, rstd, save_invstd);
  return {out, save_mean, save_invstd};
}
Three _native_batch_norm_legit_no_stats(const Tensor& input, OptionalTensor weight, OptionalTensor bias, bool training,
                                        double momentum, double eps) {
  return batch_norm(input, weight, bias, {}, {}, training, momentum, eps);
}
Three _native_batch_norm_legit_no_training(const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                                           const Tensor& running_mean, const Tensor& running_var, double momentum,
                                           double eps) {
  return batch_norm(input, weight, bias, running_mean, running_var, false, momentum, eps);
}
Four _batch_norm_with_update(const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                             const Tensor& running_mean, const Tensor& running_var, double momentum, double eps) {
  return with_reserve(batch_norm(input, weight, bias, running_mean, running_var, true, momentum, eps));
}
std::tuple<const Tensor&, const Tensor&, const Tensor&, const Tensor&> _batch_norm_with_update_out(
    const Tensor& input, OptionalTensor weight, OptionalTensor bias, const Tensor& running_mean,
    const Tensor& running_var, double momentum, double eps, const Tensor& out, const Tensor& save_mean,
    const Tensor& save_invstd, const Tensor& reserve) {
  const OpInfo& op = op_infos[kOp__batch_norm_with_update_out];
  const auto [y, mean, rstd] = batch_norm(input, weight, bias, running_mean, running_var, true, momentum, eps);
  write_out(op, y, out);
  write_out(op, mean, save_mean);
  write_out(op, rstd, save_invstd);
  return {out, save_mean, save_invstd, reserve};
}
Four _batch_norm_no_update(const Tensor& input, OptionalTensor weight, OptionalTensor bias, OptionalTensor running_mean,
                           OptionalTensor running_var, double momentum, double eps) {
  return with_reserve(batch_norm(input, weight, bias, running_mean, running_var, false, momentum, eps));
}
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> _native_batch_norm_legit_functional(
    const Tensor& input, OptionalTensor weight, OptionalTensor bias, const Tensor& running_mean,
    const Tensor& running_var, bool training, double momentum, double eps) {
  const Tensor mean = clone(running_mean), var = clone(running_var);
  return std::tuple_cat(batch_norm(input, weight, bias, mean, var, training, momentum, eps), std::tuple(mean, var));
}
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> _batch_norm_with_update_functional(
    const Tensor& input, OptionalTensor weight, OptionalTensor bias, const Tensor& running_mean,
    const Tensor& running_var, double momentum, double eps) {
  const Tensor mean = clone(running_mean), var = clone(running_var);
  return std::tuple_cat(with_reserve(batch_norm(input, weight, bias, mean, var, true, momentum, eps)),
                        std::tuple(mean, var));
}
std::tuple<Tensor, Tensor> batch_norm_update_stats(const Tensor& input, OptionalTensor running_mean,
                                                   OptionalTensor running_var, double momentum) {
  check_input("batch_norm_update_stats_cpu", input);
  check_sizes(input, {{"running_mean", running_mean}, {"running_var", running_var}});
  const ScalarType saved = is_mixed(input, {running_mean, running_var}) ? ScalarType::Float : input.dtype();
  TN_CHECK(input.numel() > 0, "input tensor must have at least one element, but got input_sizes = ", input.sizes());
  const Tensor x = contiguous(input, suggest_memory_format(input));
  const Statistics s = collect(planes_of(x), x->raw_data(), running_mean, running_var, momentum);
  return {channel_tensor(s.mean, saved), channel_tensor(s.var, saved)};
}

}  // namespace native
}  // namespace tn
