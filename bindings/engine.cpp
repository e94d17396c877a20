// torch.autograd's way into the engine.
#include <string>
#include <thread>
#include <utility>

#include "bindings/node.h"
#include "bindings/node_hooks.h"
#include "bindings/object_type.h"
#include "bindings/tensor.h"
#include "generated/ops/retain_grad.h"
#include "runtime/autograd/engine.h"
#include "runtime/autograd/engine_threads.h"
#include "runtime/warn.h"

namespace tn::py {

namespace {

PyTypeObject engine_type;

// A GradientEdge is a named tuple whose first items are the node and the place.
bool edge_argument(PyObject* object, Edge* out) {
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) < 2) return false;
  out->node = node_of(PyTuple_GET_ITEM(object, 0));
  if (!out->node) return false;
  out->input = static_cast<uint32_t>(PyLong_AsUnsignedLong(PyTuple_GET_ITEM(object, 1)));
  if (PyErr_Occurred()) throw PythonError();
  TN_CHECK(out->input < out->node->num_inputs(), "GradientEdge: expected an output of ", out->node->name(),
           ", which has ", out->node->num_inputs(), ", got output ", out->input);
  return true;
}

void add_root(PyObject* tensor, PyObject* grad, Py_ssize_t i, engine::Request& request) {
  Edge edge;
  if (is_tensor(tensor)) edge = gradient_edge(tensor_of(tensor));
  else
    TN_CHECK(edge_argument(tensor, &edge), "element ", i, " of tensors tuple is neither a Tensor nor a GradientEdge");
  TN_CHECK(edge, "element ", i, " of tensors does not require grad and does not have a grad_fn");
  if (is_tensor(grad)) {
    request.grads.push_back(tensor_of(grad));
  } else {
    TN_CHECK(grad == Py_None, "element ", i, " of gradients tuple is not a Tensor or None");
    TN_CHECK(!is_tensor(tensor) || !tensor_of(tensor).requires_grad(), "element ", i,
             " of gradients tuple is None, but the corresponding Tensor requires grad");
    request.grads.emplace_back();
  }
  request.roots.push_back(std::move(edge));
}

Edge wanted_edge(PyObject* item, bool accumulate) {
  Edge edge;
  if (is_tensor(item)) {
    const Tensor& t = tensor_of(item);
    if (accumulate) at::retain_grad(t);
    TN_CHECK(t.requires_grad(), "One of the differentiated Tensors does not require grad");
    return gradient_edge(t);
  }
  TN_CHECK(edge_argument(item, &edge), "all inputs have to be Tensors or GradientEdges, but got ", type_name(item));
  return edge;
}

bool warns_always() {
  const PyRef core = PyRef::check(PyImport_ImportModule("torch._C"));
  return PyRef::check(PyObject_CallMethod(core.get(), "_get_warnAlways", nullptr)).get() == Py_True;
}
void warn_of_cycle() {
  static bool warned = false;
  if (std::exchange(warned, true) && !warns_always()) return;
  warn(
      "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
      "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
      "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break "
      "the "
      "cycle and avoid the leak.");
}

// As upstream: so many runs nest on one stack.
constexpr size_t kDepthOfThread = 60;

GradList run_on_new_thread(engine::Request request) {
  struct Error {
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  } error;
  GradList results;
  const engine::Place here = engine::place();
  const auto body = [&] {
    engine::take_place(here);
    const GilAcquire gil;
    try {
      const GilRelease release;
      results = engine::run(std::move(request));
    } catch (...) {
      set_error_from_current_exception();
      PyErr_Fetch(&error.type, &error.value, &error.trace);
    }
    engine::take_place({});
  };
  {
    const GilRelease release;
    std::thread(body).join();
  }
  if (!error.type) return results;
  PyErr_Restore(error.type, error.value, error.trace);
  throw PythonError();
}

PyObject* run_backward(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"tensors", "grad_tensors",      "keep_graph",      "create_graph",
                                  "inputs",  "allow_unreachable", "accumulate_grad", nullptr};
    PyObject *tensors, *grads, *inputs = nullptr;
    int keep = 0, create = 0, allow_unreachable = 0, accumulate = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOpp|Opp", const_cast<char**>(names), &tensors, &grads, &keep,
                                     &create, &inputs, &allow_unreachable, &accumulate))
      return nullptr;
    TN_CHECK(PyTuple_Check(tensors), "tensors argument is expected to be a tuple, but got ", type_name(tensors));
    TN_CHECK(PyTuple_Check(grads), "grad_tensors argument is expected to be a tuple, but got ", type_name(grads));
    const Py_ssize_t n = PyTuple_GET_SIZE(tensors);
    TN_CHECK(n == PyTuple_GET_SIZE(grads), "got ", n, " tensors and ", PyTuple_GET_SIZE(grads), " gradients");
    engine::Request request;
    request.keep_graph = keep != 0;
    request.create_graph = create != 0;
    request.accumulate = accumulate != 0;
    for (Py_ssize_t i = 0; i < n; ++i) add_root(PyTuple_GET_ITEM(tensors, i), PyTuple_GET_ITEM(grads, i), i, request);
    const bool some = inputs && inputs != Py_None && !(PyTuple_Check(inputs) && PyTuple_GET_SIZE(inputs) == 0);
    if (some) {
      TN_CHECK(PyTuple_Check(inputs), "inputs to run_backward must be a tuple, got ", type_name(inputs));
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); ++i)
        request.wanted.push_back(wanted_edge(PyTuple_GET_ITEM(inputs, i), accumulate != 0));
    }
    GradList results;
    const SavedHooksScope hooks;
    if (accumulate && create) warn_of_cycle();
    if (engine::depth() % kDepthOfThread == kDepthOfThread - 1) {
      results = run_on_new_thread(std::move(request));
    } else {
      const GilRelease release;
      results = engine::run(std::move(request));
    }
    if (!some || accumulate) Py_RETURN_NONE;
    for (size_t i = 0; i < results.size(); ++i)
      TN_CHECK(allow_unreachable || results[i].defined(), "The differentiated Tensor at index ", i,
               " appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.");
    return grads_tuple(results);
  });
}

PyObject* queue_callback(PyObject*, PyObject* callback) {
  return guarded([&]() -> PyObject* {
    engine::queue_callback(
        [](void* fn) {
          const GilAcquire gil;
          PyRef::check(PyObject_CallNoArgs(static_cast<PyObject*>(fn)));
        },
        Py_NewRef(callback),
        [](void* fn) {
          const GilAcquire gil;
          Py_DECREF(static_cast<PyObject*>(fn));
        });
    Py_RETURN_NONE;
  });
}
PyObject* is_checkpoint_valid(PyObject*, PyObject*) { return new_bool(engine::accumulates()); }

PyMethodDef engine_methods[] = {
    {"run_backward", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(run_backward)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"queue_callback", queue_callback, METH_O, nullptr},
    {"is_checkpoint_valid", is_checkpoint_valid, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool bind_engine(PyObject* module) {
  install_leaf_hooks();
  engine_type.tp_methods = engine_methods;
  engine_type.tp_new = PyType_GenericNew;
  return ready_type(engine_type, "torch._C._EngineBase", sizeof(PyObject), Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE) &&
         add_to_module(module, "_ImperativeEngine", engine_type);
}

}  // namespace tn::py
