// torch._C._initExtension: what only works once the torch package has come halfway.
#include "bindings/object_type.h"
#include "bindings/objects_internal.h"
#include "bindings/storage.h"
#include "bindings/tensor_parts.h"

namespace tn::py {

namespace {

void add_dtypes(PyObject* torch) {
  for (int i = 0; i < kNumScalarTypes; ++i) {
    const auto t = static_cast<ScalarType>(i);
    const std::string name(dtype_name(t));
    if (!add_to_module(torch, name.c_str(), dtype_object(t))) throw PythonError();
    if (const char* alias = dtype_alias(t); alias && !add_to_module(torch, alias, dtype_object(t))) throw PythonError();
  }
}

PyObject* init_extension(PyObject*, PyObject* shm_manager) {
  return guarded([&]() -> PyObject* {
    // The path of upstream's daemon for named shared memory, which does not exist here.
    TN_CHECK(PyBytes_Check(shm_manager) || PyUnicode_Check(shm_manager),
             "initialization error - expected bytes/string object as shm_manager_path!");
    const PyRef torch = PyRef::check(PyImport_ImportModule("torch"));
    if (!add_layout_names(torch.get())) throw PythonError();
    add_dtypes(torch.get());
    PyRef::check(PyImport_ImportModule("torch.cuda"));
    PyRef::check(PyImport_ImportModule("torch.sparse"));
    add_tensor_types(torch.get());
    const PyRef storage = PyRef::check(PyObject_GetAttrString(torch.get(), "FloatStorage"));
    if (!add_to_module(torch.get(), "Storage", storage.get()) || !storage_class_ready()) throw PythonError();
    if (!add_functionalize_functions(torch.get())) throw PythonError();
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {{"_initExtension", init_extension, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool bind_init_extension(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

bool bind_objects(PyObject* module) {
  return bind_dtypes(module) && bind_layouts(module) && bind_devices(module) && bind_size(module) &&
         bind_finfo(module) && bind_generators(module) && bind_streams(module) && bind_storages(module) &&
         bind_tensor_types(module) && bind_dlpack(module) && bind_serialization(module) && bind_init_extension(module);
}

}  // namespace tn::py
