// One optimiser's step over arrays of equal length: what the fused operators and the vector bodies agree on.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tn::foreach {

inline constexpr int kMaxArrays = 5;

// Constants of a step, the same for all elements of a tensor.
struct StepConstants {
  double lr = 0;                // Adam: already divided by the first bias correction; Adagrad: already decayed
  double weight_decay = 0;      // added to the gradient
  double shrink = 1;            // of AdamW: the parameter is multiplied by it first
  double beta1 = 0, beta2 = 0;  // SGD: momentum, 1 - dampening
  double eps = 0;
  double root_correction = 1;  // Adam: square root of the second bias correction
  double grad_scale = 1;       // gradients are divided by it, and stored so
  bool scaled = false;
  bool maximize = false;
  bool nesterov = false;
  bool first = false;  // SGD: the momentum buffer holds nothing yet
};

// Arrays: parameter, gradient, then the state in the operator's order. Updates them in place. Unscale alone
// answers: whether some gradient was not finite.
template <class T>
using StepFn = bool (*)(T* const* arrays, size_t n, const StepConstants& constants);
struct StepBodies {
  StepFn<float> f32;
  StepFn<double> f64;
  int arrays;
};
enum StepIndex { kAdam, kAdamMax, kSgd, kSgdMomentum, kAdagrad, kUnscale };

const StepBodies& step_bodies(StepIndex index);

}  // namespace tn::foreach
