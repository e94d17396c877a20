// Python's object for a step of the backward graph, and hooks that are Python's.
#pragma once
#include <Python.h>

#include "bindings/py.h"
#include "runtime/autograd_meta.h"

namespace tn {
class SavedVariable;
}

namespace tn::py {

// New reference: the node's object, None for a null node.
PyObject* node_object(const Ref<Node>& node);
// Borrowed: the class of nodes of this name, as upstream builtin and never freed; null with an exception set.
PyObject* node_class(const char* name);
// The node of such an object, or of a torch.autograd.Function's context; null with TypeError for other objects.
Ref<Node> node_of(PyObject* object);
bool is_node(PyObject* object);
// The node of a method's own object; RuntimeError for a context whose graph is gone.
Node& own_node(PyObject* self);

// What nodes of both kinds of objects offer: name, next_functions, metadata, register_hook, ...
PyObject* node_name(PyObject* self, PyObject*);
PyObject* node_register_hook(PyObject* self, PyObject* hook);
PyObject* node_register_prehook(PyObject* self, PyObject* hook);
PyObject* node_register_hook_dict(PyObject* self, PyObject* tensor);
PyObject* node_sequence(PyObject* self, PyObject*);
PyObject* node_set_sequence(PyObject* self, PyObject* value);
PyObject* node_next_functions(PyObject* self, void*);
PyObject* node_metadata(PyObject* self, void*);
PyObject* node_input_metadata(PyObject* self, void*);
PyObject* node_requires_grad(PyObject* self, void*);

// Gradients to a tuple of tensors and Nones.
PyObject* grads_tuple(const GradList& grads);

// A node that is a torch.autograd.Function.
class FunctionNode;
Node* function_node(PyObject* context);  // borrowed; null when the graph is gone

// Borrowed: the context that such a node keeps; null for other nodes.
PyObject* owned_context(const Node& node);
// Where a context keeps its node's metadata; null for other objects.
PyObject** context_metadata(PyObject* object);

bool bind_engine(PyObject* module);
bool bind_function(PyObject* module);
bool bind_forward_nodes(PyObject* module);
bool bind_legacy_variable(PyObject* module);
bool bind_saved_hooks(PyObject* module);
bool bind_node_metadata(PyObject* autograd);
bool bind_run_state(PyObject* module, PyObject* autograd);

// New reference: the SavedTensor of a node, which it keeps alive.
PyObject* saved_tensor_object(SavedVariable& saved, Node& owner);
// The `_saved_*` and `_raw_saved_*` properties of a node's class; lives forever.
PyGetSetDef* saved_properties(Node& node);

// What user code pushes and pops while it lives ends with it: a backward leaves the hooks as it found them.
class SavedHooksScope {
 public:
  SavedHooksScope();
  ~SavedHooksScope();
  SavedHooksScope(const SavedHooksScope&) = delete;
  SavedHooksScope& operator=(const SavedHooksScope&) = delete;

 private:
  void* before_ = nullptr;
};

}  // namespace tn::py
