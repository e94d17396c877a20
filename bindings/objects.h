// Python's objects beside the tensor: dtypes, devices, layouts, sizes, generators, storages; making, indexing and
// exporting tensors.
//
// Functions that return PyObject* return a new reference unless they say "borrowed", and null with an exception set.
// Functions that return a C++ value throw tn::Error, or py::PythonError (py.h) when Python's exception is already set.
#pragma once
#include <Python.h>

#include <optional>

#include "runtime/device.h"
#include "runtime/dtype.h"
#include "runtime/fwd.h"
#include "runtime/scalar.h"
#include "runtime/tensor.h"

namespace tn {
struct Stream;
}

namespace tn::py {

// ---- dtypes: one immortal object each ------------------------------------------------------------------------------
struct DTypeObject {
  PyObject_HEAD ScalarType type;
};
extern PyTypeObject dtype_type;
PyObject* dtype_object(ScalarType t);  // borrowed
inline bool is_dtype(PyObject* o) { return Py_IS_TYPE(o, &dtype_type); }
inline bool is_dtype(PyObject* o, ScalarType* out) {
  if (!is_dtype(o)) return false;
  *out = reinterpret_cast<DTypeObject*>(o)->type;
  return true;
}
// What a dtype argument takes: a dtype, or Python's float, int, bool and complex. No exception.
bool dtype_argument(PyObject* o, ScalarType* out);

// ---- layouts, memory formats, quantisation schemes: one immortal object each
// -----------------------------------------
struct EnumObject {
  PyObject_HEAD int8_t value;
};
extern PyTypeObject layout_type, memory_format_type, qscheme_type;
PyObject* layout_object(Layout l);               // borrowed
PyObject* memory_format_object(MemoryFormat f);  // borrowed
PyObject* qscheme_object(QScheme q);             // borrowed
inline bool is_layout(PyObject* o) { return Py_IS_TYPE(o, &layout_type); }
inline bool is_memory_format(PyObject* o) { return Py_IS_TYPE(o, &memory_format_type); }
inline bool is_qscheme(PyObject* o) { return Py_IS_TYPE(o, &qscheme_type); }
inline int8_t enum_value(PyObject* o) { return reinterpret_cast<EnumObject*>(o)->value; }

// ---- devices
// ---------------------------------------------------------------------------------------------------------
struct DeviceObject {
  PyObject_HEAD Device device;
};
extern PyTypeObject device_type;
PyObject* device_object(Device d);
inline bool is_device(PyObject* o) { return Py_IS_TYPE(o, &device_type); }
// Whether a device argument takes it (device, str, int), without parsing the text.
inline bool is_device_argument(PyObject* o) {
  return is_device(o) || PyUnicode_Check(o) || (PyLong_Check(o) && !PyBool_Check(o));
}
// Its device; throws upstream's parsing errors.
Device device_argument(PyObject* o);
// What upstream does before it makes a tensor on a device: torch.cuda._lazy_init() for cuda, whose error is raised.
// No-op for cpu and meta.
void initialize_device(Device d);

// ---- torch.Size
// ------------------------------------------------------------------------------------------------------
extern PyTypeObject size_type;
PyObject* size_object(IntView sizes);
inline bool is_size(PyObject* o) { return Py_IS_TYPE(o, &size_type); }

// ---- generators
// ------------------------------------------------------------------------------------------------------
struct GeneratorObject {
  PyObject_HEAD GeneratorImpl* impl;  // owned
};
extern PyTypeObject generator_type;
PyObject* generator_object(GeneratorImpl* generator);  // the same object while one is alive
inline bool is_generator(PyObject* o) { return PyObject_TypeCheck(o, &generator_type); }
inline GeneratorImpl* generator_of(PyObject* o) { return reinterpret_cast<GeneratorObject*>(o)->impl; }  // borrowed

// ---- streams and events: bases that refuse when used
// -------------------------------------------------------------------
struct StreamObject {
  PyObject_HEAD int64_t stream_id;
  int64_t device_type;
  int64_t device_index;
  PyObject* weakrefs;
};
extern PyTypeObject stream_type, event_type;
PyObject* stream_object(const Stream& s);
Stream stream_of(PyObject* o);
inline bool is_stream(PyObject* o) { return PyObject_TypeCheck(o, &stream_type); }

// ---- storages
// --------------------------------------------------------------------------------------------------------
struct StorageObject {
  PyObject_HEAD StorageImpl* impl;  // owned; null while the storage itself keeps this object alive
  bool kept_by_impl;
};
extern PyTypeObject storage_base_type;
PyObject* storage_object(const Storage& s);  // an UntypedStorage, the same one while it lives
inline bool is_untyped_storage(PyObject* o) { return PyObject_TypeCheck(o, &storage_base_type); }
// The storage of an UntypedStorage, TypedStorage or legacy storage object; false without an exception for anything
// else. `dtype` tells the element type of a typed one.
bool storage_argument(PyObject* o, Storage* out, std::optional<ScalarType>* dtype = nullptr);

// ---- numbers
// ---------------------------------------------------------------------------------------------------------
PyObject* number_object(const Scalar& s);
// Tensor.item(): the only element as a Python number.
PyObject* tensor_item(const Tensor& self);
PyObject* tensor_tolist(const Tensor& self);

// ---- indexing: the slots of TensorBase, __torch_function__ already handled by the caller
// -------------------------------
PyObject* tensor_getitem(PyObject* self, PyObject* index);
int tensor_setitem(PyObject* self, PyObject* index, PyObject* value);  // value null: deletion, which raises

// ---- making tensors from Python's data
// --------------------------------------------------------------------------------- torch.tensor and its relatives
// share this. With `copy_numpy` numpy's memory is not shared; `infer` takes the data's own dtype.
struct NewTensor {
  ScalarType dtype;
  Device device;
  bool copy_variables = true;
  bool copy_numpy = true;
  bool infer = true;
  bool pin_memory = false;
};
Tensor tensor_from_data(PyObject* data, const NewTensor& how);
// torch.Tensor(...): what TensorBase's tp_new does for Tensor and its subclasses. `options` decide dtype and device.
Tensor legacy_constructor(ScalarType dtype, Device device, PyObject* args, PyObject* kwargs);
// Tensor.new(...).
Tensor legacy_new(const Tensor& self, PyObject* args, PyObject* kwargs);

// ---- torch.FloatTensor and its kin
// --------------------------------------------------------------------------------------- "torch.FloatTensor",
// "torch.sparse.LongTensor": what Tensor.type() answers.
PyObject* tensor_type_name(const Tensor& self);
// Finds dtype, layout and device of such a name or type object (Tensor.type("torch.FloatTensor")); throws for unknown
// ones.
struct TensorTypeInfo {
  ScalarType dtype;
  Layout layout;
  Device device;
};
TensorTypeInfo tensor_type_argument(PyObject* o);

// ---- numpy, DLPack
// -----------------------------------------------------------------------------------------------------
bool is_numpy_array(PyObject* o);
bool is_numpy_scalar(PyObject* o);  // numpy.generic
bool is_numpy_integer(PyObject* o);
bool is_numpy_bool(PyObject* o);
// Shares memory where `share`; throws upstream's errors for other dtypes, negative strides and foreign byte orders.
Tensor tensor_from_numpy(PyObject* array, bool share, bool warn_if_readonly = true);
PyObject* tensor_to_numpy(const Tensor& self, bool force);

// ---- tables for those who assemble modules and types
// --------------------------------------------------------------------- Methods of TensorBase: new, new_tensor, numpy,
// tolist, item, untyped_storage. Null-terminated.
extern PyMethodDef tensor_object_methods[];
// Static methods of _VariableFunctions: tensor, as_tensor, asarray, from_numpy, frombuffer, _from_blob.
// Null-terminated.
extern PyMethodDef tensor_object_functions[];

// Each adds its types and functions to torch._C. False with an exception set.
bool bind_dtypes(PyObject* module);
bool bind_layouts(PyObject* module);
bool bind_devices(PyObject* module);
bool bind_size(PyObject* module);
bool bind_finfo(PyObject* module);
bool bind_generators(PyObject* module);
bool bind_streams(PyObject* module);
bool bind_storages(PyObject* module);
bool bind_tensor_types(PyObject* module);
bool bind_dlpack(PyObject* module);
bool bind_serialization(PyObject* module);
bool bind_init_extension(PyObject* module);  // _initExtension, last
// All of the above in order.
bool bind_objects(PyObject* module);

}  // namespace tn::py
