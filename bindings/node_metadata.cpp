// What a node knows beside its edges: the values that it takes (_input_metadata), and where it was made (metadata,
// which anomaly mode fills).
#include <string>

#include "bindings/node.h"
#include "bindings/object_type.h"
#include "bindings/objects.h"
#include "bindings/tensor.h"
#include "runtime/autograd/engine.h"
#include "runtime/warn.h"

namespace tn::py {

namespace {

constexpr char kTrace[] = "traceback_", kParent[] = "parent_";  // upstream's keys

PyObject* metadata_of(Node& node) {  // borrowed
  if (!node.metadata) node.metadata = PyRef::check(PyDict_New()).release();
  return static_cast<PyObject*>(node.metadata);
}

// Python's error in flight steps aside for the scope, and comes back.
class SavedError {
 public:
  SavedError() { PyErr_Fetch(&type_, &value_, &trace_); }
  ~SavedError() { PyErr_Restore(type_, value_, trace_); }
  SavedError(const SavedError&) = delete;
  SavedError& operator=(const SavedError&) = delete;

 private:
  PyObject *type_, *value_, *trace_;
};

void made(Node& node) {
  if (!Py_IsInitialized()) return;
  const GilAcquire gil;
  const PyRef traceback = PyRef::check(PyImport_ImportModule("traceback"));
  const PyRef stack = PyRef::check(PyObject_CallMethod(traceback.get(), "format_stack", nullptr));
  PyObject* const dict = metadata_of(node);
  if (PyDict_SetItemString(dict, kTrace, stack.get()) < 0) throw PythonError();
  if (Node* const parent = engine::current_node()) {
    const PyRef object = PyRef::check(node_object(Ref<Node>::share(parent)));
    if (PyDict_SetItemString(dict, kParent, object.get()) < 0) throw PythonError();
  }
}

void explain_one(PyObject* metadata, const std::string& name, bool induced) {
  PyObject* const stack = metadata ? PyDict_GetItemString(metadata, kTrace) : nullptr;
  if (!stack)
    return warn("Error detected in " + name +
                ". No forward pass information available. Enable detect anomaly during forward pass for more "
                "information.");
  const PyRef nothing = PyRef::check(PyUnicode_FromString(""));
  const PyRef text = PyRef::check(PyUnicode_Join(nothing.get(), stack));
  const char* const trace = PyUnicode_AsUTF8(text.get());
  if (!trace) throw PythonError();
  warn(induced ? "\n\nPrevious calculation was induced by " + name +
                     ". Traceback of forward call that induced the previous calculation:\n" + trace
               : "Error detected in " + name + ". Traceback of forward call that caused the error:\n" + trace);
}

void explain(const Node& node) {
  const GilAcquire gil;
  const SavedError error;
  try {
    PyRef metadata = PyRef::share(static_cast<PyObject*>(node.metadata));
    explain_one(metadata.get(), node.name(), false);
    while (PyObject* const parent = metadata ? PyDict_GetItemString(metadata.get(), kParent) : nullptr) {
      const PyRef name = PyRef::check(PyObject_CallMethod(parent, "name", nullptr));
      metadata = PyRef::check(PyObject_GetAttrString(parent, "metadata"));
      explain_one(metadata.get(), PyUnicode_AsUTF8(name.get()), true);
    }
  } catch (const PythonError&) {
    PyErr_WriteUnraisable(Py_None);  // a warning that is an error must not hide what happened
  }
}

void release_metadata(void* dict) noexcept {
  if (!Py_IsInitialized()) return;
  const GilAcquire gil;
  Py_DECREF(static_cast<PyObject*>(dict));
}

// ---- _InputMetadata ----------------------------------------------------------------------------------------------

struct InputMetadata {
  PyObject_HEAD PyObject *shape, *dtype, *device;
};
PyTypeObject input_metadata_type;
InputMetadata* metadata_object(PyObject* o) { return reinterpret_cast<InputMetadata*>(o); }

void dealloc(PyObject* self) {
  Py_XDECREF(metadata_object(self)->shape);
  Py_XDECREF(metadata_object(self)->dtype);
  Py_XDECREF(metadata_object(self)->device);
  Py_TYPE(self)->tp_free(self);
}
template <PyObject* InputMetadata::* kField>
PyObject* get(PyObject* self, void*) {
  return Py_NewRef(metadata_object(self)->*kField);
}
PyObject* get_false(PyObject*, void*) { Py_RETURN_FALSE; }  // nested tensors are not served
PyGetSetDef fields[] = {{"shape", get<&InputMetadata::shape>, nullptr, nullptr, nullptr},
                        {"dtype", get<&InputMetadata::dtype>, nullptr, nullptr, nullptr},
                        {"device", get<&InputMetadata::device>, nullptr, nullptr, nullptr},
                        {"is_nested_tensor", get_false, nullptr, nullptr, nullptr},
                        {"is_cpp_nested_tensor", get_false, nullptr, nullptr, nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyObject* make(const InputMeta& m) {
  const PyRef self = PyRef::check(input_metadata_type.tp_alloc(&input_metadata_type, 0));
  InputMetadata* const o = metadata_object(self.get());
  const IntView sizes = m.is_undefined() ? IntView() : m.shape.sizes();
  o->shape = PyRef::check(PyList_New(static_cast<Py_ssize_t>(sizes.size()))).release();
  for (size_t d = 0; d < sizes.size(); ++d)
    PyList_SET_ITEM(o->shape, static_cast<Py_ssize_t>(d), PyLong_FromLongLong(sizes[d]));
  o->dtype = Py_NewRef(m.is_undefined() ? Py_None : dtype_object(m.dtype));
  o->device = PyRef::check(device_object(m.device)).release();
  return PyRef(self).release();
}

}  // namespace

PyObject* node_metadata(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    PyObject** const kept = context_metadata(self);
    if (!kept) return Py_NewRef(metadata_of(own_node(self)));
    if (!*kept)
      *kept = Py_NewRef(function_node(self) ? metadata_of(*function_node(self)) : PyRef::check(PyDict_New()).get());
    return Py_NewRef(*kept);
  });
}
PyObject* node_input_metadata(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const std::vector<InputMeta>& inputs = own_node(self).inputs;
    const PyRef tuple = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(inputs.size())));
    for (size_t i = 0; i < inputs.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), make(inputs[i]));
    return PyRef(tuple).release();
  });
}

bool bind_node_metadata(PyObject* autograd) {
  Node::release_metadata = release_metadata;
  engine::anomaly.made = made;
  engine::anomaly.explain = explain;
  if (!input_metadata_type.tp_name) {
    input_metadata_type.tp_dealloc = dealloc;
    input_metadata_type.tp_getset = fields;
    if (!ready_type(input_metadata_type, "torch._C._autograd._InputMetadata", sizeof(InputMetadata),
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE))
      return false;
  }
  return add_to_module(autograd, "_InputMetadata", input_metadata_type);
}

}  // namespace tn::py
