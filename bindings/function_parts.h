// torch._C._FunctionBase from inside: the context, its node, and how forward's results are finished.
#pragma once
#include <string>
#include <vector>

#include "bindings/py.h"
#include "runtime/autograd/saved_variable.h"
#include "runtime/keyset.h"

namespace tn::py {

// What a context keeps; also the layout of every Python subclass.
struct Context {
  PyObject_HEAD PyObject* to_save;
  PyObject* non_differentiable;
  PyObject* dirty_tensors;
  PyObject* saved_for_forward;
  PyObject* needs_input_grad;
  PyObject* metadata;  // the node's, which the context keeps once the graph is gone
  bool materialize_grads;
  bool materialize_non_diff_grads;
  Node* node;  // borrowed; the node owns this context
  std::vector<SavedVariable>* saved;
  std::vector<bool>* is_tensor;  // of forward's arguments
};
inline Context* context_of(PyObject* o) { return reinterpret_cast<Context*>(o); }

class FunctionNode final : public Node {
 public:
  explicit FunctionNode(PyObject* context)
      : Node(""), context_(Py_NewRef(context)), own_name_(Py_TYPE(context)->tp_name) {
    name_ = own_name_.c_str();
    context_of(context)->node = this;
    pyobj = context;  // grad_fn is the context itself
    if (metadata) context_of(context)->metadata = Py_NewRef(static_cast<PyObject*>(metadata));
  }
  ~FunctionNode() override {
    if (!Py_IsInitialized()) return;
    const GilAcquire gil;
    context_of(context_)->node = nullptr;
    Py_DECREF(context_);
  }
  GradList apply(GradList&& grads) override;
  void release_variables() override {
    // Python's tensors may go with them.
    for (SavedVariable& s : *context_of(context_)->saved) s.reset();
    released_ = true;
  }
  bool released() const { return released_; }

  std::vector<bool> differentiable;  // of forward's results

 private:
  PyObject* context_;
  std::string own_name_;
  bool released_ = false;
};

// Forward's arguments.
struct Inputs {
  std::vector<PyObject*> tensors;  // borrowed
  bool needs = false;
};

// What forward did, as its results are finished one by one.
struct Finish {
  Context* c;
  const Ref<Node>& node;
  const Inputs& inputs;
  PyObject* saved;  // what setup_context saved; null where forward saved it
  bool executable;
  Py_ssize_t count;  // of results
  int differentiable = 0;
};

// Whether a tuple (or null) holds this very object.
bool contains(PyObject* tuple, PyObject* item);
// Writes count, whether or not forward's own were seen.
void bump_dirty(PyObject* dirty);
// All of forward's results as apply() answers them.
PyRef finish_outputs(Finish f, PyObject* results);
// Then their tangents, by the class's jvp; `self` is the context's object.
void finish_tangents(const Finish& f, PyObject* self, PyObject* results, PyObject* outputs);

// No tangents for the scope, as in forward and jvp themselves.
class FwGradModeGuard {
 public:
  explicit FwGradModeGuard(bool on) : before_(thread_state.fw_grad_mode) { set_fw_grad_mode(on); }
  ~FwGradModeGuard() { set_fw_grad_mode(before_); }
  FwGradModeGuard(const FwGradModeGuard&) = delete;
  FwGradModeGuard& operator=(const FwGradModeGuard&) = delete;

 private:
  bool before_;
};

}  // namespace tn::py
