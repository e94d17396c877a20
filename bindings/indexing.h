// Between the two files of indexing.
#pragma once
#include <vector>

#include "bindings/objects.h"

namespace tn::py {

// What an index left to do: a view of self by its basic parts, and tensors for its dimensions (undefined: the whole
// dimension).
struct Indexed {
  Tensor view;
  std::vector<Tensor> tensors;
};

// Any index but the single ints, slices, None and Ellipsis that the callers take themselves.
Indexed apply_index(const Tensor& self, PyObject* index);
Tensor apply_select(const Tensor& self, int64_t dim, int64_t index, int64_t position);
Tensor apply_slice(const Tensor& self, int64_t dim, PyObject* slice, bool always);

// A plain int, a numpy one too; bools are none.
bool is_integer_index(PyObject* o);
int64_t integer_index(PyObject* o);

}  // namespace tn::py
