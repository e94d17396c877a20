// What Python may ask of the backward that it is called from, and weak references to tensors.
#include "bindings/node.h"
#include "bindings/object_type.h"
#include "bindings/tensor.h"
#include "runtime/autograd/engine.h"
#include "runtime/autograd_meta.h"
#include "runtime/keyset.h"

namespace tn::py {

namespace {

PyObject* graph_task_id(PyObject*, PyObject*) { return PyLong_FromLongLong(engine::run_id()); }
PyObject* autograd_node(PyObject*, PyObject*) {
  return guarded([] { return node_object(Ref<Node>::share(engine::current_node())); });
}
PyObject* keep_graph(PyObject*, PyObject*) { return new_bool(engine::keeps_graph()); }

PyObject* will_execute(PyObject*, PyObject* object) {
  return guarded([&] {
    const Ref<Node> node = node_of(object);
    TN_CHECK(node, "_will_engine_execute_node expects an grad_fn, but got ", type_name(object));
    return new_bool(engine::will_evaluate(node.get()));
  });
}

PyObject* execution_order(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    TN_CHECK(!engine::running() || !thread_state.multithreading,
             "get_current_graph_task_execution_order expects the current backward to be executed with multithreading "
             "disabled, e.g. by running:\n\nwith torch.autograd.set_multithreading_enabled(False):\n    ...\n");
    const std::vector<Node*> nodes = engine::order();
    const PyRef list = PyRef::check(PyList_New(static_cast<Py_ssize_t>(nodes.size())));
    for (size_t i = 0; i < nodes.size(); ++i)
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i),
                      PyRef::check(node_object(Ref<Node>::share(nodes[i]))).release());
    return PyRef(list).release();
  });
}

// _unsafe_set_version_counter(tensors, versions)
PyObject* set_versions(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *tensors, *versions;
    if (!PyArg_ParseTuple(args, "O!O!:_unsafe_set_version_counter", &PyTuple_Type, &tensors, &PyTuple_Type, &versions))
      return nullptr;
    const Py_ssize_t n = PyTuple_GET_SIZE(tensors);
    TN_CHECK(n == PyTuple_GET_SIZE(versions), "_unsafe_set_version_counter: expected as many versions as tensors, got ",
             PyTuple_GET_SIZE(versions), " for ", n);
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* const item = PyTuple_GET_ITEM(tensors, i);
      if (!is_tensor(item))
        raise(PyExc_TypeError, "_unsafe_set_version_counter: expected a Tensor, got %s", type_name(item));
      const long long version = PyLong_AsLongLong(PyTuple_GET_ITEM(versions, i));
      if (PyErr_Occurred()) return nullptr;
      TN_CHECK(version >= 0 && version <= UINT32_MAX,
               "Cannot set a version_counter to a value below 0: expected a 32-bit version, got ", version);
      tensor_of(item)->set_version(static_cast<uint32_t>(version));
    }
    Py_RETURN_NONE;
  });
}

// ---- _WeakTensorRef: whether a tensor's header is gone ------------------------------------------------------------

struct WeakTensorRef {
  PyObject_HEAD PyObject* proxy;  // a weak reference to the tensor's object, which lives as long as its header
};
PyTypeObject weak_ref_type;

PyObject* new_weak_ref(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* tensor;
  if (!PyArg_ParseTuple(args, "O:_WeakTensorRef", &tensor)) return nullptr;
  return guarded([&]() -> PyObject* {
    if (!is_tensor(tensor)) raise(PyExc_TypeError, "_WeakTensorRef: expected a Tensor, got %s", type_name(tensor));
    const PyRef self = PyRef::check(type->tp_alloc(type, 0));
    reinterpret_cast<WeakTensorRef*>(self.get())->proxy = PyRef::check(PyWeakref_NewRef(tensor, nullptr)).release();
    return PyRef(self).release();
  });
}
void dealloc_weak_ref(PyObject* self) {
  Py_XDECREF(reinterpret_cast<WeakTensorRef*>(self)->proxy);
  Py_TYPE(self)->tp_free(self);
}
PyObject* expired(PyObject* self, PyObject*) {
  return new_bool(PyWeakref_GetObject(reinterpret_cast<WeakTensorRef*>(self)->proxy) == Py_None);
}
PyMethodDef weak_ref_methods[] = {{"expired", expired, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

PyMethodDef functions[] = {{"_current_graph_task_id", graph_task_id, METH_NOARGS, nullptr},
                           {"_current_autograd_node", autograd_node, METH_NOARGS, nullptr},
                           {"_current_graph_task_execution_order", execution_order, METH_NOARGS, nullptr},
                           {"_will_engine_execute_node", will_execute, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};
PyMethodDef autograd_functions[] = {{"_get_current_graph_task_keep_graph", keep_graph, METH_NOARGS, nullptr},
                                    {"_unsafe_set_version_counter", set_versions, METH_VARARGS, nullptr},
                                    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool bind_run_state(PyObject* module, PyObject* autograd) {
  if (PyModule_AddFunctions(module, functions) != 0 || PyModule_AddFunctions(autograd, autograd_functions) != 0)
    return false;
  if (!weak_ref_type.tp_name) {
    weak_ref_type.tp_new = new_weak_ref;
    weak_ref_type.tp_dealloc = dealloc_weak_ref;
    weak_ref_type.tp_methods = weak_ref_methods;
    if (!ready_type(weak_ref_type, "torch._C._WeakTensorRef", sizeof(WeakTensorRef),
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE))
      return false;
  }
  return add_to_module(module, "_WeakTensorRef", weak_ref_type);
}

}  // namespace tn::py
