// Connectionist temporal classification: sums over all alignments of a target with blanks between, in logarithms.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "generated/ops/_ctc_loss.h"
#include "generated/ops/clamp_min.h"
#include "generated/ops/ctc_loss.h"
#include "generated/ops/div.h"
#include "generated/ops/empty.h"
#include "generated/ops/eq.h"
#include "generated/ops/mean.h"
#include "generated/ops/squeeze.h"
#include "generated/ops/sum.h"
#include "generated/ops/unsqueeze.h"
#include "generated/ops/where.h"
#include "generated/ops/zeros.h"
#include "generated/slots/loss.h"
#include "kernels/loss/composites.h"
#include "kernels/loss/reduction.h"
#include "runtime/error.h"
#include "runtime/keyset.h"

namespace tn {
namespace {

using namespace loss;

// Targets by sample, whichever way they came: side by side in one row, or a row each.
struct Problem {
  int64_t steps, batch, labels, blank, longest = 0;
  Tensor targets;
  std::vector<int64_t> offsets, lengths, inputs;

  int64_t states() const { return 2 * longest + 1; }
  // The label of a state: blanks stand at the even ones.
  int64_t label(int64_t sample, int64_t state) const {
    return state % 2 == 0 ? blank : targets.data<int64_t>()[offsets[static_cast<size_t>(sample)] + state / 2];
  }
  int64_t length(int64_t sample) const { return lengths[static_cast<size_t>(sample)]; }
  int64_t input(int64_t sample) const { return inputs[static_cast<size_t>(sample)]; }
};

Problem make_problem(const char* op, const Tensor& log_probs, const Tensor& targets, IntView inputs, IntView lengths,
                     int64_t blank) {
  TN_CHECK_AS(NotImplemented, log_probs.dtype() == ScalarType::Float || log_probs.dtype() == ScalarType::Double, "\"",
              op, "\" not implemented for '", scalar_type_name(log_probs.dtype()), "'");
  TN_CHECK(log_probs.dim() == 3, "Expected 3-dimensional tensor, but got ", log_probs.dim(),
           "-dimensional tensor for argument #1 'log_probs' (while checking arguments for ", op, ")");
  TN_CHECK(log_probs.numel() > 0, "log_probs tensor must not be empty");
  TN_CHECK(targets.dtype() == ScalarType::Long || targets.dtype() == ScalarType::Int,
           "Expected tensor for argument #2 'targets' to have scalar type "
           "Long or Int, but got ",
           scalar_type_name(targets.dtype()), " (while checking arguments for ", op, ")");
  TN_CHECK(targets.dim() == 1 || targets.dim() == 2, "Expected 1 to 2 dimensions, but got ", targets.dim(),
           "-dimensional tensor for argument #2 'targets' (while checking arguments for ", op, ")");
  Problem p{log_probs->size(0),
            log_probs->size(1),
            log_probs->size(2),
            blank,
            0,
            contiguous(cast(targets, ScalarType::Long)),
            {},
            lengths.vec(),
            inputs.vec()};
  TN_CHECK(blank >= 0 && blank < p.labels, "blank must be in label range");
  TN_CHECK(inputs.ssize() == p.batch, "input_lengths must be of size batch_size");
  TN_CHECK(lengths.ssize() == p.batch, "target_lengths must be of size batch_size");
  int64_t total = 0;
  for (int64_t i = 0; i < p.batch; ++i) {
    TN_CHECK(p.length(i) >= 0, "Expected target_lengths to have value at least ", 0, ", but got value ", p.length(i),
             " (while checking arguments for ", op, ")");
    TN_CHECK(p.input(i) >= 0, "Expected input_lengths to have value at least ", 0, ", but got value ", p.input(i),
             " (while checking arguments for ", op, ")");
    TN_CHECK(p.input(i) <= p.steps, "Expected input_lengths to have value at most ", p.steps, ", but got value ",
             p.input(i), " (while checking arguments for ", op, ")");
    p.longest = std::max(p.longest, p.length(i));
    p.offsets.push_back(targets.dim() == 1 ? total : i * targets->size(1));
    total += p.length(i);
  }
  if (targets.dim() == 1) {
    TN_CHECK(targets.numel() == total, "Expected tensor to have size ", total, " at dimension 0, but got size ",
             targets.numel(), " for argument #2 'targets' (while checking arguments for ", op, ")");
  } else {
    TN_CHECK(targets->size(0) == p.batch, "Expected tensor to have size ", p.batch, " at dimension 0, but got size ",
             targets->size(0), " for argument #2 'targets' (while checking arguments for ", op, ")");
    TN_CHECK(targets->size(1) >= p.longest, "Expected tensor to have size at least ", p.longest,
             " at dimension 1, but got size ", targets->size(1),
             " for argument #2 'targets' (while checking arguments for ", op, ")");
  }
  // Upstream reads out of bounds below.
  for (int64_t i = 0; i < p.batch; ++i)
    for (int64_t k = 0; k < p.length(i); ++k) {
      const int64_t label = p.label(i, 2 * k + 1);
      TN_CHECK(label >= 0 && label < p.labels, op, ": expected targets in [0, ", p.labels, "), got ", label);
    }
  return p;
}

template <class T>
T log_sum(T a, T b, T c) {
  T top = std::max(a, std::max(b, c));
  if (top == -std::numeric_limits<T>::infinity()) top = 0;
  return std::log(std::exp(a - top) + std::exp(b - top) + std::exp(c - top)) + top;
}

template <class T>
void forward(const Problem& p, const Tensor& probs, const Tensor& losses, const Tensor& alphas) {
  constexpr T kLow = -std::numeric_limits<T>::infinity();
  const int64_t states = p.states();
  parallel_for(0, p.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t length = p.length(b), used = 2 * length + 1, steps = p.input(b);
      T* const alpha = alphas.data<T>() + b * p.steps * states;
      const auto prob = [&](int64_t t, int64_t state) {
        return probs.data<T>()[(t * p.batch + b) * p.labels + p.label(b, state)];
      };
      std::fill(alpha, alpha + p.steps * states, kLow);
      if (steps > 0) {
        alpha[0] = prob(0, 0);
        if (length > 0) alpha[1] = prob(0, 1);
      }
      for (int64_t t = 1; t < steps; ++t) {
        const T* const before = alpha + (t - 1) * states;
        for (int64_t s = 0; s < used; ++s) {
          const T one = s > 0 ? before[s - 1] : kLow,
                  two = s > 1 && p.label(b, s - 2) != p.label(b, s) ? before[s - 2] : kLow;
          alpha[t * states + s] = log_sum(before[s], one, two) + prob(t, s);
        }
      }
      T& loss = losses.data<T>()[b];
      if (steps == 0) {
        loss = length == 0 ? T{0} : -kLow;
        continue;
      }
      const T* const last = alpha + (steps - 1) * states;
      loss = length == 0 ? -last[0] : -log_sum(last[2 * length], last[2 * length - 1], kLow);
    }
  });
}

template <class T>
void backward(const Problem& p, const Tensor& grad_output, const Tensor& probs, const Tensor& losses,
              const Tensor& alphas, bool zero_infinity, const Tensor& grads) {
  constexpr T kLow = -std::numeric_limits<T>::infinity();
  const int64_t states = p.states(), row = p.batch * p.labels;
  parallel_for(0, p.batch, 1, [&](int64_t begin, int64_t end) {
    std::vector<T> beta(static_cast<size_t>(states)), after(beta.size());
    for (int64_t b = begin; b < end; ++b) {
      const int64_t length = p.length(b), used = 2 * length + 1, steps = p.input(b);
      const T nll = losses.data<T>()[b], up = grad_output.data<T>()[b];
      const T* const alpha = alphas.data<T>() + b * p.steps * states;
      T* const grad = grads.data<T>() + b * p.labels;
      const T* const prob = probs.data<T>() + b * p.labels;
      const bool none = zero_infinity && nll == -kLow;
      for (int64_t t = 0; t < p.steps; ++t)
        std::fill(grad + t * row, grad + t * row + p.labels, none || t >= steps ? T{0} : kLow);
      if (none) continue;
      for (int64_t t = steps - 1; t >= 0; --t) {
        for (int64_t s = used - 1; s >= 0; --s) {
          T value;
          if (t == steps - 1) {
            value = s >= used - 2 ? T{0} : kLow;
          } else {
            const T one = s < used - 1 ? after[static_cast<size_t>(s + 1)] : kLow;
            const T two = s < used - 2 && p.label(b, s + 2) != p.label(b, s) ? after[static_cast<size_t>(s + 2)] : kLow;
            value = log_sum(after[static_cast<size_t>(s)], one, two);
          }
          beta[static_cast<size_t>(s)] = value + prob[t * row + p.label(b, s)];
          T& sum = grad[t * row + p.label(b, s)];
          sum = log_sum(sum, alpha[t * states + s] + beta[static_cast<size_t>(s)], kLow);
        }
        std::swap(beta, after);
        for (int64_t c = 0; c < p.labels; ++c) {
          T& g = grad[t * row + c];
          g = (std::exp(prob[t * row + c]) - std::exp(g + nll - prob[t * row + c])) * up;
        }
      }
    }
  });
}

std::vector<int64_t> lengths_of(const Tensor& t, const char* name) {
  TN_CHECK(is_integral(t.dtype(), false), name, " must be integral");
  const Tensor flat = contiguous(cast(t, ScalarType::Long));
  return std::vector<int64_t>(flat.data<int64_t>(), flat.data<int64_t>() + flat.numel());
}

std::tuple<Tensor, Tensor> loss_of(const Tensor& log_probs, const Tensor& targets, IntView inputs, IntView lengths,
                                   int64_t blank) {
  const Problem p = make_problem("ctc_loss_cpu", log_probs, targets, inputs, lengths, blank);
  const Tensor probs = contiguous(log_probs), losses = empty({p.batch}, log_probs.dtype());
  const int64_t sizes[] = {p.batch, p.steps, p.states()};
  const Tensor alphas = empty(IntView(sizes, 3), log_probs.dtype());
  if (log_probs.dtype() == ScalarType::Double) forward<double>(p, probs, losses, alphas);
  else forward<float>(p, probs, losses, alphas);
  return {losses, alphas};
}
Tensor gradient_of(const Tensor& grad, const Tensor& log_probs, const Tensor& targets, IntView inputs, IntView lengths,
                   const Tensor& nll, const Tensor& log_alpha, int64_t blank, bool zero_infinity) {
  const Problem p = make_problem("ctc_loss_backward_cpu", log_probs, targets, inputs, lengths, blank);
  TN_CHECK(grad.numel() == p.batch && nll.numel() == p.batch && log_alpha.numel() == p.batch * p.steps * p.states(),
           "_ctc_loss_backward: expected the loss's own results, got sizes ", nll.sizes(), " and ", log_alpha.sizes());
  const Tensor out = empty(log_probs.sizes(), log_probs.dtype());
  const Tensor g = contiguous(cast(grad, log_probs.dtype())), probs = contiguous(log_probs), losses = contiguous(nll),
               alphas = contiguous(log_alpha);
  if (log_probs.dtype() == ScalarType::Double) backward<double>(p, g, probs, losses, alphas, zero_infinity, out);
  else backward<float>(p, g, probs, losses, alphas, zero_infinity, out);
  return out;
}

}  // namespace

namespace native {

std::tuple<Tensor, Tensor> _ctc_loss(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                                     IntArrayRef target_lengths, int64_t blank, bool) {
  return loss_of(log_probs, targets, input_lengths, target_lengths, blank);
}
std::tuple<Tensor, Tensor> _ctc_loss_Tensor(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                                            const Tensor& target_lengths, int64_t blank, bool) {
  return loss_of(log_probs, targets, lengths_of(input_lengths, "input_lengths"),
                 lengths_of(target_lengths, "target_lengths"), blank);
}
Tensor _ctc_loss_backward(const Tensor& grad, const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                          IntArrayRef target_lengths, const Tensor& neg_log_likelihood, const Tensor& log_alpha,
                          int64_t blank, bool zero_infinity) {
  return gradient_of(grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank,
                     zero_infinity);
}
Tensor _ctc_loss_backward_Tensor(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                                 const Tensor& input_lengths, const Tensor& target_lengths,
                                 const Tensor& neg_log_likelihood, const Tensor& log_alpha, int64_t blank,
                                 bool zero_infinity) {
  return gradient_of(grad, log_probs, targets, lengths_of(input_lengths, "input_lengths"),
                     lengths_of(target_lengths, "target_lengths"), neg_log_likelihood, log_alpha, blank, zero_infinity);
}

}  // namespace native

namespace composite {
namespace {

Tensor finish(Tensor res, const Tensor& lengths, int64_t reduction, bool zero_infinity, bool batched) {
  if (zero_infinity) {
    const Tensor zero = at::zeros(IntView(), res.dtype(), res.layout(), res.device());
    res = at::where(at::eq(res, Scalar(std::numeric_limits<double>::infinity())), zero, res);
  }
  if (reduction == kMean) return at::mean(at::div(res, at::clamp_min(lengths, Scalar(1))));
  if (reduction == kSum) return at::sum(res);
  return batched ? res : at::squeeze(res, 0);
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntView inputs, IntView lengths, int64_t blank,
                int64_t reduction, bool zero_infinity) {
  const bool batched = log_probs.dim() == 3;
  Tensor res = std::get<0>(
      at::_ctc_loss(batched ? log_probs : at::unsqueeze(log_probs, 1), targets, inputs, lengths, blank, zero_infinity));
  if (reduction != kMean) return finish(std::move(res), {}, reduction, zero_infinity, batched);
  const int64_t n[] = {lengths.ssize()};
  const Tensor counts = empty(IntView(n, 1), res.dtype());
  for (size_t i = 0; i < lengths.size(); ++i)
    visit_floating(res.dtype(), [&]<class T>() { counts.data<T>()[i] = convert<T>(static_cast<double>(lengths[i])); });
  return finish(std::move(res), counts, reduction, zero_infinity, batched);
}

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& inputs, const Tensor& lengths,
                int64_t blank, int64_t reduction, bool zero_infinity) {
  bool watched = (thread_state.included & KeySet(DispatchKey::Python).raw()) != 0;
  for (const Tensor* t : {&log_probs, &targets, &inputs, &lengths})
    watched = watched || !t->is_cpu() || (*t)->python_dispatch;
  if (!watched)
    return at::ctc_loss(log_probs, targets, IntView(lengths_of(inputs, "input_lengths")),
                        IntView(lengths_of(lengths, "target_lengths")), blank, reduction, zero_infinity);
  const bool batched = log_probs.dim() == 3;
  const Tensor res = std::get<0>(
      at::_ctc_loss(batched ? log_probs : at::unsqueeze(log_probs, 1), targets, inputs, lengths, blank, zero_infinity));
  return finish(res, lengths, reduction, zero_infinity, batched);
}

}  // namespace composite
}  // namespace tn
