// Losses that upstream composes of other operators; each call passes the door.
#pragma once
#include <tuple>

#include "runtime/array_ref.h"
#include "runtime/tensor.h"

namespace tn::composite {

Tensor nll_loss_nd(const Tensor& self, const Tensor& target, OptionalTensor weight, int64_t reduction,
                   int64_t ignore_index);
Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, OptionalTensor weight, int64_t reduction,
                          int64_t ignore_index, double label_smoothing);

Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction);
Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target);
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                        int64_t reduction);
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                           int64_t reduction);
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                             int64_t reduction);
Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin, int64_t reduction);
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin,
                           double p, double eps, bool swap, int64_t reduction);

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntView input_lengths, IntView target_lengths,
                int64_t blank, int64_t reduction, bool zero_infinity);
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, int64_t blank, int64_t reduction, bool zero_infinity);

}  // namespace tn::composite
