// Python's object for a step of the backward graph.
#pragma once
#include <Python.h>

#include "bindings/py.h"
#include "runtime/autograd_meta.h"

namespace tn::py {

// New reference: the node's object, None for a null node.
PyObject* node_object(const Ref<Node>& node);

}  // namespace tn::py
