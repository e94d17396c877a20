// The tensor iterator: broadcasts operands, finds the common dtype, shapes and allocates the results, and hands out
// rows. Families whose slot is pointwise never see it; others (copy, where, compare with own loops) build one.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "runtime/fwd.h"
#include "runtime/shape.h"
#include "runtime/slots.h"
#include "runtime/tensor.h"
#include "runtime/threads.h"

namespace tn {

class TensorIterator {
 public:
  static constexpr int kMaxOperands = 8;

  struct Options {
    Promotion promotion = Promotion::Same;
    bool inplace = false;  // output 0 is also the first input: shape and cast rules of in-place forms
    bool resize_outputs = true;
    bool check_overlap = true;  // internal overlap of outputs, partial overlap with inputs: RuntimeError
    bool cast_inputs = true;    // inputs of another dtype are converted (whole, once) to the common one
    ScalarType out_dtype = ScalarType::Undefined;  // fixed result dtype, or Undefined: from the promotion
  };

  explicit TensorIterator(const OpInfo& op) : op_(op) {}
  // Outputs first. An undefined output is allocated by build.
  void add_output(const Tensor& t);
  void add_input(const Tensor& t);
  void build(const Options& options);

  int num_outputs() const { return num_outputs_; }
  int num_operands() const { return num_operands_; }
  ScalarType common_dtype() const { return common_dtype_; }
  IntView shape() const { return {shape_.data(), static_cast<size_t>(dim_)}; }  // coalesced, fastest dimension first
  int64_t numel() const { return numel_; }
  bool is_meta() const { return meta_; }
  const Tensor& output(int i = 0) const { return tensors_[static_cast<size_t>(i)]; }

  // Calls f(char* const* data, const int64_t* byte_strides, int64_t n) for every row, from several threads when
  // numel * cost is large. Splits by shape only.
  template <class F>
  void for_rows(F&& f, int64_t cost = 1) const {
    const int64_t grain = kGrain / cost > 0 ? kGrain / cost : 1;
    if (numel_ <= grain) return serial(0, numel_, f);
    parallel_for(0, numel_, grain, [&](int64_t begin, int64_t end) { serial(begin, end, f); });
  }
  // After the loop: writes results that were computed in a temporary dtype back to their tensors.
  void finish();
  // What the rows see: the given tensor, or its converted copy. Undefined for numbers converted in place.
  const Tensor& operand(int i) const { return working_[at(i)].defined() ? working_[at(i)] : tensors_[at(i)]; }
  ScalarType dtype(int i) const { return dtypes_[at(i)]; }

  static constexpr int64_t kGrain = 32768;

 private:
  template <class F>
  void serial(int64_t begin, int64_t end, F& f) const;

  static constexpr size_t at(int i) { return static_cast<size_t>(i); }
  void check_devices();
  void infer_shape(const Options& options);
  void infer_types(const Options& options);
  void convert_inputs(const Options& options);
  bool set_up_fast();
  void set_up_strided();
  void sort_dims(const int64_t* full_shape, int64_t* perm) const;
  void coalesce();
  Tensor& target(int i) { return working_[at(i)].defined() ? working_[at(i)] : tensors_[at(i)]; }
  void make_output(int i, IntView sizes, const DimVector* strides);

  const OpInfo& op_;
  std::array<Tensor, kMaxOperands> tensors_;  // as given, or allocated
  std::array<Tensor, kMaxOperands> working_;  // cast copies, where needed
  std::array<ScalarType, kMaxOperands> dtypes_{};
  std::array<bool, kMaxOperands> resize_{};     // an output of another shape than the result's
  std::array<bool, kMaxOperands> temporary_{};  // an output whose dtype isn't the result's: working_ is copied back
  DimVector sizes_;                             // the broadcast shape
  alignas(16) std::array<char, 16 * kMaxOperands> numbers_;  // converted 0-dim inputs
  uint32_t inlined_ = 0;                                     // which operands live in numbers_
  bool same_shape_ = true;
  // A row of strides is a cache line. GCC 12 loads these in vectors as if they were aligned where it vectorises over
  // the operands, so they are.
  alignas(64) std::array<char*, kMaxOperands> data_{};
  alignas(64) std::array<std::array<int64_t, kMaxOperands>, kMaxDims> strides_;  // [dim][operand], bytes
  std::array<int64_t, kMaxDims> shape_;
  int dim_ = 0;
  int num_outputs_ = 0;
  int num_operands_ = 0;
  int64_t numel_ = 0;
  ScalarType common_dtype_ = ScalarType::Undefined;
  bool meta_ = false;
};

template <class F>
void TensorIterator::serial(int64_t begin, int64_t end, F& f) const {
  if (begin >= end) return;
  alignas(64) std::array<char*, kMaxOperands> at;
  const int64_t* inner = strides_[0].data();
  if (dim_ <= 1) {
    for (int k = 0; k < num_operands_; ++k) at[k] = data_[k] + begin * (dim_ == 0 ? 0 : inner[k]);
    f(static_cast<char* const*>(at.data()), inner, end - begin);
    return;
  }
  std::array<int64_t, kMaxDims> index;
  int64_t rest = begin;
  for (int d = 0; d < dim_; ++d) {
    index[d] = rest % shape_[d];
    rest /= shape_[d];
  }
  at = data_;
  for (int d = 0; d < dim_; ++d)
    for (int k = 0; k < num_operands_; ++k) at[k] += index[d] * strides_[d][k];
  for (int64_t done = begin; done < end;) {
    const int64_t n = std::min(shape_[0] - index[0], end - done);
    f(static_cast<char* const*>(at.data()), inner, n);
    done += n;
    if (done >= end) return;
    for (int k = 0; k < num_operands_; ++k) at[k] -= index[0] * inner[k];
    index[0] = 0;
    for (int d = 1; d < dim_; ++d) {
      for (int k = 0; k < num_operands_; ++k) at[k] += strides_[d][k];
      if (++index[d] < shape_[d]) break;
      for (int k = 0; k < num_operands_; ++k) at[k] -= shape_[d] * strides_[d][k];
      index[d] = 0;
    }
  }
}

}  // namespace tn
