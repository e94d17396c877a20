// Forward mode of torch.autograd.Function: its jvp gives the tangents of its results.
#include "bindings/function_parts.h"
#include "bindings/tensor.h"
#include "generated/ops/zeros_like.h"
#include "runtime/autograd/forward.h"
#include "runtime/autograd_meta.h"

namespace tn::py {

namespace {

bool differentiable(const Tensor& t) { return t.is_floating_point() || t.is_complex(); }
bool is_forward_view(const Tensor& t) { return t.defined() && is_view(t) && t->autograd->forward_view; }
// What a tensor's tangent hangs on: the base of a view, else the tensor itself.
const TensorImpl* forward_root(const Tensor& t) {
  return is_forward_view(t) ? t->autograd->forward_info().base.impl() : t.impl();
}

// A tensor among forward's arguments.
struct Primal {
  Tensor value, tangent;
  uint32_t version = 0;  // of the tangent, before jvp ran
};

// What jvp answers, one for each of forward's results; undefined for None.
std::vector<Tensor> call_jvp(PyObject* self, const Context& c, const std::vector<Primal>& primals) {
  const std::vector<bool>& is_tensor_argument = *c.is_tensor;
  const PyRef args = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(is_tensor_argument.size())));
  size_t at = 0;
  for (size_t i = 0; i < is_tensor_argument.size(); ++i) {
    Tensor given;
    if (is_tensor_argument[i]) {
      const Primal& p = primals[at++];
      given =
          !p.tangent.defined() && c.materialize_grads && differentiable(p.value) ? at::zeros_like(p.value) : p.tangent;
    }
    PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), PyRef::check(wrap(std::move(given))).release());
  }
  const PyRef jvp = PyRef::check(PyObject_GetAttrString(self, "apply_jvp"));
  PyRef answer;
  {
    const FwGradModeGuard off(false);
    answer = PyRef::check(PyObject_CallObject(jvp.get(), args.get()));
  }
  if (!PyTuple_Check(answer.get())) answer = PyRef::check(PyTuple_Pack(1, answer.get()));
  std::vector<Tensor> tangents;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(answer.get()); ++i) {
    PyObject* const item = PyTuple_GET_ITEM(answer.get(), i);
    TN_CHECK(item == Py_None || is_tensor(item), "expected Variable or None (got ", Py_TYPE(item)->tp_name,
             ") for grad output ", i, ".");
    tangents.push_back(item == Py_None ? Tensor() : tensor_of(item));
  }
  return tangents;
}

// An argument that forward wrote in place: its tangent was written in place, too.
void check_written(const Primal& p, const Tensor& tangent) {
  TN_CHECK(
      tangent.defined() && tangent->version() != p.version,
      "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying "
      "an input inplace, then the jvp function must modify the corresponding gradient inplace.");
  TN_CHECK(
      tangent.is_same(p.tangent),
      "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying an "
      "input inplace, then the jvp function must modify the gradient inplace and return it as-is.");
}

// A result that is a view of an argument has a view of the argument's tangent.
void check_view(const Tensor& input_tangent, const Tensor& tangent) {
  TN_CHECK(is_forward_view(tangent),
           "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view.");
  TN_CHECK(forward_root(tangent) == forward_root(input_tangent),
           is_forward_view(input_tangent)
               ? "A custom Function is returning a view but the jvp is not returning a view of the same base as the "
                 "given grad input."
               : "A custom Function is returning a view but the jvp is not returning a view of the given grad input.");
}

void set_output_tangent(const std::vector<Primal>& primals, const Tensor& out, const Tensor& tangent) {
  bool written = false;
  if (is_forward_view(out)) {
    for (const Primal& p : primals) {
      if (forward_root(p.value) != forward_root(out)) continue;
      if (p.tangent.defined()) check_view(p.tangent, tangent);
      else written = true;  // the base had none: as if the view's had been written
      break;
    }
  }
  forward::set_tangent(out, tangent, written);
}

}  // namespace

void finish_tangents(const Finish& f, PyObject* self, PyObject* results, PyObject* outputs) {
  std::vector<Primal> primals;
  bool any = false;
  for (PyObject* input : f.inputs.tensors) {
    Primal& p = primals.emplace_back();
    p.value = tensor_of(input);
    p.tangent = forward::tangent_of(p.value);
    if (!p.tangent.defined()) continue;
    p.version = p.tangent->version();
    any = true;
  }
  if (!any) return;
  const std::vector<Tensor> tangents = call_jvp(self, *f.c, primals);
  TN_CHECK(static_cast<Py_ssize_t>(tangents.size()) == f.count,
           "Function's jvp returned an invalid number of forward gradients (expected ", f.count, " but got ",
           tangents.size(), ")");
  for (Py_ssize_t i = 0; i < f.count; ++i) {
    PyObject* const raw = PyTuple_GET_ITEM(results, i);
    const Tensor& tangent = tangents[static_cast<size_t>(i)];
    if (!is_tensor(raw)) continue;
    if (contains(f.c->non_differentiable, raw) || !differentiable(tensor_of(raw))) {
      TN_CHECK(!tangent.defined(), "Function's jvp returned a gradient at position ", i,
               ", but  the corresponding forward output is not a differentiable Tensor.You should return None at that "
               "position instead.");
      continue;
    }
    const Tensor& out = tensor_of(PyTuple_GET_ITEM(outputs, i));
    if (!contains(f.c->dirty_tensors, raw)) {
      set_output_tangent(primals, out, tangent);
      continue;
    }
    const Primal* input = nullptr;
    for (const Primal& p : primals)
      if (p.value.is_same(tensor_of(raw))) input = &p;
    TN_CHECK(input,
             "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no need to "
             "pass it to mark_dirty().");
    if (input->tangent.defined()) check_written(*input, tangent);
    else forward::set_tangent(out, tangent, true);
  }
}

}  // namespace tn::py
