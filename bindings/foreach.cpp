// What optimisers ask before they call operators over lists: parameters and their state, grouped by device
// and dtype.
#include <algorithm>
#include <vector>

#include "bindings/objects.h"
#include "bindings/py.h"
#include "bindings/tensor.h"
#include "bindings/utilities.h"

namespace tn::py {
namespace {

struct Group {
  Device device;
  ScalarType dtype;
  PyRef lists;    // list of lists, as the argument's
  PyRef indices;  // list of int
};

bool is_step_dtype(ScalarType t) { return t == ScalarType::Float || t == ScalarType::Double; }

// `step` may be a float on the CPU whatever the parameter is; everything else goes with the first list's
// tensor.
bool fits(const Group& group, const Tensor& t) {
  if (t.device() == group.device) return t.dtype() == group.dtype || is_step_dtype(t.dtype());
  return t.is_cpu() && is_step_dtype(t.dtype());
}

PyRef as_list(PyObject* object, const char* what) {
  if (!PyList_Check(object) && !PyTuple_Check(object))
    raise(PyExc_TypeError, "_group_tensors_by_device_and_dtype(): expected %s, got %s", what, Py_TYPE(object)->tp_name);
  return PyRef::check(PySequence_Fast(object, ""));
}

Group& group_of(std::vector<Group>& groups, const Tensor& t, Py_ssize_t num_lists) {
  for (Group& g : groups)
    if (g.device == t.device() && g.dtype == t.dtype()) return g;
  Group g{t.device(), t.dtype(), PyRef::check(PyList_New(num_lists)), PyRef::check(PyList_New(0))};
  for (Py_ssize_t k = 0; k < num_lists; ++k) PyList_SET_ITEM(g.lists.get(), k, PyRef::check(PyList_New(0)).release());
  groups.push_back(std::move(g));
  return groups.back();
}

void append(PyObject* list, PyObject* item) {
  if (PyList_Append(list, item) != 0) throw PythonError();
}

PyRef to_dict(const std::vector<Group>& groups) {
  PyRef dict = PyRef::check(PyDict_New());
  for (const Group& g : groups) {
    const PyRef device = PyRef::check(device_object(g.device));
    const PyRef key = PyRef::check(PyTuple_Pack(2, device.get(), dtype_object(g.dtype)));
    const PyRef value = PyRef::check(PyTuple_Pack(2, g.lists.get(), g.indices.get()));
    if (PyDict_SetItem(dict.get(), key.get(), value.get()) != 0) throw PythonError();
  }
  return dict;
}

PyObject* group_tensors(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"tensorlistlist", "with_indices", nullptr};
    PyObject* nested;
    int with_indices = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|p:_group_tensors_by_device_and_dtype", const_cast<char**>(names),
                                     &nested, &with_indices))
      throw PythonError();
    const PyRef outer = as_list(nested, "a list of lists of tensors");
    const Py_ssize_t num_lists = PySequence_Fast_GET_SIZE(outer.get());
    TN_CHECK(num_lists > 0, "_group_tensors_by_device_and_dtype(): expected at least one list of tensors");
    std::vector<PyRef> lists;
    for (Py_ssize_t k = 0; k < num_lists; ++k)
      lists.push_back(as_list(PySequence_Fast_GET_ITEM(outer.get(), k), "a list of tensors"));
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(lists[0].get());
    for (const PyRef& list : lists) {
      const Py_ssize_t size = PySequence_Fast_GET_SIZE(list.get());
      TN_CHECK(size == count || size == 0, "_group_tensors_by_device_and_dtype(): expected lists of ", count,
               " tensors or none, got ", size);
    }
    std::vector<Group> groups;
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* const first = PySequence_Fast_GET_ITEM(lists[0].get(), i);
      if (!is_tensor(first))
        raise(PyExc_TypeError, "_group_tensors_by_device_and_dtype(): expected a Tensor, got %s",
              Py_TYPE(first)->tp_name);
      Group& group = group_of(groups, tensor_of(first), num_lists);
      for (size_t k = 0; k < lists.size(); ++k) {
        if (PySequence_Fast_GET_SIZE(lists[k].get()) == 0) continue;
        PyObject* const item = PySequence_Fast_GET_ITEM(lists[k].get(), i);
        if (item != Py_None) {
          if (!is_tensor(item))
            raise(PyExc_TypeError, "_group_tensors_by_device_and_dtype(): expected a Tensor, got %s",
                  Py_TYPE(item)->tp_name);
          TN_CHECK(fits(group, tensor_of(item)),
                   "Tensors of the same index must be on the same device and the same dtype except `step` "
                   "tensors that can be CPU and float32/64 "
                   "notwithstanding");
        }
        append(PyList_GET_ITEM(group.lists.get(), static_cast<Py_ssize_t>(k)), item);
      }
      if (with_indices) append(group.indices.get(), PyRef::check(PyLong_FromSsize_t(i)).get());
    }
    return to_dict(groups).release();
  });
}

PyMethodDef functions[] = {
    {"_group_tensors_by_device_and_dtype", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(group_tensors)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool bind_foreach(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace tn::py
