// to, float and their kin, contiguous, copy_, set_, type.
#include "bindings/custom_geometry.h"
#include "bindings/hand_method.h"
#include "bindings/objects.h"
#include "bindings/tensor_parts.h"
#include "runtime/refuse.h"

namespace tn::py {

namespace {

using T = ParamType;
constexpr uint8_t kNone = Param::kAllowNone | Param::kHasDefault;
constexpr uint8_t kKeyword = Param::kKeywordOnly;

// ---- to
// ----------------------------------------------------------------------------------------------------------------
enum ToArg { kSelf, kDevice, kDtype, kNonBlocking, kCopy, kFormat, kOther, kNumToArgs };
constexpr Arg kToDefaults[] = {Arg(), Arg(), Arg(), Arg::of(false), Arg::of(false), Arg(), Arg()};
constexpr Param kToDevice[] = {{"device", T::Device, kNone, kDevice, 0},
                               {"dtype", T::ScalarType, kNone, kDtype, 0},
                               {"non_blocking", T::Bool, Param::kHasDefault, kNonBlocking, 0},
                               {"copy", T::Bool, Param::kHasDefault, kCopy, 0},
                               {"memory_format", T::MemoryFormat, kNone | kKeyword, kFormat, 0}};
constexpr Param kToDtype[] = {{"dtype", T::ScalarType, 0, kDtype, 0},
                              {"non_blocking", T::Bool, Param::kHasDefault, kNonBlocking, 0},
                              {"copy", T::Bool, Param::kHasDefault, kCopy, 0},
                              {"memory_format", T::MemoryFormat, kNone | kKeyword, kFormat, 0}};
constexpr Param kToOther[] = {{"tensor", T::Tensor, 0, kOther, 0},
                              {"non_blocking", T::Bool, Param::kHasDefault, kNonBlocking, 0},
                              {"copy", T::Bool, Param::kHasDefault, kCopy, 0},
                              {"memory_format", T::MemoryFormat, kNone | kKeyword, kFormat, 0}};
constexpr Signature kToSignatures[] = {
    form("(torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, "
         "torch.memory_format "
         "memory_format = None)",
         kToDevice, 5, 4, kToDefaults, kNumToArgs),
    form("(torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = "
         "None)",
         kToDtype, 4, 3, kToDefaults, kNumToArgs),
    form("(Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)",
         kToOther, 4, 3, kToDefaults, kNumToArgs)};
constexpr Function kTo{"to", kToSignatures, 3, true, -1, "torch.Tensor"};

// The operator that upstream picks for what is asked; the tensor itself when nothing is.
PyObject* convert(PyObject* self, Parsed& p, const Arg& device, const Arg& dtype) {
  const Tensor& t = tensor_of(self);
  const Arg me = Arg::of(t);
  const Arg &non_blocking = p.arg(kNonBlocking), &copy = p.arg(kCopy), &format = p.arg(kFormat);
  const bool large = t.numel() >= kLargeNumel;
  if (!copy.i && format.is_none()) {
    const bool same_device = device.is_none() || device.device() == t.device() ||
                             (device.device().type == t.device().type && device.device().index < 0);
    const bool same_dtype = dtype.is_none() || dtype.i == static_cast<int64_t>(t.dtype());
    if (same_device && same_dtype) return Py_NewRef(self);
  }
  if (device.is_none() && !dtype.is_none()) {
    static OpRow& op = required_op("aten::to", "dtype");
    const Arg args[] = {me, dtype, non_blocking, copy, format};
    return wrap(call_tensor(op, args, large));
  }
  if (!device.is_none() && !dtype.is_none()) {
    static OpRow& op = required_op("aten::to", "device");
    const Arg args[] = {me, device, dtype, non_blocking, copy, format};
    return wrap(call_tensor(op, args, large));
  }
  static OpRow& op = required_op("aten::to", "dtype_layout");
  const Arg args[] = {me,
                      Arg::of(static_cast<int64_t>(t.dtype())),
                      Arg::of(static_cast<int64_t>(t.layout())),
                      device.is_none() ? Arg::of(t.device()) : device,
                      Arg::of(false),
                      non_blocking,
                      copy,
                      format};
  return wrap(call_tensor(op, args, large));
}

PyObject* to(PyObject* self, Parsed& p, int which) {
  if (which != 2) return convert(self, p, p.arg(kDevice), p.arg(kDtype));
  const Tensor& other = p.arg(kOther).tensor();
  return convert(self, p, Arg::of(other.device()), Arg::of(static_cast<int64_t>(other.dtype())));
}

// torch._C._nn._parse_to: what Module.to was asked for.
constexpr Function kParseTo{"_parse_to", kToSignatures, 3, false, -1, "torch._C._nn"};
PyObject* parse_to(PyObject*, Parsed& p, int which) {
  const Arg other = which == 2 ? p.arg(kOther) : Arg();
  const Arg device = which == 2 ? Arg::of(other.tensor().device()) : which == 0 ? p.arg(kDevice) : Arg();
  const Arg dtype = which == 2 ? Arg::of(static_cast<int64_t>(other.tensor().dtype())) : p.arg(kDtype);
  const Arg& format = p.arg(kFormat);
  const auto none = [] { return Py_NewRef(Py_None); };
  const PyRef where = PyRef::check(device.is_none() ? none() : device_object(device.device()));
  PyObject* const type = dtype.is_none() ? Py_None : dtype_object(static_cast<ScalarType>(dtype.i));
  PyObject* const shape = format.is_none() ? Py_None : memory_format_object(static_cast<MemoryFormat>(format.i));
  return Py_BuildValue("(OOOO)", where.get(), type, p.arg(kNonBlocking).i ? Py_True : Py_False, shape);
}

// ---- float(), cpu() and others with memory_format only
// --------------------------------------------------------------------
constexpr Param kFormatOnly[] = {{"memory_format", T::MemoryFormat, kNone | kKeyword, kFormat, 0}};
constexpr Signature kFormatSignature[] = {
    form("(*, torch.memory_format memory_format = None)", kFormatOnly, 1, 0, kToDefaults, kNumToArgs)};
constexpr Function shaped_as(const char* name) { return {name, kFormatSignature, 1, true, -1, "torch.Tensor"}; }
constexpr Function kBFloat16 = shaped_as("bfloat16"), kBool = shaped_as("bool"), kByte = shaped_as("byte"),
                   kCDouble = shaped_as("cdouble"), kCFloat = shaped_as("cfloat"), kChar = shaped_as("char"),
                   kDouble = shaped_as("double"), kFloat = shaped_as("float"), kHalf = shaped_as("half"),
                   kInt = shaped_as("int"), kLong = shaped_as("long"), kShort = shaped_as("short"),
                   kCpu = shaped_as("cpu");
template <ScalarType kType>
PyObject* as_dtype(PyObject* self, Parsed& p, int) {
  return convert(self, p, Arg(), Arg::of(static_cast<int64_t>(kType)));
}
PyObject* cpu(PyObject* self, Parsed& p, int) { return convert(self, p, Arg::of(Device(DeviceType::CPU)), Arg()); }

constexpr Param kElsewhereParams[] = {{"device", T::Device, kNone, kDevice, 0},
                                      {"non_blocking", T::Bool, Param::kHasDefault, kNonBlocking, 0},
                                      {"memory_format", T::MemoryFormat, kNone | kKeyword, kFormat, 0}};
constexpr Signature kElsewhereSignature[] = {
    form("(torch.device device = None, bool non_blocking = False, *, torch.memory_format memory_format = None)",
         kElsewhereParams, 3, 2, kToDefaults, kNumToArgs)};
constexpr Function elsewhere(const char* name) { return {name, kElsewhereSignature, 1, true, -1, "torch.Tensor"}; }
constexpr Function kCuda = elsewhere("cuda"), kXpu = elsewhere("xpu"), kIpu = elsewhere("ipu"),
                   kMtia = elsewhere("mtia");
PyObject* cuda(PyObject*, Parsed&, int) { raise(PyExc_AssertionError, "Torch not compiled with CUDA enabled"); }
PyObject* xpu(PyObject*, Parsed&, int) { raise(PyExc_AssertionError, "Torch not compiled with XPU enabled"); }
PyObject* mtia(PyObject*, Parsed&, int) { raise(PyExc_AssertionError, "Torch not compiled with MTIA enabled."); }
PyObject* ipu(PyObject*, Parsed&, int) {
  raise(PyExc_RuntimeError, "PyTorch is not linked with support for ipu devices");
}

// ---- contiguous, is_contiguous
// ---------------------------------------------------------------------------------------------
constexpr Arg kFormatDefaults[] = {Arg(), Arg::of(static_cast<int64_t>(MemoryFormat::Contiguous))};
constexpr Param kContiguousParams[] = {{"memory_format", T::MemoryFormat, Param::kHasDefault | kKeyword, 1, 0}};
constexpr Signature kContiguousSignature[] = {form("(*, torch.memory_format memory_format = torch.contiguous_format)",
                                                   kContiguousParams, 1, 0, kFormatDefaults, 2)};
constexpr Function kContiguous{"contiguous", kContiguousSignature, 1, true, -1, "torch.Tensor"};
constexpr Function kIsContiguous{"is_contiguous", kContiguousSignature, 1, true, -1, "torch.Tensor"};
PyObject* contiguous(PyObject* self, Parsed& p, int) {
  const Tensor& t = tensor_of(self);
  if (asked_contiguous(t, static_cast<MemoryFormat>(p.arg(1).i))) return Py_NewRef(self);
  static OpRow& op = required_op("aten::contiguous", "");
  return wrap(call_tensor(op, {p.args(), 2}, t.numel() >= kLargeNumel));
}
PyObject* is_contiguous(PyObject* self, Parsed& p, int) {
  return new_bool(asked_contiguous(tensor_of(self), static_cast<MemoryFormat>(p.arg(1).i)));
}

// ---- copy_
// -----------------------------------------------------------------------------------------------------------------
constexpr Arg kCopyDefaults[] = {Arg(), Arg(), Arg::of(false)};
constexpr Param kCopyParams[] = {{"other", T::Tensor, Param::kNumbers, 1, 0},
                                 {"non_blocking", T::Bool, Param::kHasDefault, 2, 0}};
constexpr Signature kCopySignature[] = {
    form("(Tensor other, bool non_blocking = False)", kCopyParams, 2, 2, kCopyDefaults, 3)};
constexpr Function kCopyFunction{"copy_", kCopySignature, 1, true, -1, "torch.Tensor"};
PyObject* copy(PyObject* self, Parsed& p, int) {
  static OpRow& op = required_op("aten::copy_", "");
  call_tensor(op, {p.args(), 3}, p.large);
  return Py_NewRef(self);
}

// ---- set_
// ------------------------------------------------------------------------------------------------------------------
constexpr Arg kSetDefaults[] = {Arg(), Arg(), Arg(), Arg(), Arg::list(Tag::IntList, nullptr, 0)};
constexpr Param kSetStorage[] = {{"source", T::Storage, 0, 1, 0}};
constexpr Param kSetStorageSizes[] = {{"source", T::Storage, 0, 1, 0},
                                      {"storage_offset", T::Int, 0, 2, 0},
                                      {"size", T::IntList, 0, 3, 0},
                                      {"stride", T::IntList, kNone, 4, 0}};
constexpr Param kSetTensor[] = {{"source", T::Tensor, 0, 1, 0}};
constexpr Param kSetTensorSizes[] = {{"source", T::Tensor, 0, 1, 0},
                                     {"storage_offset", T::Int, 0, 2, 0},
                                     {"size", T::IntList, 0, 3, 0},
                                     {"stride", T::IntList, kNone, 4, 0}};
constexpr Signature kSetSignatures[] = {
    form("()", nullptr, 0, 0, kSetDefaults, 1), form("(torch.Storage source)", kSetStorage, 1, 1, kSetDefaults, 2),
    form("(torch.Storage source, int storage_offset, tuple of ints size, tuple of ints stride = None)",
         kSetStorageSizes, 4, 4, kSetDefaults, 5),
    form("(Tensor source)", kSetTensor, 1, 1, kSetDefaults, 2),
    form("(Tensor source, int storage_offset, tuple of ints size, tuple of ints stride = None)", kSetTensorSizes, 4, 4,
         kSetDefaults, 5)};
constexpr Function kSet{"set_", kSetSignatures, 5, true, -1, "torch.Tensor"};
PyObject* set(PyObject* self, Parsed& p, int which) {
  static constexpr const char* kOverloads[] = {"", "source_Storage", "source_Storage_storage_offset", "source_Tensor",
                                               "source_Tensor_storage_offset"};
  if (kSetSignatures[which].num_args == 5 && p.arg(4).is_none()) p.arg(4) = kSetDefaults[4];
  call_tensor(required_op("aten::set_", kOverloads[which]), {p.args(), kSetSignatures[which].num_args});
  return Py_NewRef(self);
}

// ---- type
// ------------------------------------------------------------------------------------------------------------------
constexpr Param kTypeParams[] = {{"dtype", T::Object, kNone, kOther, 0},
                                 {"non_blocking", T::Bool, Param::kHasDefault, kNonBlocking, 0},
                                 {"memory_format", T::MemoryFormat, kNone | kKeyword, kFormat, 0}};
constexpr Signature kTypeSignature[] = {
    form("(object dtype = None, bool non_blocking = False, *, torch.memory_format memory_format = None)", kTypeParams,
         3, 2, kToDefaults, kNumToArgs)};
constexpr Function kType{"type", kTypeSignature, 1, true, -1, "torch.Tensor"};
PyObject* type(PyObject* self, Parsed& p, int) {
  const Tensor& t = tensor_of(self);
  if (p.arg(kOther).is_none()) return tensor_type_name(t);
  auto* const asked = static_cast<PyObject*>(const_cast<void*>(p.arg(kOther).p));
  ScalarType dtype;
  Device device = t.device();
  if (!dtype_argument(asked, &dtype)) {
    if (!PyUnicode_Check(asked) && !PyType_Check(asked) && !PyType_Check(reinterpret_cast<PyObject*>(Py_TYPE(asked))))
      raise(PyExc_TypeError, "dtype must be a type, str, or dtype object");
    if (PyLong_Check(asked) || PyFloat_Check(asked))
      raise(PyExc_TypeError, "dtype must be a type, str, or dtype object");
    const TensorTypeInfo info = tensor_type_argument(asked);
    if (info.layout != t.layout()) refuse("Tensor.type", layout_name(info.layout), "another layout than the tensor's");
    dtype = info.dtype;
    device = info.device;
  }
  return convert(self, p, Arg::of(device), Arg::of(static_cast<int64_t>(dtype)));
}

}  // namespace

PyMethodDef nn_hand_functions[] = {TN_HAND_METHOD(kParseTo, parse_to), {nullptr, nullptr, 0, nullptr}};

PyMethodDef tensor_convert_methods[] = {TN_HAND_METHOD(kTo, to),
                                        TN_HAND_METHOD(kBFloat16, as_dtype<ScalarType::BFloat16>),
                                        TN_HAND_METHOD(kBool, as_dtype<ScalarType::Bool>),
                                        TN_HAND_METHOD(kByte, as_dtype<ScalarType::Byte>),
                                        TN_HAND_METHOD(kCDouble, as_dtype<ScalarType::ComplexDouble>),
                                        TN_HAND_METHOD(kCFloat, as_dtype<ScalarType::ComplexFloat>),
                                        TN_HAND_METHOD(kChar, as_dtype<ScalarType::Char>),
                                        TN_HAND_METHOD(kDouble, as_dtype<ScalarType::Double>),
                                        TN_HAND_METHOD(kFloat, as_dtype<ScalarType::Float>),
                                        TN_HAND_METHOD(kHalf, as_dtype<ScalarType::Half>),
                                        TN_HAND_METHOD(kInt, as_dtype<ScalarType::Int>),
                                        TN_HAND_METHOD(kLong, as_dtype<ScalarType::Long>),
                                        TN_HAND_METHOD(kShort, as_dtype<ScalarType::Short>),
                                        TN_HAND_METHOD(kCpu, cpu),
                                        TN_HAND_METHOD(kCuda, cuda),
                                        TN_HAND_METHOD(kXpu, xpu),
                                        TN_HAND_METHOD(kIpu, ipu),
                                        TN_HAND_METHOD(kMtia, mtia),
                                        TN_HAND_METHOD(kContiguous, contiguous),
                                        TN_HAND_METHOD(kIsContiguous, is_contiguous),
                                        TN_HAND_METHOD(kCopyFunction, copy),
                                        TN_HAND_METHOD(kSet, set),
                                        TN_HAND_METHOD(kType, type),
                                        {nullptr, nullptr, 0, nullptr}};

}  // namespace tn::py
