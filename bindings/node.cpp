#include "bindings/node.h"

namespace tn::py {

namespace {

struct NodeObject {
  PyObject_HEAD
  Node* node;  // owned
};

PyTypeObject node_type;

PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("<%s object at %p>", reinterpret_cast<NodeObject*>(self)->node->name().c_str(), static_cast<void*>(self));
}
PyObject* name(PyObject* self, PyObject*) { return PyUnicode_FromString(reinterpret_cast<NodeObject*>(self)->node->name().c_str()); }
void dealloc(PyObject* self) {
  Node* const node = reinterpret_cast<NodeObject*>(self)->node;
  if (node->pyobj == self) node->pyobj = nullptr;
  const Ref<Node> owned = Ref<Node>::adopt(node);
  PyObject_Free(self);
}
PyMethodDef methods[] = {{"name", name, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

bool ready() {
  if (node_type.tp_name) return true;
  node_type.ob_base.ob_base.ob_refcnt = 1;
  node_type.tp_name = "torch._C._Node";
  node_type.tp_basicsize = sizeof(NodeObject);
  node_type.tp_flags = Py_TPFLAGS_DEFAULT;
  node_type.tp_dealloc = dealloc;
  node_type.tp_repr = repr;
  node_type.tp_methods = methods;
  return PyType_Ready(&node_type) == 0;
}

}  // namespace

PyObject* node_object(const Ref<Node>& node) {
  if (!node) Py_RETURN_NONE;
  if (node->pyobj) return Py_NewRef(static_cast<PyObject*>(node->pyobj));
  if (!ready()) return nullptr;
  auto* const o = PyObject_New(NodeObject, &node_type);
  if (!o) return nullptr;
  o->node = Ref<Node>(node).release();
  node->pyobj = o;
  return reinterpret_cast<PyObject*>(o);
}

}  // namespace tn::py
