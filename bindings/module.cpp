// torch._C: names first, then what is real replaces them.
#include <cstring>
#include <string>

#include "bindings/functorch.h"
#include "bindings/convert.h"
#include "bindings/dispatch.h"
#include "bindings/fx/node.h"
#include "bindings/grad_mode.h"
#include "bindings/library.h"
#include "bindings/names/names.h"
#include "bindings/node.h"
#include "bindings/objects.h"
#include "bindings/observe.h"
#include "bindings/parser.h"
#include "bindings/py.h"
#include "bindings/schema.h"
#include "bindings/tensor.h"
#include "bindings/tensor_parts.h"
#include "bindings/torch_function.h"
#include "bindings/utilities.h"
#include "runtime/door.h"

namespace tn::py {

namespace {

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "torch._C", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};

// The operators of one submodule: _nn, _fft and so on are real modules.
bool bind_submodule_functions(PyObject* module, const char* where, PyMethodDef* methods) {
  const std::string full = std::string("torch._C.") + where;
  PyObject* sub = PyObject_GetAttrString(module, where);
  if (!sub) {
    PyErr_Clear();
    sub = Py_XNewRef(PyImport_AddModule(full.c_str()));
    if (!sub || PyModule_AddObjectRef(module, where, sub) < 0) return false;
  }
  const PyRef owned = PyRef::adopt(sub);
  return PyModule_AddFunctions(sub, methods) == 0;
}

// `_VariableFunctions` is an instance whose class holds the operators as static methods.
bool bind_variable_functions(PyObject* module) {
  const PyRef dict = PyRef::adopt(PyDict_New());
  if (!dict) return false;
  const auto add = [&](PyMethodDef* m) {
    for (; m->ml_name; ++m) {
      // ml_flags say METH_STATIC for a type's table; a plain builtin must not carry it.
      m->ml_flags &= ~METH_STATIC;
      if (PyDict_GetItemString(dict.get(), m->ml_name)) continue;
      const PyRef builtin = PyRef::adopt(PyCFunction_NewEx(m, nullptr, nullptr));
      if (!builtin) return false;
      const PyRef fixed = PyRef::adopt(PyStaticMethod_New(builtin.get()));
      if (!fixed || PyDict_SetItemString(dict.get(), m->ml_name, fixed.get()) < 0) return false;
    }
    return true;
  };
  if (!add(tensor_object_functions)) return false;
  if (!add(variable_hand_functions)) return false;
  for (const FunctionGroup* const* shard = function_group_shards; *shard; ++shard)
    for (const FunctionGroup* g = *shard; g->where; ++g)
      if (std::strcmp(g->where, "_VariableFunctions") == 0 && !add(g->methods)) return false;
  // Upstream's sparse names for operators that have others, too.
  static constexpr const char* kAliases[][2] = {
      {"dsmm", "mm"}, {"spmm", "mm"}, {"hsmm", "hspmm"}, {"saddmm", "sspaddmm"}};
  for (const auto& a : kAliases)
    if (PyObject* const target = PyDict_GetItemString(dict.get(), a[1]);
        target && PyDict_SetItemString(dict.get(), a[0], target) < 0)
      return false;
  const PyRef slots = PyRef::adopt(PyTuple_New(0));
  const PyRef name = PyRef::adopt(PyUnicode_FromString("torch._C"));
  if (!slots || !name || PyDict_SetItemString(dict.get(), "__slots__", slots.get()) < 0 ||
      PyDict_SetItemString(dict.get(), "__module__", name.get()) < 0)
    return false;
  const PyRef cls =
      PyRef::adopt(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "s(O)O", "_VariableFunctionsClass",
                                         reinterpret_cast<PyObject*>(&PyBaseObject_Type), dict.get()));
  if (!cls) return false;
  const PyRef instance = PyRef::adopt(PyObject_CallNoArgs(cls.get()));
  return instance && PyModule_AddObjectRef(module, "_VariableFunctionsClass", cls.get()) == 0 &&
         PyModule_AddObjectRef(module, "_VariableFunctions", instance.get()) == 0;
}

bool bind_operator_functions(PyObject* module) {
  for (const FunctionGroup* const* shard = function_group_shards; *shard; ++shard)
    for (const FunctionGroup* g = *shard; g->where; ++g)
      if (std::strcmp(g->where, "TensorBase") != 0 && std::strcmp(g->where, "_VariableFunctions") != 0 &&
          !bind_submodule_functions(module, g->where, g->methods))
        return false;
  return bind_submodule_functions(module, "_nn", nn_hand_functions) && bind_variable_functions(module);
}

// Upstream's own switch, read when torch.jit loads: script and trace then give back the Python object.
bool switch_jit_off() {
  const PyRef os = PyRef::adopt(PyImport_ImportModule("os"));
  const PyRef environ = PyRef::adopt(os ? PyObject_GetAttrString(os.get(), "environ") : nullptr);
  return environ && PyRef::adopt(PyObject_CallMethod(environ.get(), "setdefault", "ss", "PYTORCH_JIT", "0"));
}

bool fill(PyObject* module) {
  init_core();
  install_warnings();
  const auto bind_schemas = [&] {  // these throw
    bind_jit_types(module);
    bind_schema(module);
    return true;
  };
  // Upstream adds _functions in _initExtension; torch.autograd may be imported before that one is through.
  return switch_jit_off() && install_names(module) && install_submodule("_functions") && bind_errors(module) &&
         bind_torch_function(module) && bind_objects(module) && bind_tensor(module) && bind_return_types(module) &&
         bind_operator_functions(module) && bind_grad_mode(module) && bind_engine(module) && bind_function(module) &&
         bind_forward_nodes(module) && bind_legacy_variable(module) && bind_schemas() && bind_library(module) &&
         bind_dispatch_keys(module) && bind_torch_dispatch(module) && bind_kernel_handles(module) &&
         bind_observe(module) && bind_utilities(module) && bind_foreach(module) && bind_functorch(module) &&
         bind_no_op_kernels() && install_fx(module);
}

}  // namespace

}  // namespace tn::py

PyMODINIT_FUNC PyInit__C() {
  using namespace tn::py;
  PyObject* const module = PyModule_Create(&definition);
  if (!module) return nullptr;
  const bool ok = guarded([&]() -> int { return fill(module) ? 0 : -1; }) == 0;
  if (!ok) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
