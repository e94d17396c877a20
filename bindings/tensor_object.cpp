// Life and death of the Python object of a tensor.
#include <Python.h>
#include <structmember.h>

#include <utility>

#include "bindings/node.h"
#include "bindings/node_hooks.h"
#include "bindings/tensor.h"
#include "bindings/tensor_parts.h"
#include "bindings/torch_function.h"
#include "runtime/autograd_meta.h"

namespace tn::py {

PyTypeObject* tensor_class = nullptr;
PyTypeObject* parameter_class = nullptr;

namespace {

// CPython 3.11 keeps an instance's attributes in an array, if object.__new__ made it, or in a dict; their words stand
// before the collector's header. Knowing it lets dead objects be reused while neither holds anything, and lets the
// collector walk attributes without building a dict. Other versions take the general road.
#if PY_VERSION_HEX < 0x030C0000
struct AttributeArray {
  uint8_t* base;
  int used() const { return base[-2]; }
  PyObject* at(int i) const { return reinterpret_cast<PyObject**>(base + sizeof(uint64_t))[base[-3 - i]]; }
};
AttributeArray array_of(PyObject* o) { return {reinterpret_cast<uint8_t**>(o)[-4]}; }
PyObject* dict_of(PyObject* o) { return reinterpret_cast<PyObject**>(o)[-3]; }
#elif PY_VERSION_HEX < 0x030D0000
#define PyObject_VisitManagedDict _PyObject_VisitManagedDict
#define PyObject_ClearManagedDict _PyObject_ClearManagedDict
#endif

bool has_managed_dict(PyTypeObject* t) { return (t->tp_flags & Py_TPFLAGS_MANAGED_DICT) != 0; }

// Dead objects of exactly torch.Tensor, attributes unused, still holding their reference to the class.
constexpr int kMaxFree = 256;
PyObject* free_objects[kMaxFree];
int num_free = 0;

PyObject** weak_list(PyObject* o) {
  const Py_ssize_t offset = Py_TYPE(o)->tp_weaklistoffset;
  return offset > 0 ? reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + offset) : nullptr;
}

template <class F>
int each_slot(PyObject* self, F&& visit) {
  for (PyTypeObject* t = Py_TYPE(self); t && t != &tensor_base_type && Py_SIZE(t); t = t->tp_base) {
    auto* member = reinterpret_cast<PyMemberDef*>(reinterpret_cast<char*>(t) + Py_TYPE(t)->tp_basicsize);
    for (Py_ssize_t i = 0; i < Py_SIZE(t); ++i, ++member)
      if (member->type == T_OBJECT_EX)
        if (const int r = visit(reinterpret_cast<PyObject**>(reinterpret_cast<char*>(self) + member->offset))) return r;
  }
  return 0;
}

// C++ holds the tensor too, so Python's collector can't see all owners.
bool held_elsewhere(const TensorObject* self) {
  return self->impl && (self->impl->owns_pyobj || self->impl->use_count() > 1);
}

int visit_attributes(PyObject* self, visitproc visit, void* arg) {
  if (has_managed_dict(Py_TYPE(self))) {
#if PY_VERSION_HEX < 0x030C0000
    Py_VISIT(dict_of(self));
    if (const AttributeArray a = array_of(self); a.base)
      for (int i = 0; i < a.used(); ++i) Py_VISIT(a.at(i));
    return 0;
#else
    return PyObject_VisitManagedDict(self, visit, arg);
#endif
  }
  if (Py_TYPE(self)->tp_dictoffset != 0) {
    PyObject** const dict = _PyObject_GetDictPtr(self);
    if (dict) Py_VISIT(*dict);
  }
  return 0;
}

void clear_attributes(PyObject* self) {
#if PY_VERSION_HEX >= 0x030C0000
  if (has_managed_dict(Py_TYPE(self))) return PyObject_ClearManagedDict(self);
#endif
  if (Py_TYPE(self)->tp_dictoffset != 0)
    if (PyObject** const dict = _PyObject_GetDictPtr(self)) Py_CLEAR(*dict);
}

int visit_base(TensorObject* self, visitproc visit, void* arg) {
  Py_VISIT(self->backward_hooks);
  Py_VISIT(self->post_accumulate_grad_hooks);
  return 0;
}

// The node that nothing but this tensor keeps; null for others.
Node* sole_node(const TensorObject* self) {
  const AutogradMeta* const meta = self->impl ? self->impl->autograd : nullptr;
  return meta && meta->grad_fn && meta->grad_fn->use_count() == 1 ? meta->grad_fn.get() : nullptr;
}
// What such a node owns: its hooks, and the context if it is a torch.autograd.Function.
int visit_node(const TensorObject* self, visitproc visit, void* arg) {
  const Node* const node = sole_node(self);
  if (!node) return 0;
  if (PyObject* const context = owned_context(*node)) Py_VISIT(context);
  else if (const int r = visit_hooks(*node, visit, arg)) return r;
  return 0;
}

int class_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  auto* const t = reinterpret_cast<TensorObject*>(self);
  if (held_elsewhere(t)) return 0;
  if (const int r = visit_attributes(self, visit, arg)) return r;
  if (const int r = each_slot(self, [&](PyObject** slot) {
        Py_VISIT(*slot);
        return 0;
      }))
    return r;
  if (const int r = visit_node(t, visit, arg)) return r;
  return visit_base(t, visit, arg);
}

void drop_impl(TensorObject* self) {
  TensorImpl* const impl = std::exchange(self->impl, nullptr);
  if (!impl) return;
  const bool owned_by_us = !impl->owns_pyobj;
  impl->pyobj = nullptr;
  impl->owns_pyobj = false;
  if (owned_by_us && impl->drop()) TensorImpl::destroy(impl);
}

int class_clear(PyObject* self) {
  auto* const t = reinterpret_cast<TensorObject*>(self);
  // The dealloc decides about the tensor itself: another reference may have come since.
  if (held_elsewhere(t)) return 0;
  if (sole_node(t)) const Ref<Node> last = std::exchange(t->impl->autograd->grad_fn, nullptr);
  Py_CLEAR(t->backward_hooks);
  Py_CLEAR(t->post_accumulate_grad_hooks);
  each_slot(self, [](PyObject** slot) {
    Py_CLEAR(*slot);
    return 0;
  });
  clear_attributes(self);
  return 0;
}

// C++ still needs the tensor: its header takes the object over. True if it did.
bool hand_over(PyObject* self) {
  auto* const t = reinterpret_cast<TensorObject*>(self);
  TensorImpl* const impl = t->impl;
  if (!impl || impl->owns_pyobj || impl->use_count() <= 1) return false;
  Py_SET_REFCNT(self, 1);
  impl->owns_pyobj = true;
  if (impl->drop()) TensorImpl::destroy(impl);  // the other owner left meanwhile
  return true;
}

bool try_recycle(PyObject* self) {
#if PY_VERSION_HEX < 0x030C0000
  if (Py_TYPE(self) != tensor_class || num_free == kMaxFree || !has_managed_dict(tensor_class)) return false;
  const AttributeArray a = array_of(self);
  if (dict_of(self) || (a.base && a.used() != 0)) return false;
  free_objects[num_free++] = self;
  return true;
#else
  (void)self;
  return false;
#endif
}

void class_dealloc(PyObject* self) {
  if (hand_over(self)) return;
  PyTypeObject* const type = Py_TYPE(self);
  auto* const t = reinterpret_cast<TensorObject*>(self);
  if (type->tp_finalize) {
    if (PyObject_CallFinalizerFromDealloc(self) < 0) return;  // came back to life
    if (hand_over(self)) return;
  }
  PyObject_GC_UnTrack(self);
  if (PyObject** const weak = weak_list(self); weak && *weak) PyObject_ClearWeakRefs(self);
  Py_CLEAR(t->backward_hooks);
  Py_CLEAR(t->post_accumulate_grad_hooks);
  drop_impl(t);
  if (try_recycle(self)) return;
  each_slot(self, [](PyObject** slot) {
    Py_CLEAR(*slot);
    return 0;
  });
  clear_attributes(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// What a weak reference gave back may outlive the header that kept it: the object gets a header with the same contents.
void save_object(TensorObject* self, TensorImpl& dying) {
  TensorImpl* const fresh = TensorImpl::create();
  fresh->set_dtype(dying.dtype());
  fresh->set_device(dying.device());
  fresh->set_layout(dying.layout());
  fresh->set_keys(dying.keys());
  fresh->set_storage(dying.storage());
  fresh->set_geometry(dying.sizes(), dying.strides(), dying.storage_offset());
  fresh->set_inference(dying.is_inference());
  fresh->share_version(dying);
  fresh->python_dispatch = dying.python_dispatch;
  fresh->python_custom = dying.python_custom;
  std::swap(fresh->wrapper, dying.wrapper);
  std::swap(fresh->autograd, dying.autograd);
  if (AutogradMeta* const meta = fresh->autograd) {
    meta->accumulator = nullptr;  // it would hold the tensor
    if (meta->tangent) meta->tangent->owner = fresh;
  }
  fresh->pyobj = self;
  self->impl = fresh;
}

// Called by a dying header that keeps its object.
void release_object(TensorImpl& impl) noexcept {
  auto* const self = static_cast<PyObject*>(impl.pyobj);
  impl.pyobj = nullptr;
  impl.owns_pyobj = false;
  if (!self || !Py_IsInitialized()) return;
  const GilAcquire gil;
  auto* const object = reinterpret_cast<TensorObject*>(self);
  if (Py_REFCNT(self) > 1) save_object(object, impl);
  else object->impl = nullptr;
  Py_DECREF(self);
}

// A tensor was written in place: its dict of hooks stays with the history that it had.
void drop_hooks(TensorImpl& impl) noexcept {
  auto* const self = static_cast<PyObject*>(impl.pyobj);
  if (!Py_IsInitialized()) return;
  const GilAcquire gil;
  Py_CLEAR(reinterpret_cast<TensorObject*>(self)->backward_hooks);
}

PyObject* allocate(PyTypeObject* cls) {
  if (cls == tensor_class && num_free > 0) {
    PyObject* const o = free_objects[--num_free];
    Py_SET_REFCNT(o, 1);
    PyObject_GC_Track(o);
    return o;
  }
  return cls->tp_alloc(cls, 0);
}

}  // namespace

PyObject* wrap_as(PyTypeObject* cls, Tensor t) {
  PyObject* const o = allocate(cls);
  if (!o) throw PythonError();
  auto* const self = reinterpret_cast<TensorObject*>(o);
  self->impl = t.release();
  self->impl->pyobj = o;
  self->impl->owns_pyobj = false;
  return o;
}

PyObject* wrap(Tensor t) {
  TensorImpl* const impl = t.impl();
  if (!impl) Py_RETURN_NONE;
  if (auto* const known = static_cast<PyObject*>(impl->pyobj)) {
    if (!impl->owns_pyobj) return Py_NewRef(known);
    impl->owns_pyobj = false;  // the header's reference to the object becomes the caller's,
    t.release();               // and ours to the header the object's
    return known;
  }
  if (__builtin_expect(tensor_class == nullptr, 0)) fail(ErrorKind::Runtime, "torch.Tensor is not defined yet");
  return wrap_as(tensor_class, std::move(t));
}

PyObject* wrap_list(TensorList list) {
  const PyRef tuple = PyRef::check(PyTuple_New(list.ssize()));
  for (size_t i = 0; i < list.size(); ++i) PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), wrap(list[i]));
  return PyRef(tuple).release();
}

int tensor_base_traverse(PyObject* self, visitproc visit, void* arg) {
  return visit_base(reinterpret_cast<TensorObject*>(self), visit, arg);
}

void adopt_class(PyTypeObject* cls) {
  cls->tp_dealloc = class_dealloc;
  cls->tp_traverse = class_traverse;
  cls->tp_clear = class_clear;
  tensor_pyobj_hook = release_object;
  rebased_hook = drop_hooks;
}

}  // namespace tn::py
