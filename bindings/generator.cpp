// torch.Generator over runtime/rng.h.
#include <cstring>

#include "bindings/arguments.h"
#include "bindings/object_type.h"
#include "bindings/tensor.h"
#include "runtime/rng.h"

namespace tn::py {

PyTypeObject generator_type{};

namespace {

GeneratorImpl& impl_in(PyObject* self) { return *generator_of(self); }

PyObject* adopt_impl(PyTypeObject* type, Ref<GeneratorImpl> impl) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  impl->py_object().store(self);
  reinterpret_cast<GeneratorObject*>(self)->impl = impl.release();
  return self;
}

PyObject* create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static constexpr Formal kFormals[] = {{"device", Kind::Device, true, false, true, "None"}};
    static constexpr Form kForms[] = {{kFormals}};
    const Device device = parse("Generator", kForms, args, kwargs).device(0).value_or(Device());
    if (device.is_meta()) fail(ErrorKind::Runtime, "META device type not an accelerator.");
    TN_CHECK(device.is_cpu(), "Cannot get ", device.str(), " generator: this build has the CPU only");
    return adopt_impl(type, make_ref<GeneratorImpl>());
  });
}
void dealloc(PyObject* self) {
  if (GeneratorImpl* impl = generator_of(self)) {
    impl->py_object().store(nullptr);
    Ref<GeneratorImpl>::adopt(impl);
  }
  Py_TYPE(self)->tp_free(self);
}

Tensor bytes_tensor(const uint8_t* data, size_t n) {
  Tensor t = empty({static_cast<int64_t>(n)}, ScalarType::Byte);
  std::memcpy(t.data_ptr(), data, n);
  return t;
}

PyObject* get_state(PyObject* self, PyObject*) {
  return guarded([&] {
    const std::scoped_lock lock(impl_in(self).mutex());
    const auto state = impl_in(self).get_state();
    return wrap(bytes_tensor(state.data(), state.size()));
  });
}
PyObject* set_state(PyObject* self, PyObject* state) {
  return guarded([&] {
    if (!is_tensor(state)) raise(PyExc_TypeError, "expected a torch.ByteTensor, but got %s", type_name(state));
    const Tensor& t = tensor_of(state);
    if (!t.is_cpu() || t.dtype() != ScalarType::Byte || t.layout() != Layout::Strided)
      raise(PyExc_TypeError, "RNG state must be a torch.ByteTensor");
    TN_CHECK(t.is_contiguous(), "RNG state must be contiguous");
    const std::scoped_lock lock(impl_in(self).mutex());
    impl_in(self).set_state({t.data<uint8_t>(), static_cast<size_t>(t.numel())});
    return Py_NewRef(self);
  });
}
PyObject* clone_state(PyObject* self, PyObject*) {
  return guarded([&] {
    const std::scoped_lock lock(impl_in(self).mutex());
    return adopt_impl(Py_TYPE(self), impl_in(self).clone());
  });
}
PyObject* no_graphs(PyObject*, const char* what) {
  return guarded([&]() -> PyObject* { fail(ErrorKind::NotImplemented, what, " is not supported in this Generator"); });
}
PyObject* graphsafe_get_state(PyObject* self, PyObject*) { return no_graphs(self, "graphsafe_get_state"); }
PyObject* graphsafe_set_state(PyObject* self, PyObject*) { return no_graphs(self, "graphsafe_set_state"); }
PyObject* no_offset(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_RuntimeError, "CPU Generator does not use offset");
  return nullptr;
}

// Any 64-bit pattern: negative seeds count from 2^64.
uint64_t seed_argument(PyObject* seed) {
  if (!PyLong_Check(seed) || PyBool_Check(seed))
    raise(PyExc_RuntimeError, "manual_seed expected a long, but got %s", type_name(seed));
  const unsigned long long positive = PyLong_AsUnsignedLongLong(seed);
  if (!PyErr_Occurred()) return positive;
  PyErr_Clear();
  const long long negative = PyLong_AsLongLong(seed);
  if (!PyErr_Occurred()) return static_cast<uint64_t>(negative);
  PyErr_Clear();
  fail(ErrorKind::Value, "Overflow when unpacking long long");
}
PyObject* manual_seed(PyObject* self, PyObject* seed) {
  return guarded([&] {
    const uint64_t value = seed_argument(seed);
    const std::scoped_lock lock(impl_in(self).mutex());
    impl_in(self).set_current_seed(value);
    return Py_NewRef(self);
  });
}
PyObject* reseed(PyObject* self, PyObject*) {
  return guarded([&] {
    const std::scoped_lock lock(impl_in(self).mutex());
    return PyLong_FromUnsignedLongLong(impl_in(self).seed());
  });
}
PyObject* initial_seed(PyObject* self, PyObject*) { return PyLong_FromUnsignedLongLong(impl_in(self).current_seed()); }

PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const PyRef device = PyRef::check(device_object(impl_in(self).device()));
    const PyRef state = PyRef::check(get_state(self, nullptr));
    return Py_BuildValue("(O(O)(KOO))", reinterpret_cast<PyObject*>(Py_TYPE(self)), device.get(),
                         static_cast<unsigned long long>(impl_in(self).current_seed()), Py_None, state.get());
  });
}
PyObject* set_pickled(PyObject* self, PyObject* state) {
  return guarded([&]() -> PyObject* {
    if (!PyTuple_Check(state) || PyTuple_GET_SIZE(state) != 3)
      raise(PyExc_TypeError, "Generator state: expected a tuple of 3, got %s", type_name(state));
    PyRef::check(manual_seed(self, PyTuple_GET_ITEM(state, 0)));
    PyRef::check(set_state(self, PyTuple_GET_ITEM(state, 2)));
    Py_RETURN_NONE;
  });
}

PyObject* get_cdata(PyObject* self, void*) { return PyLong_FromVoidPtr(generator_of(self)); }
PyObject* get_device(PyObject* self, void*) { return device_object(impl_in(self).device()); }

PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__setstate__", set_pickled, METH_O, nullptr},
    {"get_state", get_state, METH_NOARGS, nullptr},
    {"set_state", set_state, METH_O, nullptr},
    {"clone_state", clone_state, METH_NOARGS, nullptr},
    {"graphsafe_get_state", graphsafe_get_state, METH_NOARGS, nullptr},
    {"graphsafe_set_state", graphsafe_set_state, METH_O, nullptr},
    {"set_offset", no_offset, METH_O, nullptr},
    {"manual_seed", manual_seed, METH_O, nullptr},
    {"seed", reseed, METH_NOARGS, nullptr},
    {"initial_seed", initial_seed, METH_NOARGS, nullptr},
    {"get_offset", no_offset, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"_cdata", get_cdata, nullptr, nullptr, nullptr},
    {"device", get_device, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// Upstream's Python gives this static type a metaclass after the fact, which Python itself refuses to do.
PyObject* set_metaclass(PyObject*, PyObject* metaclass) {
  if (!PyType_Check(metaclass)) {
    PyErr_SetString(PyExc_RuntimeError, "metaclass must be a type object");
    return nullptr;
  }
  Py_SET_TYPE(&generator_type, reinterpret_cast<PyTypeObject*>(Py_NewRef(metaclass)));
  PyType_Modified(&generator_type);
  Py_RETURN_NONE;
}
PyMethodDef functions[] = {{"_set_generator_metaclass", set_metaclass, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* generator_object(GeneratorImpl* generator) {
  if (auto* known = static_cast<PyObject*>(generator->py_object().load())) return Py_NewRef(known);
  return adopt_impl(&generator_type, Ref<GeneratorImpl>::share(generator));
}

bool bind_generators(PyObject* module) {
  generator_type.tp_new = create;
  generator_type.tp_dealloc = dealloc;
  generator_type.tp_methods = methods;
  generator_type.tp_getset = properties;
  if (!ready_type(generator_type, "torch._C.Generator", sizeof(GeneratorObject),
                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE))
    return false;
  PyRef all = PyRef::adopt(generator_object(&default_cpu_generator()));
  return all && add_to_module(module, "Generator", generator_type) && PyModule_AddFunctions(module, functions) == 0 &&
         add_to_module(module, "default_generator", all.get());
}

}  // namespace tn::py
