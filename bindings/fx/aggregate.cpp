#include "bindings/fx/aggregate.h"

namespace tn::py::fx {
namespace {

// Python classes of torch.fx, which is loaded after torch._C: looked up at the first use.
PyTypeObject* immutable_class(const char* name, PyTypeObject** cache) {
  if (*cache == nullptr) {
    PyObject* module = PyImport_ImportModule("torch.fx.immutable_collections");
    if (module == nullptr) return nullptr;
    *cache = reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(module, name));
    Py_DECREF(module);
  }
  return *cache;
}

PyTypeObject* immutable_list() {
  static PyTypeObject* cache = nullptr;
  return immutable_class("immutable_list", &cache);
}

PyTypeObject* immutable_dict() {
  static PyTypeObject* cache = nullptr;
  return immutable_class("immutable_dict", &cache);
}

PyObject* map_tuple(PyObject* value, const LeafMap& map) {
  const Py_ssize_t size = PyTuple_GET_SIZE(value);
  if (size == 0 && PyTuple_CheckExact(value)) return Py_NewRef(value);
  PyObject* result = PyTuple_New(size);
  if (result == nullptr) return nullptr;
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* item = map_aggregate(PyTuple_GET_ITEM(value, i), map);
    if (item == nullptr) return Py_DECREF(result), nullptr;
    PyTuple_SET_ITEM(result, i, item);
  }
  if (PyTuple_CheckExact(value) || !PyObject_HasAttrString(value, "_fields")) return result;
  PyObject* named = PyObject_CallObject(reinterpret_cast<PyObject*>(Py_TYPE(value)), result);
  Py_DECREF(result);
  return named;
}

PyObject* map_list(PyObject* value, const LeafMap& map) {
  PyTypeObject* type = immutable_list();
  if (type == nullptr) return nullptr;
  if (PyList_GET_SIZE(value) == 0 && Py_TYPE(value) == type) return Py_NewRef(value);
  PyObject* result = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(type));
  if (result == nullptr) return nullptr;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); ++i) {
    PyObject* item = map_aggregate(PyList_GET_ITEM(value, i), map);
    const bool ok =
        item != nullptr && PyList_Append(result, item) == 0;  // the base's append: the class forbids its own
    Py_XDECREF(item);
    if (!ok) return Py_DECREF(result), nullptr;
  }
  return result;
}

PyObject* map_dict(PyObject* value, const LeafMap& map) {
  PyTypeObject* type = immutable_dict();
  if (type == nullptr) return nullptr;
  if (PyDict_GET_SIZE(value) == 0 && Py_TYPE(value) == type) return Py_NewRef(value);
  PyObject* result = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(type));
  if (result == nullptr) return nullptr;
  PyObject* key = nullptr;
  PyObject* item = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(value, &position, &key, &item)) {
    PyObject* mapped = map_aggregate(item, map);
    const bool ok = mapped != nullptr && PyDict_SetItem(result, key, mapped) == 0;
    Py_XDECREF(mapped);
    if (!ok) return Py_DECREF(result), nullptr;
  }
  return result;
}

PyObject* map_slice(PyObject* value, const LeafMap& map) {
  const PySliceObject* slice = reinterpret_cast<PySliceObject*>(value);
  PyObject* start = map_aggregate(slice->start, map);
  PyObject* stop = start == nullptr ? nullptr : map_aggregate(slice->stop, map);
  PyObject* step = stop == nullptr ? nullptr : map_aggregate(slice->step, map);
  PyObject* result = step == nullptr ? nullptr : PySlice_New(start, stop, step);
  Py_XDECREF(start);
  Py_XDECREF(stop);
  Py_XDECREF(step);
  return result;
}

}  // namespace

PyObject* map_aggregate(PyObject* value, const LeafMap& map) {
  const bool is_container = PyTuple_Check(value) || PyList_Check(value) || PyDict_Check(value) || PySlice_Check(value);
  if (!is_container) return map.apply(map.context, value);
  if (Py_EnterRecursiveCall(" in torch.fx arguments")) return nullptr;
  PyObject* result = PyTuple_Check(value)  ? map_tuple(value, map)
                     : PyList_Check(value) ? map_list(value, map)
                     : PyDict_Check(value) ? map_dict(value, map)
                                           : map_slice(value, map);
  Py_LeaveRecursiveCall();
  return result;
}

}  // namespace tn::py::fx
