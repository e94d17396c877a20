// torch.FloatTensor and its kin: classes without instances of their own, that make tensors and know them by dtype.
#include <cstring>
#include <string>

#include "bindings/legacy_new.h"
#include "bindings/object_type.h"
#include "bindings/objects_internal.h"
#include "bindings/tensor.h"
#include "runtime/refuse.h"

namespace tn::py {

namespace {

struct TypeObject {
  PyTypeObject type;
  ScalarType dtype;
  Layout layout;
  DeviceType device;
  char name[48];
};

struct Family {
  const char* module;  // "torch.cuda"
  Layout layout;
  DeviceType device;
};
constexpr Family kFamilies[] = {{"torch", Layout::Strided, DeviceType::CPU},
                                {"torch.cuda", Layout::Strided, DeviceType::CUDA},
                                {"torch.sparse", Layout::Sparse, DeviceType::CPU},
                                {"torch.cuda.sparse", Layout::Sparse, DeviceType::CUDA}};
constexpr ScalarType kDtypes[] = {ScalarType::Byte,     ScalarType::Char, ScalarType::Double, ScalarType::Float,
                                  ScalarType::Int,      ScalarType::Long, ScalarType::Short,  ScalarType::Half,
                                  ScalarType::BFloat16, ScalarType::Bool};
constexpr size_t kNumTypes = std::size(kFamilies) * std::size(kDtypes);

PyTypeObject metaclass{};
TypeObject types[kNumTypes];
size_t num_types = 0;

const TypeObject& as_type(PyObject* o) { return *reinterpret_cast<TypeObject*>(o); }

[[noreturn]] void not_available(const TypeObject& t) {
  raise(PyExc_TypeError, "type %s not available. Torch not compiled with CUDA enabled.", t.name);
}

PyObject* create(PyTypeObject* cls, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    const TypeObject& t = as_type(reinterpret_cast<PyObject*>(cls));
    if (t.device != DeviceType::CPU) not_available(t);
    if (t.layout != Layout::Strided) refuse(t.name, layout_name(t.layout), "sparse tensors are not there");
    return wrap(legacy_tensor(LegacyForm::Typed, t.dtype, Device(t.device), args, kwargs));
  });
}

PyObject* instance_check(PyObject* self, PyObject* o) {
  if (!is_tensor(o)) Py_RETURN_FALSE;
  const TypeObject& t = as_type(self);
  const Tensor& tensor = tensor_of(o);
  return PyBool_FromLong(tensor.dtype() == t.dtype && tensor.device().type == t.device && tensor.layout() == t.layout);
}

PyObject* get_dtype(PyObject* self, void*) { return Py_NewRef(dtype_object(as_type(self).dtype)); }
PyObject* get_layout(PyObject* self, void*) { return Py_NewRef(layout_object(as_type(self).layout)); }
PyObject* get_is_cuda(PyObject* self, void*) { return PyBool_FromLong(as_type(self).device == DeviceType::CUDA); }
PyObject* get_is_sparse(PyObject* self, void*) { return PyBool_FromLong(as_type(self).layout != Layout::Strided); }
PyObject* get_false(PyObject*, void*) { Py_RETURN_FALSE; }

PyMethodDef meta_methods[] = {{"__instancecheck__", instance_check, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyGetSetDef meta_properties[] = {
    {"dtype", get_dtype, nullptr, nullptr, nullptr},         {"layout", get_layout, nullptr, nullptr, nullptr},
    {"is_cuda", get_is_cuda, nullptr, nullptr, nullptr},     {"is_xpu", get_false, nullptr, nullptr, nullptr},
    {"is_sparse", get_is_sparse, nullptr, nullptr, nullptr}, {"is_sparse_csr", get_false, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// The family's module, by attributes: torch.cuda.sparse is a module of C's own making.
PyRef module_of(PyObject* torch, const Family& f) {
  PyRef module = PyRef::share(torch);
  for (const char* dot = std::strchr(f.module, '.'); dot; dot = std::strchr(dot + 1, '.')) {
    const char* end = std::strchr(dot + 1, '.');
    const std::string name(dot + 1, end ? static_cast<size_t>(end - dot - 1) : std::strlen(dot + 1));
    PyObject* inner = PyObject_GetAttrString(module.get(), name.c_str());
    if (inner == nullptr) {
      PyErr_Clear();
      const PyRef made = PyRef::check(PyModule_New(f.module));
      if (PyModule_AddObjectRef(module.get(), name.c_str(), made.get()) < 0) throw PythonError();
      inner = Py_NewRef(made.get());
    }
    module = PyRef::adopt(inner);
  }
  return module;
}

// Like upstream's, the classes answer Tensor's attributes: torch.FloatTensor.add is Tensor.add.
PyRef tensor_attributes() {
  PyRef all = PyRef::check(PyDict_Copy(tensor_base_type.tp_dict));
  if (tensor_class && PyDict_Merge(all.get(), tensor_class->tp_dict, 1) < 0) throw PythonError();
  return all;
}

void add_type(TypeObject& t, const Family& f, ScalarType dtype, PyObject* attributes) {
  t.dtype = dtype;
  t.layout = f.layout;
  t.device = f.device;
  const std::string name = str(f.module, '.', scalar_type_name(dtype), "Tensor");
  std::memcpy(t.name, name.c_str(), name.size() + 1);
  Py_SET_TYPE(&t.type, &metaclass);
  t.type.tp_new = create;
  if (!ready_type(t.type, t.name, sizeof(PyObject))) throw PythonError();
  if (PyDict_Merge(t.type.tp_dict, attributes, 0) < 0) throw PythonError();
  const PyRef module = PyRef::check(PyUnicode_FromString(f.module));
  if (PyDict_SetItemString(t.type.tp_dict, "__module__", module.get()) < 0) throw PythonError();
  PyType_Modified(&t.type);
}

const TypeObject* find(const std::string& name) {
  for (size_t i = 0; i < num_types; ++i)
    if (name == types[i].name) return &types[i];
  return nullptr;
}

std::string prefix_of(const Tensor& t) {
  std::string text = "torch";
  if (t.is_meta()) text += ".meta";
  else if (!t.is_cpu()) text += str('.', device_type_name(t.device().type));
  if (t.layout() == Layout::Sparse) text += ".sparse";
  else if (t.layout() != Layout::Strided && t.layout() != Layout::Mkldnn && t.layout() != Layout::Jagged)
    text += ".sparse_csr";
  return text;
}

PyObject* set_default(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!PyObject_TypeCheck(o, &metaclass))
      raise(PyExc_TypeError, "invalid type object: only floating-point types are supported as the default type");
    const TypeObject& t = as_type(o);
    if (t.device != DeviceType::CPU) not_available(t);
    if (!is_floating(t.dtype)) raise(PyExc_TypeError, "only floating-point types are supported as the default type");
    set_default_dtype(t.dtype);
    Py_RETURN_NONE;
  });
}
PyMethodDef functions[] = {{"_set_default_tensor_type", set_default, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_tensor_types(PyObject* torch) {
  const PyRef classes = PyRef::check(PyObject_GetAttrString(torch, "_tensor_classes"));
  const PyRef attributes = tensor_attributes();
  for (const Family& f : kFamilies) {
    const PyRef module = module_of(torch, f);
    for (const ScalarType dtype : kDtypes) {
      if (f.layout == Layout::Sparse && dtype == ScalarType::Bool) continue;
      TypeObject& t = types[num_types];
      add_type(t, f, dtype, attributes.get());
      ++num_types;
      PyObject* o = reinterpret_cast<PyObject*>(&t.type);
      if (!add_to_module(module.get(), std::strrchr(t.name, '.') + 1, o) || PySet_Add(classes.get(), o) < 0)
        throw PythonError();
    }
  }
}

PyObject* tensor_type_name(const Tensor& self) {
  return guarded([&] { return text_object(str(prefix_of(self), '.', scalar_type_name(self.dtype()), "Tensor")); });
}

TensorTypeInfo tensor_type_argument(PyObject* o) {
  const TypeObject* t = nullptr;
  if (PyObject_TypeCheck(o, &metaclass)) {
    t = &as_type(o);
  } else if (PyUnicode_Check(o)) {
    const char* text = PyUnicode_AsUTF8(o);
    if (text == nullptr) throw PythonError();
    // The default tensor type has a name without a dtype.
    if (std::string_view(text) == "torch.Tensor") return {default_dtype(), Layout::Strided, Device()};
    t = find(text);
    if (t == nullptr) fail(ErrorKind::Value, "invalid type: '", text, "'");
  } else {
    fail(ErrorKind::Type, "dtype must be a type, str, or dtype object");
  }
  return {t->dtype, t->layout, Device(t->device)};
}

bool bind_tensor_types(PyObject* module) {
  metaclass.tp_base = &PyType_Type;
  metaclass.tp_methods = meta_methods;
  metaclass.tp_getset = meta_properties;
  return ready_type(metaclass, "torch.tensortype", sizeof(TypeObject)) && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace tn::py
