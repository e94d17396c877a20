// Hooks of Python on nodes and on leaves.
#pragma once
#include <Python.h>

#include "runtime/autograd/node.h"

namespace tn::py {

// New reference: the handle that removes the hook again.
PyObject* add_post_hook(Node& node, PyObject* hook);
PyObject* add_pre_hook(Node& node, PyObject* hook);
// The dict of a tensor's hooks, for the node's `index`-th gradient.
void add_tensor_hooks(Node& node, PyObject* dict, uint32_t index);
// For Python's collector: the dicts that the node's hooks own.
int visit_hooks(const Node& node, visitproc visit, void* arg);
void clear_hooks(Node& node);
// Tells the engine of the hooks that Python keeps on leaves.
void install_leaf_hooks();

}  // namespace tn::py
