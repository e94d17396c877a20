// StorageBase: the type under torch.UntypedStorage, its elements, and who keeps whom alive.
#include "bindings/storage.h"

#include <bit>
#include <cstring>
#include <unordered_map>

#include "bindings/arguments.h"
#include "bindings/mapped_memory.h"
#include "bindings/object_type.h"
#include "bindings/tensor.h"
#include "runtime/refuse.h"

namespace tn::py {

PyTypeObject storage_base_type{};

namespace {

PyTypeObject* untyped_class = nullptr;  // torch.UntypedStorage, once Python has defined it

StorageObject* as_object(PyObject* o) { return reinterpret_cast<StorageObject*>(o); }

// ---- weak references: one cell for each storage that has any, at an address that stays the same while they live
// --------
struct WeakCell {
  StorageImpl* storage;  // null once it died
  int64_t count;
};
std::unordered_map<StorageImpl*, WeakCell*>& weak_cells() {
  static auto* const cells = new std::unordered_map<StorageImpl*, WeakCell*>;
  return *cells;
}

// A storage with a Python object dies.
void storage_died(StorageImpl& s) noexcept {
  const GilAcquire gil;
  if (const auto found = weak_cells().find(&s); found != weak_cells().end()) {
    found->second->storage = nullptr;
    weak_cells().erase(found);
  }
  StorageObject* o = as_object(static_cast<PyObject*>(s.pyobj));
  s.pyobj = nullptr;
  o->impl = nullptr;
  if (o->kept_by_impl) {
    o->kept_by_impl = false;
    Py_DECREF(o);
  }
}

void attach(PyObject* o, Storage s) {
  as_object(o)->impl = s.release();
  if (as_object(o)->impl->pyobj == nullptr) as_object(o)->impl->pyobj = o;
}
void detach(PyObject* o) {
  StorageImpl* s = std::exchange(as_object(o)->impl, nullptr);
  if (s == nullptr) return;
  // Weak cells are found by the object's death; another object of the same storage must not end them.
  if (s->pyobj == o && s->use_count() > 1 && !weak_cells().contains(s)) s->pyobj = nullptr;
  Ref<StorageImpl>::adopt(s);
}

void base_dealloc(PyObject* self) {
  detach(self);
  Py_TYPE(self)->tp_free(self);
}

// What Python would have generated for the class. Its own function looks at the type's tp_dealloc, which is ours, and
// comes back.
void untyped_dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  if (type->tp_finalize && PyObject_CallFinalizerFromDealloc(self) < 0) return;
  if (PyType_IS_GC(type)) PyObject_GC_UnTrack(self);
  if (type->tp_weaklistoffset > 0) PyObject_ClearWeakRefs(self);
  if (type->tp_dictoffset != 0)
    if (PyObject** const dict = _PyObject_GetDictPtr(self)) Py_CLEAR(*dict);
  detach(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// Python dropped the object, but others hold the storage: the storage now keeps the object, so that it comes back as it
// was.
void keeping_dealloc(PyObject* self) {
  StorageImpl* s = as_object(self)->impl;
  if (Py_IS_TYPE(self, untyped_class)) {
    if (s && s->pyobj == self && s->use_count() > 1) {
      Py_SET_REFCNT(self, 1);
      as_object(self)->kept_by_impl = true;
      Ref<StorageImpl>::adopt(s);
      return;
    }
    untyped_dealloc(self);
    return;
  }
  base_dealloc(self);
}

// ---- making
// ------------------------------------------------------------------------------------------------------------
constexpr Formal kAllocator{"allocator", Kind::Int, true, true, true, "None"};
constexpr Formal kDevice{"device", Kind::Device, true, true, true, "None"};
constexpr Formal kEmpty[] = {kAllocator, kDevice};
constexpr Formal kSized[] = {{"size", Kind::Int}, kAllocator, kDevice};
constexpr Formal kFilled[] = {{"sequence", Kind::Any}, kAllocator, kDevice};
constexpr Form kForms[] = {{kEmpty}, {kSized}, {kFilled}};
constexpr const char* kName = "torch.UntypedStorage";

uint8_t byte_of(PyObject* o) {
  if (!PyLong_Check(o)) raise(PyExc_TypeError, "not an int");
  const unsigned long long v = PyLong_AsUnsignedLongLongMask(o);
  if (PyErr_Occurred()) throw PythonError();
  return static_cast<uint8_t>(v);
}

Storage from_sequence(PyObject* sequence, Device device) {
  TN_CHECK(PySequence_Check(sequence), kName, "(): Expected a sequence type, but got ", type_name(sequence));
  const Py_ssize_t n = PySequence_Length(sequence);
  if (n < 0) {
    PyErr_Clear();
    fail(ErrorKind::Runtime, kName, "(): Could not obtain the length of sequence of type ", type_name(sequence));
  }
  Storage s = Storage::allocate(static_cast<size_t>(n), device);
  for (Py_ssize_t i = 0; i < n; ++i) {
    const PyRef item = PyRef::check(PySequence_GetItem(sequence, i));
    TN_CHECK(PyLong_Check(item.get()), kName, "(): tried to construct a storage from a sequence (", type_name(sequence),
             "), but one of the items was of type ", type_name(item.get()), " instead of int");
    if (s->data()) static_cast<uint8_t*>(s->data())[i] = byte_of(item.get());
  }
  return s;
}

PyObject* create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    TN_CHECK(type != &storage_base_type, "Cannot directly construct StorageBase; subclass it and then construct that");
    const Actuals given = parse(kName, kForms, args, kwargs);
    const size_t skip = given.form == 0 ? 0 : 1;
    TN_CHECK(!(given[skip] && given[skip + 1]), kName,
             "(): only one or neither of 'allocator' or 'device' can be given, but not both");
    if (given[skip]) refuse("torch.UntypedStorage", "allocator", "allocators of upstream's C++ do not exist here");
    const Device device = given.device(skip + 1).value_or(Device());
    TN_CHECK(device.is_cpu() || device.is_meta(), kName,
             "(): Storage device not recognized: ", device_type_name(device.type));
    Storage s;
    if (given.form == 2) {
      s = from_sequence(given[0], device);
    } else {
      const int64_t n = given.form == 0 ? 0 : given.integer(0, 0);
      TN_CHECK(n >= 0, kName, "(): expected a size of at least 0, got ", n);
      s = Storage::allocate(static_cast<size_t>(n), device);
    }
    PyRef self = PyRef::check(type->tp_alloc(type, 0));
    attach(self.get(), std::move(s));
    return self.release();
  });
}

// ---- elements
// -----------------------------------------------------------------------------------------------------------
Py_ssize_t length(PyObject* self) {
  return guarded([&] { return static_cast<Py_ssize_t>(storage_of(self).nbytes()); });
}

struct Range {
  Py_ssize_t start, stop;
};
Range unit_slice(PyObject* slice, size_t nbytes) {
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(slice, &start, &stop, &step) < 0) throw PythonError();
  PySlice_AdjustIndices(static_cast<Py_ssize_t>(nbytes), &start, &stop, step);
  TN_CHECK(step == 1, "Trying to slice with a step of ", step, ", but only a step of 1 is supported");
  return {start, stop < start ? start : stop};
}
uint8_t* bytes_of(StorageImpl& s) {
  if (s.no_data_reason) fail(ErrorKind::Runtime, s.no_data_reason);
  if (s.device().is_meta()) fail(ErrorKind::NotImplemented, "Not available for 'meta' device type");
  return static_cast<uint8_t*>(s.data());
}

PyObject* get(PyObject* self, PyObject* index) {
  return guarded([&]() -> PyObject* {
    StorageImpl& s = storage_of(self);
    const auto n = static_cast<Py_ssize_t>(s.nbytes());
    if (PyLong_Check(index)) {
      Py_ssize_t i = PyLong_AsSsize_t(index);
      if (i == -1 && PyErr_Occurred()) throw PythonError();
      if (i < 0) i += n;
      if (i < 0 || i >= n) fail(ErrorKind::Index, "index ", i, " out of range for storage of size ", n);
      return PyLong_FromLong(bytes_of(s)[i]);
    }
    if (PySlice_Check(index)) {
      const Range r = unit_slice(index, s.nbytes());
      uint8_t* data = bytes_of(s);
      const auto let_go = [](void* owner) { Ref<StorageImpl>::adopt(static_cast<StorageImpl*>(owner)); };
      return storage_object(Storage::borrow(data ? data + r.start : nullptr, static_cast<size_t>(r.stop - r.start),
                                            let_go, Ref<StorageImpl>::share(&s).release(), s.device()));
    }
    raise(PyExc_TypeError, "can't index a torch.UntypedStorage with %s", type_name(index));
  });
}

int set(PyObject* self, PyObject* index, PyObject* value) {
  return guarded([&] {
    if (value == nullptr) raise(PyExc_TypeError, "'%s' object doesn't support item deletion", type_name(self));
    TN_CHECK(PyLong_Check(value), "can only set storage content with a int types, but got ", type_name(value),
             " instead");
    StorageImpl& s = storage_of(self);
    if (PyLong_Check(index)) {
      const Py_ssize_t i = PyLong_AsSsize_t(index);
      if (i == -1 && PyErr_Occurred()) throw PythonError();
      // Upstream counts no index from the end here.
      TN_CHECK(i >= 0 && i < static_cast<Py_ssize_t>(s.nbytes()), "out of bounds");
      bytes_of(s)[i] = byte_of(value);
      return 0;
    }
    TN_CHECK(PySlice_Check(index), "can't index a torch.UntypedStorage with ", type_name(index));
    const Range r = unit_slice(index, s.nbytes());
    if (r.stop > r.start) std::memset(bytes_of(s) + r.start, byte_of(value), static_cast<size_t>(r.stop - r.start));
    return 0;
  });
}

// ---- methods
// --------------------------------------------------------------------------------------------------------------
PyObject* copy(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static constexpr Formal kFormals[] = {{"src", Kind::Storage},
                                          {"non_blocking", Kind::Bool, true, false, true, "None"}};
    static constexpr Form kCopy[] = {{kFormals}};
    const Actuals given = parse("copy_", kCopy, args, kwargs);
    Storage source;
    storage_argument(given[0], &source);
    StorageImpl& target = with_memory(self, "copy_");
    TN_CHECK(target.nbytes() == source->nbytes(), "size does not match, self was ", target.nbytes(),
             " bytes but src was ", source->nbytes(), " bytes");
    if (target.nbytes() != 0 && !target.device().is_meta() && !source->device().is_meta()) {
      const GilRelease gil(target.nbytes() > (size_t{1} << 16));
      std::memmove(bytes_of(target), bytes_of(*source.get()), target.nbytes());
    }
    return Py_NewRef(self);
  });
}
PyObject* element_size(PyObject*, PyObject*) { return PyLong_FromLong(1); }
PyObject* new_empty(PyObject* self, PyObject*) {
  return guarded([&] { return storage_object(Storage::allocate(0, storage_of(self).device())); });
}
PyObject* resize(PyObject* self, PyObject* size) {
  return guarded([&] {
    TN_CHECK(PyLong_Check(size), "resize_ expects an int, but got ", type_name(size));
    const Py_ssize_t n = PyLong_AsSsize_t(size);
    if (n == -1 && PyErr_Occurred()) throw PythonError();
    TN_CHECK(n >= 0, "resize_: expected a size of at least 0, got ", n);
    with_memory(self, "resize_").resize(static_cast<size_t>(n));
    return Py_NewRef(self);
  });
}
PyObject* resize_with_addr(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    fail(ErrorKind::Runtime, "_resize_with_addr_ is only supported on CUDA storage, got ",
         device_type_name(storage_of(self).device().type));
  });
}
PyObject* nbytes(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromSize_t(storage_of(self).nbytes()); });
}
PyObject* data_ptr(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromVoidPtr(with_memory(self, "data_ptr").data()); });
}
PyObject* resizable(PyObject* self, PyObject*) {
  return guarded([&] { return PyBool_FromLong(storage_of(self).resizable()); });
}
PyObject* fill(PyObject* self, PyObject* value) {
  return guarded([&] {
    TN_CHECK(PyLong_Check(value), "fill_ expects int, but got ", type_name(value));
    StorageImpl& s = with_memory(self, "fill_");
    const uint8_t byte = byte_of(value);
    if (s.nbytes() != 0 && !s.device().is_meta()) std::memset(bytes_of(s), byte, s.nbytes());
    return Py_NewRef(self);
  });
}
PyObject* swap_data(PyObject* self, PyObject* other) {
  return guarded([&]() -> PyObject* {
    TN_CHECK(is_untyped_storage(other), "_swap_data_ptr_ expects an UntypedStorage, but got ", type_name(other));
    StorageImpl& a = storage_of(self);
    StorageImpl& b = storage_of(other);
    TN_CHECK(a.device() == b.device(), "_swap_data_ptr_: storages must be on the same device, got ", a.device().str(),
             " and ", b.device().str());
    TN_CHECK(a.nbytes() == b.nbytes() || a.nbytes() == 0 || b.nbytes() == 0,
             "_swap_data_ptr_: storages must have the same nbytes or one must have 0, got ", a.nbytes(), " and ",
             b.nbytes());
    a.swap_contents(b);
    Py_RETURN_NONE;
  });
}
PyObject* set_cdata(PyObject* self, PyObject* address) {
  return guarded([&] {
    TN_CHECK(PyLong_Check(address), "given an invalid argument to _set_cdata - expected an int or long, but got ",
             type_name(address));
    auto* s = static_cast<StorageImpl*>(PyLong_AsVoidPtr(address));
    if (s == nullptr) throw PythonError();
    Storage held(Ref<StorageImpl>::share(s));
    detach(self);
    attach(self, std::move(held));
    return Py_NewRef(self);
  });
}
PyObject* byteswap(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    TN_CHECK(PyTuple_GET_SIZE(args) == 1, "tuple of 1 item expected");
    TN_CHECK(PyLong_Check(PyTuple_GET_ITEM(args, 0)), "_byteswap(): arg must be an 'int'");
    const long size = PyLong_AsLong(PyTuple_GET_ITEM(args, 0));
    TN_CHECK(size == 1 || size == 2 || size == 4 || size == 8, "elem_size must be 1, 2, 4, or 8");
    StorageImpl& s = storage_of(self);
    TN_CHECK(s.nbytes() % static_cast<size_t>(size) == 0, "the length of data is not a multiple of ", size);
    swap_bytes(bytes_of(s), s.nbytes(), static_cast<size_t>(size));
    Py_RETURN_NONE;
  });
}
PyObject* fix_weakref(PyObject*, PyObject*) { Py_RETURN_NONE; }

// ---- weak references
// --------------------------------------------------------------------------------------------------------
PyObject* weak_ref(PyObject* self, PyObject*) {
  return guarded([&] {
    StorageImpl* s = &storage_of(self);
    if (s->pyobj == nullptr) s->pyobj = self;
    WeakCell*& cell = weak_cells()[s];
    if (cell == nullptr) cell = new WeakCell{s, 0};
    ++cell->count;
    return PyLong_FromVoidPtr(cell);
  });
}
WeakCell* cell_argument(PyObject* address) {
  if (!PyLong_Check(address)) raise(PyExc_TypeError, "_weak_ref: expected an int, got %s", type_name(address));
  auto* cell = static_cast<WeakCell*>(PyLong_AsVoidPtr(address));
  if (PyErr_Occurred()) throw PythonError();
  return cell;
}
PyObject* new_with_weak_ptr(PyObject*, PyObject* address) {
  return guarded([&]() -> PyObject* {
    const WeakCell* cell = cell_argument(address);
    if (cell == nullptr || cell->storage == nullptr) Py_RETURN_NONE;
    return storage_object(Storage(Ref<StorageImpl>::share(cell->storage)));
  });
}
PyObject* free_weak_ref(PyObject*, PyObject* address) {
  return guarded([&]() -> PyObject* {
    if (address == Py_None) Py_RETURN_NONE;
    WeakCell* cell = cell_argument(address);
    if (cell && --cell->count == 0) {
      if (cell->storage) weak_cells().erase(cell->storage);
      delete cell;
    }
    Py_RETURN_NONE;
  });
}
PyObject* expired(PyObject*, PyObject* address) {
  return guarded([&] {
    const WeakCell* cell = cell_argument(address);
    return PyBool_FromLong(cell == nullptr || cell->storage == nullptr);
  });
}

PyObject* get_device(PyObject* self, void*) {
  return guarded([&] { return device_object(storage_of(self).device()); });
}
PyObject* get_cdata(PyObject* self, void*) {
  return guarded([&] { return PyLong_FromVoidPtr(&storage_of(self)); });
}

PyMethodDef methods[] = {
    {"copy_", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(copy)), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"element_size", element_size, METH_NOARGS, nullptr},
    {"fill_", fill, METH_O, nullptr},
    {"new", new_empty, METH_NOARGS, nullptr},
    {"resize_", resize, METH_O, nullptr},
    {"_resize_with_addr_", resize_with_addr, METH_VARARGS, nullptr},
    {"nbytes", nbytes, METH_NOARGS, nullptr},
    {"data_ptr", data_ptr, METH_NOARGS, nullptr},
    {"resizable", resizable, METH_NOARGS, nullptr},
    {"_swap_data_ptr_", swap_data, METH_O, nullptr},
    {"_set_cdata", set_cdata, METH_O, nullptr},
    {"_byteswap", byteswap, METH_VARARGS, nullptr},
    {"_fix_weakref", fix_weakref, METH_NOARGS, nullptr},
    {"_weak_ref", weak_ref, METH_NOARGS, nullptr},
    {"_new_with_weak_ptr", new_with_weak_ptr, METH_O | METH_STATIC, nullptr},
    {"_free_weak_ref", free_weak_ref, METH_O | METH_STATIC, nullptr},
    {"_expired", expired, METH_O | METH_STATIC, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"device", get_device, nullptr, nullptr, nullptr},
    {"_cdata", get_cdata, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMappingMethods as_mapping{};

bool add_methods(PyMethodDef* more) {
  for (; more->ml_name; ++more) {
    const PyRef f = PyRef::adopt(more->ml_flags & METH_STATIC
                                     ? PyCFunction_New(more, reinterpret_cast<PyObject*>(&storage_base_type))
                                     : PyDescr_NewMethod(&storage_base_type, more));
    if (!f) return false;
    const PyRef entry = PyRef::adopt(more->ml_flags & METH_STATIC ? PyStaticMethod_New(f.get()) : Py_NewRef(f.get()));
    if (!entry || PyDict_SetItemString(storage_base_type.tp_dict, more->ml_name, entry.get()) < 0) return false;
  }
  return true;
}

}  // namespace

StorageImpl& storage_of(PyObject* o) {
  StorageImpl* s = as_object(o)->impl;
  TN_CHECK(s != nullptr, "StorageBase: the storage was never set");
  return *s;
}

void swap_bytes(void* data, size_t nbytes, size_t size) {
  auto* p = static_cast<char*>(data);
  for (size_t i = 0; i + size <= nbytes; i += size)
    for (size_t a = 0, b = size - 1; a < b; ++a, --b) std::swap(p[i + a], p[i + b]);
}

PyObject* storage_object(const Storage& s) {
  if (auto* known = static_cast<PyObject*>(s->pyobj)) {
    if (as_object(known)->kept_by_impl) {
      // The storage's reference becomes the caller's, and the object owns the storage again.
      as_object(known)->kept_by_impl = false;
      s->retain();
      return known;
    }
    return Py_NewRef(known);
  }
  if (!storage_class_ready()) return nullptr;
  PyObject* o = untyped_class->tp_alloc(untyped_class, 0);
  if (o) attach(o, s);
  return o;
}

bool storage_class_ready() {
  if (untyped_class) return true;
  const PyRef module = PyRef::adopt(PyImport_ImportModule("torch.storage"));
  if (!module) return false;
  PyObject* cls = PyObject_GetAttrString(module.get(), "UntypedStorage");
  if (cls == nullptr) return false;
  untyped_class = reinterpret_cast<PyTypeObject*>(cls);
  untyped_class->tp_dealloc = keeping_dealloc;
  return true;
}

bool storage_argument(PyObject* o, Storage* out, std::optional<ScalarType>* dtype) {
  if (dtype) dtype->reset();
  if (is_untyped_storage(o)) {
    *out = Storage(Ref<StorageImpl>::share(&storage_of(o)));
    return true;
  }
  // TypedStorage and the legacy classes are Python's, around an untyped one.
  if (PyLong_Check(o) || PyFloat_Check(o) || PyTuple_Check(o) || PyList_Check(o) || PyUnicode_Check(o) || is_tensor(o))
    return false;
  const PyRef modules = PyRef::share(PyImport_GetModuleDict());
  PyObject* module = PyDict_GetItemString(modules.get(), "torch.storage");
  if (module == nullptr) return false;
  const PyRef typed = PyRef::adopt(PyObject_GetAttrString(module, "TypedStorage"));
  if (!typed || PyObject_IsInstance(o, typed.get()) != 1) {
    PyErr_Clear();
    return false;
  }
  const PyRef untyped = PyRef::check(PyObject_GetAttrString(o, "_untyped_storage"));
  if (!is_untyped_storage(untyped.get())) return false;
  *out = Storage(Ref<StorageImpl>::share(&storage_of(untyped.get())));
  if (dtype) {
    const PyRef t = PyRef::check(PyObject_GetAttrString(o, "dtype"));
    ScalarType found;
    if (is_dtype(t.get(), &found)) *dtype = found;
  }
  return true;
}

bool bind_storages(PyObject* module) {
  storage_pyobj_hook = storage_died;
  as_mapping.mp_length = length;
  as_mapping.mp_subscript = get;
  as_mapping.mp_ass_subscript = set;
  storage_base_type.tp_new = create;
  storage_base_type.tp_dealloc = base_dealloc;
  storage_base_type.tp_as_mapping = &as_mapping;
  storage_base_type.tp_methods = methods;
  storage_base_type.tp_getset = properties;
  return ready_type(storage_base_type, "torch._C.StorageBase", sizeof(StorageObject),
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE) &&
         add_methods(storage_sharing_methods) && add_methods(storage_file_methods) &&
         add_to_module(module, "StorageBase", storage_base_type);
}

// Storages of wrapper subclasses have a size, but no memory.
StorageImpl& with_memory(PyObject* self, const char* method) {
  StorageImpl& s = storage_of(self);
  TN_CHECK(!s.no_data_reason, "Attempted to call ", method, "() on an invalid python storage.");
  return s;
}

}  // namespace tn::py
