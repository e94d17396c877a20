#include "bindings/node_hooks.h"

#include <string>

#include "bindings/node.h"
#include "bindings/object_type.h"
#include "bindings/objects.h"
#include "bindings/tensor.h"
#include "runtime/autograd/engine.h"

namespace tn::py {

namespace {

// A dict of hooks, shared with the handles that remove them.
class HookDict {
 public:
  explicit HookDict(PyObject* dict) : dict_(Py_NewRef(dict)) {}
  HookDict(const HookDict&) = delete;
  HookDict& operator=(const HookDict&) = delete;
  virtual ~HookDict() {
    if (!Py_IsInitialized()) return;
    const GilAcquire gil;
    Py_DECREF(dict_);
  }
  PyObject* dict() const { return dict_; }
  PyRef hooks() const { return PyRef::check(PyMapping_Values(dict_)); }  // a list: hooks may remove themselves

 private:
  PyObject* dict_;
};

std::string name_of(PyObject* hook) {
  const PyRef name = PyRef::adopt(PyObject_GetAttrString(hook, "__name__"));
  if (!name) PyErr_Clear();
  const char* const text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  return text ? text : "<unknown>";
}
std::string type_text(const Tensor& t) {
  const PyRef name = PyRef::check(tensor_type_name(t));
  return PyUnicode_AsUTF8(name.get());
}

// What a hook answers for a gradient: one of its kind, or None.
void check_answer(PyObject* answer, PyObject* before, PyObject* hook) {
  if (answer == Py_None) return;
  TN_CHECK(before != Py_None, "can't replace a None gradient with a non-None value");
  if (!is_tensor(answer)) raise(PyExc_TypeError, "expected Variable, but hook returned '%s'", type_name(answer));
  const Tensor &was = tensor_of(before), &now = tensor_of(answer);
  TN_CHECK(was.dtype() == now.dtype() && was.layout() == now.layout() && was.device().type == now.device().type,
           "hook '", name_of(hook), "' has changed the type of value (was ", type_text(was), " got ", type_text(now),
           ")");
  TN_CHECK(was.sizes() == now.sizes(), "hook '", name_of(hook), "' has changed the size of value");
}
void check_answers(PyObject* answers, PyObject* before, PyObject* hook) {
  if (!PyTuple_Check(answers)) raise(PyExc_TypeError, "expected tuple, but hook returned '%s'", type_name(answers));
  const Py_ssize_t n = PyTuple_GET_SIZE(before);
  TN_CHECK(PyTuple_GET_SIZE(answers) == n, "hook '", name_of(hook),
           "' has returned an incorrect number of values (got ", PyTuple_GET_SIZE(answers), ", but expected ", n, ")");
  for (Py_ssize_t i = 0; i < n; ++i) check_answer(PyTuple_GET_ITEM(answers, i), PyTuple_GET_ITEM(before, i), hook);
}
Tensor gradient_of(PyObject* o) { return o == Py_None ? Tensor() : tensor_of(o); }
void take(PyObject* tuple, GradList& grads) {
  for (size_t i = 0; i < grads.size(); ++i) grads[i] = gradient_of(PyTuple_GET_ITEM(tuple, static_cast<Py_ssize_t>(i)));
}

// Hooks see an undefined gradient as None.
void run_tensor_hooks(PyObject* hooks, Tensor& grad) {
  PyRef value = PyRef::check(wrap(grad));
  bool changed = false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(hooks); ++i) {
    PyObject* const hook = PyList_GET_ITEM(hooks, i);
    const PyRef answer = PyRef::check(PyObject_CallOneArg(hook, value.get()));
    if (answer.get() == Py_None || answer.get() == value.get()) continue;
    check_answer(answer.get(), value.get(), hook);
    value = answer;
    changed = true;
  }
  if (changed) grad = gradient_of(value.get());
}

// One tensor's hooks among a node's gradients.
class TensorHooks final : public PreHook, public HookDict {
 public:
  TensorHooks(PyObject* dict, uint32_t index) : HookDict(dict), index_(index) {}
  void call(GradList& grads) override {
    if (index_ >= grads.size()) return;
    const GilAcquire gil;
    run_tensor_hooks(hooks().get(), grads[index_]);
  }

 private:
  uint32_t index_;
};

class NodePreHooks final : public PreHook, public HookDict {
 public:
  using HookDict::HookDict;
  void call(GradList& grads) override {
    const GilAcquire gil;
    const PyRef list = hooks();
    PyRef given = PyRef::check(grads_tuple(grads));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
      PyObject* const hook = PyList_GET_ITEM(list.get(), i);
      const PyRef answer = PyRef::check(PyObject_CallOneArg(hook, given.get()));
      if (answer.get() == Py_None || answer.get() == given.get()) continue;
      check_answers(answer.get(), given.get(), hook);
      given = answer;
      take(given.get(), grads);
    }
  }
};

class NodePostHooks final : public PostHook, public HookDict {
 public:
  using HookDict::HookDict;
  void call(GradList& results, const GradList& grads) override {
    const GilAcquire gil;
    const PyRef list = hooks(), given = PyRef::check(grads_tuple(grads));
    PyRef made = PyRef::check(grads_tuple(results));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
      PyObject* const hook = PyList_GET_ITEM(list.get(), i);
      const PyRef answer = PyRef::check(PyObject_CallFunctionObjArgs(hook, made.get(), given.get(), nullptr));
      if (answer.get() == Py_None || answer.get() == made.get()) continue;
      check_answers(answer.get(), made.get(), hook);
      made = answer;
      take(made.get(), results);
    }
  }
};

// The dict of the node's hooks of this kind, made when there is none; then a handle that removes what was added.
template <class Hooks, class List>
PyObject* add_to(List& list, PyObject* hook) {
  PyRef dict;
  for (const auto& h : list)
    if (auto* const own = dynamic_cast<Hooks*>(h.get())) dict = PyRef::share(own->dict());
  const PyRef module = PyRef::check(PyImport_ImportModule("torch.utils.hooks"));
  if (!dict) {
    const PyRef collections = PyRef::check(PyImport_ImportModule("collections"));
    dict = PyRef::check(PyObject_CallMethod(collections.get(), "OrderedDict", nullptr));
    list.push_back(make_ref<Hooks>(dict.get()));
  }
  PyRef handle = PyRef::check(PyObject_CallMethod(module.get(), "RemovableHandle", "O", dict.get()));
  const PyRef id = PyRef::check(PyObject_GetAttrString(handle.get(), "id"));
  if (PyObject_SetItem(dict.get(), id.get(), hook) < 0) throw PythonError();
  return handle.release();
}

void leaf_hooks(const Tensor& leaf, Tensor& grad) {
  if (!leaf->pyobj) return;
  const GilAcquire gil;
  const PyRef self = PyRef::check(wrap(leaf));
  PyObject* const dict = reinterpret_cast<TensorObject*>(self.get())->backward_hooks;
  if (!dict) return;
  const PyRef kept = PyRef::share(dict), hooks = PyRef::check(PyMapping_Values(dict));
  run_tensor_hooks(hooks.get(), grad);
}

void accumulated_hooks(const Tensor& leaf) {
  if (!leaf->pyobj) return;
  const GilAcquire gil;
  const PyRef self = PyRef::check(wrap(leaf));
  PyObject* const dict = reinterpret_cast<TensorObject*>(self.get())->post_accumulate_grad_hooks;
  if (!dict) return;
  const PyRef hooks = PyRef::check(PyMapping_Values(dict));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(hooks.get()); ++i) {
    const PyRef answer = PyRef::check(PyObject_CallOneArg(PyList_GET_ITEM(hooks.get(), i), self.get()));
    if (answer.get() != Py_None && !is_tensor(answer.get()))
      raise(PyExc_TypeError, "expected Variable, but hook returned '%s'", type_name(answer.get()));
    TN_CHECK(answer.get() == Py_None, "Tensor post accumulate grad hooks should return None.");
  }
}

template <class List>
int visit_list(const List& list, visitproc visit, void* arg) {
  for (const auto& h : list)
    if (const auto* const own = dynamic_cast<const HookDict*>(h.get())) Py_VISIT(own->dict());
  return 0;
}

}  // namespace

PyObject* add_post_hook(Node& node, PyObject* hook) { return add_to<NodePostHooks>(node.post_hooks, hook); }
PyObject* add_pre_hook(Node& node, PyObject* hook) { return add_to<NodePreHooks>(node.pre_hooks, hook); }
void add_tensor_hooks(Node& node, PyObject* dict, uint32_t index) {
  node.tensor_hooks.push_back(make_ref<TensorHooks>(dict, index));
}

int visit_hooks(const Node& node, visitproc visit, void* arg) {
  for (const auto* list : {&node.tensor_hooks, &node.pre_hooks})
    if (const int r = visit_list(*list, visit, arg)) return r;
  return visit_list(node.post_hooks, visit, arg);
}
void clear_hooks(Node& node) {
  // What a hook holds may hold the node: the lists are empty before anything dies.
  const auto tensor_hooks = std::exchange(node.tensor_hooks, {}), pre_hooks = std::exchange(node.pre_hooks, {});
  const auto post_hooks = std::exchange(node.post_hooks, {});
}

void install_leaf_hooks() { engine::tensor_hooks = {leaf_hooks, accumulated_hooks}; }

}  // namespace tn::py
