// Functions of torch that upstream adds for functionalization: no tensor is functional here, and making one refuses.
#include <iterator>
#include <string>

#include "bindings/py.h"
#include "bindings/tensor.h"
#include "bindings/tensor_parts.h"
#include "runtime/refuse.h"

namespace tn::py {
namespace {

constexpr const char* kRefused[] = {
    "_disable_functionalization",
    "_enable_functionalization",
    "_freeze_functional_tensor",
    "_from_functional_tensor",
    "_functionalize_are_all_mutations_hidden_from_autograd",
    "_functionalize_are_all_mutations_under_no_grad_or_inference_mode",
    "_functionalize_commit_update",
    "_functionalize_enable_reapply_views",
    "_functionalize_get_storage_size",
    "_functionalize_has_data_mutation",
    "_functionalize_has_metadata_mutation",
    "_functionalize_inductor_storage_resized_counter",
    "_functionalize_is_multi_output_view",
    "_functionalize_is_symbolic",
    "_functionalize_mark_mutation_hidden_from_autograd",
    "_functionalize_mark_storage_changed",
    "_functionalize_mutation_counter",
    "_functionalize_replace",
    "_functionalize_storage_changed_counter",
    "_functionalize_sync",
    "_functionalize_was_inductor_storage_resized",
    "_functionalize_was_storage_changed",
    "_mirror_autograd_meta_to",
    "_to_functional_tensor",
};

PyObject* refuse_named(PyObject* name, PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    refuse(std::string("torch.") + PyUnicode_AsUTF8(name), "call", "functionalization is not served yet");
  });
}
PyObject* answer_false(PyObject*, PyObject*) { Py_RETURN_FALSE; }

// Puts the second tensor's storage into the first: what keeps aliasing right after __torch_dispatch__.
PyObject* unsafe_set(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&]() -> PyObject* {
    if (nargs != 2 || !is_tensor(args[0]) || !is_tensor(args[1]))
      raise(PyExc_TypeError, "_functionalize_unsafe_set: expected two tensors");
    tensor_of(args[0])->set_storage(tensor_of(args[1]).storage());
    Py_RETURN_NONE;
  });
}

PyMethodDef answers[] = {{"_functionalize_unsafe_set", as_method(unsafe_set), METH_FASTCALL, nullptr},
                         {"_is_functional_tensor", answer_false, METH_O, nullptr},
                         {"_is_functional_tensor_base", answer_false, METH_O, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

// Into the module torch, as upstream does in _initExtension.
bool add_functionalize_functions(PyObject* torch) {
  if (PyModule_AddFunctions(torch, answers) < 0) return false;
  static PyMethodDef definitions[std::size(kRefused)];
  for (size_t i = 0; i < std::size(kRefused); ++i) {
    definitions[i] = {kRefused[i], reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(refuse_named)),
                      METH_VARARGS | METH_KEYWORDS, nullptr};
    const PyRef name = PyRef::adopt(PyUnicode_FromString(kRefused[i]));
    const PyRef function = PyRef::adopt(name ? PyCFunction_NewEx(&definitions[i], name.get(), nullptr) : nullptr);
    if (!function || PyModule_AddObjectRef(torch, kRefused[i], function.get()) < 0) return false;
  }
  return true;
}

}  // namespace tn::py
