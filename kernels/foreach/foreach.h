// Operators over lists of tensors: the element's operator once for each element, its rows in one loop over
// all of them.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "runtime/scalar.h"
#include "runtime/slots.h"
#include "runtime/tensor.h"

namespace tn::foreach {

// The operator that an operator over lists repeats.
struct Each {
  size_t functional;          // OpId
  size_t inplace;             // OpId
  int8_t tensors;             // its leading arguments that are tensors; numbers are what follows
  const PointwiseSlot* slot;  // its rows; null where each element takes the operator's own way
  int8_t inputs;              // the slot's inputs: `tensors`, or more where the slot reads a number as a row
};

// One argument of the operator over lists: a list, or the same tensor or number for each element.
class Over {
 public:
  Over(TensorList list) : kind_(kList), list_(list) {}                        // NOLINT: arguments of map and map_
  Over(const Tensor& one) : kind_(kTensor), tensor_(&one) {}                  // NOLINT
  Over(const Scalar& one) : kind_(kNumber), number_(&one) {}                  // NOLINT
  Over(ArrayRef<Scalar> list) : kind_(kNumbers), numbers_(list) {}            // NOLINT
  Over(const std::vector<Scalar>& list) : kind_(kNumbers), numbers_(list) {}  // NOLINT

  bool is_list() const { return kind_ == kList; }
  bool is_tensor() const { return kind_ == kList || kind_ == kTensor; }
  bool is_numbers() const { return kind_ == kNumbers; }
  TensorList list() const { return list_; }
  size_t size() const { return kind_ == kNumbers ? numbers_.size() : list_.size(); }
  const Tensor& tensor(size_t i) const { return kind_ == kList ? list_[i] : *tensor_; }
  const Scalar& number(size_t i) const { return kind_ == kNumbers ? numbers_[i] : *number_; }

 private:
  enum Kind : uint8_t { kList, kTensor, kNumber, kNumbers };
  Kind kind_;
  TensorList list_;
  ArrayRef<Scalar> numbers_;
  const Tensor* tensor_ = nullptr;
  const Scalar* number_ = nullptr;
};
using Arguments = std::initializer_list<Over>;

// Arguments in the order of the element's operator, the list that is written first.
std::vector<Tensor> map(const Each& each, Arguments args);
void map_(const Each& each, Arguments args);

// Upstream's rules for lists: not empty, of one length.
void check_lists(Arguments args);
// The numbers in a packed tensor of one dimension.
std::vector<Scalar> unpack_numbers(const Tensor& packed, size_t count);

std::vector<Tensor> norm(TensorList self, const Scalar& ord, std::optional<ScalarType> dtype);
std::vector<Tensor> powsum(TensorList self, const Scalar& ord, std::optional<ScalarType> dtype);
std::vector<Tensor> max(TensorList self);
std::vector<Tensor> mm(TensorList self, TensorList mat2);
std::vector<Tensor> pow(const Scalar& self, TensorList exponent);
std::vector<Tensor> clone(TensorList self, std::optional<MemoryFormat> format);
std::vector<Tensor> copy(TensorList self, TensorList src, bool non_blocking);
void copy_(TensorList self, TensorList src, bool non_blocking);
void zero_(TensorList self);
std::vector<Tensor> zeros(TensorList self);

}  // namespace tn::foreach

namespace tn {

// What derived out= forms call for lists.
void write_out(const OpInfo& op, const std::vector<Tensor>& results, TensorList out);

}  // namespace tn
