// The optimisers' fused steps and the gradient scaler's operators: lists of tensors, one pass over memory.
#include <array>
#include <atomic>
#include <cmath>
#include <tuple>
#include <vector>

#include "generated/slots/foreach.h"
#include "kernels/common/halves.h"
#include "kernels/foreach/steps.h"
#include "kernels/foreach/stretch.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/op_table.h"
#include "runtime/refuse.h"

namespace tn {
namespace {

using foreach::StepBodies;
using foreach::StepConstants;
constexpr size_t kHalfBlock = 512;  // elements: five buffers of float stay in L1

struct StepItem {
  std::array<char*, foreach::kMaxArrays> arrays;
  int64_t n;
  ScalarType dtype;
  StepConstants constants;
};

// 16-bit floats are widened a block at a time; arrays that a step doesn't write come back with the bits that
// they had.
bool run_half(const StepBodies& bodies, ScalarType dtype, uint16_t* const* arrays, int64_t n,
              const StepConstants& constants) {
  alignas(64) float wide[foreach::kMaxArrays][kHalfBlock];
  float* at[foreach::kMaxArrays];
  for (int k = 0; k < bodies.arrays; ++k) at[k] = wide[k];
  bool found = false;
  for (int64_t done = 0; done < n; done += static_cast<int64_t>(kHalfBlock)) {
    const auto count = static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(kHalfBlock), n - done));
    for (int k = 0; k < bodies.arrays; ++k) widen(dtype, arrays[k] + done, wide[k], count);
    found |= bodies.f32(at, count, constants);
    for (int k = 0; k < bodies.arrays; ++k)
      if (k != 1 || constants.scaled) shorten(dtype, wide[k], arrays[k] + done, count);
  }
  return found;
}

bool run_step(const StepBodies& bodies, const StepItem& item, int64_t begin, int64_t end) {
  const auto from = [&]<class T>(T** at) {
    for (int k = 0; k < bodies.arrays; ++k) at[k] = reinterpret_cast<T*>(item.arrays[static_cast<size_t>(k)]) + begin;
  };
  if (item.dtype == ScalarType::Float) {
    float* at[foreach::kMaxArrays];
    from(at);
    return bodies.f32(at, static_cast<size_t>(end - begin), item.constants);
  }
  if (item.dtype == ScalarType::Double) {
    double* at[foreach::kMaxArrays];
    from(at);
    return bodies.f64(at, static_cast<size_t>(end - begin), item.constants);
  }
  uint16_t* at[foreach::kMaxArrays];
  from(at);
  return run_half(bodies, item.dtype, at, end - begin, item.constants);
}

// The lists of a step and where their elements lie. An element whose tensors don't share one dense layout
// works on copies that are written back.
class Step {
 public:
  Step(size_t op, foreach::StepIndex index, std::initializer_list<TensorList> lists)
      : info_(op_infos[op]), bodies_(foreach::step_bodies(index)) {
    const size_t count = lists.begin()->size();
    int k = 0;
    for (const TensorList& list : lists) {
      if (k == bodies_.arrays) break;
      TN_CHECK(list.size() == count, info_.name, ": expected ", count, " tensors in each list, got ", list.size(),
               " in list ", k);
      lists_[static_cast<size_t>(k++)] = list;
    }
    items_.reserve(count);
  }

  void add(const StepConstants& constants) {
    const size_t i = items_.size();
    const Tensor& first = lists_[0][i];
    StepItem item{{}, first.numel(), first.dtype(), constants};
    const ScalarType dtype = first.dtype();
    if (dtype != ScalarType::Float && dtype != ScalarType::Double && !is_reduced_float(dtype))
      refuse_dtype(info_, dtype);
    bool shared = true;
    for (size_t k = 0; k < arrays(); ++k) {
      const Tensor& t = lists_[k][i];
      TN_CHECK(t.is_cpu() && t.layout() == Layout::Strided, info_.name, ": expected strided tensors on the cpu, got ",
               t.device().str());
      TN_CHECK(t.dtype() == dtype, "expected scalar type ", scalar_type_name(dtype), " but found ",
               scalar_type_name(t.dtype()));
      TN_CHECK(t.sizes() == first.sizes(), info_.name, ": expected tensors of size ", first.sizes(), ", got ",
               t.sizes());
      shared &= t->is_non_overlapping_and_dense() && t.strides() == first.strides();
    }
    for (size_t k = 0; k < arrays(); ++k) {
      Tensor t = lists_[k][i];
      if (!shared) {
        copies_.push_back({i, k, contiguous(t)});
        if (copies_.back().copy.is_same(t)) copies_.pop_back();
        else t = copies_.back().copy;
      }
      item.arrays[k] = static_cast<char*>(t.data_ptr());
    }
    items_.push_back(item);
  }

  // Whether some body found what it looks for.
  bool run(int64_t cost) {
    std::atomic<bool> found{false};
    foreach
      ::stretch(items_, cost, false, [&](const StepItem& item, int64_t begin, int64_t end) {
        if (run_step(bodies_, item, begin, end)) found.store(true, std::memory_order_relaxed);
      });
    for (const Copy& c : copies_)
      if (c.list != 1 || items_[c.item].constants.scaled) copy_into(lists_[c.list][c.item], c.copy);
    return found.load(std::memory_order_relaxed);
  }

 private:
  struct Copy {
    size_t item, list;
    Tensor copy;
  };
  size_t arrays() const { return static_cast<size_t>(bodies_.arrays); }

  const OpInfo& info_;
  const StepBodies& bodies_;
  std::array<TensorList, foreach::kMaxArrays> lists_;
  std::vector<StepItem> items_;
  std::vector<Copy> copies_;
};

double number(const Tensor& t) { return item(t).to_double(); }

// What a gradient scaler hands over. False: a gradient was not finite and the step is left out.
bool scaler(OptionalTensor grad_scale, OptionalTensor found_inf, StepConstants& constants) {
  if (found_inf && number(*found_inf) == 1) return false;
  if (grad_scale) {
    constants.scaled = true;
    constants.grad_scale = number(*grad_scale);
  }
  return true;
}

struct AdamLists {
  TensorList self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps;
};
struct AdamNumbers {
  double lr, beta1, beta2, weight_decay, eps;
  bool amsgrad, maximize, decoupled;
};

void adam(size_t op, const AdamLists& lists, const AdamNumbers& x, OptionalTensor grad_scale,
          OptionalTensor found_inf) {
  StepConstants constants;
  if (!scaler(grad_scale, found_inf, constants)) return;
  const size_t count = lists.self.size();
  TN_CHECK(lists.max_exp_avg_sqs.size() == (x.amsgrad ? count : 0), op_infos[op].name, ": expected ",
           x.amsgrad ? count : 0, " tensors in max_exp_avg_sqs, got ", lists.max_exp_avg_sqs.size());
  TN_CHECK(lists.steps.size() == count, op_infos[op].name, ": expected ", count, " tensors in state_steps, got ",
           lists.steps.size());
  constants.beta1 = x.beta1;
  constants.beta2 = x.beta2;
  constants.eps = x.eps;
  constants.maximize = x.maximize;
  constants.weight_decay = x.decoupled ? 0 : x.weight_decay;
  constants.shrink = x.decoupled ? 1 - x.lr * x.weight_decay : 1;
  Step step(op, x.amsgrad ? foreach::kAdamMax : foreach::kAdam,
            {lists.self, lists.grads, lists.exp_avgs, lists.exp_avg_sqs, lists.max_exp_avg_sqs});
  for (size_t i = 0; i < count; ++i) {
    const double t = number(lists.steps[i]);
    constants.lr = x.lr / (1 - std::pow(x.beta1, t));
    constants.root_correction = std::sqrt(1 - std::pow(x.beta2, t));
    step.add(constants);
  }
  step.run(8);
}

void sgd(size_t op, TensorList self, TensorList grads, TensorList buffers, StepConstants constants,
         OptionalTensor grad_scale, OptionalTensor found_inf) {
  if (!scaler(grad_scale, found_inf, constants)) return;
  const bool momentum = constants.beta1 != 0;
  TN_CHECK(momentum || buffers.empty(), op_infos[op].name, ": expected no momentum buffers without momentum, got ",
           buffers.size());
  Step step(op, momentum ? foreach::kSgdMomentum : foreach::kSgd, {self, grads, buffers});
  for (size_t i = 0; i < self.size(); ++i) step.add(constants);
  step.run(3);
}

void adagrad(size_t op, TensorList self, TensorList grads, TensorList sums, TensorList steps, double lr,
             double lr_decay, StepConstants constants, OptionalTensor grad_scale, OptionalTensor found_inf) {
  if (!scaler(grad_scale, found_inf, constants)) return;
  TN_CHECK(steps.size() == self.size(), op_infos[op].name, ": expected ", self.size(), " tensors in state_steps, got ",
           steps.size());
  Step step(op, foreach::kAdagrad, {self, grads, sums});
  for (size_t i = 0; i < self.size(); ++i) {
    constants.lr = lr / (1 + (number(steps[i]) - 1) * lr_decay);
    step.add(constants);
  }
  step.run(6);
}

void check_single(const Tensor& t, ScalarType dtype, const char* name) {
  TN_CHECK(t.is_cpu(), name, " must be a CPU tensor.");
  TN_CHECK(t.numel() == 1, name, " must be a 1-element tensor.");
  TN_CHECK(t.dtype() == dtype, name, " must be ", dtype == ScalarType::Int ? "an int" : "a float", " tensor.");
}

}  // namespace

namespace native {

void _fused_adam_(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                  TensorList max_exp_avg_sqs, TensorList state_steps, double lr, double beta1, double beta2,
                  double weight_decay, double eps, bool amsgrad, bool maximize, OptionalTensor grad_scale,
                  OptionalTensor found_inf) {
  adam(kOp__fused_adam_, {self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps},
       {lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, false}, grad_scale, found_inf);
}
void _fused_adam__tensor_lr(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                            TensorList max_exp_avg_sqs, TensorList state_steps, const Tensor& lr, double beta1,
                            double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                            OptionalTensor grad_scale, OptionalTensor found_inf) {
  adam(kOp__fused_adam__tensor_lr, {self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps},
       {number(lr), beta1, beta2, weight_decay, eps, amsgrad, maximize, false}, grad_scale, found_inf);
}
void _fused_adamw_(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                   TensorList max_exp_avg_sqs, TensorList state_steps, double lr, double beta1, double beta2,
                   double weight_decay, double eps, bool amsgrad, bool maximize, OptionalTensor grad_scale,
                   OptionalTensor found_inf) {
  adam(kOp__fused_adamw_, {self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps},
       {lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, true}, grad_scale, found_inf);
}
void _fused_adamw__tensor_lr(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                             TensorList max_exp_avg_sqs, TensorList state_steps, const Tensor& lr, double beta1,
                             double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                             OptionalTensor grad_scale, OptionalTensor found_inf) {
  adam(kOp__fused_adamw__tensor_lr, {self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps},
       {number(lr), beta1, beta2, weight_decay, eps, amsgrad, maximize, true}, grad_scale, found_inf);
}

void _fused_sgd_(TensorList self, TensorList grads, TensorList momentum_buffer_list, double weight_decay,
                 double momentum, double lr, double dampening, bool nesterov, bool maximize, bool is_first_step,
                 OptionalTensor grad_scale, OptionalTensor found_inf) {
  sgd(kOp__fused_sgd_, self, grads, momentum_buffer_list,
      {.lr = lr,
       .weight_decay = weight_decay,
       .beta1 = momentum,
       .beta2 = 1 - dampening,
       .maximize = maximize,
       .nesterov = nesterov,
       .first = is_first_step},
      grad_scale, found_inf);
}
void _fused_sgd__tensor_lr(TensorList self, TensorList grads, TensorList momentum_buffer_list, double weight_decay,
                           double momentum, const Tensor& lr, double dampening, bool nesterov, bool maximize,
                           bool is_first_step, OptionalTensor grad_scale, OptionalTensor found_inf) {
  _fused_sgd_(self, grads, momentum_buffer_list, weight_decay, momentum, number(lr), dampening, nesterov, maximize,
              is_first_step, grad_scale, found_inf);
}

void _fused_adagrad_(TensorList self, TensorList grads, TensorList state_sums, TensorList state_steps, double lr,
                     double lr_decay, double weight_decay, double eps, bool maximize, OptionalTensor grad_scale,
                     OptionalTensor found_inf) {
  adagrad(kOp__fused_adagrad_, self, grads, state_sums, state_steps, lr, lr_decay,
          {.weight_decay = weight_decay, .eps = eps, .maximize = maximize}, grad_scale, found_inf);
}
void _fused_adagrad__tensor_lr(TensorList self, TensorList grads, TensorList state_sums, TensorList state_steps,
                               const Tensor& lr, double lr_decay, double weight_decay, double eps, bool maximize,
                               OptionalTensor grad_scale, OptionalTensor found_inf) {
  _fused_adagrad_(self, grads, state_sums, state_steps, number(lr), lr_decay, weight_decay, eps, maximize, grad_scale,
                  found_inf);
}

void _amp_foreach_non_finite_check_and_unscale_(TensorList self, const Tensor& found_inf, const Tensor& inv_scale) {
  check_single(inv_scale, ScalarType::Float, "inv_scale");
  check_single(found_inf, ScalarType::Float, "found_inf");
  Step step(kOp__amp_foreach_non_finite_check_and_unscale_, foreach::kUnscale, {self});
  for (size_t i = 0; i < self.size(); ++i) step.add({.lr = number(inv_scale)});
  if (step.run(2)) *found_inf.data<float>() = 1;
}

const Tensor& _amp_update_scale_(const Tensor& self, const Tensor& growth_tracker, const Tensor& found_inf,
                                 double growth, double backoff, int64_t interval) {
  check_single(growth_tracker, ScalarType::Int, "growth_tracker");
  check_single(self, ScalarType::Float, "current_scale");
  check_single(found_inf, ScalarType::Float, "found_inf");
  float& scale = *self.data<float>();
  int32_t& tracker = *growth_tracker.data<int32_t>();
  if (*found_inf.data<float>() != 0) {
    scale = static_cast<float>(scale * backoff);
    tracker = 0;
  } else if (++tracker == interval) {
    // An infinite scale would stop training for good.
    const auto grown = static_cast<float>(scale * growth);
    if (std::isfinite(grown)) scale = grown;
    tracker = 0;
  }
  return self;
}

std::tuple<std::vector<Tensor>, Tensor> _amp_foreach_non_finite_check_and_unscale(TensorList self,
                                                                                  const Tensor& found_inf,
                                                                                  const Tensor& inv_scale) {
  std::vector<Tensor> grads;
  for (const Tensor& t : self) grads.push_back(clone(t));
  Tensor found = clone(found_inf);
  _amp_foreach_non_finite_check_and_unscale_(grads, found, inv_scale);
  return {std::move(grads), std::move(found)};
}

std::tuple<Tensor, Tensor> _amp_update_scale(const Tensor& self, const Tensor& growth_tracker, const Tensor& found_inf,
                                             double growth, double backoff, int64_t interval) {
  Tensor scale = clone(self), tracker = clone(growth_tracker);
  _amp_update_scale_(scale, tracker, found_inf, growth, backoff, interval);
  return {std::move(scale), std::move(tracker)};
}

}  // namespace native
}  // namespace tn
