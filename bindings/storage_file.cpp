// Storages from buffers and files.
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "bindings/mapped_memory.h"
#include "bindings/object_type.h"
#include "bindings/storage.h"

namespace tn::py {

namespace {

// Holds a buffer while in scope.
struct Buffer {
  explicit Buffer(PyObject* o, int flags = PyBUF_SIMPLE) {
    if (PyObject_GetBuffer(o, &view, flags) < 0) throw PythonError();
  }
  ~Buffer() { PyBuffer_Release(&view); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Py_buffer view{};
};

PyObject* from_buffer(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static const char* names[] = {"buffer", "byte_order", "count", "offset", "dtype", nullptr};
    PyObject* source = nullptr;
    PyObject* dtype = nullptr;
    const char* order = nullptr;
    Py_ssize_t count = -1, offset = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|snnO", const_cast<char**>(names), &source, &order, &count,
                                     &offset, &dtype))
      throw PythonError();
    TN_CHECK(dtype != nullptr, "argument 'dtype' cannot be None");
    ScalarType type;
    TN_CHECK(is_dtype(dtype, &type), "argument 'dtype' must be of type torch.dtype");
    const bool single = item_size(type) == 1 && type != ScalarType::Bool;
    TN_CHECK(single || order != nullptr, "function missing required argument 'byte_order' (pos 2)");
    bool swap = false;
    if (!single) {
      const std::string_view named(order);
      if (named == "big" || named == "little") swap = (named == "big") == (std::endian::native == std::endian::little);
      else if (named != "native")
        raise(PyExc_ValueError, "invalid byte_order '%s' (expected 'big', 'little', or 'native')", order);
    }
    const Buffer buffer(source);
    const Py_ssize_t length = buffer.view.len;
    // Upstream's message has its two numbers the wrong way round, and callers may match it.
    if (offset < 0 || offset > length)
      fail(ErrorKind::Value, "offset must be non-negative and no greater than buffer length (", offset, ") , but got ",
           length);
    const auto size = static_cast<Py_ssize_t>(item_size(type));
    if (count < 0) {
      if ((length - offset) % size != 0)
        fail(ErrorKind::Value, "buffer size (", length, ") must be a multiple of element size (", size, ")");
      count = (length - offset) / size;
    }
    if (count > (length - offset) / size)
      fail(ErrorKind::Value, "buffer has only ", length - offset, " elements after offset ", offset,
           ", but specified a size of ", count);
    Storage s = Storage::allocate(static_cast<size_t>(count * size));
    const char* from = static_cast<const char*>(buffer.view.buf) + offset;
    if (count != 0) std::memcpy(s->data(), from, s->nbytes());
    if (swap) swap_bytes(s->data(), s->nbytes(), static_cast<size_t>(is_complex(type) ? size / 2 : size));
    if (type == ScalarType::Bool)
      for (size_t i = 0; i < s->nbytes(); ++i) static_cast<uint8_t*>(s->data())[i] = from[i] != 0;
    return storage_object(s);
  });
}

PyObject* from_file(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static const char* names[] = {"filename", "shared", "nbytes", nullptr};
    const char* filename = nullptr;
    int shared = 0;
    Py_ssize_t size = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|in", const_cast<char**>(names), &filename, &shared, &size))
      throw PythonError();
    return storage_object(mapped::open_file(filename, shared != 0, size > 0 ? static_cast<size_t>(size) : 0));
  });
}

PyObject* get_filename(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const mapped::Mapping* m = mapped::of(storage_of(self));
    if (m == nullptr || !m->shared || m->fd >= 0) Py_RETURN_NONE;
    return text_object(m->name);
  });
}

// ---- the legacy format: an optional count of elements, then the bytes, little-endian
// ------------------------------------------ A stream: a descriptor, or a Python object with write and readinto.
class ByteStream {
 public:
  explicit ByteStream(int fd) : fd_(fd) {}
  explicit ByteStream(PyObject* file) : file_(file) {}

  void write(const char* data, size_t n) {
    while (n > 0) {
      // Python's writers may copy what they get, so large storages go in pieces.
      const size_t piece = std::min(n, size_t{1} << 30);
      size_t done = 0;
      if (file_) {
        const PyRef view =
            PyRef::check(PyMemoryView_FromMemory(const_cast<char*>(data), static_cast<Py_ssize_t>(piece), PyBUF_READ));
        PyRef::check(PyObject_CallMethod(file_, "write", "O", view.get()));
        done = piece;
      } else {
        const ssize_t w = ::write(fd_, data, piece);
        if (w < 0 && errno == EINTR) continue;
        TN_CHECK(w > 0, "write(): fd ", fd_, " failed with ", std::strerror(errno));
        done = static_cast<size_t>(w);
      }
      data += done;
      n -= done;
    }
  }
  void read(char* data, size_t n) {
    while (n > 0) {
      const size_t piece = std::min(n, size_t{1} << 30);
      size_t done = file_ ? read_object(data, piece) : 0;
      if (!file_) {
        const ssize_t r = ::read(fd_, data, piece);
        if (r < 0 && errno == EINTR) continue;
        TN_CHECK(r >= 0, "read(): fd ", fd_, " failed with ", std::strerror(errno));
        done = static_cast<size_t>(r);
      }
      TN_CHECK(done > 0, "unexpected EOF, expected ", n, " more bytes. The file might be corrupted.");
      data += done;
      n -= done;
    }
  }

 private:
  size_t read_object(char* data, size_t n) {
    if (PyObject_HasAttrString(file_, "readinto")) {
      const PyRef view = PyRef::check(PyMemoryView_FromMemory(data, static_cast<Py_ssize_t>(n), PyBUF_WRITE));
      const PyRef count = PyRef::check(PyObject_CallMethod(file_, "readinto", "O", view.get()));
      return PyLong_AsSize_t(count.get());
    }
    const PyRef bytes = PyRef::check(PyObject_CallMethod(file_, "read", "n", static_cast<Py_ssize_t>(n)));
    if (!PyBytes_Check(bytes.get())) raise(PyExc_TypeError, "read() returned %s, not bytes", type_name(bytes.get()));
    const size_t got = std::min(n, static_cast<size_t>(PyBytes_GET_SIZE(bytes.get())));
    std::memcpy(data, PyBytes_AS_STRING(bytes.get()), got);
    return got;
  }

  int fd_ = -1;
  PyObject* file_ = nullptr;
};

size_t element_size_argument(PyObject* o, const char* function) {
  TN_CHECK(o != Py_None, function, ": need to specify element size");
  const size_t n = PyLong_AsSize_t(o);
  if (PyErr_Occurred()) throw PythonError();
  TN_CHECK(n > 0, function, ": expected an element size of at least 1, got 0");
  return n;
}
int descriptor_of(PyObject* file, const char* function) {
  const int fd = PyObject_AsFileDescriptor(file);
  if (fd < 0) {
    PyErr_Clear();
    fail(ErrorKind::Runtime, function, " couldn't retrieve a file descriptor from given object");
  }
  return fd;
}

void little_endian(char* data, size_t nbytes, size_t size) {
  if constexpr (std::endian::native == std::endian::big) swap_bytes(data, nbytes, size);
}

PyObject* write_file(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *file, *element_size;
    int real, save_size;
    if (!PyArg_ParseTuple(args, "OppO", &file, &real, &save_size, &element_size)) throw PythonError();
    StorageImpl& s = with_memory(self, "_write_file");
    const size_t size = element_size_argument(element_size, "_write_file");
    ByteStream out = real ? ByteStream(descriptor_of(file, "_write_file")) : ByteStream(file);
    if (save_size) {
      int64_t count = static_cast<int64_t>(s.nbytes() / size);
      little_endian(reinterpret_cast<char*>(&count), sizeof count, sizeof count);
      out.write(reinterpret_cast<const char*>(&count), sizeof count);
    }
    out.write(static_cast<const char*>(s.data()), s.nbytes());
    Py_RETURN_NONE;
  });
}

Storage read_storage(ByteStream& in, size_t element_size, StorageImpl* into) {
  int64_t count = 0;
  in.read(reinterpret_cast<char*>(&count), sizeof count);
  little_endian(reinterpret_cast<char*>(&count), sizeof count, sizeof count);
  TN_CHECK(count >= 0, "_set_from_file: expected a count of at least 0, got ", count);
  const size_t nbytes = static_cast<size_t>(count) * element_size;
  Storage s = into ? Storage(Ref<StorageImpl>::share(into)) : Storage::allocate(nbytes);
  TN_CHECK(s->nbytes() == nbytes, "storage has wrong byte size: expected ", nbytes, " got ", s->nbytes());
  in.read(static_cast<char*>(s->data()), nbytes);
  little_endian(static_cast<char*>(s->data()), nbytes, element_size);
  return s;
}

PyObject* new_with_file(PyObject*, PyObject* args) {
  return guarded([&] {
    TN_CHECK(PyTuple_GET_SIZE(args) == 2, "_new_with_file takes exactly two arguments");
    ByteStream in(descriptor_of(PyTuple_GET_ITEM(args, 0), "_new_with_file"));
    return storage_object(
        read_storage(in, element_size_argument(PyTuple_GET_ITEM(args, 1), "_new_with_file"), nullptr));
  });
}

PyObject* set_from_file(PyObject* self, PyObject* args) {
  return guarded([&] {
    PyObject *file, *offset, *element_size;
    int real;
    if (!PyArg_ParseTuple(args, "OOpO", &file, &offset, &real, &element_size)) throw PythonError();
    StorageImpl& s = storage_of(self);
    const size_t size = element_size_argument(element_size, "_set_from_file");
    if (!real) {
      TN_CHECK(offset == Py_None, "_set_from_file: offset is NYI for filelike objects");
      ByteStream in(file);
      read_storage(in, size, &s);
      return Py_NewRef(self);
    }
    const int fd = descriptor_of(file, "_set_from_file");
    const off_t before = ::lseek(fd, 0, SEEK_CUR);
    if (offset != Py_None) ::lseek(fd, static_cast<off_t>(PyLong_AsLongLong(offset)), SEEK_SET);
    ByteStream in(fd);
    read_storage(in, size, &s);
    // Python's file object has its own idea of the position: move it there by its own means.
    const off_t after = ::lseek(fd, 0, SEEK_CUR);
    ::lseek(fd, before, SEEK_SET);
    PyRef::check(PyObject_CallMethod(file, "seek", "Li", static_cast<long long>(after), 0));
    return Py_NewRef(self);
  });
}

}  // namespace

PyMethodDef storage_file_methods[] = {
    {"from_buffer", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(from_buffer)),
     METH_VARARGS | METH_KEYWORDS | METH_STATIC, nullptr},
    {"from_file", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(from_file)),
     METH_VARARGS | METH_KEYWORDS | METH_STATIC, nullptr},
    {"_write_file", write_file, METH_VARARGS, nullptr},
    {"_new_with_file", new_with_file, METH_VARARGS | METH_STATIC, nullptr},
    {"_set_from_file", set_from_file, METH_VARARGS, nullptr},
    {"_get_filename", get_filename, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace tn::py
