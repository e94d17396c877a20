// torch._C.PyTorchFileWriter and PyTorchFileReader: what torch.save and torch.load write to and read from.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "bindings/numpy.h"
#include "bindings/object_type.h"
#include "bindings/storage.h"
#include "bindings/tensor.h"
#include "bindings/zip_archive.h"

namespace tn::py {

namespace {

constexpr const char* kIdRecord = ".data/serialization_id";
constexpr uint64_t kFileVersion = 3;
constexpr size_t kPiece = size_t{1} << 30;

// A file descriptor or a Python object with read, seek, tell or write.
struct File {
  ~File() {
    if (fd >= 0) ::close(fd);
    Py_XDECREF(file);
  }
  void read_at(uint64_t offset, void* to, size_t n) {
    auto* p = static_cast<char*>(to);
    if (file) PyRef::check(PyObject_CallMethod(file, "seek", "K", static_cast<unsigned long long>(offset)));
    while (n > 0) {
      size_t done = 0;
      if (file) {
        const PyRef bytes =
            PyRef::check(PyObject_CallMethod(file, "read", "n", static_cast<Py_ssize_t>(std::min(n, kPiece))));
        if (!PyBytes_Check(bytes.get()))
          raise(PyExc_TypeError, "read() returned %s, not bytes", type_name(bytes.get()));
        done = std::min(n, static_cast<size_t>(PyBytes_GET_SIZE(bytes.get())));
        std::memcpy(p, PyBytes_AS_STRING(bytes.get()), done);
      } else {
        const ssize_t r = ::pread(fd, p, std::min(n, kPiece), static_cast<off_t>(offset));
        if (r < 0 && errno == EINTR) continue;
        done = r > 0 ? static_cast<size_t>(r) : 0;
      }
      TN_CHECK(done > 0, "PytorchStreamReader failed reading file: unexpected end");
      p += done;
      n -= done;
      offset += done;
    }
  }
  void write(const void* data, size_t n) {
    const auto* p = static_cast<const char*>(data);
    while (n > 0) {
      const size_t piece = std::min(n, kPiece);
      size_t done = piece;
      if (file) {
        const PyRef view =
            PyRef::check(PyMemoryView_FromMemory(const_cast<char*>(p), static_cast<Py_ssize_t>(piece), PyBUF_READ));
        // A raw file may keep the view, so it gets bytes.
        const PyRef bytes = PyRef::check(PyBytes_FromObject(view.get()));
        PyRef::check(PyObject_CallMethod(file, "write", "O", bytes.get()));
      } else {
        const ssize_t w = ::write(fd, p, piece);
        if (w < 0 && errno == EINTR) continue;
        TN_CHECK(w > 0, "PytorchStreamWriter failed writing file: ", std::strerror(errno));
        done = static_cast<size_t>(w);
      }
      p += done;
      n -= done;
    }
  }
  uint64_t size() {
    if (!file) {
      struct stat status{};
      return ::fstat(fd, &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
    }
    PyRef::check(PyObject_CallMethod(file, "seek", "ii", 0, 2));
    const PyRef end = PyRef::check(PyObject_CallMethod(file, "tell", nullptr));
    return PyLong_AsUnsignedLongLong(end.get());
  }

  int fd = -1;
  PyObject* file = nullptr;
};

// A name of a file, or null for a file-like object.
const char* path_of(PyObject* o) {
  if (!PyUnicode_Check(o)) return nullptr;
  const char* path = PyUnicode_AsUTF8(o);
  if (path == nullptr) throw PythonError();
  return path;
}
std::string archive_of(const char* path) {
  if (path == nullptr) return "archive";
  std::string name(path);
  if (const size_t slash = name.rfind('/'); slash != std::string::npos) name.erase(0, slash + 1);
  if (const size_t dot = name.rfind('.'); dot != std::string::npos) name.erase(dot);
  return name;
}

uint64_t number(PyObject* o) {
  const unsigned long long v = PyLong_AsUnsignedLongLong(o);
  if (PyErr_Occurred()) throw PythonError();
  return v;
}
const char* text(PyObject* o) {
  const char* s = PyUnicode_AsUTF8(o);
  if (s == nullptr) throw PythonError();
  return s;
}

// ---- writer
// -----------------------------------------------------------------------------------------------------------------
struct WriterState {
  File stream;
  std::string archive;
  std::string id;
  std::unique_ptr<zip::Writer> zip;
  uint64_t version = kFileVersion;
  bool finished = false;
};
struct WriterObject {
  PyObject_HEAD WriterState* state;
};
WriterState& writer(PyObject* self) {
  WriterState* s = reinterpret_cast<WriterObject*>(self)->state;
  TN_CHECK(s != nullptr && s->zip, "PyTorchFileWriter: not initialised");
  return *s;
}

int init_writer(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static const char* names[] = {"", "compute_crc32", "storage_alignment", nullptr};
    PyObject* target = nullptr;
    int checksums = 1;
    unsigned long long alignment = 64;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|pK", const_cast<char**>(names), &target, &checksums, &alignment))
      throw PythonError();
    TN_CHECK(alignment > 0 && alignment < 60000, "PyTorchFileWriter: expected an alignment of 1 to 59999, got ",
             alignment);
    auto state = std::make_unique<WriterState>();
    const char* path = path_of(target);
    state->archive = archive_of(path);
    if (path) {
      state->stream.fd = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
      if (state->stream.fd < 0) {
        const std::string folder(path,
                                 std::strrchr(path, '/') ? static_cast<size_t>(std::strrchr(path, '/') - path) : 0);
        TN_CHECK(folder.empty() || ::access(folder.c_str(), F_OK) == 0, "Parent directory ", folder,
                 " does not exist.");
        fail(ErrorKind::Runtime, "File ", path, " cannot be opened.");
      }
    } else {
      state->stream.file = Py_NewRef(target);
    }
    File* stream = &state->stream;
    state->zip = std::make_unique<zip::Writer>([stream](const void* p, size_t n) { stream->write(p, n); },
                                               checksums != 0, alignment);
    delete std::exchange(reinterpret_cast<WriterObject*>(self)->state, state.release());
    return 0;
  });
}
void dealloc_writer(PyObject* self) {
  delete reinterpret_cast<WriterObject*>(self)->state;
  Py_TYPE(self)->tp_free(self);
}

void add_record(WriterState& w, const std::string& name, const void* data, uint64_t size) {
  TN_CHECK(!w.finished, "PytorchStreamWriter failed: the archive is finished");
  std::string full = w.archive + "/" + name;
  for (const zip::Entry& e : w.zip->entries()) TN_CHECK(e.name != full, "Tried to serialize file twice: ", name);
  w.zip->add(std::move(full), data, size);
}

PyObject* write_record(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *name, *data, *size;
    if (!PyArg_ParseTuple(args, "UOO", &name, &data, &size)) throw PythonError();
    const uint64_t n = number(size);
    const void* from;
    Storage held;
    uint64_t available = n;
    if (PyUnicode_Check(data)) {
      Py_ssize_t length;
      from = PyUnicode_AsUTF8AndSize(data, &length);
      if (from == nullptr) throw PythonError();
      available = static_cast<uint64_t>(length);
    } else if (PyBytes_Check(data)) {
      from = PyBytes_AS_STRING(data);
      available = static_cast<uint64_t>(PyBytes_GET_SIZE(data));
    } else if (storage_argument(data, &held)) {
      from = held->data();
      available = held->nbytes();
    } else if (PyLong_Check(data)) {
      from = PyLong_AsVoidPtr(data);
      if (PyErr_Occurred()) throw PythonError();
    } else {
      raise(PyExc_TypeError, "write_record(): incompatible function arguments: data is %s", type_name(data));
    }
    TN_CHECK(n <= available, "write_record: expected at most ", available, " bytes, got a size of ", n);
    static const char nothing = 0;
    add_record(writer(self), text(name), from ? from : &nothing, n);
    Py_RETURN_NONE;
  });
}
PyObject* write_record_metadata(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *name, *size;
    if (!PyArg_ParseTuple(args, "UO", &name, &size)) throw PythonError();
    add_record(writer(self), text(name), nullptr, number(size));
    Py_RETURN_NONE;
  });
}

// Forty digits: the names, then the contents.
std::string identify(const std::vector<zip::Entry>& entries) {
  uint64_t names = 0xcbf29ce484222325, contents = names;
  const auto mix = [](uint64_t& h, uint64_t v) { h = (h ^ v) * 0x100000001b3; };
  for (const zip::Entry& e : entries) {
    for (const char c : e.name) mix(names, static_cast<uint8_t>(c));
    mix(contents, e.crc);
    mix(contents, e.size);
  }
  char digits[48];
  std::snprintf(digits, sizeof digits, "%020llu%020llu", static_cast<unsigned long long>(names),
                static_cast<unsigned long long>(contents));
  return digits;
}
PyObject* write_end(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    WriterState& w = writer(self);
    const std::string version = std::to_string(w.version) + "\n";
    add_record(w, "version", version.data(), version.size());
    w.id = identify(w.zip->entries());
    add_record(w, kIdRecord, w.id.data(), w.id.size());
    w.zip->finish();
    w.finished = true;
    if (w.stream.fd >= 0) ::close(std::exchange(w.stream.fd, -1));
    Py_RETURN_NONE;
  });
}
PyObject* set_min_version(PyObject* self, PyObject* version) {
  return guarded([&]() -> PyObject* {
    writer(self).version = std::max(writer(self).version, number(version));
    Py_RETURN_NONE;
  });
}
PyObject* archive_name(PyObject* self, PyObject*) {
  return guarded([&] { return text_object(writer(self).archive); });
}
PyObject* writer_id(PyObject* self, PyObject*) {
  return guarded([&] { return text_object(writer(self).id); });
}
PyObject* written_records(PyObject* self, PyObject*) {
  return guarded([&] {
    PyRef set = PyRef::check(PySet_New(nullptr));
    for (const zip::Entry& e : writer(self).zip->entries()) {
      const PyRef name = PyRef::check(text_object(std::string_view(e.name).substr(writer(self).archive.size() + 1)));
      if (PySet_Add(set.get(), name.get()) < 0) throw PythonError();
    }
    return set.release();
  });
}

PyMethodDef writer_methods[] = {
    {"write_record", write_record, METH_VARARGS, nullptr},
    {"write_record_metadata", write_record_metadata, METH_VARARGS, nullptr},
    {"write_end_of_file", write_end, METH_NOARGS, nullptr},
    {"set_min_version", set_min_version, METH_O, nullptr},
    {"archive_name", archive_name, METH_NOARGS, nullptr},
    {"serialization_id", writer_id, METH_NOARGS, nullptr},
    {"get_all_written_records", written_records, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

// ---- reader
// -----------------------------------------------------------------------------------------------------------------
struct ReaderState {
  File stream;
  std::string archive;  // with the slash
  std::unique_ptr<zip::Reader> zip;
};
struct ReaderObject {
  PyObject_HEAD ReaderState* state;
};
ReaderState& reader(PyObject* self) {
  ReaderState* s = reinterpret_cast<ReaderObject*>(self)->state;
  TN_CHECK(s != nullptr && s->zip, "PyTorchFileReader: not initialised");
  return *s;
}

int init_reader(PyObject* self, PyObject* args, PyObject*) {
  return guarded([&] {
    PyObject* source;
    if (!PyArg_ParseTuple(args, "O", &source)) throw PythonError();
    auto state = std::make_unique<ReaderState>();
    if (const char* path = path_of(source)) {
      state->stream.fd = ::open(path, O_RDONLY | O_CLOEXEC);
      TN_CHECK(state->stream.fd >= 0, "open file failed because of errno ", errno, " on fopen: ", std::strerror(errno),
               ", file path: ", path);
    } else {
      state->stream.file = Py_NewRef(source);
    }
    File* stream = &state->stream;
    state->zip = std::make_unique<zip::Reader>(
        [stream](uint64_t at, void* to, size_t n) { stream->read_at(at, to, n); }, stream->size());
    TN_CHECK(!state->zip->entries().empty(), "archive does not contain any files");
    const std::string& first = state->zip->entries()[0].name;
    const size_t slash = first.find('/');
    TN_CHECK(slash != std::string::npos, "file in archive is not in a subdirectory: ", first);
    state->archive = first.substr(0, slash + 1);
    delete std::exchange(reinterpret_cast<ReaderObject*>(self)->state, state.release());
    return 0;
  });
}
void dealloc_reader(PyObject* self) {
  delete reinterpret_cast<ReaderObject*>(self)->state;
  Py_TYPE(self)->tp_free(self);
}

const zip::Entry& entry(PyObject* self, PyObject* name) {
  const std::string full = reader(self).archive + text(name);
  const zip::Entry* e = reader(self).zip->find(full);
  TN_CHECK(e != nullptr, "PytorchStreamReader failed locating file ", text(name), ": file not found");
  return *e;
}

PyObject* get_record(PyObject* self, PyObject* name) {
  return guarded([&] {
    const zip::Entry& e = entry(self, name);
    PyRef bytes = PyRef::check(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(e.size)));
    reader(self).zip->read(e, PyBytes_AS_STRING(bytes.get()));
    return bytes.release();
  });
}
PyObject* has_record(PyObject* self, PyObject* name) {
  return guarded([&] { return PyBool_FromLong(reader(self).zip->find(reader(self).archive + text(name)) != nullptr); });
}
PyObject* get_storage(PyObject* self, PyObject* args) {
  return guarded([&] {
    PyObject *name, *type;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "UnO", &name, &count, &type)) throw PythonError();
    const zip::Entry& e = entry(self, name);
    // torch.load passes the class UntypedStorage, whose elements are bytes.
    ScalarType dtype = ScalarType::Byte;
    is_dtype(type, &dtype);
    TN_CHECK(count >= 0 && static_cast<uint64_t>(count) * item_size(dtype) <= e.size,
             "get_storage_from_record: expected at most ", e.size, " bytes, got ", count, " elements");
    Storage s = Storage::allocate(e.size);
    if (e.size) reader(self).zip->read(e, s->data());
    return wrap(tensor_over(std::move(s), dtype, {static_cast<int64_t>(count)}, {int64_t{1}}));
  });
}
PyObject* reader_id(PyObject* self, PyObject*) {
  return guarded([&] {
    const zip::Entry* e = reader(self).zip->find(reader(self).archive + kIdRecord);
    std::string id(e ? e->size : 0, '\0');
    if (e) reader(self).zip->read(*e, id.data());
    return text_object(id);
  });
}
PyObject* all_records(PyObject* self, PyObject*) {
  return guarded([&] {
    PyRef list = PyRef::check(PyList_New(0));
    const std::string& archive = reader(self).archive;
    for (const zip::Entry& e : reader(self).zip->entries()) {
      if (!e.name.starts_with(archive)) continue;
      const PyRef name = PyRef::check(text_object(std::string_view(e.name).substr(archive.size())));
      if (PyList_Append(list.get(), name.get()) < 0) throw PythonError();
    }
    return list.release();
  });
}
PyObject* record_offset(PyObject* self, PyObject* name) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(reader(self).zip->data_offset(entry(self, name))); });
}
PyObject* record_header_offset(PyObject* self, PyObject* name) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(entry(self, name).header_offset); });
}
PyObject* record_offset_no_read(PyObject* self, PyObject* args) {
  return guarded([&] {
    unsigned long long header, size, alignment;
    const char* name;
    if (!PyArg_ParseTuple(args, "KsKK", &header, &name, &size, &alignment)) throw PythonError();
    TN_CHECK(alignment > 0, "get_record_offset_no_read: expected an alignment of at least 1, got 0");
    const std::string full = reader(self).archive + name;
    const bool wide_size = size >= 0xffffffff, wide_offset = header >= 0xffffffff;
    const unsigned long long wide = wide_size || wide_offset ? 4 + (wide_size ? 16 : 0) + (wide_offset ? 8 : 0) : 0;
    return PyLong_FromUnsignedLongLong(header + 30 + full.size() + wide +
                                       zip::padding(header, full.size(), size, alignment));
  });
}
PyObject* record_size(PyObject* self, PyObject* name) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(entry(self, name).size); });
}

PyMethodDef reader_methods[] = {
    {"get_record", get_record, METH_O, nullptr},
    {"has_record", has_record, METH_O, nullptr},
    {"get_storage_from_record", get_storage, METH_VARARGS, nullptr},
    {"serialization_id", reader_id, METH_NOARGS, nullptr},
    {"get_all_records", all_records, METH_NOARGS, nullptr},
    {"get_record_offset", record_offset, METH_O, nullptr},
    {"get_record_header_offset", record_header_offset, METH_O, nullptr},
    {"get_record_offset_no_read", record_offset_no_read, METH_VARARGS, nullptr},
    {"get_record_size", record_size, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyTypeObject writer_type{}, reader_type{};

}  // namespace

bool bind_serialization(PyObject* module) {
  constexpr unsigned long kFlags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  writer_type.tp_new = PyType_GenericNew;
  writer_type.tp_init = init_writer;
  writer_type.tp_dealloc = dealloc_writer;
  writer_type.tp_methods = writer_methods;
  reader_type.tp_new = PyType_GenericNew;
  reader_type.tp_init = init_reader;
  reader_type.tp_dealloc = dealloc_reader;
  reader_type.tp_methods = reader_methods;
  return ready_type(writer_type, "torch.PyTorchFileWriter", sizeof(WriterObject), kFlags) &&
         add_to_module(module, "PyTorchFileWriter", writer_type) &&
         ready_type(reader_type, "torch.PyTorchFileReader", sizeof(ReaderObject), kFlags) &&
         add_to_module(module, "PyTorchFileReader", reader_type);
}

}  // namespace tn::py
