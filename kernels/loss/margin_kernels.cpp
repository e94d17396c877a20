// Margins between the classes of a sample: one target a sample, or several.
#include <algorithm>
#include <limits>
#include <vector>

#include "generated/slots/loss.h"
#include "kernels/loss/reduction.h"
#include "runtime/error.h"

namespace tn {
namespace {

using namespace loss;

// The input as rows of classes.
struct Frames {
  int64_t count = 1, classes = 1;
};
Frames frames_of(const Tensor& self) {
  TN_CHECK(self.dim() <= 2 && (self.dim() == 0 || self.size(-1) != 0),
           "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", self.sizes());
  if (self.dim() == 0) return {};
  return self.dim() == 1 ? Frames{1, self->size(0)} : Frames{self->size(0), self->size(1)};
}

template <class F>
void each_frame(const Frames& f, const F& work) {
  parallel_for(0, f.count, std::max<int64_t>(1, 4096 / f.classes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) work(i);
  });
}
// One value a frame, or all together.
template <class T>
void deliver(const Tensor& out, const std::vector<double>& losses, bool each, int64_t reduction) {
  if (each) {
    for (size_t i = 0; i < losses.size(); ++i) out.data<T>()[i] = static_cast<T>(losses[i]);
    return;
  }
  double total = 0;
  for (const double loss : losses) total += loss;
  *out.data<T>() = static_cast<T>(reduction == kMean ? total / static_cast<double>(losses.size()) : total);
}
template <class T>
void scale_frames(const Tensor& grad_input, const Tensor& grad_output, const Frames& f, bool each) {
  const Tensor g = contiguous(grad_output);
  TN_CHECK(each ? g.numel() == f.count : g.numel() == 1, "margin loss: expected a gradient for each result, got sizes ",
           grad_output.sizes());
  T* const out = grad_input.data<T>();
  each_frame(f, [&](int64_t i) {
    const T factor = g.data<T>()[each ? i : 0];
    for (int64_t c = 0; c < f.classes; ++c) out[i * f.classes + c] *= factor;
  });
}
template <class F>
void visit(ScalarType dtype, F&& f) {
  if (dtype == ScalarType::Double) f.template operator()<double>();
  else f.template operator()<float>();
}

// ---- one target
// --------------------------------------------------------------------------------------------------------

Frames check_single(const Tensor& self, const Tensor& target, const Scalar& p, OptionalTensor weight) {
  TN_CHECK(p.to_double() == 1 || p.to_double() == 2, "only p == 1 and p == 2 supported");
  const Frames f = frames_of(self);
  TN_CHECK(target.dim() <= 1 && target.numel() == f.count, "inconsistent target size, expected ", f.count, " but got ",
           target.sizes());
  TN_CHECK(!weight || (weight->dim() <= 1 && weight->numel() == f.classes), "inconsistent weight size, expected ",
           f.classes, " but got ", weight->sizes());
  return f;
}
Tensor single_targets(const Tensor& target, const Frames& f) {
  TN_CHECK(target.dtype() == ScalarType::Long, "expected scalar type Long but found ",
           scalar_type_name(target.dtype()));
  const Tensor t = contiguous(target);
  for (int64_t i = 0; i < t.numel(); ++i)
    TN_CHECK(t.data<int64_t>()[i] >= 0 && t.data<int64_t>()[i] < f.classes, "target out of range");
  return t;
}

// ---- several targets, ended by -1
// -----------------------------------------------------------------------------------------

Frames check_several(const Tensor& self, const Tensor& target) {
  const Frames f = frames_of(self);
  TN_CHECK(target.dim() <= 2 && target.numel() == self.numel() && (self.dim() < 2 || target.sizes() == self.sizes()),
           "inconsistent target size: ", target.sizes(), " for input of size: ", self.sizes());
  return f;
}
Tensor several_targets(const Tensor& target, const Frames& f) {
  TN_CHECK(target.dtype() == ScalarType::Long, "expected scalar type Long but found ",
           scalar_type_name(target.dtype()));
  const Tensor t = contiguous(target);
  for (int64_t i = 0; i < t.numel(); ++i)
    TN_CHECK(t.data<int64_t>()[i] >= -1 && t.data<int64_t>()[i] < f.classes,
             "multilabel_margin_loss: target is out of range");
  return t;
}
bool each_of(const Tensor& target, int64_t reduction) { return reduction == kNone && target.dim() > 1; }

}  // namespace

namespace slots {

void multi_margin_loss_meta(Outputs& outs, const Tensor& self, const Tensor& target, const Scalar& p, const Scalar&,
                            OptionalTensor weight, int64_t reduction) {
  const Frames f = check_single(self, target, p, weight);
  if (reduction == kNone && target.dim() > 0) outs.set(0, {f.count}, self.dtype(), self.device());
  else outs.set(0, {}, self.dtype(), self.device());
}
void multi_margin_loss_cpu(Outputs& outs, const Tensor& self, const Tensor& target, const Scalar& p,
                           const Scalar& margin, OptionalTensor weight, int64_t reduction) {
  const Frames f = frames_of(self);
  const Tensor t = single_targets(target, f), x = contiguous(self),
               w = weight ? contiguous(cast(*weight, self.dtype())) : Tensor();
  const bool squared = p.to_double() == 2;
  visit(self.dtype(), [&]<class T>() {
    std::vector<double> losses(static_cast<size_t>(f.count));
    each_frame(f, [&](int64_t i) {
      const T* const row = x.data<T>() + i * f.classes;
      const int64_t own = t.data<int64_t>()[i];
      const T edge = static_cast<T>(margin.to_double()) - row[own];
      double sum = 0;
      for (int64_t c = 0; c < f.classes; ++c) {
        const T z = std::max(edge + row[c], T{0});
        if (c != own) sum += static_cast<double>(squared ? z * z : z);
      }
      if (w.defined()) sum *= static_cast<double>(w.data<T>()[own]);
      losses[static_cast<size_t>(i)] = sum / static_cast<double>(f.classes);
    });
    deliver<T>(outs[0], losses, outs[0].dim() > 0, reduction);
  });
}

void multi_margin_loss_backward_meta(Outputs& outs, const Tensor&, const Tensor& self, const Tensor& target,
                                     const Scalar& p, const Scalar&, OptionalTensor weight, int64_t) {
  check_single(self, target, p, weight);
  outs.set(0, self.sizes(), self.dtype(), self.device());
}
void multi_margin_loss_backward_cpu(Outputs& outs, const Tensor& grad_output, const Tensor& self, const Tensor& target,
                                    const Scalar& p, const Scalar& margin, OptionalTensor weight, int64_t reduction) {
  if (self.numel() == 0) return;
  const Frames f = frames_of(self);
  const Tensor t = single_targets(target, f), x = contiguous(self),
               w = weight ? contiguous(cast(*weight, self.dtype())) : Tensor();
  const bool squared = p.to_double() == 2;
  const double share = 1.0 / static_cast<double>(reduction == kMean ? f.count * f.classes : f.classes);
  visit(self.dtype(), [&]<class T>() {
    each_frame(f, [&](int64_t i) {
      const T* const row = x.data<T>() + i * f.classes;
      T* const out = outs[0].data<T>() + i * f.classes;
      const int64_t own = t.data<int64_t>()[i];
      const T edge = static_cast<T>(margin.to_double()) - row[own];
      const T g = static_cast<T>(share * (w.defined() ? static_cast<double>(w.data<T>()[own]) : 1.0));
      T sum = 0;
      for (int64_t c = 0; c < f.classes; ++c) {
        const T z = edge + row[c];
        const T slope = z > 0 && c != own ? (squared ? 2 * g * z : g) : T{0};
        out[c] = slope;
        sum += slope;
      }
      out[own] = -sum;
    });
    scale_frames<T>(outs[0], grad_output, f, reduction == kNone && target.dim() > 0);
  });
}

void multilabel_margin_loss_forward_meta(Outputs& outs, const Tensor& self, const Tensor& target, int64_t reduction) {
  const Frames f = check_several(self, target);
  if (each_of(target, reduction)) outs.set(0, {f.count}, self.dtype(), self.device());
  else outs.set(0, {}, self.dtype(), self.device());
  outs.set(1, target.sizes(), self.dtype(), self.device());
}
void multilabel_margin_loss_forward_cpu(Outputs& outs, const Tensor& self, const Tensor& target, int64_t reduction) {
  const Frames f = frames_of(self);
  const Tensor t = several_targets(target, f), x = contiguous(self);
  zero(outs[1]);
  visit(self.dtype(), [&]<class T>() {
    std::vector<double> losses(static_cast<size_t>(f.count));
    each_frame(f, [&](int64_t i) {
      const T* const row = x.data<T>() + i * f.classes;
      T* const is_target = outs[1].data<T>() + i * f.classes;
      const int64_t* const own = t.data<int64_t>() + i * f.classes;
      int64_t count = 0;
      for (; count < f.classes && own[count] >= 0; ++count) is_target[own[count]] = 1;
      double sum = 0;
      for (int64_t k = 0; k < count; ++k) {
        const T edge = T{1} - row[own[k]];
        for (int64_t c = 0; c < f.classes; ++c)
          sum += static_cast<double>(is_target[c] == 0 ? std::max(edge + row[c], T{0}) : T{0});
      }
      losses[static_cast<size_t>(i)] = sum / static_cast<double>(f.classes);
    });
    deliver<T>(outs[0], losses, each_of(target, reduction), reduction);
  });
}

void multilabel_margin_loss_backward_meta(Outputs& outs, const Tensor&, const Tensor& self, const Tensor& target,
                                          int64_t, const Tensor& is_target) {
  check_several(self, target);
  TN_CHECK(is_target.sizes() == target.sizes(), "inconsistent is_target size: ", is_target.sizes(),
           " for target of size: ", target.sizes());
  outs.set(0, self.sizes(), self.dtype(), self.device());
}
void multilabel_margin_loss_backward_cpu(Outputs& outs, const Tensor& grad_output, const Tensor& self,
                                         const Tensor& target, int64_t reduction, const Tensor& is_target) {
  zero(outs[0]);
  if (self.numel() == 0) return;
  const Frames f = frames_of(self);
  const Tensor t = several_targets(target, f), x = contiguous(self), marks = contiguous(cast(is_target, self.dtype()));
  const double share = 1.0 / static_cast<double>(reduction == kMean ? f.count * f.classes : f.classes);
  visit(self.dtype(), [&]<class T>() {
    const T g = static_cast<T>(share);
    each_frame(f, [&](int64_t i) {
      const T* const row = x.data<T>() + i * f.classes;
      const T* const mark = marks.data<T>() + i * f.classes;
      T* const out = outs[0].data<T>() + i * f.classes;
      const int64_t* const own = t.data<int64_t>() + i * f.classes;
      for (int64_t k = 0; k < f.classes && own[k] >= 0; ++k) {
        const T edge = T{1} - row[own[k]];
        T sum = 0;
        for (int64_t c = 0; c < f.classes; ++c) {
          const T slope = mark[c] == 0 && edge + row[c] > 0 ? g : T{0};
          out[c] += slope;
          sum += slope;
        }
        out[own[k]] -= sum;
      }
    });
    scale_frames<T>(outs[0], grad_output, f, each_of(target, reduction));
  });
}

}  // namespace slots
}  // namespace tn
