// What a kernel family defines: the slots. Generated code wraps each into functional, in-place and out= forms.
//
// Three shapes of slot:
//   PointwiseSlot  the arithmetic of rows; broadcast, promotion, strides and threads come from the iterator
//   structured     two functions, `<op>_meta(Outputs&, args...)`: shapes, and `<op>_cpu(Outputs&, args...)`: values
//   raw            one function with the operator's whole signature
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "runtime/dtype.h"
#include "runtime/fwd.h"
#include "runtime/tensor.h"
#include "runtime/value.h"

namespace tn {

// How the inputs' dtypes make the computation's and the result's dtype.
enum class Promotion : uint8_t {
  Same,      // common dtype, result the same            (add, relu)
  ToFloat,   // integers compute and give default float   (exp, div)
  ToBool,    // common dtype in, bool out                 (eq, isnan)
  RealPart,  // complex in gives its real dtype out       (abs)
  None,      // operands as they are; the out dtype is the first input's
};

// One run of elements with constant strides (bytes). data[0] is the result, data[1...] the inputs. An input stride of 0
// is one value for the whole run. Inputs have type `dtype`, the result `out_dtype`; both are among the claim's dtypes.
struct Row {
  char* const* data;
  const int64_t* strides;
  int64_t n;
  ScalarType dtype;
  ScalarType out_dtype;
  const Arg* params;  // the operator's non-tensor arguments in schema order

  template <class T>
  const T* in(int i) const {
    return reinterpret_cast<const T*>(data[1 + i]);
  }
  template <class T>
  T* out() const {
    return reinterpret_cast<T*>(data[0]);
  }
};

struct PointwiseSlot {
  void (*row)(const Row& row);
  Promotion promotion = Promotion::Same;
  int8_t cost = 1;  // in units of an addition: how soon threads pay
  void (*check)(std::span<const Tensor* const> inputs, const Arg* params) = nullptr;  // upstream's own argument errors
};

// Where a structured kernel's results go. `set` allocates (functional), checks (in-place) or resizes (out=).
// A result handed to the CPU function is dense in the asked strides: an out= of other strides gets a temporary, copied
// back by `finish`.
class Outputs {
 public:
  enum class Form : uint8_t { Functional, Inplace, Out };
  static constexpr int kMax = 6;

  Outputs(const OpInfo& op, Form form) : op_(op), form_(form) {}
  Outputs(const OpInfo& op, Form form, std::span<const Tensor* const> given);

  void set(int i, IntView sizes, ScalarType dtype, Device device = {}, MemoryFormat format = MemoryFormat::Contiguous);
  void set_strided(int i, IntView sizes, IntView strides, ScalarType dtype, Device device = {});
  const Tensor& operator[](int i) const { return work_[static_cast<size_t>(i)]; }
  const OpInfo& op() const { return op_; }
  Form form() const { return form_; }
  // The caller's own tensor, which work may not be; null for functional forms.
  const Tensor* given(int i) const { return given_[static_cast<size_t>(i)]; }
  bool is_meta() const { return work_[0].defined() && work_[0].is_meta(); }
  void finish();
  Tensor take(int i) { return std::move(work_[static_cast<size_t>(i)]); }

 private:
  const OpInfo& op_;
  Form form_;
  std::array<Tensor, kMax> work_;
  std::array<const Tensor*, kMax> given_{};
};

// Drivers of pointwise slots; generated code calls these. `dtypes` is the claim's gate: others refuse by name.
struct PointwiseCall {
  const OpInfo& op;
  const PointwiseSlot& slot;
  DTypeSet dtypes;
};
Tensor pointwise(const PointwiseCall& call, std::span<const Tensor* const> inputs, std::span<const Arg> params);
void pointwise_inplace(const PointwiseCall& call, std::span<const Tensor* const> inputs, std::span<const Arg> params);
void pointwise_out(const PointwiseCall& call, std::span<const Tensor* const> inputs, std::span<const Arg> params,
                   const Tensor& out);

// Copies a functional result into an in-place or out= target, as derived forms do: shape and dtype rules as upstream's.
void write_inplace(const OpInfo& op, const Tensor& result, const Tensor& self);
void write_out(const OpInfo& op, const Tensor& result, const Tensor& out);

}  // namespace tn
