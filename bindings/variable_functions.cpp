// Functions of torch._C._VariableFunctions that upstream writes by hand.
#include <cstring>

#include "bindings/hand_method.h"
#include "bindings/tensor_parts.h"
#include "bindings/torch_function.h"
#include "runtime/autograd_meta.h"
#include "runtime/refuse.h"

namespace tn::py {

namespace {

using T = ParamType;

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

constexpr Param kNonzeroParams[] = {
    {"input", T::Tensor, 0, 0, 0},
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

// ---- range: arange with its end included
// ----------------------------------------------------------------------------------
constexpr uint8_t kOption = Param::kKeywordOnly | Param::kHasDefault | Param::kAllowNone;
constexpr Arg kRangeDefaults[] = {Arg(), Arg(), Arg::of(int64_t{1}), Arg(), Arg(), Arg(), Arg::of(false), Arg()};
constexpr Param kRangeParams[] = {
    {"start", T::Scalar, 0, 0, 0},
    {"end", T::Scalar, 0, 1, 0},
    {"step", T::Scalar, Param::kHasDefault, 2, 0},
    {"out", T::Tensor, kOption, 7, 0},
    {"dtype", T::ScalarType, kOption, 3, 0},
    {"layout", T::Layout, kOption, 4, 0},
    {"device", T::Device, kOption, 5, 0},
    {"pin_memory", T::Bool, kOption, 6, 0},
    {"requires_grad", T::Bool, Param::kKeywordOnly | Param::kHasDefault, Param::kRequiresGrad, 0}};
constexpr Signature kRangeSignature[] = {
    form("(Number start, Number end, Number step = 1, *, Tensor out = None, torch.dtype dtype = None, torch.layout "
         "layout = torch.strided, "
         "torch.device device = None, bool pin_memory = False, bool requires_grad = False)",
         kRangeParams, 9, 3, kRangeDefaults, 8)};
constexpr Function kRange{"range", kRangeSignature, 1, false, -1, "torch"};

PyObject* range(PyObject*, Parsed& p, int) {
  if (PyErr_WarnEx(PyExc_UserWarning,
                   "torch.range is deprecated and will be removed in a future release because its behavior is "
                   "inconsistent with Python's "
                   "range builtin. Instead, use torch.arange, which produces values in [start, end).",
                   1) < 0)
    throw PythonError();
  PyRef made;
  if (p.arg(7).is_none()) {
    made = PyRef::check(wrap(call_tensor(required_op("aten::range", "step"), {p.args(), 7})));
  } else {
    const Arg args[] = {p.arg(0), p.arg(1), p.arg(2), p.arg(7)};
    made = PyRef::check(wrap(call_tensor(required_op("aten::range", "out"), args)));
  }
  if (p.requires_grad) set_requires_grad(tensor_of(made.get()), true);
  return made.release();
}

template <const char* const& kName>
PyObject* refuse_sparse(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    const char* const name = kName + std::strlen("torch.");
    const PyRef torch = PyRef::check(PyImport_ImportModule("torch"));
    const PyRef function = PyRef::check(PyObject_GetAttrString(torch.get(), name));
    PyObject* told;
    if (function_override(function.get(), args, kwargs, "torch", name, &told)) return told;
    refuse(kName, "call", "sparse layouts are not served");
  });
}
constexpr const char *kCoo = "torch.sparse_coo_tensor", *kCsr = "torch.sparse_csr_tensor",
                     *kCsc = "torch.sparse_csc_tensor", *kBsr = "torch.sparse_bsr_tensor",
                     *kBsc = "torch.sparse_bsc_tensor", *kCompressed = "torch.sparse_compressed_tensor";

}  // namespace

#define TN_REFUSED_SPARSE(name, full)                                                       \
  {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&refuse_sparse<full>)), \
   METH_VARARGS | METH_KEYWORDS, nullptr}

PyMethodDef variable_hand_functions[] = {TN_HAND_METHOD(kGetDevice, get_device),
                                         TN_HAND_METHOD(kNumel, numel),
                                         TN_HAND_METHOD(kNonzero, nonzero),
                                         TN_HAND_METHOD(kRange, range),
                                         TN_REFUSED_SPARSE("sparse_coo_tensor", kCoo),
                                         TN_REFUSED_SPARSE("sparse_csr_tensor", kCsr),
                                         TN_REFUSED_SPARSE("sparse_csc_tensor", kCsc),
                                         TN_REFUSED_SPARSE("sparse_bsr_tensor", kBsr),
                                         TN_REFUSED_SPARSE("sparse_bsc_tensor", kBsc),
                                         TN_REFUSED_SPARSE("sparse_compressed_tensor", kCompressed),
                                         {nullptr, nullptr, 0, nullptr}};

}  // namespace tn::py
