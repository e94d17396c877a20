// torch.Stream and torch.Event. On the CPU everything is done in order, so a stream is always ready; events need a
// device.
#include "bindings/arguments.h"
#include "bindings/object_type.h"
#include "bindings/objects.h"
#include "runtime/refuse.h"
#include "runtime/value.h"

namespace tn::py {

PyTypeObject stream_type{}, event_type{};

namespace {

struct EventObject {
  PyObject_HEAD Device device;
  PyObject* weakrefs;
};

StreamObject* as_stream(PyObject* o) { return reinterpret_cast<StreamObject*>(o); }
Device device_of(PyObject* o) {
  return Device(static_cast<DeviceType>(as_stream(o)->device_type), static_cast<int>(as_stream(o)->device_index));
}

void check_device(Device d) {
  TN_CHECK(d.is_cpu(), "PyTorch is not linked with support for ", device_type_name(d.type), " devices");
}

PyObject* create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static constexpr Formal kDevice[] = {{"device", Kind::Device, true, false, true, "None"},
                                         {"priority", Kind::Int, true, true, false, "0"}};
    static constexpr Formal kParts[] = {{"stream_id", Kind::Int},
                                        {"device_index", Kind::Int},
                                        {"device_type", Kind::Int},
                                        {"priority", Kind::Int, true, true, false, "0"}};
    static constexpr Form kForms[] = {{kDevice}, {kParts}};
    const Actuals given = parse("Stream", kForms, args, kwargs);
    PyRef self = PyRef::check(type->tp_alloc(type, 0));
    StreamObject* s = as_stream(self.get());
    if (given.form == 0) {
      const Device d = given.device(0).value_or(Device());
      check_device(d);
      s->device_type = static_cast<int64_t>(d.type);
      s->device_index = d.index;
    } else {
      s->stream_id = given.integer(0, 0);
      s->device_index = given.integer(1, 0);
      s->device_type = given.integer(2, 0);
      TN_CHECK(s->device_type >= 0 && s->device_type < kNumDeviceTypes, "Stream: expected a device type, got ",
               s->device_type);
    }
    return self.release();
  });
}
void dealloc(PyObject* self) {
  if (as_stream(self)->weakrefs) PyObject_ClearWeakRefs(self);
  Py_TYPE(self)->tp_free(self);
}
PyObject* repr(PyObject* self) {
  return guarded([&] {
    return text_object(str("torch.Stream device_type=", device_type_name(device_of(self).type), ", device_index=",
                           as_stream(self)->device_index, ", stream_id=", as_stream(self)->stream_id));
  });
}
Py_hash_t hash(PyObject* self) {
  const StreamObject* s = as_stream(self);
  return static_cast<Py_hash_t>((s->device_type << 48) ^ (s->device_index << 32) ^ s->stream_id) & 0x7fffffffffffffff;
}
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || !is_stream(a) || !is_stream(b)) Py_RETURN_NOTIMPLEMENTED;
  const StreamObject *x = as_stream(a), *y = as_stream(b);
  const bool same =
      x->stream_id == y->stream_id && x->device_type == y->device_type && x->device_index == y->device_index;
  return PyBool_FromLong(same == (op == Py_EQ));
}
PyObject* query(PyObject* self, PyObject*) {
  return guarded([&] {
    check_device(device_of(self));
    return Py_NewRef(Py_True);
  });
}
PyObject* nothing(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    check_device(device_of(self));
    Py_RETURN_NONE;
  });
}
PyObject* not_capturing(PyObject*, PyObject*) { Py_RETURN_FALSE; }
PyObject* no_events(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* { refuse("torch.Event", "an event on cpu", "the CPU has no events"); });
}
PyObject* enter(PyObject* self, PyObject*) { return Py_NewRef(self); }
PyObject* leave(PyObject*, PyObject*) { Py_RETURN_NONE; }
PyObject* get_device(PyObject* self, void*) { return device_object(device_of(self)); }
PyObject* get_id(PyObject* self, void*) { return PyLong_FromLongLong(as_stream(self)->stream_id); }
PyObject* get_index(PyObject* self, void*) { return PyLong_FromLongLong(as_stream(self)->device_index); }
PyObject* get_type(PyObject* self, void*) { return PyLong_FromLongLong(as_stream(self)->device_type); }
PyObject* get_native(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    refuse("torch.Stream.native_handle", device_of(self).str(), "a CPU stream has no handle");
  });
}

PyMethodDef stream_methods[] = {
    {"query", query, METH_NOARGS, nullptr},
    {"synchronize", nothing, METH_NOARGS, nullptr},
    {"is_capturing", not_capturing, METH_NOARGS, nullptr},
    {"wait_event", no_events, METH_O, nullptr},
    {"wait_stream", nothing, METH_O, nullptr},
    {"record_event", no_events, METH_VARARGS, nullptr},
    {"__enter__", enter, METH_NOARGS, nullptr},
    {"__exit__", leave, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef stream_properties[] = {
    {"stream_id", get_id, nullptr, nullptr, nullptr},         {"device_index", get_index, nullptr, nullptr, nullptr},
    {"device_type", get_type, nullptr, nullptr, nullptr},     {"device", get_device, nullptr, nullptr, nullptr},
    {"native_handle", get_native, nullptr, nullptr, nullptr}, {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// ---- events
// -------------------------------------------------------------------------------------------------------------
Device event_device(PyObject* o) { return reinterpret_cast<EventObject*>(o)->device; }

PyObject* create_event(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static constexpr Formal kFormals[] = {{"device", Kind::Device, true, false, true, "None"},
                                          {"enable_timing", Kind::Bool, true, true, true, "None"},
                                          {"blocking", Kind::Bool, true, true, true, "None"},
                                          {"interprocess", Kind::Bool, true, true, true, "None"}};
    static constexpr Form kForms[] = {{kFormals}};
    const Device d = parse("Event", kForms, args, kwargs).device(0).value_or(Device());
    check_device(d);
    PyRef self = PyRef::check(type->tp_alloc(type, 0));
    reinterpret_cast<EventObject*>(self.get())->device = d;
    return self.release();
  });
}
void dealloc_event(PyObject* self) {
  if (reinterpret_cast<EventObject*>(self)->weakrefs) PyObject_ClearWeakRefs(self);
  Py_TYPE(self)->tp_free(self);
}
PyObject* repr_event(PyObject* self) {
  return guarded([&] {
    const Device d = event_device(self);
    return text_object(str("torch.Event device_type=", device_type_name(d.type),
                           ", device_index=", static_cast<int>(d.index), ", event_flag=0, event_id=0"));
  });
}
PyObject* get_event_device(PyObject* self, void*) { return device_object(event_device(self)); }
PyObject* get_event_id(PyObject*, void*) { return PyLong_FromLong(0); }

PyMethodDef event_methods[] = {
    {"from_ipc_handle", no_events, METH_VARARGS | METH_CLASS, nullptr},
    {"record", no_events, METH_VARARGS, nullptr},
    {"wait", no_events, METH_VARARGS, nullptr},
    {"query", no_events, METH_NOARGS, nullptr},
    {"elapsed_time", no_events, METH_O, nullptr},
    {"synchronize", no_events, METH_NOARGS, nullptr},
    {"ipc_handle", no_events, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef event_properties[] = {
    {"device", get_event_device, nullptr, nullptr, nullptr},
    {"event_id", get_event_id, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace

PyObject* stream_object(const Stream& s) {
  PyObject* const made = stream_type.tp_alloc(&stream_type, 0);
  if (!made) return nullptr;
  as_stream(made)->stream_id = s.id;
  as_stream(made)->device_type = static_cast<int64_t>(s.device.type);
  as_stream(made)->device_index = s.device.index;
  return made;
}
Stream stream_of(PyObject* o) { return {as_stream(o)->stream_id, device_of(o)}; }

bool bind_streams(PyObject* module) {
  stream_type.tp_new = create;
  stream_type.tp_dealloc = dealloc;
  stream_type.tp_repr = repr;
  stream_type.tp_hash = hash;
  stream_type.tp_richcompare = compare;
  stream_type.tp_methods = stream_methods;
  stream_type.tp_getset = stream_properties;
  stream_type.tp_weaklistoffset = offsetof(StreamObject, weakrefs);
  event_type.tp_new = create_event;
  event_type.tp_dealloc = dealloc_event;
  event_type.tp_repr = repr_event;
  event_type.tp_methods = event_methods;
  event_type.tp_getset = event_properties;
  event_type.tp_weaklistoffset = offsetof(EventObject, weakrefs);
  constexpr unsigned long kFlags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  return ready_type(stream_type, "torch.Stream", sizeof(StreamObject), kFlags) &&
         add_to_module(module, "Stream", stream_type) &&
         ready_type(event_type, "torch.Event", sizeof(EventObject), kFlags) &&
         add_to_module(module, "Event", event_type);
}

}  // namespace tn::py
