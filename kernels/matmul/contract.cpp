// Contractions: einsum, tensordot, inner, bilinear. Each becomes batches of matrix products.
#include <algorithm>
#include <cctype>
#include <deque>
#include <numeric>
#include <string>
#include <vector>

#include "generated/ops/bmm.h"
#include "generated/ops/copy.h"
#include "generated/ops/diagonal.h"
#include "generated/ops/mm.h"
#include "generated/ops/movedim.h"
#include "generated/ops/narrow.h"
#include "generated/ops/permute.h"
#include "generated/ops/reshape.h"
#include "generated/ops/squeeze.h"
#include "generated/ops/tensordot.h"
#include "generated/ops/unsqueeze.h"
#include "generated/ops/view.h"
#include "generated/ops/zeros.h"
#include "kernels/matmul/calls.h"
#include "kernels/matmul/checks.h"
#include "kernels/matmul/composites.h"
#include "runtime/shape.h"

namespace tn::composite {
namespace {

using Dims = std::vector<int64_t>;

void append(Dims& to, const Dims& more) { to.insert(to.end(), more.begin(), more.end()); }

int64_t sizes_product(const Tensor& t, const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= t.size(d);
  return n;
}

// (left * right).sum(summed, keepdim) for operands of the same number of dimensions that broadcast, as one bmm.
Tensor multiply_and_sum(const Tensor& a, const Tensor& b, const Dims& summed, bool keepdim) {
  TN_CHECK(a.dim() == b.dim(), "number of dimensions must match");
  if (summed.empty()) return call::mul(a, b);
  const int64_t ndim = a.dim();
  const uint64_t mask = dim_mask(IntView(summed), ndim, false);
  // Kept dimensions: of both operands, of the left one, of the right one.
  Dims both, only_left, only_right;
  Tensor left = a, right = b;
  int64_t sum_size = 1;
  for (int64_t d = 0; d < ndim; ++d) {
    const bool in_left = left.size(d) != 1, in_right = right.size(d) != 1;
    TN_CHECK(!in_left || !in_right || left.size(d) == right.size(d), "non-broadcast dimensions must match");
    if (mask >> d & 1) {
      if (in_left && in_right) sum_size *= left.size(d);
      else if (in_left) left = call::sum(left, {d}, true);
      else if (in_right) right = call::sum(right, {d}, true);
    } else {
      (in_left && in_right ? both : in_left ? only_left : only_right).push_back(d);
    }
  }
  Dims out_order(both), left_order(both), right_order(both), out_sizes;
  append(out_order, only_left);
  append(out_order, summed);
  append(out_order, only_right);
  append(left_order, only_left);
  append(left_order, summed);
  append(left_order, only_right);
  append(right_order, summed);
  append(right_order, only_right);
  append(right_order, only_left);
  for (int64_t d : both) out_sizes.push_back(left.size(d));
  for (int64_t d : only_left) out_sizes.push_back(left.size(d));
  out_sizes.insert(out_sizes.end(), summed.size(), 1);
  for (int64_t d : only_right) out_sizes.push_back(right.size(d));
  Dims back(out_order.size());
  for (size_t i = 0; i < out_order.size(); ++i) back[static_cast<size_t>(out_order[i])] = static_cast<int64_t>(i);
  const int64_t batch = sizes_product(left, both), rows = sizes_product(left, only_left),
                cols = sizes_product(right, only_right);
  left = at::reshape(at::permute(left, left_order), {batch, rows, sum_size});
  right = at::reshape(at::permute(right, right_order), {batch, sum_size, cols});
  Tensor result = at::permute(at::view(at::bmm(left, right), out_sizes), back);
  if (keepdim) return result;
  Dims sizes;
  for (int64_t d = 0; d < ndim; ++d)
    if (!(mask >> d & 1)) sizes.push_back(result.size(d));
  return at::view(result, sizes);
}

// ---- einsum's equation -------------------------------------------------------------------------------------------

constexpr int kLabels = 52, kEllipsis = kLabels;

int label_of(unsigned char c) { return std::isupper(c) ? c - 'A' : c - 'a' + 26; }
char letter_of(int label) { return static_cast<char>(label < 26 ? 'A' + label : 'a' + label - 26); }

bool is_ellipsis(std::string_view text, size_t at) {
  return at + 2 < text.size() && text[at + 1] == '.' && text[at + 2] == '.';
}

class Einsum {
 public:
  Einsum(std::string_view equation, TensorList operands) : operands_(operands), labels_(operands.size()) {
    const size_t arrow = equation.find("->");
    const std::string_view inputs = equation.substr(0, arrow);
    parse_inputs(inputs);
    count_labels();
    if (arrow == std::string_view::npos) implicit_output();
    else parse_output(equation.substr(arrow + 2), inputs.size() + 2);
    out_dims_ = dims_;
    if (!ellipsis_kept_) {
      ellipsis_at_ = dims_;
      dims_ += ellipsis_dims_;
    }
    for (int label = 0; label < kLabels; ++label)
      if (count_[label] > 0 && place_[label] == -1) place_[label] = dims_++;
    align();
  }

  Tensor run(OptionalIntArrayRef path) {
    const size_t total = aligned_.size();
    const int64_t* step = path ? path->data() : nullptr;
    while (aligned_.size() > 1) {
      int64_t i = 0, j = 1;
      if (step != nullptr) {
        i = *step++;
        j = *step++;
        if (j < i) std::swap(i, j);
        TN_CHECK(i != j && i >= 0 && j < static_cast<int64_t>(aligned_.size()), "einsum(): invalid contraction (", i,
                 ", ", j, i == j ? ") cannot contract an operand with itself" : ") operand index is out of bounds");
      }
      const Tensor a = aligned_[static_cast<size_t>(i)], b = aligned_[static_cast<size_t>(j)];
      aligned_.erase(aligned_.begin() + j);
      aligned_.erase(aligned_.begin() + i);
      const Tensor pair = contract(a, b);
      if (step != nullptr) aligned_.push_back(pair);
      else aligned_.push_front(pair);
    }
    const Tensor& last = aligned_.front();
    if (dims_ == out_dims_) return last;
    if (total > 1)
      return at::view(last, last.sizes().slice(0, static_cast<size_t>(out_dims_)));  // what is left has size 1
    Dims rest(static_cast<size_t>(dims_ - out_dims_));
    std::iota(rest.begin(), rest.end(), out_dims_);
    return call::sum(last, rest, false);
  }

 private:
  void parse_inputs(std::string_view text) {
    size_t operand = 0;
    bool seen = false;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      if (c == ' ') continue;
      if (c == '.') {
        TN_CHECK(!seen, "einsum(): found '.' for operand ", operand, " for which an ellipsis was already found");
        TN_CHECK(is_ellipsis(text, i), "einsum(): found '.' for operand ", operand,
                 " that is not part of any ellipsis");
        i += 2;
        labels_[operand].push_back(kEllipsis);
        seen = true;
      } else if (c == ',') {
        ++operand;
        TN_CHECK(operand < operands_.size(), "einsum(): fewer operands were provided than specified in the equation");
        seen = false;
      } else {
        TN_CHECK(std::isalpha(c), "einsum(): invalid subscript given at index ", i,
                 " in the equation string, subscripts must be in [a-zA-Z]");
        labels_[operand].push_back(label_of(c));
      }
    }
    TN_CHECK(operand == operands_.size() - 1, "einsum(): more operands were provided than specified in the equation");
  }

  void count_labels() {
    for (size_t i = 0; i < operands_.size(); ++i) {
      const int64_t ndim = operands_[i].dim();
      auto named = static_cast<int64_t>(labels_[i].size());
      bool ellipsis = false;
      for (const int label : labels_[i]) {
        if (label != kEllipsis) {
          ++count_[label];
          continue;
        }
        --named;
        ellipsis = true;
        ellipsis_dims_ = std::max(ellipsis_dims_, ndim - named);
      }
      TN_CHECK(ellipsis ? named <= ndim : named == ndim, "einsum(): the number of subscripts in the equation (", named,
               ellipsis ? ") is more than the number of dimensions (" : ") does not match the number of dimensions (",
               ndim, ") for operand ", i, ellipsis ? "" : " and no ellipsis was given");
    }
  }

  // The ellipsis, then labels that occur once, in the alphabet's order.
  void implicit_output() {
    dims_ = ellipsis_dims_;
    ellipsis_kept_ = true;
    for (int label = 0; label < kLabels; ++label)
      if (count_[label] == 1) place_[label] = dims_++;
  }

  void parse_output(std::string_view text, size_t offset) {
    for (size_t i = 0; i < text.size(); ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      if (c == ' ') continue;
      if (c == '.') {
        TN_CHECK(!ellipsis_kept_, "einsum(): found '.' for output but an ellipsis (...) was already found");
        TN_CHECK(is_ellipsis(text, i), "einsum(): found '.' for output that is not part of any ellipsis (...)");
        i += 2;
        ellipsis_at_ = dims_;
        dims_ += ellipsis_dims_;
        ellipsis_kept_ = true;
        continue;
      }
      TN_CHECK(std::isalpha(c), "einsum(): invalid subscript given at index ", offset + i,
               " in the equation string, subscripts must be in [a-zA-Z]");
      const int label = label_of(c);
      TN_CHECK(count_[label] > 0 && place_[label] == -1, "einsum(): output subscript ", text[i],
               place_[label] > -1 ? " appears more than once in the output"
                                  : " does not appear in the equation for any input operand");
      place_[label] = dims_++;
    }
  }

  // Gives every operand all dimensions, in the same order.
  void align() {
    Dims label_size(kLabels, 1), ellipsis_size(static_cast<size_t>(ellipsis_dims_), 1);
    uses_.assign(static_cast<size_t>(dims_), 0);
    for (size_t i = 0; i < operands_.size(); ++i) {
      Tensor op = operands_[i];
      Dims order(static_cast<size_t>(dims_), -1);
      int64_t dim = 0;
      for (const int label : labels_[i]) {
        if (label == kEllipsis) {
          const int64_t covered = operands_[i].dim() - (static_cast<int64_t>(labels_[i].size()) - 1);
          for (int64_t j = ellipsis_dims_ - covered; j < ellipsis_dims_; ++j) {
            int64_t& known = ellipsis_size[static_cast<size_t>(j)];
            if (op.size(dim) != 1) {
              TN_CHECK(known == 1 || known == op.size(dim), "einsum(): dimension ", dim,
                       " covered by ellipsis in operand ", i, "has size ", op.size(dim),
                       " which does not broadcast with previously seen ellipsis with size ", known,
                       " for the respective dimension");
              known = op.size(dim);
              ++uses_[static_cast<size_t>(ellipsis_at_ + j)];
            }
            order[static_cast<size_t>(ellipsis_at_ + j)] = dim++;
          }
          continue;
        }
        int64_t& at = order[static_cast<size_t>(place_[label])];
        int64_t& known = label_size[static_cast<size_t>(label)];
        if (at != -1) {  // a repeated label means the diagonal
          TN_CHECK(op.size(dim) == op.size(at), "einsum(): subscript ", letter_of(label), " is repeated for operand ",
                   i, " but the sizes don't match, ", op.size(dim), " != ", op.size(at));
          op = at::movedim(at::diagonal(op, 0, at, dim), -1, at);
          continue;
        }
        if (op.size(dim) != 1) {
          TN_CHECK(known == 1 || known == op.size(dim), "einsum(): subscript ", letter_of(label), " has size ",
                   op.size(dim), " for operand ", i, " which does not broadcast with previously seen size ", known);
          known = op.size(dim);
          ++uses_[static_cast<size_t>(place_[label])];
        }
        at = dim++;
      }
      for (int64_t& at : order)
        if (at == -1) {
          op = at::unsqueeze(op, dim);
          at = dim++;
        }
      aligned_.push_back(at::permute(op, order));
    }
  }

  // Multiplies two operands and sums what no other one needs.
  Tensor contract(const Tensor& a, const Tensor& b) {
    Dims together, of_a, of_b;
    for (int64_t d = out_dims_; d < dims_; ++d) {
      int64_t& uses = uses_[static_cast<size_t>(d)];
      const bool in_a = a.size(d) != 1, in_b = b.size(d) != 1;
      if (in_a && in_b) {
        if (--uses != 1) continue;
        together.push_back(d);
      } else if (uses == 1 && (in_a || in_b)) {
        (in_a ? of_a : of_b).push_back(d);
      } else {
        continue;
      }
      uses = 0;
    }
    return multiply_and_sum(of_a.empty() ? a : call::sum(a, of_a, true), of_b.empty() ? b : call::sum(b, of_b, true),
                            together, true);
  }

  TensorList operands_;
  std::vector<std::vector<int>> labels_;
  int64_t count_[kLabels] = {};
  Dims place_ = Dims(kLabels, -1);
  int64_t dims_ = 0, out_dims_ = 0, ellipsis_dims_ = 0, ellipsis_at_ = 0;
  bool ellipsis_kept_ = false;
  Dims uses_;
  std::deque<Tensor> aligned_;
};

void check_inner(const Tensor& a, const Tensor& b) {
  TN_CHECK(a.size(-1) == b.size(-1), "inner() the last dimension must match on both input tensors but got shapes ",
           a.sizes(), " and ", b.sizes());
}

}  // namespace

Tensor einsum(std::string_view equation, TensorList tensors, OptionalIntArrayRef path) {
  TN_CHECK(!tensors.empty(), "einsum(): must provide at least one operand");
  const size_t steps = tensors.size() == 1 ? 1 : 2 * (tensors.size() - 1);
  TN_CHECK(!path || path->size() == steps, "einsum(): expected contraction path given in path parameter to have size ",
           steps, " but got ", path->size());
  return Einsum(equation, tensors).run(path);
}

Tensor tensordot(const Tensor& self, const Tensor& other, IntView dims_self, IntView dims_other) {
  TN_CHECK(dims_self.size() == dims_other.size(), "both dimension lists should have same length");
  TN_CHECK(self.dtype() == other.dtype(), "both inputs should have same dtype");
  Tensor a = self, b = other;
  int64_t inner_size = 1;
  for (size_t i = 0; i < dims_self.size(); ++i) {
    const int64_t s = self.size(dims_self[i]), o = other.size(dims_other[i]);
    if (o == 1) {
      a = call::sum(a, {dims_self[i]}, true, self.dtype());
    } else if (s == 1) {
      b = call::sum(b, {dims_other[i]}, true, other.dtype());
    } else {
      TN_CHECK(s == o, "contracted dimensions need to match, but first has size ", s, " in dim ", dims_self[i],
               " and second has size ", o, " in dim ", dims_other[i]);
      inner_size *= s;
    }
  }
  const uint64_t gone_a = dim_mask(dims_self, self.dim(), false), gone_b = dim_mask(dims_other, other.dim(), false);
  Dims order_a, order_b, sizes;
  int64_t rows = 1, cols = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (gone_a >> d & 1) continue;
    order_a.push_back(d);
    rows *= a.size(d);
    sizes.push_back(a.size(d));
  }
  order_a.insert(order_a.end(), dims_self.begin(), dims_self.end());
  order_b.insert(order_b.end(), dims_other.begin(), dims_other.end());
  for (int64_t d = 0; d < other.dim(); ++d) {
    if (gone_b >> d & 1) continue;
    order_b.push_back(d);
    cols *= b.size(d);
    sizes.push_back(b.size(d));
  }
  a = at::reshape(at::permute(a, order_a), {rows, inner_size});
  b = at::reshape(at::permute(b, order_b), {inner_size, cols});
  return at::reshape(at::mm(a, b), sizes);
}

const Tensor& tensordot_out(const Tensor& self, const Tensor& other, IntView dims_self, IntView dims_other,
                            const Tensor& out) {
  const Tensor result = tensordot(self, other, dims_self, dims_other);
  TN_CHECK(result.dtype() == out.dtype(), "tensordot: Expected the output tensor to have dtype ",
           scalar_type_name(result.dtype()), ", but got an output tensor with dtype ", scalar_type_name(out.dtype()));
  resize_output(out, result.sizes());
  at::copy_(out, result);
  return out;
}

Tensor inner(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return call::mul(self, other);
  check_inner(self, other);
  return at::tensordot(self, other, {-1}, {-1});
}
const Tensor& inner_out(const Tensor& self, const Tensor& other, const Tensor& out) {
  if (self.dim() == 0 || other.dim() == 0) {
    call::mul_out(out, self, other);
    return out;
  }
  check_inner(self, other);
  at::tensordot_out(out, self, other, {-1}, {-1});
  return out;
}

// (i1 * i2 * i3).sum(sumdim) after unsqueezing each in its expanded dimensions, one slice of a dimension at a time, so
// that no product of all three is ever in memory.
Tensor trilinear(const Tensor& i1, const Tensor& i2, const Tensor& i3, IntView expand1, IntView expand2,
                 IntView expand3, IntView sumdim, int64_t unroll_dim) {
  const int64_t ndim = i1.dim() + expand1.ssize();
  TN_CHECK(unroll_dim >= 0 && unroll_dim < ndim, "unroll_dim must be in [0,", ndim - 1, "]");
  const uint64_t masks[] = {dim_mask(expand1, ndim, false), dim_mask(expand2, ndim, false),
                            dim_mask(expand3, ndim, false)};
  const uint64_t summed = dim_mask(sumdim, ndim, false);
  Tensor t[] = {i1, i2, i3};
  Dims sizes, sum_first, sum_second;
  int64_t steps = 0;
  for (int64_t d = 0; d < ndim; ++d) {
    int64_t size = 0;
    for (int i = 0; i < 3; ++i) {
      if (masks[i] >> d & 1) t[i] = at::unsqueeze(t[i], d);
      else size = t[i].size(d);
    }
    if ((summed >> d & 1) && d != unroll_dim) (masks[2] >> d & 1 ? sum_first : sum_second).push_back(d);
    sizes.push_back(summed >> d & 1 ? 1 : size);
    if (d == unroll_dim) steps = size;
  }
  const Tensor out = at::zeros(sizes, i1.dtype(), std::nullopt, i1.device(), std::nullopt);
  if (i1.numel() != 0 && i2.numel() != 0 && i3.numel() != 0) {
    for (int64_t step = 0; step < steps; ++step) {
      const auto part = [&](int i) { return at::narrow(t[i], unroll_dim, masks[i] >> unroll_dim & 1 ? 0 : step, 1); };
      const Tensor product =
          multiply_and_sum(multiply_and_sum(part(0), part(1), sum_first, true), part(2), sum_second, true);
      call::add_(summed >> unroll_dim & 1 ? out : at::narrow(out, unroll_dim, step, 1), product);
    }
  }
  for (int64_t d = ndim - 1; d >= 0; --d)
    if (summed >> d & 1) at::squeeze_(out, d);
  return out;
}

Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, OptionalTensor bias) {
  TN_CHECK(input1.dim() == input2.dim(), "bilinear(): input dimensions do not match: got ", input1.dim(), " and ",
           input2.dim());
  for (int64_t d = 0; d + 1 < input1.dim(); ++d)
    TN_CHECK(input1.size(d) == input2.size(d), "bilinear(): input batch dimensions do not match at dim ", d, ": got ",
             input1.size(d), " and ", input2.size(d));
  TN_CHECK(input1.size(-1) == weight.size(1), "bilinear(): input1 size does not match weight size: got ",
           input1.size(-1), " but expected ", weight.size(1));
  TN_CHECK(input2.size(-1) == weight.size(2), "bilinear(): input2 size does not match weight size: got ",
           input2.size(-1), " but expected ", weight.size(2));
  TN_CHECK(!bias || bias->size(0) == weight.size(0), "bilinear(): bias size does not match weight size: got ",
           bias ? bias->size(0) : 0, " but expected ", weight.size(0));
  DimVector sizes(input1.sizes());
  sizes.back() = weight.size(0);
  const Tensor flat1 = at::reshape(input1, {-1, input1.size(-1)}), flat2 = at::reshape(input2, {-1, input2.size(-1)});
  const Tensor product = at::reshape(call::trilinear(flat1, weight, flat2, {1, 3}, {0}, {1, 2}, {2, 3}), sizes);
  return bias ? call::add(product, *bias) : product;
}

}  // namespace tn::composite
