// Results of torch.autograd.Function: histories, in-place writes and views among them.
#include "bindings/function_parts.h"
#include "bindings/tensor.h"
#include "generated/ops/detach.h"
#include "generated/ops/view_as.h"
#include "runtime/autograd_meta.h"
#include "runtime/warn.h"

namespace tn::py {

bool contains(PyObject* tuple, PyObject* item) {
  if (!tuple) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    if (PyTuple_GET_ITEM(tuple, i) == item) return true;
  return false;
}
namespace {

void fail_input_saved() {
  fail(ErrorKind::Runtime,
       "An input that has been returned as-is as output is being saved for backward. This is not supported if you "
       "override setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or "
       "setup ctx inside the forward function itself.");
}

// An input that comes back as it was is answered as a view of it, so that it can have a history of its own.
PyRef view_of_input(const Finish& f, PyObject* result, const Tensor& t) {
  if (contains(f.saved, result)) fail_input_saved();
  const GradModeGuard off(false);
  const FwGradModeGuard no_tangents(false);
  if (is_exact_tensor(result)) return PyRef::check(wrap(at::view_as(t, t)));
  return PyRef::check(PyObject_CallMethod(result, "view_as", "O", result));  // a class may say what that gives
}

// A result that was written in place: the function becomes its history.
void finish_written(const Finish& f, const Tensor& t, bool is_input, uint32_t nr) {
  if (t.requires_grad() && is_leaf(t))
    fail(ErrorKind::Runtime, "a leaf Variable that requires grad has been used in an in-place operation.");
  if (!is_input)
    warn(
        "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be "
        "passed to ctx.mark_dirty().");
  if (is_view(t)) {
    TN_CHECK(f.count == 1,
             "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return "
             "more than one Tensor. This is not supported by the current autograd engine. You should either make sure "
             "the input is not a view (using .clone() for example) or make your Function only return one Tensor "
             "(potentially splitting it into two Functions: one doing the inplace that returns a single Tensor and a "
             "second one that does the other operations). You can ask on the forum https://discuss.pytorch.org/ if you "
             "need help to do this change.");
    check_view_write(t, false);
  }
  autograd_meta(t).grad.reset();
  rebase_edge(t, f.node, nr);
}

// One of forward's results as apply() answers it.
PyRef finish_output(Finish& f, PyObject* result) {
  auto& own = static_cast<FunctionNode&>(*f.node);
  if (!is_tensor(result)) {
    own.add_input(Tensor());
    own.differentiable.push_back(false);
    return PyRef::share(result);
  }
  const Tensor t = tensor_of(result);
  const bool written = contains(f.c->dirty_tensors, result);
  bool is_input = false;
  for (PyObject* input : f.inputs.tensors) is_input |= input == result;
  const bool wanted =
      f.executable && !contains(f.c->non_differentiable, result) && (t.is_floating_point() || t.is_complex());
  own.differentiable.push_back(wanted);
  f.differentiable += wanted;
  const uint32_t nr = own.add_input(t);
  PyRef answer = PyRef::share(result);
  if (!wanted) {
    if (!t.requires_grad()) {
      if (is_input && !written) answer = view_of_input(f, result, t);
    } else if (is_input) {
      answer = PyRef::check(wrap(at::detach(t)));
    } else if (!is_view(t)) {
      at::detach_(t);
    }
  } else if (written) {
    finish_written(f, t, is_input, nr);
  } else {
    if (is_input) answer = view_of_input(f, result, t);
    set_edge(tensor_of(answer.get()), f.node, nr);
  }
  const Tensor& out = tensor_of(answer.get());
  if (!(is_input && written) && is_view(out)) out->autograd->creation = Creation::InFunction;
  return answer;
}

}  // namespace

PyRef finish_outputs(Finish f, PyObject* results) {
  PyRef outputs = PyRef::check(PyTuple_New(f.count));
  for (Py_ssize_t i = 0; i < f.count; ++i)
    PyTuple_SET_ITEM(outputs.get(), i, finish_output(f, PyTuple_GET_ITEM(results, i)).release());
  for (Py_ssize_t i = 0; i < f.count && f.differentiable > 1; ++i) {
    PyObject* const o = PyTuple_GET_ITEM(outputs.get(), i);
    if (is_tensor(o) && is_view(tensor_of(o))) tensor_of(o)->autograd->creation = Creation::MultiOutput;
  }
  PyObject* const dirty = f.c->dirty_tensors;
  for (Py_ssize_t i = 0; dirty && i < PyTuple_GET_SIZE(dirty); ++i)
    TN_CHECK(contains(results, PyTuple_GET_ITEM(dirty, i)),
             "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
             "modified inplace must all be outputs of the Function.");
  return outputs;
}

void bump_dirty(PyObject* dirty) {
  for (Py_ssize_t i = 0; dirty && i < PyTuple_GET_SIZE(dirty); ++i) {
    PyObject* const item = PyTuple_GET_ITEM(dirty, i);
    if (!is_tensor(item))
      fail(ErrorKind::Runtime, "mark_dirty can only accept variables, but argument ", i, " is of type ",
           Py_TYPE(item)->tp_name);
    if (!tensor_of(item)->is_inference()) tensor_of(item)->bump_version();
  }
}

}  // namespace tn::py
