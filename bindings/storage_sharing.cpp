// Storages in shared memory, for multiprocessing: by file descriptor (the default) and by name.
//
// Named objects carry their own count of users, and the last one unlinks; upstream's daemon that cleans up after killed
// processes does not exist here, so the manager's handle is empty.
#include <unistd.h>

#include <cstring>

#include "bindings/mapped_memory.h"
#include "bindings/object_type.h"
#include "bindings/storage.h"

namespace tn::py {

namespace {

void check_cpu(const StorageImpl& s, const char* function) {
  TN_CHECK(s.device().is_cpu(), function, ": only available on CPU");
}

size_t size_argument(PyObject* args) {
  long long size = 0;
  if (!PyArg_ParseTuple(args, "L", &size)) throw PythonError();
  TN_CHECK(size >= 0, "_new_shared: expected a size of at least 0, got ", size);
  return static_cast<size_t>(size);
}

PyObject* is_shared(PyObject* self, PyObject*) {
  return guarded([&] { return PyBool_FromLong(mapped::of(storage_of(self)) != nullptr); });
}

PyObject* share_fd(PyObject* self, PyObject*) {
  return guarded([&] {
    StorageImpl& s = storage_of(self);
    check_cpu(s, "_share_fd_");
    const mapped::Mapping& m = mapped::share_by_fd(s);
    return Py_BuildValue("(in)", m.fd, static_cast<Py_ssize_t>(s.nbytes()));
  });
}
PyObject* new_using_fd(PyObject*, PyObject* args) {
  return guarded([&] { return storage_object(mapped::create_fd(size_argument(args))); });
}
PyObject* new_shared_fd(PyObject*, PyObject* args) {
  return guarded([&] {
    TN_CHECK(PyTuple_GET_SIZE(args) == 2, "tuple of 2 items expected");
    PyObject* fd = PyTuple_GET_ITEM(args, 0);
    PyObject* size = PyTuple_GET_ITEM(args, 1);
    if (!PyLong_Check(fd) || !PyLong_Check(size))
      raise(PyExc_TypeError,
            "_new_shared in file descriptor mode received an invalid combination of arguments - got (%s, %s), but "
            "expected a file "
            "descriptor (int) and storage size (int)",
            type_name(fd), type_name(size));
    const int own = ::dup(static_cast<int>(PyLong_AsLong(fd)));
    TN_CHECK(own >= 0, "could not duplicate a shared memory file descriptor");
    return storage_object(mapped::open_fd(own, PyLong_AsSize_t(size)));
  });
}
PyObject* shared_fd(PyObject* self, PyObject*) {
  return guarded([&] {
    const mapped::Mapping* m = mapped::of(storage_of(self));
    TN_CHECK(m != nullptr && m->fd >= 0, "couldn't retrieve a shared file descriptor");
    return PyLong_FromLong(m->fd);
  });
}

PyObject* share_filename(PyObject* self, PyObject*) {
  return guarded([&] {
    StorageImpl& s = storage_of(self);
    check_cpu(s, "_share_filename_");
    const mapped::Mapping& m = mapped::share_by_name(s);
    return Py_BuildValue("(yyn)", "", m.name.c_str(), static_cast<Py_ssize_t>(s.nbytes()));
  });
}
PyObject* new_using_filename(PyObject*, PyObject* args) {
  return guarded([&] { return storage_object(mapped::create_named(size_argument(args))); });
}
PyObject* new_shared_filename(PyObject*, PyObject* args) {
  return guarded([&] {
    TN_CHECK(PyTuple_GET_SIZE(args) == 3, "tuple of 3 items expected");
    PyObject* manager = PyTuple_GET_ITEM(args, 0);
    PyObject* name = PyTuple_GET_ITEM(args, 1);
    PyObject* size = PyTuple_GET_ITEM(args, 2);
    if (!PyBytes_Check(manager) || !PyBytes_Check(name) || !PyLong_Check(size))
      raise(PyExc_TypeError,
            "_new_shared in file system mode received an invalid combination of arguments - got (%s, %s, %s), but "
            "expected a handle "
            "(string/bytes) and storage size (int)",
            type_name(manager), type_name(name), type_name(size));
    return storage_object(mapped::open_named(PyBytes_AS_STRING(name), PyLong_AsSize_t(size)));
  });
}
PyObject* change_users(PyObject* self, int by) {
  if (const mapped::Mapping* m = mapped::of(storage_of(self))) mapped::change_users(*m, by);
  return Py_NewRef(self);
}
PyObject* shared_decref(PyObject* self, PyObject*) {
  return guarded([&] { return change_users(self, -1); });
}
PyObject* shared_incref(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Py_DECREF(change_users(self, 1));
    Py_RETURN_NONE;
  });
}

PyObject* no_cuda(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_RuntimeError, "CUDA is not available");
  return nullptr;
}

}  // namespace

PyMethodDef storage_sharing_methods[] = {
    {"_share_cuda_", no_cuda, METH_NOARGS, nullptr},
    {"_new_shared_cuda", no_cuda, METH_VARARGS | METH_STATIC, nullptr},
    {"_release_ipc_counter_cuda", no_cuda, METH_VARARGS | METH_STATIC, nullptr},
    {"_share_fd_cpu_", share_fd, METH_NOARGS, nullptr},
    {"_new_shared_fd_cpu", new_shared_fd, METH_VARARGS | METH_STATIC, nullptr},
    {"_new_using_fd_cpu", new_using_fd, METH_VARARGS | METH_STATIC, nullptr},
    {"_share_filename_cpu_", share_filename, METH_NOARGS, nullptr},
    {"_new_shared_filename_cpu", new_shared_filename, METH_VARARGS | METH_STATIC, nullptr},
    {"_new_using_filename_cpu", new_using_filename, METH_VARARGS | METH_STATIC, nullptr},
    {"_shared_decref", shared_decref, METH_NOARGS, nullptr},
    {"_shared_incref", shared_incref, METH_NOARGS, nullptr},
    {"_get_shared_fd", shared_fd, METH_NOARGS, nullptr},
    {"is_shared", is_shared, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace tn::py
