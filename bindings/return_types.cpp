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
struct Types {
  PyTypeObject* plain;
  PyTypeObject* out;
};
std::vector<Types>& types() {
  static auto* const all = new std::vector<Types>();
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

PyTypeObject* make_type(const ReturnType& info, const char* suffix) {
  auto* const fields = new std::vector<PyStructSequence_Field>();
  for (const char* const* f = info.fields; *f; ++f) fields->push_back({*f, ""});
  const int n = static_cast<int>(fields->size());
  fields->push_back({nullptr, nullptr});
  auto* const name = new std::string("torch.return_types." + std::string(info.name) + suffix);
  PyStructSequence_Desc description = {name->c_str(), nullptr, fields->data(), n};
  // A static type, as upstream's: its name keeps the module in print, and repr can be replaced.
  auto* const type = static_cast<PyTypeObject*>(PyMem_Calloc(1, sizeof(PyTypeObject)));
  if (!type || PyStructSequence_InitType2(type, &description) < 0) return nullptr;
  type->tp_repr = repr;
  return type;
}

// Several signatures may share a name: the first type is the public one.
bool publish(PyObject* module, const char* name, PyTypeObject* type) {
  return PyObject_HasAttrString(module, name) ||
         PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(type)) >= 0;
}

}  // namespace

PyObject* new_result_tuple(int return_type, int n, bool out) {
  if (return_type < 0 || static_cast<size_t>(return_type) >= types().size()) return PyTuple_New(n);
  const Types& found = types()[static_cast<size_t>(return_type)];
  return PyStructSequence_New(out && found.out ? found.out : found.plain);
}

void set_result_item(PyObject* tuple, int i, PyObject* item) { PyTuple_SET_ITEM(tuple, i, item); }

bool bind_return_types(PyObject* module) {
  PyObject* const sub = PyImport_AddModule("torch._C._return_types");
  if (!sub || PyModule_AddObjectRef(module, "_return_types", sub) < 0) return false;
  types().reserve(static_cast<size_t>(num_return_types));
  for (int i = 0; i < num_return_types; ++i) {
    const ReturnType& info = return_types[i];
    const Types made = {make_type(info, ""), info.out ? make_type(info, "_out") : nullptr};
    if (!made.plain || (info.out && !made.out)) return false;
    types().push_back(made);
    if (!publish(sub, info.name, made.plain)) return false;
    if (info.out && !publish(sub, (std::string(info.name) + "_out").c_str(), made.out)) return false;
  }
  return true;
}

}  // namespace tn::py
