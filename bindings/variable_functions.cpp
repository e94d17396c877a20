// Functions of torch._C._VariableFunctions that upstream writes by hand.
#include "bindings/hand_method.h"
#include "bindings/tensor_parts.h"

namespace tn::py {

namespace {

using T = ParamType;

constexpr Signature form(const char* text, const Param* params, int num_params, int num_positional, const Arg* defaults, int num_args) {
  return {text, params, defaults, static_cast<uint8_t>(num_params), static_cast<uint8_t>(num_positional), static_cast<uint8_t>(num_args),
          0, Signature::kNoOp, Signature::kNoOp, 0, 0, nullptr};
}

constexpr Arg kDefaults[] = {Arg(), Arg::of(false), Arg()};
constexpr Param kInput[] = {{"input", T::Tensor, 0, 0, 0}};
constexpr Signature kInputSignature[] = {form("(Tensor input)", kInput, 1, 1, kDefaults, 1)};
constexpr Function kGetDevice{"get_device", kInputSignature, 1, false, -1, "torch"};
constexpr Function kNumel{"numel", kInputSignature, 1, false, -1, "torch"};

PyObject* get_device(PyObject*, Parsed& p, int) {
  const Device d = p.arg(0).tensor().device();
  return PyLong_FromLong(d.is_cpu() ? -1 : d.index);
}
PyObject* numel(PyObject*, Parsed& p, int) { return PyLong_FromLongLong(p.arg(0).tensor().numel()); }

constexpr Param kNonzeroParams[] = {{"input", T::Tensor, 0, 0, 0},
                                    {"as_tuple", T::Bool, Param::kKeywordOnly | Param::kHasDefault, 1, 0},
                                    {"out", T::Tensor, Param::kKeywordOnly | Param::kHasDefault | Param::kAllowNone, 2, 0}};
constexpr Signature kNonzeroSignatures[] = {
    form("(Tensor input, *, bool as_tuple = False, Tensor out = None)", kNonzeroParams, 3, 1, kDefaults, 3)};
constexpr Function kNonzero{"nonzero", kNonzeroSignatures, 1, false, -1, "torch"};

PyObject* nonzero(PyObject*, Parsed& p, int) {
  const Arg args[] = {p.arg(0), p.arg(2)};
  if (p.arg(1).i) {
    Value out;
    door::call_boxed(required_op("aten::nonzero_numpy", ""), {args, 1}, &out);
    return wrap_list(out.arg().tensors());
  }
  if (args[1].is_none()) return wrap(call_tensor(required_op("aten::nonzero", ""), {args, 1}, p.large));
  return wrap(call_tensor(required_op("aten::nonzero", "out"), args, p.large));
}

}  // namespace

PyMethodDef variable_hand_functions[] = {TN_HAND_METHOD(kGetDevice, get_device), TN_HAND_METHOD(kNumel, numel),
                                         TN_HAND_METHOD(kNonzero, nonzero), {nullptr, nullptr, 0, nullptr}};

}  // namespace tn::py
