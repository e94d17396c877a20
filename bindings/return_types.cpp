// The named tuples that operators with several results answer, and torch._C._return_types.
#include <Python.h>
#include <structseq.h>

#include <string>
#include <vector>

#include "bindings/convert.h"
#include "bindings/parser.h"

namespace tn::py {

namespace {

// CPython keeps pointers into the descriptions, so these live as long as the process.
std::vector<PyTypeObject*>& types() {
  static auto* const all = new std::vector<PyTypeObject*>();
  return *all;
}

// "torch.return_types.max(\nvalues=..., \nindices=...)", upstream's own layout.
PyObject* repr(PyObject* self) {
  const PyRef name = PyRef::adopt(PyUnicode_FromString(Py_TYPE(self)->tp_name));
  const PyRef fields =
      PyRef::adopt(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(self)), "__match_args__"));
  if (!name || !fields) return nullptr;
  PyRef text = PyRef::adopt(PyUnicode_FromFormat("%U(", name.get()));
  for (Py_ssize_t i = 0; text && i < PyTuple_GET_SIZE(self) && i < PyTuple_GET_SIZE(fields.get()); ++i)
    text = PyRef::adopt(PyUnicode_FromFormat("%U%s\n%U=%R", text.get(), i ? "," : "", PyTuple_GET_ITEM(fields.get(), i),
                                             PyTuple_GET_ITEM(self, i)));
  return text ? PyUnicode_FromFormat("%U)", text.get()) : nullptr;
}

PyTypeObject* make_type(const ReturnType& info) {
  auto* const fields = new std::vector<PyStructSequence_Field>();
  for (const char* const* f = info.fields; *f; ++f) fields->push_back({*f, ""});
  const int n = static_cast<int>(fields->size());
  fields->push_back({nullptr, nullptr});
  auto* const name = new std::string("torch.return_types." + std::string(info.name));
  PyStructSequence_Desc description = {name->c_str(), nullptr, fields->data(), n};
  // A static type, as upstream's: its name keeps the module in print, and repr can be replaced.
  auto* const type = static_cast<PyTypeObject*>(PyMem_Calloc(1, sizeof(PyTypeObject)));
  if (!type || PyStructSequence_InitType2(type, &description) < 0) return nullptr;
  type->tp_repr = repr;
  return type;
}

}  // namespace

PyObject* new_result_tuple(int return_type, int n) {
  if (return_type < 0 || static_cast<size_t>(return_type) >= types().size()) return PyTuple_New(n);
  return PyStructSequence_New(types()[static_cast<size_t>(return_type)]);
}

void set_result_item(PyObject* tuple, int i, PyObject* item) { PyTuple_SET_ITEM(tuple, i, item); }

bool bind_return_types(PyObject* module) {
  PyObject* const sub = PyImport_AddModule("torch._C._return_types");
  if (!sub || PyModule_AddObjectRef(module, "_return_types", sub) < 0) return false;
  types().reserve(static_cast<size_t>(num_return_types));
  for (int i = 0; i < num_return_types; ++i) {
    PyTypeObject* const type = make_type(return_types[i]);
    if (!type) return false;
    types().push_back(type);
    // Several signatures may share a name: the first type is the public one.
    if (PyObject_HasAttrString(sub, return_types[i].name)) continue;
    if (PyModule_AddObjectRef(sub, return_types[i].name, reinterpret_cast<PyObject*>(type)) < 0) return false;
  }
  return true;
}

}  // namespace tn::py
