// Mapping a function over the nested arguments of a torch.fx node.
#pragma once

#include <Python.h>

namespace tn::py::fx {

// What is done to a leaf; null means that a Python error is set, else a new reference.
struct LeafMap {
  PyObject* (*apply)(void* context, PyObject* leaf);
  void* context;
};

// A copy of `value` with every leaf mapped. Lists and dicts come back as torch.fx's immutable ones, tuples as tuples
// (named ones in their class), slices as slices. New reference, or null with a Python error.
PyObject* map_aggregate(PyObject* value, const LeafMap& map);

}  // namespace tn::py::fx
