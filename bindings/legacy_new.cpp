#include "bindings/legacy_new.h"

#include "bindings/arguments.h"
#include "bindings/calls.h"
#include "bindings/numpy.h"
#include "bindings/object_type.h"
#include "bindings/tensor.h"
#include "runtime/refuse.h"
#include "runtime/shape.h"

namespace tn::py {

namespace {

constexpr Formal kDevice{"device", Kind::Device, true, true, true, "None"};
constexpr Formal kNothing[] = {kDevice};
constexpr Formal kStorage[] = {{"storage", Kind::Storage}};
constexpr Formal kAddress[] = {{"cdata", Kind::Int, false, true}};
constexpr Formal kOther[] = {{"other", Kind::Tensor}};
constexpr Formal kOtherDevice[] = {{"other", Kind::Tensor}, kDevice};
constexpr Formal kSizes[] = {{"size", Kind::Sizes}, kDevice};
constexpr Formal kData[] = {{"data", Kind::Any}, kDevice};
enum FormIndex { kFormNothing, kFormStorage, kFormAddress, kFormOther, kFormOtherDevice, kFormSizes, kFormData };
constexpr Form kForms[] = {{kNothing}, {kStorage}, {kAddress, true}, {kOther}, {kOtherDevice, true}, {kSizes}, {kData}};

std::string shown_options(ScalarType t, Device d) {
  return str(
      "TensorOptions(dtype=", element_type_name(t), ", device=", d.str(),
      ", layout=Strided, requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt))");
}

void check_device(Device expected, std::optional<Device> given) {
  TN_CHECK(!given || given->type == expected.type,
           "legacy constructor expects device type: ", device_type_name(expected.type),
           " but device type: ", device_type_name(given ? given->type : expected.type), " was passed");
}

bool is_size_number(PyObject* o) {
  if (PyBool_Check(o)) return false;
  if (PyLong_Check(o) || is_numpy_integer(o)) return true;
  if (is_tensor(o)) return tensor_of(o).dim() == 0 && is_integral(tensor_of(o).dtype(), false);
  // What says that it is an integer, numpy's arrays without dimensions among it; those with dimensions say so and then
  // raise.
  if (!PyIndex_Check(o)) return false;
  if (const PyRef number = PyRef::adopt(PyNumber_Index(o))) return true;
  PyErr_Clear();
  return false;
}

int64_t size_item(PyObject* o, Py_ssize_t position) {
  const PyRef number = PyRef::adopt(is_tensor(o) || is_size_number(o) ? PyNumber_Index(o) : nullptr);
  if (!number) {
    if (PyErr_Occurred()) PyErr_Clear();
    raise(PyExc_TypeError,
          "new(): argument 'size' failed to unpack the object at pos %zd with error \"type must be tuple of ints,but "
          "got %s\"",
          position + 1, type_name(o));
  }
  const long long v = PyLong_AsLongLong(number.get());
  if (v == -1 && PyErr_Occurred()) throw PythonError();
  return v;
}
DimVector sizes_of(PyObject* const* items, Py_ssize_t n) {
  DimVector sizes;
  for (Py_ssize_t i = 0; i < n; ++i) sizes.push_back(size_item(items[i], i));
  return sizes;
}

Tensor from_sequence(PyObject* data, ScalarType dtype, Device device) {
  if (!PySequence_Check(data) && !is_tensor(data))
    fail(ErrorKind::Type, "new(): data must be a sequence (got ", type_name(data), ")");
  return tensor_from_data(
      data, {.dtype = dtype, .device = device, .copy_variables = false, .copy_numpy = false, .infer = false});
}

Tensor from_storage(PyObject* o, ScalarType dtype) {
  Storage s;
  std::optional<ScalarType> typed;
  storage_argument(o, &s, &typed);
  TN_CHECK(!typed || *typed == dtype, "Expected a Storage of type ", scalar_type_name(dtype),
           " or an UntypedStorage, but got type ", typed ? scalar_type_name(*typed) : "", " for argument 1 'storage'");
  const auto n = static_cast<int64_t>(s->nbytes() / item_size(dtype));
  return tensor_over(std::move(s), dtype, {n}, {int64_t{1}});
}

}  // namespace

Tensor legacy_tensor(LegacyForm form, ScalarType dtype, Device device, PyObject* args, PyObject* kwargs) {
  // Numbers one by one are sizes; a device may follow by name.
  const Py_ssize_t num = PyTuple_GET_SIZE(args);
  if (num > 0 && is_size_number(PyTuple_GET_ITEM(args, 0)) && !(num == 1 && is_tensor(PyTuple_GET_ITEM(args, 0)))) {
    const PyRef rest = PyRef::check(PyTuple_New(0));
    const Actuals given = parse("new", std::span(kForms, 1), rest.get(), kwargs);
    check_device(device, given.device(0));
    return call_empty(sizes_of(&PyTuple_GET_ITEM(args, 0), num), dtype, given.device(0).value_or(device));
  }
  const Actuals given = parse("new", kForms, args, kwargs);
  switch (given.form) {
    case kFormNothing: check_device(device, given.device(0)); return call_empty({int64_t{0}}, dtype, device);
    case kFormStorage: return from_storage(given[0], dtype);
    case kFormAddress: refuse("torch.Tensor", "cdata", "tensors are not made from addresses");
    case kFormOther: {
      const Tensor& other = tensor_of(given[0]);
      if (form != LegacyForm::Base &&
          (other.dtype() != dtype || other.device().type != device.type || other.layout() != Layout::Strided))
        fail(ErrorKind::Type, "expected ", shown_options(dtype, device), " (got ",
             shown_options(other.dtype(), other.device()), ")");
      return call_alias(other);
    }
    case kFormOtherDevice:
      fail(ErrorKind::Runtime, form == LegacyForm::New
                                   ? "Legacy tensor new of the form tensor.new(tensor, device=device) is not "
                                     "supported.  Use torch.as_tensor(...) instead."
                                   : "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not "
                                     "supported.  Use torch.tensor(...) or "
                                     "torch.as_tensor(...) instead.");
    case kFormSizes: {
      check_device(device, given.device(1));
      PyObject* sizes = given[0];
      const Device target = given.device(1).value_or(device);
      // A list of numbers is data, unless it is a Size or was passed by name.
      if (!is_size(sizes) && num >= 1) return from_sequence(sizes, dtype, target);
      return call_empty(sizes_of(PySequence_Fast_ITEMS(sizes), PySequence_Fast_GET_SIZE(sizes)), dtype, target);
    }
    default:
      check_device(device, given.device(1));
      return from_sequence(given[0], dtype, given.device(1).value_or(device));
  }
}

Tensor legacy_constructor(ScalarType dtype, Device device, PyObject* args, PyObject* kwargs) {
  return legacy_tensor(LegacyForm::Base, dtype, device, args, kwargs);
}
Tensor legacy_new(const Tensor& self, PyObject* args, PyObject* kwargs) {
  if (self.layout() != Layout::Strided)
    refuse("Tensor.new", layout_name(self.layout()), "sparse tensors are not there");
  return legacy_tensor(LegacyForm::New, self.dtype(), self.device(), args, kwargs);
}

}  // namespace tn::py
